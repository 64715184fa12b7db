// The loaded model: what it is, where it runs, what it takes; loading with progress; what failed.
#pragma once
#include <QFrame>

#include "ui/host/host_client.h"

class QLabel;
class QProgressBar;
class QPushButton;

namespace recto::ui {

class Theme;

class ModelCard : public QFrame {
    Q_OBJECT
  public:
    ModelCard(const Theme* theme, HostClient* host, QWidget* parent = nullptr);

  Q_SIGNALS:
    void open_wanted();
    void better_answers_wanted();

  protected:
    void changeEvent(QEvent* event) override;

  private:
    void refresh();
    void show_progress(const QString& stage, double fraction);
    void restyle();
    QString details() const;
    const Theme* theme_;
    HostClient* host_;
    QLabel *name_, *details_, *starter_;
    QProgressBar* progress_;
    QPushButton *open_, *reload_, *eject_, *cancel_;
};

}  // namespace recto::ui
