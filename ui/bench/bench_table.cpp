#include "ui/bench/bench_table.h"

#include <QClipboard>
#include <QContextMenuEvent>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QMenu>
#include <QPainter>
#include <QStyledItemDelegate>
#include <algorithm>

#include "ui/theme/theme.h"

namespace recto::ui {
namespace {

constexpr int side_pad = 10, row_pad = 5, formula_gap = 10;

class BenchDelegate : public QStyledItemDelegate {
  public:
    BenchDelegate(const Theme* theme, QObject* parent) : QStyledItemDelegate(parent), theme_(theme) {}

    // The formula stands behind its label where both fit, and below it where they do not.
    static bool one_line(const Palette& p, const QString& label, const QString& formula, int width) {
        const int gap = formula.isEmpty() ? 0 : formula_gap;
        return QFontMetrics(p.fonts.body).horizontalAdvance(label) + gap +
                   QFontMetrics(p.fonts.small).horizontalAdvance(formula) + 2 * side_pad <=
               width;
    }

    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        const Palette& p = theme_->palette();
        const QFontMetrics body(p.fonts.body);
        const bool section = index.data(BenchTableModel::section_role).toBool();
        if (section) return {0, QFontMetrics(p.fonts.strong).height() + 2 * row_pad + p.metrics.gap};
        const QString text = index.data().toString();
        int height = body.height() + 2 * row_pad;
        if (index.column() != BenchTableModel::metric)
            return {QFontMetrics(value_font(p, index)).horizontalAdvance(text) + 2 * side_pad + 2, height};
        const QString formula = index.data(BenchTableModel::formula_role).toString();
        const int width = option.rect.width();
        if (width > 0 && !one_line(p, text, formula, width))
            height = wrapped(p.fonts.body, text, width).height() + 2 * row_pad +
                     (formula.isEmpty() ? 0 : wrapped(p.fonts.small, formula, width).height());
        return {body.horizontalAdvance(text) + 2 * side_pad, height};
    }

    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override {
        const Palette& p = theme_->palette();
        const bool section = index.data(BenchTableModel::section_role).toBool();
        const bool chosen = (option.state & QStyle::State_Selected) != 0;
        painter->save();
        if (chosen) painter->fillRect(option.rect, p.selection);
        painter->setPen(QPen(p.line, 0));
        painter->drawLine(option.rect.bottomLeft(), option.rect.bottomRight());
        const QRect inner = option.rect.adjusted(side_pad, 0, -side_pad, 0);
        const QString text = index.data().toString();
        if (section) {
            painter->setFont(p.fonts.strong);
            painter->setPen(chosen ? p.on_selection : p.text);
            painter->drawText(inner.adjusted(0, p.metrics.gap, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, text);
        } else if (index.column() == BenchTableModel::metric) {
            paint_metric(*painter, inner, option.rect.width(), index, chosen);
        } else {
            paint_value(*painter, inner, index, chosen);
        }
        if (chosen && (option.state & QStyle::State_HasFocus) != 0) {
            painter->setPen(QPen(p.focus, 1));
            painter->setBrush(Qt::NoBrush);
            painter->drawRect(option.rect.adjusted(0, 0, -1, -1));
        }
        painter->restore();
    }

  private:
    static const QFont& value_font(const Palette& p, const QModelIndex& index) {
        const auto tone = BenchTableModel::Tone(index.data(BenchTableModel::tone_role).toInt());
        const bool strong = tone == BenchTableModel::Tone::better || tone == BenchTableModel::Tone::worse;
        return strong ? p.fonts.strong : p.fonts.body;
    }

    static QRect wrapped(const QFont& font, const QString& text, int width) {
        return QFontMetrics(font).boundingRect(QRect(0, 0, std::max(width - 2 * side_pad, 40), 1000),
                                               Qt::TextWordWrap, text);
    }

    void paint_metric(QPainter& painter, const QRect& inner, int width, const QModelIndex& index,
                      bool chosen) const {
        const Palette& p = theme_->palette();
        const QString label = index.data().toString();
        const QString formula = index.data(BenchTableModel::formula_role).toString();
        const QFontMetrics body(p.fonts.body);
        const bool plain = one_line(p, label, formula, width);
        const int label_height = wrapped(p.fonts.body, label, width).height();
        const QRect top(inner.left(), inner.top() + row_pad, inner.width(),
                        plain ? body.height() : label_height);
        painter.setFont(p.fonts.body);
        painter.setPen(chosen ? p.on_selection : p.text);
        painter.drawText(top, Qt::TextWordWrap | Qt::AlignLeft | Qt::AlignTop, label);
        if (formula.isEmpty()) return;
        painter.setFont(p.fonts.small);
        painter.setPen(chosen ? p.on_selection : p.dim);
        if (plain)
            painter.drawText(
                QPoint(inner.left() + body.horizontalAdvance(label) + formula_gap, top.top() + body.ascent()),
                formula);
        else
            painter.drawText(
                QRect(inner.left(), top.bottom() + 1, inner.width(), inner.bottom() - top.bottom()),
                Qt::TextWordWrap | Qt::AlignLeft | Qt::AlignTop, formula);
    }

    void paint_value(QPainter& painter, const QRect& inner, const QModelIndex& index, bool chosen) const {
        const Palette& p = theme_->palette();
        const auto tone = BenchTableModel::Tone(index.data(BenchTableModel::tone_role).toInt());
        QColor ink = p.text;
        if (tone == BenchTableModel::Tone::dim) ink = p.dim;
        if (tone == BenchTableModel::Tone::better) ink = p.success;
        if (tone == BenchTableModel::Tone::worse) ink = p.warning;
        const QFont& font = value_font(p, index);
        painter.setFont(font);
        painter.setPen(chosen ? p.on_selection : ink);
        const QFontMetrics metrics(font);
        const int baseline = inner.top() + row_pad + QFontMetrics(p.fonts.body).ascent();
        const QString text = metrics.elidedText(index.data().toString(), Qt::ElideRight, inner.width());
        painter.drawText(QPoint(inner.right() - metrics.horizontalAdvance(text), baseline), text);
    }

    const Theme* theme_;
};

}  // namespace

BenchTable::BenchTable(const Theme* theme, QWidget* parent)
    : QTableView(parent), theme_(theme), model_(new BenchTableModel(this)) {
    setObjectName(QStringLiteral("bench_table"));
    setModel(model_);
    setItemDelegate(new BenchDelegate(theme, this));
    setSelectionBehavior(QAbstractItemView::SelectRows);
    setSelectionMode(QAbstractItemView::ExtendedSelection);
    setEditTriggers(QAbstractItemView::NoEditTriggers);
    setTabKeyNavigation(false);
    setShowGrid(false);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    verticalHeader()->hide();
    verticalHeader()->setMinimumSectionSize(1);
    horizontalHeader()->setHighlightSections(false);
    horizontalHeader()->setSectionsClickable(false);
    horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    horizontalHeader()->setMinimumSectionSize(1);
    connect(model_, &QAbstractItemModel::modelReset, this, [this] { arrange(); });
    connect(model_, &QAbstractItemModel::rowsInserted, this, [this] { arrange(); });
    connect(model_, &QAbstractItemModel::dataChanged, this, [this] { arrange(); });
    connect(theme, &Theme::changed, this, [this] { restyle(); });
    restyle();
    retranslate();
}

void BenchTable::set_report(std::shared_ptr<const CompareReport> report) {
    model_->set_report(std::move(report));
}

void BenchTable::arrange() {
    const int columns = model_->columnCount(), rows = model_->rowCount();
    const int width = viewport()->width();
    // Values get what the widest needs, the verdict first; the label the rest, but never less than can be
    // read.
    const double zoom = theme_->palette().zoom;
    const QFontMetrics small(theme_->palette().fonts.small);
    int room = std::max(width - int(105 * zoom), 40), taken = 0;
    for (int column = columns - 1; column >= 1; --column) {
        const QString name = column == BenchTableModel::side_a   ? model_->name_a()
                             : column == BenchTableModel::side_b ? model_->name_b()
                                                                 : QString();
        const int heading = small.horizontalAdvance(QStringLiteral("B · ") + name) + 2 * side_pad + 4;
        int wanted = std::max(int(96 * zoom), std::min(heading, int(150 * zoom)));
        for (int row = 0; row < rows; ++row) {
            const QModelIndex index = model_->index(row, column);
            if (!index.data(BenchTableModel::section_role).toBool())
                wanted = std::max(wanted, sizeHintForIndex(index).width());
        }
        const int least_of_others = (column - 1) * int(60 * zoom);
        setColumnWidth(column, std::clamp(wanted, 40, std::max(room - least_of_others, 40)));
        room -= columnWidth(column);
        taken += columnWidth(column);
    }
    setColumnWidth(0, std::max(width - taken, 40));
    // A style sheet's heading is clipped, not elided.
    const auto shown = [&](const QString& name, int column) {
        const int space =
            columnWidth(column) - 2 * side_pad - 4 - small.horizontalAdvance(QStringLiteral("B · "));
        return small.elidedText(name, Qt::ElideMiddle, std::max(space, 0));
    };
    model_->set_shown_names(shown(model_->name_a(), BenchTableModel::side_a),
                            columns > 2 ? shown(model_->name_b(), BenchTableModel::side_b) : QString());
    clearSpans();
    for (int row = 0; row < rows; ++row)
        if (model_->index(row, 0).data(BenchTableModel::section_role).toBool()) setSpan(row, 0, 1, columns);
    resizeRowsToContents();
}

void BenchTable::copy_rows() const {
    QModelIndexList chosen = selectionModel()->selectedRows();
    std::sort(chosen.begin(), chosen.end());
    QStringList lines;
    for (const QModelIndex& index : chosen)
        lines << model_->row_text(index.row());
    if (!lines.isEmpty()) QGuiApplication::clipboard()->setText(lines.join(QLatin1Char('\n')));
}

void BenchTable::keyPressEvent(QKeyEvent* event) {
    if (event->matches(QKeySequence::Copy)) {
        copy_rows();
        return;
    }
    QTableView::keyPressEvent(event);
}

void BenchTable::contextMenuEvent(QContextMenuEvent* event) {
    if (!selectionModel()->hasSelection()) return;
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    menu->addAction(tr("Copy rows"), QKeySequence(QKeySequence::Copy), this, [this] { copy_rows(); });
    menu->popup(event->globalPos());
}

void BenchTable::resizeEvent(QResizeEvent* event) {
    QTableView::resizeEvent(event);
    if (event->size().width() != event->oldSize().width()) arrange();
}

void BenchTable::changeEvent(QEvent* event) {
    QTableView::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) retranslate();
}

void BenchTable::retranslate() {
    setAccessibleName(tr("Benchmark results"));
    model_->retranslate();
}

void BenchTable::restyle() {
    const Palette& p = theme_->palette();
    setStyleSheet(
        QStringLiteral("QTableView{background:%1;border:0;outline:0}"
                       "QHeaderView{background:%1;border:0}"
                       "QHeaderView::section{background:%1;color:%2;border:0;border-bottom:1px solid %3;"
                       "padding:4px %4px}")
            .arg(p.panel.name(), p.dim.name(), p.line.name())
            .arg(side_pad));
    horizontalHeader()->setFont(p.fonts.small);
    arrange();
}

}  // namespace recto::ui
