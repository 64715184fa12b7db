#include "ui/chat_list_delegate.h"

#include <QPainter>

#include "ui/models/chat_list_model.h"
#include "ui/owner_dot.h"
#include "ui/theme/theme.h"

namespace recto::ui {
namespace {

bool is_heading(const QModelIndex& index) {
    return index.data(ChatListModel::kind_role).toInt() == int(ChatListModel::RowKind::heading);
}

// A waiting chat says how much it lacks: "waiting for 12 blocks".
QString state_of(const QModelIndex& index) {
    const auto* chat = index.data(ChatListModel::chat_role).value<Chat*>();
    if (chat != nullptr && chat->state() == ChatState::waiting && chat->blocks_missing() > 0)
        return ChatListDelegate::tr("waiting for %n block(s)", nullptr, chat->blocks_missing());
    return index.data(ChatListModel::state_text_role).toString();
}

}  // namespace

ChatListDelegate::ChatListDelegate(const Theme* theme, QObject* parent)
    : QStyledItemDelegate(parent), theme_(theme) {}

void ChatListDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option,
                             const QModelIndex& index) const {
    const Palette& p = theme_->palette();
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing, true);
    if (is_heading(index)) {
        painter->setFont(p.fonts.small);
        painter->setPen(p.dim);
        painter->drawText(option.rect.adjusted(2, 0, -2, -3), Qt::AlignLeft | Qt::AlignBottom,
                          index.data(Qt::DisplayRole).toString().toUpper());
        painter->restore();
        return;
    }
    const bool open = index.data(ChatListModel::chat_id_role).toLongLong() == open_;
    const QRectF box = QRectF(option.rect).adjusted(0.5, 1.5, -0.5, -1.5);
    painter->setPen(Qt::NoPen);
    if (open || (option.state & QStyle::State_MouseOver) != 0) {
        painter->setBrush(open ? p.raised : p.raised.darker(p.dark ? 110 : 98));
        painter->drawRoundedRect(box, p.metrics.radius, p.metrics.radius);
    }
    if ((option.state & QStyle::State_Selected) != 0 && (option.state & QStyle::State_HasFocus) != 0) {
        painter->setPen(QPen(p.focus, 1));
        painter->setBrush(Qt::NoBrush);
        painter->drawRoundedRect(box, p.metrics.radius, p.metrics.radius);
    }

    QRectF inner = box.adjusted(8, 0, -8, 0);
    const int hue = index.data(ChatListModel::hue_role).toInt();
    if (hue >= 0) {
        const QRectF dot(inner.left(), inner.center().y() - p.metrics.dot / 2.0, p.metrics.dot,
                         p.metrics.dot);
        paint_owner_dot(*painter, dot, OwnerHue(hue),
                        OwnerPattern(index.data(ChatListModel::pattern_role).toInt()), p);
        inner.setLeft(dot.right() + 8);
    }
    const QString state = state_of(index);
    const QFontMetricsF small(p.fonts.small);
    // The title keeps at least a third of the row.
    const double state_width = std::min(small.horizontalAdvance(state) + 1, inner.width() * 0.66);
    painter->setFont(p.fonts.small);
    painter->setPen(p.dim);
    painter->drawText(QRectF(inner.right() - state_width, inner.top(), state_width, inner.height()),
                      Qt::AlignRight | Qt::AlignVCenter,
                      small.elidedText(state, Qt::ElideRight, state_width));
    inner.setRight(inner.right() - state_width - 8);
    painter->setFont(p.fonts.body);
    painter->setPen(open ? p.text : p.dim);
    const QString title = index.data(Qt::DisplayRole).toString();
    painter->drawText(inner, Qt::AlignLeft | Qt::AlignVCenter,
                      QFontMetricsF(p.fonts.body).elidedText(title, Qt::ElideRight, inner.width()));
    painter->restore();
}

QSize ChatListDelegate::sizeHint(const QStyleOptionViewItem&, const QModelIndex& index) const {
    const Palette& p = theme_->palette();
    if (is_heading(index)) return {100, QFontMetrics(p.fonts.small).height() + 16};
    return {100, QFontMetrics(p.fonts.body).height() + 16};
}

}  // namespace recto::ui
