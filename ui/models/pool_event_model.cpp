#include "ui/models/pool_event_model.h"

#include <QLocale>
#include <algorithm>

namespace recto::ui {

PoolEventModel::PoolEventModel(NameOf name_of, int capacity, QObject* parent)
    : QAbstractTableModel(parent), name_of_(std::move(name_of)), capacity_(capacity) {}

void PoolEventModel::append(const PoolEventBatch& batch) {
    dropped_ += batch.dropped;
    const int coming = std::min(int(batch.events.size()), capacity_);
    dropped_ += batch.events.size() - std::size_t(coming);
    if (coming == 0) return;
    const int excess = int(events_.size()) + coming - capacity_;
    if (excess > 0) {
        beginRemoveRows({}, 0, excess - 1);
        events_.erase(events_.begin(), events_.begin() + excess);
        endRemoveRows();
    }
    beginInsertRows({}, int(events_.size()), int(events_.size()) + coming - 1);
    events_.insert(events_.end(), batch.events.end() - coming, batch.events.end());
    endInsertRows();
}

void PoolEventModel::clear() {
    beginResetModel();
    events_.clear();
    dropped_ = 0;
    endResetModel();
}

QString PoolEventModel::sentence(const PoolEvent& e) const {
    const QString whose = name_of_(e.owner);
    switch (e.kind) {
        case PoolEventKind::alloc:
            return tr("alloc block %1 → %2").arg(e.block).arg(whose);
        case PoolEventKind::share:
            return tr("share block %1 → %2 (%n owner(s))", nullptr, e.count).arg(e.block).arg(whose);
        case PoolEventKind::copy:
            return tr("copy block %1 → %2 for %3").arg(e.other).arg(e.block).arg(whose);
        case PoolEventKind::free:
            return tr("free block %1 of %2").arg(e.block).arg(whose);
        case PoolEventKind::evict:
            return tr("evict block %1, cached for %2").arg(e.block).arg(whose);
        case PoolEventKind::preempt:
            return tr("preempt %1, %n block(s) freed", nullptr, e.count).arg(whose);
        case PoolEventKind::swap_out:
            return tr("swap out block %1 of %2 to host memory").arg(e.block).arg(whose);
        case PoolEventKind::swap_in:
            return tr("swap in block %1 for %2 from host memory").arg(e.block).arg(whose);
    }
    return {};
}

int PoolEventModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(events_.size());
}
int PoolEventModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(column_count);
}

QVariant PoolEventModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= int(events_.size())) return {};
    const PoolEvent& e = events_[std::size_t(index.row())];
    if (role == kind_role) return int(e.kind);
    if (role == owner_role) return quint64(e.owner);
    if (role != Qt::DisplayRole) return {};
    switch (index.column()) {
        case step_column:
            return qulonglong(e.step);
        case kind_column: {
            switch (e.kind) {
                case PoolEventKind::alloc:
                    return tr("alloc");
                case PoolEventKind::share:
                    return tr("share");
                case PoolEventKind::copy:
                    return tr("copy");
                case PoolEventKind::free:
                    return tr("free");
                case PoolEventKind::evict:
                    return tr("evict");
                case PoolEventKind::preempt:
                    return tr("preempt");
                case PoolEventKind::swap_out:
                    return tr("swap out");
                case PoolEventKind::swap_in:
                    return tr("swap in");
            }
            return {};
        }
        case block_column:
            return e.block < 0 ? QVariant() : QVariant(e.block);
        case owner_column:
            return name_of_(e.owner);
        case text_column:
            return sentence(e);
        default:
            return {};
    }
}

QVariant PoolEventModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    switch (section) {
        case step_column:
            return tr("Step");
        case kind_column:
            return tr("Event");
        case block_column:
            return tr("Block");
        case owner_column:
            return tr("Chat");
        case text_column:
            return tr("What happened");
        default:
            return {};
    }
}

}  // namespace recto::ui
