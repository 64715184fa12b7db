// The right side of the window: what the engine does, drawn 12 times a second while it can be seen.
#pragma once
#include <QScrollArea>
#include <vector>

#include "ui/panel/panel_section.h"

namespace recto::ui {

class LivePanel : public QScrollArea {
    Q_OBJECT
  public:
    LivePanel(const Theme* theme, Session* session, HostClient* host, QWidget* parent = nullptr);
    PanelFeed* feed() const { return feed_; }
    const std::vector<PanelSection*>& sections() const { return sections_; }

  protected:
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void refresh();
    void retranslate();
    void update_visibility();
    const Theme* theme_;
    PanelFeed* feed_;
    std::vector<PanelSection*> sections_;
    QWidget* watched_window_ = nullptr;
};

}  // namespace recto::ui
