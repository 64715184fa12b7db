#include "ui/bench/bench_table_model.h"

#include <algorithm>

namespace recto::ui {
namespace {

QString model_of(const CompareReport& report, char side) {
    for (const BenchRow& row : report.rows)
        if (row.side == side) return QString::fromStdString(row.model);
    return {};
}

bool same(const BenchTableModel::Cell& a, const BenchTableModel::Cell& b) {
    return a.text == b.text && a.tip == b.tip && a.tone == b.tone;
}

bool same(const BenchTableModel::Row& a, const BenchTableModel::Row& b) {
    return a.label == b.label && a.formula == b.formula && same(a.a, b.a) && same(a.b, b.b) &&
           same(a.verdict, b.verdict);
}

}  // namespace

BenchTableModel::BenchTableModel(QObject* parent) : QAbstractTableModel(parent) {}

void BenchTableModel::set_report(std::shared_ptr<const CompareReport> report) {
    std::vector<Row> rows = report ? bench_rows(*report) : std::vector<Row>{};
    const QString a = report ? model_of(*report, 'A') : QString(),
                  b = report ? model_of(*report, 'B') : QString();
    const bool goes_on = !rows_.empty() && rows.size() >= rows_.size() && a == name_a_ && b == name_b_ &&
                         std::equal(rows_.begin(), rows_.end(), rows.begin(),
                                    [](const Row& x, const Row& y) { return x.key == y.key; });
    report_ = std::move(report);
    if (!goes_on) {
        beginResetModel();
        rows_ = std::move(rows);
        name_a_ = a;
        name_b_ = b;
        endResetModel();
        return;
    }
    const int before = int(rows_.size());
    for (int i = 0; i < before; ++i) {
        Row& old = rows_[std::size_t(i)];
        Row& now = rows[std::size_t(i)];
        if (same(old, now)) continue;
        old = now;
        Q_EMIT dataChanged(index(i, 0), index(i, columnCount() - 1));
    }
    if (int(rows.size()) == before) return;
    beginInsertRows({}, before, int(rows.size()) - 1);
    rows_ = std::move(rows);
    endInsertRows();
}

void BenchTableModel::set_shown_names(const QString& a, const QString& b) {
    if (a == shown_a_ && b == shown_b_) return;
    shown_a_ = a;
    shown_b_ = b;
    Q_EMIT headerDataChanged(Qt::Horizontal, side_a, columnCount() - 1);
}

void BenchTableModel::retranslate() {
    beginResetModel();
    rows_ = report_ ? bench_rows(*report_) : std::vector<Row>{};
    endResetModel();
}

int BenchTableModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : int(rows_.size());
}

int BenchTableModel::columnCount(const QModelIndex& parent) const {
    if (parent.isValid()) return 0;
    return name_b_.isEmpty() ? 2 : 4;
}

QVariant BenchTableModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= int(rows_.size())) return {};
    const Row& row = rows_[std::size_t(index.row())];
    if (role == section_role) return row.section;
    if (role == formula_role) return index.column() == metric ? row.formula : QString();
    if (index.column() == metric) {
        if (role == Qt::DisplayRole) return row.label;
        if (role == Qt::ToolTipRole && !row.formula.isEmpty())
            return QStringLiteral("%1\n%2").arg(row.label, row.formula);
        if (role == Qt::AccessibleDescriptionRole) return row.formula;
        if (role == tone_role) return int(Tone::normal);
        return {};
    }
    const Cell& cell = index.column() == side_a ? row.a : index.column() == side_b ? row.b : row.verdict;
    switch (role) {
        case Qt::DisplayRole:
            return cell.text;
        case Qt::ToolTipRole:
            return cell.tip.isEmpty() ? QVariant() : QVariant(cell.tip);
        case Qt::AccessibleDescriptionRole:
            return cell.tip;
        case Qt::TextAlignmentRole:
            return int(Qt::AlignRight | Qt::AlignVCenter);
        case tone_role:
            return int(cell.tone);
        default:
            return {};
    }
}

QVariant BenchTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal) return {};
    if (role == Qt::TextAlignmentRole)
        return int((section == metric ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole && section == side_a) return name_a_;
    if (role == Qt::ToolTipRole && section == side_b) return name_b_;
    if (role == Qt::ToolTipRole && section == verdict)
        return tr(
            "B compared with A. Coloured only where the runs' ranges do not overlap and the difference is "
            "larger than what A's own runs differ by.");
    if (role != Qt::DisplayRole) return {};
    switch (section) {
        case metric:
            return tr("Figure");
        case side_a:
            return tr("A · %1").arg(shown_a_);
        case side_b:
            return tr("B · %1").arg(shown_b_);
        default:
            return tr("B : A");
    }
}

QString BenchTableModel::row_details(int row) const {
    if (row < 0 || row >= int(rows_.size())) return {};
    const Row& r = rows_[std::size_t(row)];
    QStringList parts;
    if (!r.a.tip.isEmpty()) parts << tr("A: %1").arg(r.a.tip);
    if (!r.b.tip.isEmpty()) parts << tr("B: %1").arg(r.b.tip);
    if (!r.verdict.tip.isEmpty()) parts << r.verdict.tip;
    return parts.join(QStringLiteral(" · ")).replace(QLatin1Char('\n'), QStringLiteral(" · "));
}

QString BenchTableModel::row_text(int row) const {
    QStringList cells;
    for (int column = 0; column < columnCount(); ++column)
        cells << index(row, column).data().toString();
    return cells.join(QLatin1Char('\t'));
}

}  // namespace recto::ui
