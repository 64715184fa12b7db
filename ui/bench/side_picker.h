// One side of a benchmark: the model, chosen from those known or by a file dialog, and what its headers say.
#pragma once
#include <QFrame>

#include "ui/host/host_types.h"

class QComboBox;
class QLabel;
class QMenu;
class QPushButton;

namespace recto::ui {

class Settings;
class Theme;

class SidePicker : public QFrame {
    Q_OBJECT
  public:
    SidePicker(char side, const Theme* theme, Settings* settings, QWidget* parent = nullptr);
    QString path() const;  // empty: none (side B)
    void set_path(const QString& path);
    void refresh_models();                           // the known ones; the choice stays
    void set_details(const EstimateReport& report);  // of path()

  Q_SIGNALS:
    void path_changed(const QString& path);

  protected:
    void changeEvent(QEvent* event) override;

  private:
    void choose_file();
    void choose_folder();
    void retranslate();
    void restyle();
    void show_details();
    const char side_;
    const Theme* theme_;
    Settings* settings_;
    QLabel* title_;
    QComboBox* models_;
    QPushButton* browse_;
    QMenu* browse_menu_;
    QLabel* details_;
    EstimateReport report_;
    bool known_ = false;  // report_ is of path()
};

}  // namespace recto::ui
