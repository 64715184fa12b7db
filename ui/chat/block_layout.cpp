#include "ui/chat/block_layout.h"

#include <QCoreApplication>
#include <QPainterPath>
#include <QTextOption>
#include <algorithm>
#include <cmath>

#include "ui/markdown/prepare.h"

namespace recto::ui {

using markdown::Block;
using markdown::BlockKind;
using markdown::Style;

namespace {

constexpr qreal list_step = 22, quote_step = 14;
constexpr qreal code_pad_x = 12, code_pad_y = 10, code_radius = 8;
constexpr qreal cell_pad_x = 10, cell_pad_y = 5;
constexpr qreal widest_column = 420, narrowest_column = 72;
constexpr int longest_code_line = 10'000;  // cropped on screen only
constexpr qreal scroll_mark_height = 3;

qreal pixels(const QFont& font) {
    return font.pointSizeF() * 96.0 / 72.0;
}

QString separated(QStringView text) {
    QString out = text.toString();
    for (QChar& c : out)
        if (c == u'\n') c = QChar::LineSeparator;
    return out;
}

QFont heading_font(int level, const Palette& palette) {
    static constexpr qreal scale[] = {1.0, 1.5, 1.3, 1.15, 1.0, 1.0, 1.0};
    QFont font = palette.fonts.strong;
    font.setPointSizeF(font.pointSizeF() * scale[std::clamp(level, 0, 6)]);
    font.setWeight(QFont::Bold);
    return font;
}

QTextCharFormat span_format(quint16 style, const Palette& palette) {
    QTextCharFormat format;
    if (style & Style::bold) format.setFontWeight(QFont::Bold);
    if (style & (Style::italic | Style::math)) format.setFontItalic(true);
    if (style & Style::strike) format.setFontStrikeOut(true);
    if (style & Style::code) {
        format.setFontFamilies(palette.fonts.code.families());
        format.setFontPointSize(palette.fonts.code.pointSizeF());
        format.setBackground(palette.raised);
    }
    if (style & Style::math)
        format.setFontFamilies({QStringLiteral("STIX Two Math"), QStringLiteral("Noto Serif"),
                                QStringLiteral("DejaVu Serif"), QStringLiteral("serif")});
    if (style & Style::image) format.setForeground(palette.dim);
    if (style & Style::link) {
        format.setForeground(palette.accent);
        format.setFontUnderline(true);
    }
    return format;
}

QList<QTextLayout::FormatRange> formats(const Block& block, int start, int length, const Palette& palette) {
    QList<QTextLayout::FormatRange> out;
    for (const auto& span : block.spans) {
        const int from = std::max(span.start, start), to = std::min(span.start + span.length, start + length);
        if (from < to) out.push_back({from - start, to - from, span_format(span.style, palette)});
    }
    return out;
}

// Breaks the layout into lines no wider than width, each at least line_height high. Returns the height.
qreal break_lines(QTextLayout& layout, qreal width, qreal line_height) {
    qreal y = 0;
    layout.beginLayout();
    for (QTextLine line = layout.createLine(); line.isValid(); line = layout.createLine()) {
        line.setLineWidth(width);
        const qreal height = std::max(line_height, std::ceil(line.height()));
        line.setPosition({0, y + std::floor((height - line.height()) / 2)});
        y += height;
    }
    layout.endLayout();
    return y;
}

qreal widest_line(const QTextLayout& layout) {
    qreal width = 0;
    for (int i = 0; i < layout.lineCount(); ++i)
        width = std::max(width, layout.lineAt(i).naturalTextWidth());
    return width;
}

std::unique_ptr<QTextLayout> make_layout(const QString& text, const QFont& font, QTextOption::WrapMode wrap) {
    auto layout = std::make_unique<QTextLayout>(text, font);
    layout->setCacheEnabled(true);
    QTextOption option;
    option.setWrapMode(wrap);
    option.setTabStopDistance(QFontMetricsF(font).horizontalAdvance(u' ') * 4);
    layout->setTextOption(option);
    return layout;
}

qreal inset_of(const Block& block) {
    return block.quote_depth * quote_step + block.indent * list_step;
}

// Shares the width among columns: who needs less than an equal share keeps what it needs.
std::vector<qreal> column_widths(std::vector<qreal> natural, qreal available) {
    std::vector<qreal> widths(natural.size(), 0);
    std::vector<size_t> open;
    for (size_t i = 0; i < natural.size(); ++i)
        open.push_back(i);
    while (!open.empty()) {
        const qreal share = std::max(narrowest_column, available / qreal(open.size()));
        std::vector<size_t> wider;
        for (const size_t i : open) {
            if (natural[i] <= share) {
                widths[i] = natural[i];
                available -= natural[i];
            } else {
                wider.push_back(i);
            }
        }
        if (wider.size() == open.size()) {
            for (const size_t i : open)
                widths[i] = std::min(natural[i], share);
            break;
        }
        open = std::move(wider);
    }
    return widths;
}

}  // namespace

qreal text_line_height(const Palette& palette) {
    return std::ceil(pixels(palette.fonts.body) * 1.5);
}
qreal code_line_height(const Palette& palette) {
    return std::ceil(pixels(palette.fonts.code) * 1.55);
}

qreal gap_above(const Block& block, const Block* previous) {
    if (!previous || block.joins_previous) return 0;
    if (block.tight) return 3;
    if (block.kind == BlockKind::heading) return 16;
    return 8;
}

qreal estimated_height(const Block& block, const Palette& palette, qreal width) {
    const qreal em = pixels(palette.fonts.body);
    if (block.kind == BlockKind::rule) return 9;
    const qreal lines = qreal(block.text.count(u'\n')) + (block.text.endsWith(u'\n') ? 0 : 1);
    if (block.kind == BlockKind::code) {
        const qreal frame = (block.joins_previous ? 0 : code_pad_y) + (block.joins_next ? 0 : code_pad_y);
        return std::max(1.0, lines) * code_line_height(palette) + frame;
    }
    if (block.kind == BlockKind::table) return lines * (text_line_height(palette) + 2 * cell_pad_y);
    // A Latin letter takes about half an em, a Chinese character a whole one: look at some of them.
    const qsizetype step = std::max<qsizetype>(1, block.text.size() / 64);
    qsizetype wide = 0, seen = 0;
    for (qsizetype i = 0; i < block.text.size(); i += step, ++seen)
        wide += markdown::is_cjk(block.text[i].unicode()) ? 1 : 0;
    const qreal per_char = em * (seen == 0 ? 0.5 : (0.5 * qreal(seen - wide) + qreal(wide)) / qreal(seen));
    const qreal room = std::max(em, width - inset_of(block));
    const qreal wrapped = std::ceil(qreal(block.text.size()) * per_char / room);
    const qreal scale = block.kind == BlockKind::heading ? 1.3 : 1.0;
    return std::max(wrapped, lines) * text_line_height(palette) * scale;
}

BlockLayout::BlockLayout(const Block& block, const Palette& palette, qreal width)
    : width_(width), inset_(inset_of(block)) {
    switch (block.kind) {
        case BlockKind::rule:
            height_ = 9;
            natural_width_ = width;
            break;
        case BlockKind::code:
            lay_out_code(block, palette);
            break;
        case BlockKind::table:
            lay_out_table(block, palette);
            break;
        default:
            lay_out_text(block, palette);
            break;
    }
}

void BlockLayout::lay_out_text(const Block& block, const Palette& palette) {
    const bool heading = block.kind == BlockKind::heading;
    const QFont font = heading ? heading_font(block.heading_level, palette) : palette.fonts.body;
    const int length = int(block.text.size());
    Piece piece{
        make_layout(separated(block.text), font, QTextOption::WrapAtWordBoundaryOrAnywhere), {}, 0, length};
    piece.layout->setFormats(formats(block, 0, length, palette));
    piece.width = std::max<qreal>(20, width_ - inset_);
    piece.at = {inset_, 0};
    height_ = break_lines(*piece.layout, piece.width, std::ceil(pixels(font) * 1.5));
    natural_width_ = inset_ + widest_line(*piece.layout);
    if (piece.layout->lineCount() > 0) {
        const QTextLine line = piece.layout->lineAt(0);
        marker_baseline_ = line.y() + line.ascent();
    }
    pieces_.push_back(std::move(piece));
}

void BlockLayout::lay_out_code(const Block& block, const Palette& palette) {
    const QFont& font = palette.fonts.code;
    const qreal line_height = code_line_height(palette);
    const QStringView text = block.text.endsWith(u'\n') ? QStringView(block.text).chopped(1) : block.text;
    // One layout for all lines, unless one is so long that it must be cropped by itself.
    std::vector<std::pair<int, int>> runs;
    for (qsizetype from = 0;;) {
        const qsizetype newline = text.indexOf(u'\n', from);
        const qsizetype to = newline < 0 ? text.size() : newline;
        const bool is_long = to - from > longest_code_line;
        const bool after_long = !runs.empty() && runs.back().second - runs.back().first > longest_code_line;
        if (runs.empty() || is_long || after_long)
            runs.push_back({int(from), int(to)});
        else
            runs.back().second = int(to);
        if (newline < 0) break;
        from = newline + 1;
    }
    qreal y = block.joins_previous ? 0 : code_pad_y, widest = 0, first_width = 0;
    for (const auto& [from, to] : runs) {
        QString shown = separated(text.sliced(from, to - from));
        if (shown.size() > longest_code_line && !shown.contains(QChar::LineSeparator))
            shown = shown.first(longest_code_line) + QChar(0x2026);
        Piece piece{make_layout(shown, font, QTextOption::NoWrap), {inset_ + code_pad_x, y}, from, to - from};
        y += break_lines(*piece.layout, 1e6, line_height);
        if (pieces_.empty() && piece.layout->lineCount() > 0)
            first_width = piece.layout->lineAt(0).naturalTextWidth();
        piece.width = widest_line(*piece.layout);
        widest = std::max(widest, piece.width);
        pieces_.push_back(std::move(piece));
    }
    if (!block.joins_previous) {
        const QString label = QCoreApplication::translate("recto::ui::BlockLayout", "Copy");
        const QFontMetricsF metrics(palette.fonts.small);
        const qreal button = metrics.horizontalAdvance(label) + 16;
        const qreal language = block.language.isEmpty() ? 0 : metrics.horizontalAdvance(block.language) + 14;
        copy_button_ = QRectF(width_ - button - 2, 3, button, palette.metrics.target);
        // The label stands beside a short first line, above a long one.
        if (first_width + button + language + 3 * code_pad_x > width_ - inset_) {
            const qreal row = palette.metrics.target - code_pad_y + 3;
            for (Piece& piece : pieces_)
                piece.at.ry() += row;
            y += row;
        }
    }
    height_ = y + (block.joins_next ? 0 : code_pad_y);
    frame_ = QRectF(inset_, 0, width_ - inset_, height_);
    natural_width_ = width_;
    scroll_range_ = std::max<qreal>(0, widest + 2 * code_pad_x - frame_.width());
}

void BlockLayout::lay_out_table(const Block& block, const Palette& palette) {
    const size_t columns = block.aligns.size();
    std::vector<qreal> natural(columns, 0);
    for (const auto& cell : block.cells) {
        const QFont& font = cell.row == 0 ? palette.fonts.strong : palette.fonts.body;
        Piece piece{make_layout(separated(QStringView(block.text).sliced(cell.start, cell.length)), font,
                                QTextOption::WrapAtWordBoundaryOrAnywhere),
                    {},
                    cell.start,
                    cell.length};
        piece.layout->setFormats(formats(block, cell.start, cell.length, palette));
        break_lines(*piece.layout, 1e6, text_line_height(palette));
        if (size_t(cell.column) < columns)
            natural[size_t(cell.column)] =
                std::max(natural[size_t(cell.column)],
                         std::min(widest_column, std::ceil(widest_line(*piece.layout)) + 1));
        pieces_.push_back(std::move(piece));
    }
    const qreal padding = 2 * cell_pad_x * qreal(columns);
    const auto widths = column_widths(natural, width_ - inset_ - padding);
    std::vector<qreal> lefts(columns, inset_ + cell_pad_x);
    for (size_t i = 1; i < columns; ++i)
        lefts[i] = lefts[i - 1] + widths[i - 1] + 2 * cell_pad_x;

    qreal y = 0;
    for (size_t i = 0; i < pieces_.size();) {
        const int row = block.cells[i].row;
        qreal row_height = 0;
        for (; i < pieces_.size() && block.cells[i].row == row; ++i) {
            const size_t column = std::min(size_t(block.cells[i].column), columns - 1);
            Piece& piece = pieces_[i];
            QTextOption option = piece.layout->textOption();
            const markdown::Align align = block.aligns[column];
            option.setAlignment(align == markdown::Align::center  ? Qt::AlignHCenter
                                : align == markdown::Align::right ? Qt::AlignRight
                                                                  : Qt::AlignLeft);
            piece.layout->setTextOption(option);
            piece.width = widths[column];
            piece.at = {lefts[column], y + cell_pad_y};
            row_height =
                std::max(row_height, break_lines(*piece.layout, piece.width, text_line_height(palette)));
        }
        y += row_height + 2 * cell_pad_y;
        row_lines_.push_back(y);
    }
    qreal table_width = padding;
    for (const qreal w : widths)
        table_width += w;
    height_ = y;
    frame_ = QRectF(inset_, 0, std::min(table_width, width_ - inset_), height_);
    natural_width_ = inset_ + frame_.width();
    scroll_range_ = std::max<qreal>(0, table_width - frame_.width());
}

void BlockLayout::set_horizontal_offset(qreal offset) {
    offset_ = std::clamp<qreal>(offset, 0, scroll_range_);
}

QPointF BlockLayout::piece_origin(const Piece& piece) const {
    return piece.at - QPointF(offset_, 0);
}

void BlockLayout::paint(QPainter& painter, QPointF at, const Block& block, const Palette& palette,
                        TextRange selected, bool copy_hovered) const {
    paint_margin(painter, at, block, palette);
    if (block.kind == BlockKind::rule) {
        painter.fillRect(QRectF(at.x() + inset_, at.y() + 4, width_ - inset_, 1), palette.line);
        return;
    }
    painter.save();
    if (block.kind == BlockKind::code) paint_code_ground(painter, at, block, palette);
    if (!frame_.isEmpty())
        painter.setClipRect(frame_.translated(at).adjusted(1, 0, -1, 0), Qt::IntersectClip);
    if (block.kind == BlockKind::table) paint_table_lines(painter, at, palette);
    painter.setPen(palette.text);
    const QRectF clip = painter.clipBoundingRect();
    for (const Piece& piece : pieces_) {
        QList<QTextLayout::FormatRange> ranges;
        const int from = std::max(selected.from, piece.start),
                  to = std::min(selected.to, piece.start + piece.length);
        if (from < to) {
            QTextCharFormat format;
            format.setBackground(palette.selection);
            format.setForeground(palette.on_selection);
            ranges.push_back({from - piece.start, to - from, format});
        }
        piece.layout->draw(&painter, at + piece_origin(piece), ranges, clip);
    }
    painter.restore();
    if (block.kind == BlockKind::code) paint_code_label(painter, at, block, palette, copy_hovered);
    if (scroll_range_ > 0) {
        const qreal shown = frame_.width() / (frame_.width() + scroll_range_);
        const qreal room = frame_.width() - 2 * code_pad_x;
        const QRectF mark(at.x() + frame_.left() + code_pad_x + offset_ / scroll_range_ * room * (1 - shown),
                          at.y() + height_ - scroll_mark_height - 2, room * shown, scroll_mark_height);
        painter.fillRect(mark, palette.dim);
    }
}

void BlockLayout::paint_code_ground(QPainter& painter, QPointF at, const Block& block,
                                    const Palette& palette) const {
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    QRectF frame = frame_.translated(at).adjusted(0.5, 0.5, -0.5, -0.5);
    painter.setClipRect(frame_.translated(at), Qt::IntersectClip);
    if (block.joins_previous) frame.setTop(frame.top() - 2 * code_radius);
    if (block.joins_next) frame.setBottom(frame.bottom() + 2 * code_radius);
    painter.setPen(palette.line);
    painter.setBrush(palette.code_background);
    painter.drawRoundedRect(frame, code_radius, code_radius);
    painter.restore();
}

// Drawn after the text: a line that is scrolled sideways passes below it.
void BlockLayout::paint_code_label(QPainter& painter, QPointF at, const Block& block, const Palette& palette,
                                   bool copy_hovered) const {
    if (copy_button_.isEmpty()) return;
    const QRectF button = copy_button_.translated(at);
    const QFontMetricsF metrics(palette.fonts.small);
    const qreal language = block.language.isEmpty() ? 0 : metrics.horizontalAdvance(block.language) + 14;
    painter.save();
    painter.setFont(palette.fonts.small);
    painter.fillRect(button.adjusted(-language, 0, 0, 0), palette.code_background);
    painter.setPen(palette.dim);
    if (language > 0)
        painter.drawText(button.adjusted(-language, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter,
                         block.language + QStringLiteral(" \u00b7"));
    if (copy_hovered) {
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(palette.raised_hover);
        painter.drawRoundedRect(button.adjusted(1, 2, -1, -2), 5, 5);
        painter.setPen(palette.text);
    }
    painter.drawText(button, Qt::AlignCenter, QCoreApplication::translate("recto::ui::BlockLayout", "Copy"));
    painter.restore();
}

void BlockLayout::paint_table_lines(QPainter& painter, QPointF at, const Palette& palette) const {
    for (size_t i = 0; i < row_lines_.size(); ++i) {
        const bool head = i == 0;
        painter.fillRect(QRectF(at.x() + frame_.left(), at.y() + row_lines_[i] - 1, frame_.width(), 1),
                         head ? palette.dim : palette.line);
    }
}

// Quote bars and the item's marker.
void BlockLayout::paint_margin(QPainter& painter, QPointF at, const Block& block,
                               const Palette& palette) const {
    for (int i = 0; i < block.quote_depth; ++i)
        painter.fillRect(QRectF(at.x() + i * quote_step, at.y() - 4, 3, height_ + 8), palette.line);
    if (block.marker.isEmpty()) return;
    painter.setFont(palette.fonts.body);
    painter.setPen(palette.dim);
    const qreal width = QFontMetricsF(palette.fonts.body).horizontalAdvance(block.marker);
    const qreal baseline = marker_baseline_ > 0 ? marker_baseline_ : text_line_height(palette) * 0.75;
    painter.drawText(QPointF(at.x() + inset_ - width - 7, at.y() + baseline), block.marker);
}

const BlockLayout::Piece* BlockLayout::piece_at(QPointF point) const {
    const Piece* best = nullptr;
    qreal best_distance = 0;
    for (const Piece& piece : pieces_) {
        const QRectF box = piece.layout->boundingRect().translated(piece_origin(piece));
        const qreal dy = std::max({box.top() - point.y(), point.y() - box.bottom(), 0.0});
        const qreal left = piece_origin(piece).x(), right = left + piece.width;
        const qreal dx = std::max({left - point.x(), point.x() - right, 0.0});
        const qreal distance = dy * 1000 + dx;
        if (!best || distance < best_distance) {
            best = &piece;
            best_distance = distance;
        }
    }
    return best;
}

int BlockLayout::position_at(QPointF point) const {
    const Piece* piece = piece_at(point);
    if (!piece || piece->layout->lineCount() == 0) return 0;
    const QPointF local = point - piece_origin(*piece);
    int line = 0;
    while (line + 1 < piece->layout->lineCount() && local.y() >= piece->layout->lineAt(line + 1).y())
        ++line;
    const int position = piece->layout->lineAt(line).xToCursor(local.x());
    return piece->start + std::min(position, piece->length);
}

bool BlockLayout::is_over_text(QPointF point) const {
    for (const Piece& piece : pieces_) {
        const QPointF local = point - piece_origin(piece);
        for (int i = 0; i < piece.layout->lineCount(); ++i)
            if (piece.layout->lineAt(i).naturalTextRect().contains(local)) return true;
    }
    return false;
}

QRectF BlockLayout::cursor_rect(int position) const {
    const Piece* piece = nullptr;
    for (const Piece& p : pieces_)
        if (!piece || p.start <= position) piece = &p;
    if (!piece) return QRectF(inset_, 0, 1, height_);
    int local = std::clamp(position - piece->start, 0, int(piece->layout->text().size()));
    const QTextLine line = piece->layout->lineForTextPosition(local);
    if (!line.isValid()) return QRectF(piece_origin(*piece), QSizeF(1, height_));
    const qreal x = line.cursorToX(&local);
    const QPointF origin = piece_origin(*piece);
    return QRectF(origin.x() + x, origin.y() + line.y(), 1, line.height());
}

QString BlockLayout::link_at(QPointF point, const Block& block) const {
    if (block.links.empty() || !is_over_text(point)) return {};
    const int position = position_at(point);
    for (const auto& span : block.spans) {
        if (span.link < 0 || position < span.start || position > span.start + span.length) continue;
        // The nearest cursor position may belong to the letter beside the link: ask where the link's ends
        // are.
        const QRectF first = cursor_rect(span.start), last = cursor_rect(span.start + span.length);
        if (position == span.start && point.x() < first.x() && point.y() < first.bottom()) continue;
        if (position == span.start + span.length && point.x() > last.x() && point.y() > last.top()) continue;
        return block.links[size_t(span.link)];
    }
    return {};
}

}  // namespace recto::ui
