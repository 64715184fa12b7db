#include "ui/panel/panel_feed.h"

#include <algorithm>

namespace recto::ui {

PanelFeed::PanelFeed(Session* session, HostClient* host, QObject* parent)
    : QObject(parent), session_(session), host_(host) {
    const auto name = [session](OwnerId owner) { return session->owner_name(owner); };
    map_ = new BlockMapModel([session](OwnerId owner) { return session->style(owner); }, name, this);
    events_ = new PoolEventModel(name, 10'000, this);
    connect(session, &Session::snapshot_ready, this,
            [this](HostClient* from, const std::shared_ptr<const PoolSnapshot>& snapshot) {
                if (from == host_ && visible_) take(snapshot);
            });
    connect(host, &HostClient::pool_events_ready, this,
            [this](const std::shared_ptr<const PoolEventBatch>& batch) {
                QElapsedTimer timer;
                timer.start();
                owners_.apply(batch->events);
                events_->append(*batch);
                Q_EMIT events_added();
                gui_s_ += double(timer.nsecsElapsed()) * 1e-9;
            });
    connect(host, &HostClient::state_changed, this, [this](HostState state) {
        if (state != HostState::ready) {
            map_->set_snapshot(nullptr);
            series_.clear();
            owners_.clear();
            events_->clear();
        } else if (visible_) {
            host_->request_snapshot();
        }
        Q_EMIT model_changed();
        Q_EMIT updated();
    });
    idle_.setInterval(1000);
    connect(&idle_, &QTimer::timeout, this, [this] {
        if (host_->ready()) host_->request_snapshot();
    });
}

const EngineSnapshot* PanelFeed::snapshot() const {
    const PoolSnapshot* s = map_->snapshot();
    return s == nullptr ? nullptr : &s->engine;
}

std::vector<CellLook> PanelFeed::looks() const {
    const auto cells = map_->cells();
    std::vector<CellLook> looks;
    looks.reserve(cells.size());
    const bool crowded =
        map_->owners().size() > 7;  // hues repeat: the chat being read stays at full strength
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const BlockCell& cell = cells[i];
        CellLook look;
        look.state = cell.state;
        look.fill = std::uint8_t(std::clamp(cell.fill, 0, 255));
        look.ref_count = std::uint16_t(std::clamp(cell.ref_count, 0, 65535));
        if (cell.owned) look.owner = std::int16_t(cell.style.number);
        if (cell.ref_count == 2) {
            const OwnerId other = owners_.other_than(BlockId(i), cell.owner);
            if (other != 0) look.second = std::int16_t(session_->style(other).number);
        }
        look.faded = crowded && current_ != 0 && cell.owner != current_;
        looks.push_back(look);
    }
    return looks;
}

void PanelFeed::set_visible(bool visible) {
    if (visible == visible_) return;
    visible_ = visible;
    session_->set_snapshot_rate(visible ? rate : 0);
    host_->watch_pool_events(visible);
    if (!visible) {
        idle_.stop();
        return;
    }
    owners_.clear();  // what happened meanwhile is not known
    idle_.start();
    if (host_->ready()) host_->request_snapshot();
}

void PanelFeed::take(const std::shared_ptr<const PoolSnapshot>& snapshot) {
    QElapsedTimer timer;
    timer.start();
    if (host_->ready()) {
        map_->set_snapshot(snapshot);
        series_.add(snapshot->engine);
        Q_EMIT updated();
    }
    gui_s_ += double(timer.nsecsElapsed()) * 1e-9;
}

}  // namespace recto::ui
