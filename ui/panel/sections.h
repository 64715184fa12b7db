// The live panel's parts, top to bottom.
#pragma once
#include <QLabel>
#include <QPushButton>
#include <array>

#include "ui/panel/block_map_widget.h"
#include "ui/panel/event_list.h"
#include "ui/panel/flow_legend.h"
#include "ui/panel/number_card.h"
#include "ui/panel/panel_section.h"
#include "ui/panel/plot.h"
#include "ui/panel/section_header.h"
#include "ui/panel/stage_bar.h"

namespace recto::ui {

class NumbersSection : public PanelSection {  // decode, prefill, running + waiting
    Q_OBJECT
  public:
    NumbersSection(const PanelContext& context, QWidget* parent);
    void refresh() override;
    void retranslate() override;

  private:
    NumberCard *decode_, *prefill_, *sequences_;
};

class BlockMapSection : public PanelSection {  // map, legend, waste, what the cell under the pointer holds
    Q_OBJECT
  public:
    BlockMapSection(const PanelContext& context, QWidget* parent);
    void refresh() override;
    void retranslate() override;
    BlockMapWidget* map() const { return map_; }

  protected:
    void hideEvent(QHideEvent* event) override;

  private:
    void point_at(int block);
    void show_description(const BlockDescription& description);
    SectionHeader* header_;
    BlockMapWidget* map_;
    FlowLegend* legend_;
    QLabel* reserved_;
    QLabel* tip_;
    int pointed_ = -1;
};

class BlocksOverTimeSection : public PanelSection {
    Q_OBJECT
  public:
    BlocksOverTimeSection(const PanelContext& context, QWidget* parent);
    void refresh() override;
    void retranslate() override;

  private:
    SectionHeader* header_;
    PlotWidget* plot_;
};

class SpeedSection : public PanelSection {  // decode and prefill tokens a second
    Q_OBJECT
  public:
    SpeedSection(const PanelContext& context, QWidget* parent);
    void refresh() override;
    void retranslate() override;

  private:
    SectionHeader* header_;
    PlotWidget* plot_;
};

class LoadSection : public PanelSection {  // hidden until a model was loaded
    Q_OBJECT
  public:
    LoadSection(const PanelContext& context, QWidget* parent);
    void refresh() override {}
    void retranslate() override;

  private:
    void show_model();
    SectionHeader* header_;
    StageBar* bar_;
    FlowLegend* legend_;
};

class EventsSection : public PanelSection {  // pool events; pause and step
    Q_OBJECT
  public:
    EventsSection(const PanelContext& context, QWidget* parent);
    void refresh() override;
    void retranslate() override;

  public Q_SLOTS:
    void toggle_pause();
    void step();

  private:
    void show_paused(bool paused);
    SectionHeader* header_;
    QPushButton *pause_, *step_;
    EventList* list_;
};

}  // namespace recto::ui
