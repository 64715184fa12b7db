#include "ui/models/block_map_model.h"

#include <QLocale>
#include <QStringList>
#include <algorithm>
#include <map>

namespace recto::ui {

BlockMapModel::BlockMapModel(StyleOf style_of, NameOf name_of, QObject* parent)
    : QAbstractListModel(parent), style_of_(std::move(style_of)), name_of_(std::move(name_of)) {}

BlockCell BlockMapModel::cell_of(const BlockSnapshot& block) const {
    BlockCell cell;
    cell.state = block.state;
    cell.owner = block.state == BlockState::free ? 0 : block.owner;
    cell.owned = cell.owner != 0;
    if (cell.owned) cell.style = style_of_(cell.owner);
    cell.fill = block.fill;
    cell.ref_count = block.ref_count;
    cell.dimmed = block.state == BlockState::cached;
    return cell;
}

// The untouched tail is one row behind the cells; it grows and shrinks as rows, so that views keep their
// place.
void BlockMapModel::resize_to(int touched, int untouched) {
    const bool had_tail = untouched_ > 0, wants_tail = untouched > 0;
    const int old = int(cells_.size());
    if (touched < old) {
        beginRemoveRows({}, touched, old - 1);
        cells_.resize(std::size_t(touched));
        endRemoveRows();
    } else if (touched > old) {
        beginInsertRows({}, old, touched - 1);
        cells_.resize(std::size_t(touched));
        endInsertRows();
    }
    if (had_tail && !wants_tail) {
        beginRemoveRows({}, touched, touched);
        untouched_ = 0;
        endRemoveRows();
    } else if (!had_tail && wants_tail) {
        beginInsertRows({}, touched, touched);
        untouched_ = untouched;
        endInsertRows();
    } else if (untouched_ != untouched) {
        untouched_ = untouched;
        Q_EMIT dataChanged(index(touched), index(touched));
    }
}

void BlockMapModel::set_snapshot(std::shared_ptr<const PoolSnapshot> snapshot) {
    snapshot_ = std::move(snapshot);
    const int touched = snapshot_ ? int(snapshot_->engine.blocks.size()) : 0;
    const int total = snapshot_ ? snapshot_->engine.counts.total : 0;
    resize_to(touched, std::max(0, total - touched));
    int changed_from = -1;
    const auto report = [&](int end) {
        if (changed_from >= 0) Q_EMIT dataChanged(index(changed_from), index(end - 1));
        changed_from = -1;
    };
    for (int i = 0; i < touched; ++i) {
        const BlockCell cell = cell_of(snapshot_->engine.blocks[std::size_t(i)]);
        BlockCell& mine = cells_[std::size_t(i)];
        if (cell == mine) {
            report(i);
            continue;
        }
        mine = cell;
        if (changed_from < 0) changed_from = i;
    }
    report(touched);
    Q_EMIT updated();
}

int BlockMapModel::block_size() const {
    return snapshot_ ? snapshot_->engine.block_size : 0;
}

std::vector<BlockMapModel::OwnerCount> BlockMapModel::owners() const {
    std::map<OwnerId, int> own;
    for (const BlockCell& cell : cells_)
        if (cell.state == BlockState::used && cell.owned) own[cell.owner] += cell.ref_count <= 1 ? 1 : 0;
    std::vector<OwnerCount> owners;
    for (const auto& [owner, count] : own)
        owners.push_back({owner, count});
    std::stable_sort(owners.begin(), owners.end(),
                     [](const OwnerCount& a, const OwnerCount& b) { return a.own > b.own; });
    return owners;
}

double BlockMapModel::waste() const {
    if (!snapshot_ || snapshot_->engine.allocated_slots == 0) return 0;
    return double(snapshot_->engine.empty_slots) / double(snapshot_->engine.allocated_slots);
}

QString BlockMapModel::summary() const {
    if (!snapshot_) return tr("No pool.");
    const QLocale locale;
    const BlockPool::Counts& counts = snapshot_->engine.counts;
    QStringList parts{tr("%1 of %2 used").arg(locale.toString(counts.used), locale.toString(counts.total))};
    QStringList names;
    for (const OwnerCount& owner : owners())
        names << tr("%1 %2", "chat, blocks").arg(name_of_(owner.owner), locale.toString(owner.own));
    if (!names.isEmpty()) parts << names.join(QStringLiteral(", "));
    if (counts.shared > 0) parts << tr("%1 shared").arg(locale.toString(counts.shared));
    if (counts.cached > 0) parts << tr("%1 cached").arg(locale.toString(counts.cached));
    return parts.join(QStringLiteral("; "));
}

int BlockMapModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(cells_.size()) + (untouched_ > 0 ? 1 : 0);
}

QVariant BlockMapModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount()) return {};
    const bool tail = index.row() == int(cells_.size());
    if (role == tail_role) return tail;
    if (tail) {
        if (role == Qt::DisplayRole || role == Qt::AccessibleTextRole)
            return tr("%1 more free").arg(QLocale().toString(untouched_));
        return role == state_role ? QVariant(int(BlockState::free)) : QVariant();
    }
    const BlockCell& cell = cells_[std::size_t(index.row())];
    switch (role) {
        case Qt::DisplayRole:
        case Qt::AccessibleTextRole: {
            if (cell.state == BlockState::free) return tr("block %1: free").arg(index.row());
            const QString whose = cell.owned ? name_of_(cell.owner) : tr("nobody");
            if (cell.state == BlockState::cached)
                return tr("block %1: cached, last of %2").arg(index.row()).arg(whose);
            if (cell.ref_count > 1)
                return tr("block %1: shared by %2, last taken by %3")
                    .arg(index.row())
                    .arg(cell.ref_count)
                    .arg(whose);
            return tr("block %1: %2, %3 of %4 slots")
                .arg(index.row())
                .arg(whose)
                .arg(cell.fill)
                .arg(block_size());
        }
        case state_role:
            return int(cell.state);
        case owner_role:
            return quint64(cell.owner);
        case owner_name_role:
            return cell.owned ? name_of_(cell.owner) : QString();
        case hue_role:
            return cell.owned ? int(cell.style.hue) : -1;
        case pattern_role:
            return cell.owned ? int(cell.style.pattern) : -1;
        case fill_role:
            return block_size() > 0 ? double(cell.fill) / block_size() : 0.0;
        case ref_count_role:
            return cell.ref_count;
        case dimmed_role:
            return cell.dimmed;
        default:
            return {};
    }
}

QHash<int, QByteArray> BlockMapModel::roleNames() const {
    return {{Qt::DisplayRole, "display"},
            {state_role, "state"},
            {owner_role, "owner"},
            {owner_name_role, "owner_name"},
            {hue_role, "hue"},
            {pattern_role, "pattern"},
            {fill_role, "fill"},
            {ref_count_role, "ref_count"},
            {dimmed_role, "dimmed"},
            {tail_role, "tail"}};
}

}  // namespace recto::ui
