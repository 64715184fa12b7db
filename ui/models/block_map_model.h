// A row for each touched block of one host's pool, and one for the untouched tail.
#pragma once
#include <QAbstractListModel>
#include <functional>
#include <memory>
#include <span>

#include "ui/host/host_types.h"
#include "ui/models/owner_palette.h"

namespace recto::ui {

// What one cell shows. `style` is valid when the block has an owner.
struct BlockCell {
    BlockState state{};
    bool owned = false;
    OwnerStyle style;
    OwnerId owner = 0;
    int fill = 0;         // tokens in it, 0 … block size
    int ref_count = 0;    // ≥ 2: shared
    bool dimmed = false;  // cached: the last owner's hue, dimmed
    bool operator==(const BlockCell& o) const {
        return state == o.state && owner == o.owner && fill == o.fill && ref_count == o.ref_count;
    }
};

class BlockMapModel : public QAbstractListModel {
    Q_OBJECT
  public:
    enum Roles {
        state_role = Qt::UserRole + 1,  // int of BlockState
        owner_role,                     // quint64
        owner_name_role,
        hue_role,
        pattern_role,  // ints; -1 without owner
        fill_role,     // 0.0 … 1.0
        ref_count_role,
        dimmed_role,  // bool
        tail_role,    // bool: the last row, "1,900 more free"
    };
    using StyleOf = std::function<OwnerStyle(OwnerId)>;
    using NameOf = std::function<QString(OwnerId)>;
    BlockMapModel(StyleOf style_of, NameOf name_of, QObject* parent = nullptr);

    // Cells that did not change cause no signal.
    void set_snapshot(std::shared_ptr<const PoolSnapshot> snapshot);  // null: no pool
    const PoolSnapshot* snapshot() const { return snapshot_.get(); }
    std::span<const BlockCell> cells() const { return cells_; }  // for painting: no QVariant a cell
    int untouched() const { return untouched_; }                 // folded into the last row
    int block_size() const;
    // "421 of 512 used; Tainan 231, Regex 164; 26 shared": what is used, once each
    QString summary() const;
    struct OwnerCount {
        OwnerId owner = 0;
        int own = 0;  // blocks that no other sequence has; shared ones are counted apart
    };
    std::vector<OwnerCount> owners() const;  // of used blocks, those with most of their own first
    double waste() const;                    // empty slots ÷ allocated slots; 0 without any

    int rowCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QHash<int, QByteArray> roleNames() const override;

  Q_SIGNALS:
    void updated();  // once a snapshot, after the rows

  private:
    BlockCell cell_of(const BlockSnapshot& block) const;
    void resize_to(int touched, int untouched);
    StyleOf style_of_;
    NameOf name_of_;
    std::shared_ptr<const PoolSnapshot> snapshot_;
    std::vector<BlockCell> cells_;
    int untouched_ = 0;
};

}  // namespace recto::ui
