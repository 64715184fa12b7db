#include "ui/chat/message_item.h"

#include <QCoreApplication>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

namespace recto::ui {

namespace {

constexpr qreal bubble_pad_x = 14, bubble_pad_y = 9;
constexpr qreal bubble_share = 0.72, answer_share = 0.88;
constexpr qsizetype tail_length = 64;

QString tr(const char* text) {
    return QCoreApplication::translate("recto::ui::MessageItem", text);
}

std::unique_ptr<QTextLayout> small_text(const QString& text, const QFont& font, qreal width, qreal& height) {
    auto layout = std::make_unique<QTextLayout>(text, font);
    QTextOption option;
    option.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
    layout->setTextOption(option);
    layout->setCacheEnabled(true);
    layout->beginLayout();
    height = 0;
    for (QTextLine line = layout->createLine(); line.isValid(); line = layout->createLine()) {
        line.setLineWidth(width);
        line.setPosition({0, height});
        height += std::ceil(line.height());
    }
    layout->endLayout();
    return layout;
}

QPainterPath bubble_path(const QRectF& r, const Metrics& m) {
    const qreal big = std::min<qreal>(m.bubble_radius, r.height() / 2), tail = m.bubble_tail;
    QPainterPath path;
    path.moveTo(r.left() + big, r.top());
    path.lineTo(r.right() - big, r.top());
    path.arcTo(r.right() - 2 * big, r.top(), 2 * big, 2 * big, 90, -90);
    path.lineTo(r.right(), r.bottom() - tail);
    path.arcTo(r.right() - 2 * tail, r.bottom() - 2 * tail, 2 * tail, 2 * tail, 0, -90);
    path.lineTo(r.left() + big, r.bottom());
    path.arcTo(r.left(), r.bottom() - 2 * big, 2 * big, 2 * big, 270, -90);
    path.lineTo(r.left(), r.top() + big);
    path.arcTo(r.left(), r.top(), 2 * big, 2 * big, 180, -90);
    return path;
}

}  // namespace

const std::vector<markdown::Block>& MessageItem::blocks() const {
    return document_ ? document_->blocks() : plain_;
}

bool MessageItem::set_data(const MessageData& data) {
    if (data == data_) return false;
    data_ = data;
    footer_measured_ = false;
    return true;
}

int MessageItem::take_text(const QString& text, const LayoutContext& context, bool at_once) {
    const bool plain = data_.role == Role::user;
    const bool grew = parsed_ && !plain && !finished_ && text.size() >= taken_ &&
                      QStringView(text).first(taken_).endsWith(tail_);
    const bool ends = grew && !data_.live;
    if (grew && text.size() == taken_ && !ends) return 0;
    if (parsed_ && text.size() == taken_ && text.endsWith(tail_) && !ends) return 0;
    if (grew && !ends && !at_once && !blocks().empty() && blocks().back().text.size() > long_block &&
        last_take_.isValid() && last_take_.elapsed() < relayout_interval_ms)
        return int(relayout_interval_ms - last_take_.elapsed());

    size_t kept = 0;
    if (plain) {
        plain_ = markdown::plain_blocks(text);
        document_.reset();
    } else {
        if (!grew) {
            document_ = std::make_unique<markdown::Document>();
            taken_ = 0;
        }
        kept = document_->frozen();
        document_->append(QStringView(text).sliced(taken_));
        finished_ = !data_.live;
        if (finished_) document_->finish();
    }
    taken_ = text.size();
    tail_ = text.right(tail_length);
    last_take_.start();
    parsed_ = true;

    parts_.resize(std::min(parts_.size(), kept));
    while (parts_.size() < blocks().size()) {
        Part part;
        part.height =
            float(estimated_height(blocks()[parts_.size()], *context.palette, block_width(context)));
        parts_.push_back(std::move(part));
    }
    stacked_ = false;
    return 0;
}

qreal MessageItem::block_width(const LayoutContext& context) const {
    return data_.role == Role::user ? std::floor(context.width * bubble_share) - 2 * bubble_pad_x
                                    : std::floor(context.width * answer_share);
}

qreal MessageItem::estimate_unparsed(const LayoutContext& context) const {
    // 2.5: measured on answers of mixed prose, lists and code, where many lines are short.
    const qreal em = context.palette->fonts.body.pointSizeF() * 96 / 72;
    const qreal lines = std::ceil(data_.chars * em * 0.5 / std::max<qreal>(em, block_width(context)));
    const qreal factor = data_.chars > 400 ? 1.5 : 1.0;
    return std::max<qreal>(1, lines * factor) * text_line_height(*context.palette);
}

void MessageItem::restack() const {
    if (stacked_) return;
    const auto& all = blocks();
    const bool user = data_.role == Role::user;
    const qreal pad = user ? bubble_pad_y : 0;
    tops_.clear();
    tops_.reserve(all.size() + 2);
    qreal y = pad;
    if (editor_height_ > 0) {
        for (size_t i = 0; i < all.size(); ++i)
            tops_.push_back(i == 0 ? 0 : float(editor_height_));
        y = editor_height_;
    } else {
        for (size_t i = 0; i < all.size(); ++i) {
            tops_.push_back(i == 0 ? 0 : float(y));
            y += parts_[i].height + gap_above(all[i], i > 0 ? &all[i - 1] : nullptr);
        }
        if (!parsed_) y += estimated_;
        if (parsed_ && all.empty() && data_.live) y += line_height_;  // room for the caret
        y += pad;
    }
    tops_.push_back(all.empty() ? 0 : float(y));
    tops_.push_back(float(y + footer_height_));
    stacked_ = true;
}

qreal MessageItem::part_top(int part) const {
    restack();
    return tops_[size_t(part)];
}

qreal MessageItem::part_bottom(int part) const {
    restack();
    return tops_[size_t(part) + 1];
}

qreal MessageItem::height() const {
    restack();
    return tops_.back();
}

int MessageItem::part_at(qreal y) const {
    restack();
    const auto next = std::upper_bound(tops_.begin(), tops_.end() - 1, float(y));
    return std::max(0, int(next - tops_.begin()) - 1);
}

bool MessageItem::measured(int part) const {
    return part == footer() ? footer_measured_ : parts_[size_t(part)].layout != nullptr;
}

void MessageItem::measure(int part, const LayoutContext& context) {
    if (part == footer()) {
        if (!footer_measured_) lay_out_footer(context);
        return;
    }
    Part& p = parts_[size_t(part)];
    if (p.layout) return;
    p.layout = std::make_unique<BlockLayout>(blocks()[size_t(part)], *context.palette, block_width(context));
    if (!p.measured || p.height != float(p.layout->height())) stacked_ = false;
    p.height = float(p.layout->height());
    p.measured = true;
}

void MessageItem::drop_layout(int part) {
    if (part < int(parts_.size())) parts_[size_t(part)].layout.reset();
}

void MessageItem::invalidate(const LayoutContext& context) {
    for (size_t i = 0; i < parts_.size(); ++i) {
        parts_[i].layout.reset();
        parts_[i].measured = false;
        parts_[i].height = float(estimated_height(blocks()[i], *context.palette, block_width(context)));
    }
    footer_measured_ = false;
    if (footer_height_ <= 0) footer_height_ = context.palette->metrics.target;
    estimated_ = estimate_unparsed(context);
    line_height_ = text_line_height(*context.palette);
    stacked_ = false;
}

void MessageItem::set_editor_height(qreal height) {
    editor_height_ = height;
    stacked_ = false;
}

QRectF MessageItem::body_rect(const LayoutContext& context) const {
    const qreal width = std::floor(context.width * answer_share);
    const qreal x = data_.role == Role::user ? context.width - width : 0;
    return {x, 0, width, editor_height_ > 0 ? editor_height_ : footer_top()};
}

BlockLayout* MessageItem::layout(int part) const {
    return part < int(parts_.size()) ? parts_[size_t(part)].layout.get() : nullptr;
}

QPointF MessageItem::block_origin(int part, const LayoutContext& context) const {
    const auto& all = blocks();
    const size_t i = size_t(part);
    const bool user = data_.role == Role::user;
    const qreal gap = gap_above(all[i], i > 0 ? &all[i - 1] : nullptr);
    const qreal y = part_top(part) + gap + (part == 0 && user ? bubble_pad_y : 0);
    return {user ? bubble(context).left() + bubble_pad_x : 0, y};
}

QRectF MessageItem::bubble(const LayoutContext& context) const {
    if (data_.role != Role::user) return {};
    const qreal widest = std::floor(context.width * bubble_share);
    qreal width = widest;
    if (parts_.size() == 1 && parts_[0].layout)
        width = std::min(widest, std::ceil(parts_[0].layout->natural_width()) + 2 * bubble_pad_x);
    if (parts_.empty()) width = std::min<qreal>(widest, 90);
    const qreal bottom = footer_top();
    return {context.width - width, 0, width, bottom};
}

void MessageItem::add_action(MessageAction action, const QString& label, bool enabled,
                             const LayoutContext& context, QPointF& at) {
    const QFontMetricsF metrics(context.palette->fonts.small);
    const qreal width = std::max<qreal>(metrics.horizontalAdvance(label) + 10,
                                        action == MessageAction::none ? 0 : context.palette->metrics.target);
    actions_.push_back({action, QRectF(at, QSizeF(width, context.palette->metrics.target)), label, enabled});
    at.rx() += width;
}

void MessageItem::lay_out_footer(const LayoutContext& context) {
    const Palette& palette = *context.palette;
    const bool user = data_.role == Role::user;
    const qreal width = std::floor(context.width * answer_share);
    qreal y = user ? 0 : 6;
    actions_.clear();
    stats_.reset();
    note_.reset();
    error_.reset();
    context_mark_y_ = -1;
    const auto stack = [&](std::unique_ptr<QTextLayout>& slot, QPointF& at, const QString& text,
                           const QFont& font) {
        if (text.isEmpty()) return;
        qreal height = 0;
        slot = small_text(text, font, width, height);
        at = {0, y};
        y += height + 4;
    };
    if (data_.state == MessageState::context_full) {
        context_mark_y_ = y;
        y += std::ceil(QFontMetricsF(palette.fonts.small).height()) + 8;
    }
    stack(error_, error_at_, data_.error, palette.fonts.note);
    stack(note_, note_at_, data_.note, palette.fonts.small);
    if (user) {
        QPointF at(0, y);
        if (data_.version_count > 1) {
            add_action(MessageAction::previous_version, QStringLiteral("\u2039"),
                       !context.busy && data_.version > 1, context, at);
            add_action(MessageAction::none,
                       QStringLiteral("%1/%2").arg(data_.version).arg(data_.version_count), true, context,
                       at);
            add_action(MessageAction::next_version, QStringLiteral("\u203a"),
                       !context.busy && data_.version < data_.version_count, context, at);
        }
        add_action(MessageAction::edit, tr("Edit"), !context.busy, context, at);
        add_action(MessageAction::copy, tr("Copy"), true, context, at);
        for (ActionBox& box : actions_)
            box.rect.translate(context.width - at.x(), 0);
        y += palette.metrics.target;
    } else {
        const QString line = data_.live ? context.live_line : data_.stats;
        qreal height = 0;
        QPointF at(-5, y);
        if (!line.isEmpty()) {
            stats_ = small_text(line, palette.fonts.small, width, height);
            stats_at_ = {0, y + (palette.metrics.target - QFontMetricsF(palette.fonts.small).height()) / 2};
            const QTextLine last = stats_->lineAt(stats_->lineCount() - 1);
            at = {last.naturalTextWidth() + 14, y + last.y()};
        }
        stats_rect_ = QRectF(stats_at_, QSizeF(width, height));
        if (!data_.live) {
            add_action(MessageAction::copy, tr("Copy"), true, context, at);
            add_action(MessageAction::edit, tr("Edit"), !context.busy, context, at);
            add_action(MessageAction::regenerate, tr("Regenerate"), !context.busy, context, at);
            if (context.continuable)
                add_action(MessageAction::continue_answer, tr("Continue"), true, context, at);
            if (data_.version_count > 1) {
                add_action(MessageAction::previous_version, QStringLiteral("\u2039"),
                           !context.busy && data_.version > 1, context, at);
                add_action(MessageAction::none,
                           QStringLiteral("%1/%2").arg(data_.version).arg(data_.version_count), true, context,
                           at);
                add_action(MessageAction::next_version, QStringLiteral("\u203a"),
                           !context.busy && data_.version < data_.version_count, context, at);
            }
            if (at.x() > width && stats_) {
                const qreal dx = actions_.front().rect.left() + 5;
                for (ActionBox& box : actions_)
                    box.rect.translate(-dx, actions_.front().rect.height() - 4);
                height += palette.metrics.target - 4;
            }
        }
        y += std::max<qreal>(palette.metrics.target, height + 8);
    }
    footer_height_ = y;
    footer_measured_ = true;
    stacked_ = false;
}

void MessageItem::paint(QPainter& painter, QPointF at, QRectF visible, const LayoutContext& context,
                        const MessageLook& look, const std::vector<TextRange>& selected,
                        int first_selected_part) const {
    const Palette& palette = *context.palette;
    const bool user = data_.role == Role::user;
    if (user && editor_height_ <= 0) {
        painter.save();
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(palette.raised);
        painter.drawPath(bubble_path(bubble(context).translated(at), palette.metrics));
        painter.restore();
    }
    if (editor_height_ <= 0) {
        for (int part = part_at(visible.top() - at.y()); part < footer(); ++part) {
            if (at.y() + part_top(part) > visible.bottom()) break;
            const BlockLayout* block = layout(part);
            if (!block) continue;  // not looked at yet
            const int s = part - first_selected_part;
            const TextRange range = s >= 0 && s < int(selected.size()) ? selected[size_t(s)] : TextRange{};
            block->paint(painter, at + block_origin(part, context), blocks()[size_t(part)], palette, range,
                         look.hovered_code == part);
        }
    }
    if (data_.live && editor_height_ <= 0 && parsed_) {
        const int last = footer() - 1;
        QRectF caret(0, 0, 0, text_line_height(palette));
        if (last >= 0 && layout(last) && blocks()[size_t(last)].kind != markdown::BlockKind::table)
            caret = layout(last)->cursor_rect(text_length(last)).translated(block_origin(last, context));
        if (last < 0 || layout(last)) {
            caret.setWidth(7);
            painter.fillRect(caret.translated(at).adjusted(1, 3, 1, -3), palette.text);
        }
    }
    if (footer_measured_ && parsed_) paint_footer(painter, at + QPointF(0, footer_top()), context, look);
    if (look.focused) {
        painter.save();
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(palette.focus, palette.metrics.focus_width));
        const QRectF box =
            user && editor_height_ <= 0 ? bubble(context) : QRectF(0, 0, context.width, height());
        painter.drawRoundedRect(box.translated(at).adjusted(-6, -4, 6, 4), palette.metrics.radius,
                                palette.metrics.radius);
        painter.restore();
    }
}

void MessageItem::paint_footer(QPainter& painter, QPointF at, const LayoutContext& context,
                               const MessageLook& look) const {
    const Palette& palette = *context.palette;
    const bool user = data_.role == Role::user;
    painter.save();
    if (context_mark_y_ >= 0) {
        const QString text = tr("Context full: the answer ends here, its text is kept");
        painter.setFont(palette.fonts.small);
        const QFontMetricsF metrics(palette.fonts.small);
        const qreal width = std::floor(context.width * answer_share),
                    needed = metrics.horizontalAdvance(text) + 20;
        const qreal y = at.y() + context_mark_y_ + std::ceil(metrics.height() / 2);
        const qreal side = std::max<qreal>(0, (width - needed) / 2);
        painter.fillRect(QRectF(at.x(), y, side, 1), palette.warning);
        painter.fillRect(QRectF(at.x() + width - side, y, side, 1), palette.warning);
        painter.setPen(palette.warning);
        painter.drawText(QRectF(at.x(), at.y() + context_mark_y_, width, metrics.height()), Qt::AlignCenter,
                         text);
    }
    const auto draw = [&](const std::unique_ptr<QTextLayout>& layout, QPointF where, const QColor& color) {
        if (!layout) return;
        painter.setPen(color);
        layout->draw(&painter, at + where);
    };
    draw(error_, error_at_, palette.danger);
    draw(note_, note_at_, palette.dim);
    draw(stats_, stats_at_, palette.dim);
    painter.setFont(palette.fonts.small);
    for (const ActionBox& box : actions_) {
        const bool versions = box.action == MessageAction::none ||
                              box.action == MessageAction::previous_version ||
                              box.action == MessageAction::next_version;
        if (user && !versions && !look.hovered && !look.focused) continue;
        const bool hovered =
            box.enabled && box.action != MessageAction::none && box.action == look.hovered_action;
        if (hovered) {
            painter.setRenderHint(QPainter::Antialiasing);
            painter.setPen(Qt::NoPen);
            painter.setBrush(palette.raised);
            painter.drawRoundedRect(box.rect.translated(at).adjusted(1, 2, -1, -2), 5, 5);
        }
        painter.setPen(hovered ? palette.text : box.enabled ? palette.dim : palette.dimmed(palette.text));
        painter.drawText(box.rect.translated(at), Qt::AlignCenter, box.label);
    }
    painter.restore();
}

}  // namespace recto::ui
