// One part of the live panel. A new one is a class here and a line in live_panel.cpp.
#pragma once
#include <QWidget>

#include "ui/panel/panel_feed.h"
#include "ui/theme/theme.h"

namespace recto::ui {

struct PanelContext {
    const Theme* theme = nullptr;
    PanelFeed* feed = nullptr;
};

class PanelSection : public QWidget {
    Q_OBJECT
  public:
    explicit PanelSection(const PanelContext& context, QWidget* parent)
        : QWidget(parent), context_(context) {}
    virtual void refresh() = 0;      // from the feed; called while the panel is visible
    virtual void retranslate() = 0;  // texts, in the language of now

  protected:
    const Theme* theme() const { return context_.theme; }
    PanelFeed* feed() const { return context_.feed; }

  private:
    PanelContext context_;
};

}  // namespace recto::ui
