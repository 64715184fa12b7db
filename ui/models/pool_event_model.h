// The last pool events, oldest first.
#pragma once
#include <QAbstractTableModel>
#include <deque>
#include <functional>

#include "ui/host/host_types.h"

namespace recto::ui {

class PoolEventModel : public QAbstractTableModel {
    Q_OBJECT
  public:
    enum Column { step_column, kind_column, block_column, owner_column, text_column, column_count };
    enum Roles { kind_role = Qt::UserRole + 1, owner_role };
    using NameOf = std::function<QString(OwnerId)>;
    explicit PoolEventModel(NameOf name_of, int capacity = 10'000, QObject* parent = nullptr);

    void append(const PoolEventBatch& batch);
    void clear();
    std::uint64_t dropped() const { return dropped_; }
    const PoolEvent& event(int row) const { return events_[std::size_t(row)]; }
    QString sentence(const PoolEvent& event) const;  // "share block 7 → Tainan (2 owners)"

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

  private:
    NameOf name_of_;
    const int capacity_;
    std::deque<PoolEvent> events_;
    std::uint64_t dropped_ = 0;
};

}  // namespace recto::ui
