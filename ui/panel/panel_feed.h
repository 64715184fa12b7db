// What the live panel's sections draw from: the newest snapshot of one host as models, its history and its
// events. Snapshots and events are asked for only while the panel is visible.
#pragma once
#include <QElapsedTimer>
#include <QObject>
#include <QTimer>

#include "ui/models/block_map_model.h"
#include "ui/models/pool_event_model.h"
#include "ui/models/session.h"
#include "ui/models/time_series.h"
#include "ui/panel/block_owners.h"
#include "ui/panel/cell_look.h"

namespace recto::ui {

class PanelFeed : public QObject {
    Q_OBJECT
  public:
    // Snapshots a second while visible. Between 10 and 15 the eye sees motion and the engine loses nothing.
    static constexpr int rate = 12;

    PanelFeed(Session* session, HostClient* host, QObject* parent = nullptr);

    Session* session() const { return session_; }
    HostClient* host() const { return host_; }
    BlockMapModel* map() const { return map_; }
    PoolEventModel* events() const { return events_; }
    const TimeSeries& series() const { return series_; }
    const EngineSnapshot* snapshot() const;  // null: no model
    std::vector<CellLook> looks() const;     // of the touched blocks
    void set_visible(bool visible);
    void set_current_chat(OwnerId owner) { current_ = owner; }
    double gui_seconds() const {
        return gui_s_;
    }  // spent on the GUI thread by updates so far, without painting

  Q_SIGNALS:
    void updated();  // a snapshot came
    void events_added();
    void model_changed();  // loaded, ejected, loading

  private:
    void take(const std::shared_ptr<const PoolSnapshot>& snapshot);
    Session* session_;
    HostClient* host_;
    BlockMapModel* map_;
    PoolEventModel* events_;
    TimeSeries series_;
    BlockOwners owners_;
    OwnerId current_ = 0;
    bool visible_ = false;
    QTimer idle_;  // while nothing runs the rates must still fall to zero
    double gui_s_ = 0;
};

}  // namespace recto::ui
