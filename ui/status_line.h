// The bottom line: model, device and kernels, pool, speed; step time and chats.
#pragma once
#include <QWidget>

#include "ui/models/session.h"

class QLabel;

namespace recto::ui {

class Theme;

class StatusLine : public QWidget {
    Q_OBJECT
  public:
    StatusLine(const Theme* theme, Session* session, QWidget* parent = nullptr);
    void show_address(const QString& address);  // of the link under the pointer; empty: none
    void announce(const QString& sentence);     // for screen readers

  protected:
    void changeEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

  private:
    void show_model();
    void show_snapshot(const PoolSnapshot* snapshot);
    void show_chats();
    void restyle();
    const Theme* theme_;
    Session* session_;
    QLabel *model_, *device_, *pool_, *speed_, *step_, *chats_, *address_, *spoken_;
    struct Mark {
        double time = 0;
        std::uint64_t decoded = 0;
    };
    std::vector<Mark> marks_;  // of about the last second, for tokens a second
};

}  // namespace recto::ui
