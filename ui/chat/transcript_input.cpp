// TranscriptView's mouse, keyboard, selection, clipboard and menus.
#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QDesktopServices>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QScrollBar>
#include <QTextBoundaryFinder>
#include <QToolTip>
#include <QUrl>
#include <QWheelEvent>
#include <algorithm>

#include "ui/chat/message_editor.h"
#include "ui/chat/transcript_view.h"
#include "ui/models/transcript_model.h"
#include "ui/theme/theme.h"

namespace recto::ui {

TranscriptView::Hit TranscriptView::hit_at(QPointF point) {
    Hit hit;
    const QPointF content = to_content(point);
    const int row = layout_.item_at(content.y());
    if (row < 0) return hit;
    MessageItem& item = layout_.item(row);
    const QPointF local = content - QPointF(0, layout_.item_top(row));
    if (local.y() > item.height() || local.y() < 0 || !item.parsed()) return hit;
    hit.row = row;
    for (const ActionBox& box : item.actions()) {
        if (box.action == MessageAction::none || !box.rect.translated(0, item.footer_top()).contains(local))
            continue;
        hit.action = box.action;
        hit.enabled = box.enabled;
        return hit;
    }
    hit.stats = item.stats_rect().translated(0, item.footer_top()).contains(local);
    const int part = item.part_at(local.y());
    const BlockLayout* block = item.layout(part);
    if (!block || item.editor_height() > 0) return hit;
    const QPointF inside = local - item.block_origin(part, layout_.context);
    if (block->copy_button().contains(inside)) {
        hit.code = part;
        return hit;
    }
    hit.text = block->is_over_text(inside);
    hit.link = block->link_at(inside, item.blocks()[size_t(part)]);
    return hit;
}

void TranscriptView::set_hover(const Hit& hit) {
    if (hit == hover_) return;
    if (hit.link != hover_.link) Q_EMIT link_hovered(hit.link);
    hover_ = hit;
    const bool button = (hit.action != MessageAction::none && hit.enabled) || hit.code >= 0 ||
                        (!hit.link.isEmpty() && is_safe_address(hit.link));
    viewport()->setCursor(button ? Qt::PointingHandCursor : hit.text ? Qt::IBeamCursor : Qt::ArrowCursor);
    viewport()->update();
}

void TranscriptView::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    const Hit hit = hit_at(event->position());
    pressed_ = hit;
    ring_ = false;
    if (hit.row >= 0) focused_ = hit.row;
    if (hit.action != MessageAction::none || hit.code >= 0) return;
    const TextPlace place = place_at(event->position());
    const bool third_click =
        last_double_click_.isValid() && last_double_click_.elapsed() < QApplication::doubleClickInterval();
    last_double_click_.invalidate();
    if (third_click && place.item >= 0) {
        select({place.item, place.part, 0},
               {place.item, place.part, layout_.item(place.item).text_length(place.part)});
        return;
    }
    if (event->modifiers() & Qt::ShiftModifier)
        selection_to_ = place;
    else
        selection_from_ = selection_to_ = place;
    selecting_ = true;
    viewport()->update();
}

void TranscriptView::mouseMoveEvent(QMouseEvent* event) {
    if (!selecting_) return set_hover(hit_at(event->position()));
    drag_point_ = event->position();
    selection_to_ = place_at(drag_point_);
    if (has_selection()) stop_following();
    const bool outside = drag_point_.y() < 0 || drag_point_.y() > viewport()->height();
    if (outside && !autoscroll_.isActive()) autoscroll_.start();
    viewport()->update();
}

void TranscriptView::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    autoscroll_.stop();
    selecting_ = false;
    const Hit hit = hit_at(event->position());
    const Hit pressed = std::exchange(pressed_, Hit{});
    if (hit.row < 0 || hit.row != pressed.row) return;
    if (hit.action != MessageAction::none && hit.action == pressed.action && hit.enabled)
        return act(hit.row, hit.action);
    if (hit.code >= 0 && hit.code == pressed.code) return copy_code(hit.row, hit.code);
    if (has_selection()) {
        if (QApplication::clipboard()->supportsSelection())
            QApplication::clipboard()->setText(selected_text(), QClipboard::Selection);
        return;
    }
    if (!hit.link.isEmpty() && hit.link == pressed.link && is_safe_address(hit.link))
        Q_EMIT link_activated(hit.link);
}

void TranscriptView::mouseDoubleClickEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    const Hit hit = hit_at(event->position());
    if (hit.action != MessageAction::none || hit.code >= 0) {
        pressed_ = hit;  // a quick second click on a button counts
        return;
    }
    const TextPlace place = place_at(event->position());
    if (place.item < 0 || place.part >= layout_.item(place.item).footer()) return;
    const QString& text = layout_.item(place.item).blocks()[size_t(place.part)].text;
    QTextBoundaryFinder words(QTextBoundaryFinder::Word, text);
    words.setPosition(std::min<qsizetype>(place.offset, text.size()));
    int from = place.offset;
    if (!words.isAtBoundary() || !(words.boundaryReasons() & QTextBoundaryFinder::StartOfItem))
        from = int(std::max<qsizetype>(0, words.toPreviousBoundary()));
    words.setPosition(from);
    const qsizetype to = words.toNextBoundary();
    select({place.item, place.part, from}, {place.item, place.part, int(to < 0 ? text.size() : to)});
    last_double_click_.start();
}

void TranscriptView::wheelEvent(QWheelEvent* event) {
    if (event->modifiers() & Qt::ControlModifier) return event->ignore();  // text zoom is the window's
    const bool sideways = event->modifiers() & Qt::ShiftModifier;
    const QPoint delta = event->angleDelta();
    const int dx = delta.x() != 0 ? delta.x() : sideways ? delta.y() : 0;
    if (dx != 0 && std::abs(dx) > (sideways ? 0 : std::abs(delta.y()))) {
        scroll_sideways(hit_at(event->position()), event->position(), -dx / 2.0);
        return event->accept();
    }
    if (delta.y() > 0) stop_following();
    QAbstractScrollArea::wheelEvent(event);
    event->accept();  // at an end, too: the wheel must not turn to something else
}

void TranscriptView::scroll_sideways(const Hit& hit, QPointF point, qreal dx) {
    if (hit.row < 0) return;
    MessageItem& item = layout_.item(hit.row);
    const int part = item.part_at(to_content(point).y() - layout_.item_top(hit.row));
    BlockLayout* block = item.layout(part);
    if (!block || block->scroll_range() <= 0) return;
    block->set_horizontal_offset(block->horizontal_offset() + dx);
    viewport()->update();
}

bool TranscriptView::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const QString tip = tool_tip(hit_at(help->pos()));
        if (tip.isEmpty())
            QToolTip::hideText();
        else
            QToolTip::showText(help->globalPos(), tip, viewport());
        return true;
    }
    if (event->type() == QEvent::Leave) set_hover({});
    return QAbstractScrollArea::viewportEvent(event);
}

QString TranscriptView::tool_tip(const Hit& hit) const {
    if (hit.row < 0) return {};
    if (!hit.link.isEmpty())
        return is_safe_address(hit.link)
                   ? hit.link
                   : tr("Not opened: %1 (only http, https and mailto are)").arg(hit.link);
    if (hit.code >= 0) return tr("Copy this code");
    switch (hit.action) {
        case MessageAction::copy:
            return tr("Copy the message as it was written");
        case MessageAction::edit:
            return tr("Edit: makes a new version, the old one is kept");
        case MessageAction::regenerate:
            return tr("Answer again: makes a new version, the old one is kept");
        case MessageAction::continue_answer:
            return tr("Go on where this answer ended");
        case MessageAction::previous_version:
            return tr("Previous version");
        case MessageAction::next_version:
            return tr("Next version");
        case MessageAction::none:
            break;
    }
    return hit.stats ? layout_.item(hit.row).data().stats_help : QString();
}

// --- selection and clipboard

void TranscriptView::select(TextPlace from, TextPlace to) {
    selection_from_ = from;
    selection_to_ = to;
    if (has_selection()) stop_following();
    viewport()->update();
}

void TranscriptView::clear_selection() {
    selection_from_ = selection_to_ = {};
    selecting_ = false;
    viewport()->update();
}

void TranscriptView::select_all() {
    if (layout_.count() == 0) return;
    Q_EMIT rows_needed(0, layout_.count() - 1);
    select(layout_.first_place(), layout_.last_place());
}

QString TranscriptView::selected_text() {
    return has_selection() ? layout_.selected_text(selection_from_, selection_to_) : QString();
}

void TranscriptView::copy() {
    if (has_selection())
        QApplication::clipboard()->setText(selected_text());
    else if (focused_ >= 0)
        copy_message(focused_);
}

void TranscriptView::copy_message(int row) {
    QApplication::clipboard()->setText(layout_.text(row));
}

void TranscriptView::copy_code(int row, int part) {
    const auto& blocks = layout_.item(row).blocks();
    QString code;
    for (size_t i = size_t(part); i < blocks.size(); ++i) {
        code += blocks[i].text;
        if (!blocks[i].joins_next) break;
    }
    QApplication::clipboard()->setText(code);
}

void TranscriptView::act(int row, MessageAction action) {
    if (row < 0 || row >= layout_.count()) return;
    const MessageData& data = layout_.item(row).data();
    switch (action) {
        case MessageAction::copy:
            return copy_message(row);
        case MessageAction::edit:
            return edit_message(row);
        case MessageAction::regenerate:
            Q_EMIT regenerate_requested(row);
            return;
        case MessageAction::continue_answer:
            Q_EMIT continue_requested();
            return;
        case MessageAction::previous_version:
            if (data.version > 1) Q_EMIT version_requested(row, data.version - 2);
            return;
        case MessageAction::next_version:
            if (data.version < data.version_count) Q_EMIT version_requested(row, data.version);
            return;
        case MessageAction::none:
            return;
    }
}

// --- keyboard

void TranscriptView::focus_message(int row) {
    if (layout_.count() == 0) return;
    focused_ = std::clamp(row, 0, layout_.count() - 1);
    ring_ = true;
    show_message(focused_);
    announce_focus();
}

void TranscriptView::announce_focus() {
    if (focused_ < 0) return;
    QAccessibleEvent focus(this, QAccessible::Focus);
    focus.setChild(focused_);
    QAccessible::updateAccessibility(&focus);
}

void TranscriptView::focusInEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusInEvent(event);
    ring_ = event->reason() == Qt::TabFocusReason || event->reason() == Qt::BacktabFocusReason ||
            event->reason() == Qt::ShortcutFocusReason;
    if (ring_ && focused_ < 0 && layout_.count() > 0)
        focused_ = layout_.item_at(layout_.offset() + layout_.viewport_height() / 2);
    announce_focus();
    viewport()->update();
}

void TranscriptView::focusOutEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusOutEvent(event);
    viewport()->update();
}

// A message taller than the window is read by lines before the next one gets the focus.
void TranscriptView::move_focus(int direction) {
    if (layout_.count() == 0) return;
    if (focused_ < 0 || !ring_) return focus_message(focused_ < 0 ? layout_.count() - 1 : focused_);
    const QRect rect = message_rect(focused_);
    const bool more = direction > 0 ? rect.bottom() > viewport()->height() : rect.top() < 0;
    const bool shown = rect.bottom() > 0 && rect.top() < viewport()->height();
    QScrollBar* bar = verticalScrollBar();
    if (shown && more && rect.height() > viewport()->height() / 2)
        bar->setValue(bar->value() + direction * bar->singleStep() * 2);
    else
        focus_message(focused_ + direction);
}

bool TranscriptView::handle_scroll_key(int key) {
    QScrollBar* bar = verticalScrollBar();
    switch (key) {
        case Qt::Key_PageUp:
            stop_following();
            bar->triggerAction(QScrollBar::SliderPageStepSub);
            return true;
        case Qt::Key_PageDown:
            bar->triggerAction(QScrollBar::SliderPageStepAdd);
            return true;
        case Qt::Key_Home:
            stop_following();
            bar->setValue(0);
            return true;
        case Qt::Key_End:
            scroll_to_end();
            return true;
        default:
            return false;
    }
}

void TranscriptView::keyPressEvent(QKeyEvent* event) {
    event->accept();
    if (event->matches(QKeySequence::Copy)) return copy();
    if (event->matches(QKeySequence::SelectAll)) return select_all();
    const auto modifiers = event->modifiers() & ~Qt::KeypadModifier;
    if (modifiers & Qt::ShiftModifier && !(modifiers & Qt::AltModifier)) {
        switch (event->key()) {
            case Qt::Key_Left:
            case Qt::Key_Right:
            case Qt::Key_Up:
            case Qt::Key_Down:
            case Qt::Key_Home:
            case Qt::Key_End:
                return extend_selection(event->key(), modifiers);
            default:
                break;
        }
    }
    if (modifiers == Qt::NoModifier) {
        if (handle_scroll_key(event->key())) return;
        switch (event->key()) {
            case Qt::Key_Up:
                return move_focus(-1);
            case Qt::Key_Down:
                return move_focus(+1);
            case Qt::Key_Left:
            case Qt::Key_Right:
                if (focused_ >= 0 && !layout_.context.busy)
                    act(focused_, event->key() == Qt::Key_Left ? MessageAction::previous_version
                                                               : MessageAction::next_version);
                return;
            case Qt::Key_Escape:
                if (!has_selection()) break;
                return clear_selection();
            default:
                break;
        }
    }
    event->ignore();
}

void TranscriptView::extend_selection(int key, Qt::KeyboardModifiers modifiers) {
    if (layout_.count() == 0) return;
    if (!has_selection()) {
        const int row = focused_ >= 0 ? focused_ : layout_.item_at(layout_.offset());
        selection_from_ = selection_to_ = {row, 0, 0};
    }
    TextPlace& cursor = selection_to_;
    const bool whole = modifiers & Qt::ControlModifier;
    const auto text = [&]() -> QString {
        layout_.ensure_parsed(cursor.item);
        const MessageItem& item = layout_.item(cursor.item);
        return cursor.part < item.footer() ? item.blocks()[size_t(cursor.part)].text : QString();
    };
    const auto step_part = [&](int direction) {
        int row = cursor.item, part = cursor.part + direction;
        while (row >= 0 && row < layout_.count()) {
            layout_.ensure_parsed(row);
            if (part >= 0 && part < layout_.item(row).footer()) {
                cursor = {row, part, direction > 0 ? 0 : layout_.item(row).text_length(part)};
                return;
            }
            row += direction;
            if (row < 0 || row >= layout_.count()) return;
            layout_.ensure_parsed(row);
            part = direction > 0 ? 0 : layout_.item(row).footer() - 1;
        }
    };
    if (key == Qt::Key_Left || key == Qt::Key_Right) {
        const int direction = key == Qt::Key_Left ? -1 : 1;
        QTextBoundaryFinder finder(whole ? QTextBoundaryFinder::Word : QTextBoundaryFinder::Grapheme, text());
        finder.setPosition(cursor.offset);
        const qsizetype next = direction < 0 ? finder.toPreviousBoundary() : finder.toNextBoundary();
        if (next < 0)
            step_part(direction);
        else
            cursor.offset = int(next);
    } else if (whole && (key == Qt::Key_Home || key == Qt::Key_End)) {
        cursor = key == Qt::Key_Home ? layout_.first_place() : layout_.last_place();
    } else {
        const QRectF at = layout_.place_rect(cursor);
        const qreal far = layout_.context.width * 2;
        const qreal line = text_line_height(theme_->palette());
        const TextPlace before = cursor;
        if (key == Qt::Key_Home || key == Qt::Key_End)
            cursor = layout_.place_at({key == Qt::Key_Home ? -far : far, at.center().y()});
        // Gaps between blocks are wider than a line: go on until the place changes.
        for (int i = 1; i <= 12 && (key == Qt::Key_Up || key == Qt::Key_Down) && cursor == before; ++i) {
            const qreal dy = key == Qt::Key_Up ? -i * line : i * line;
            cursor = layout_.place_at({at.x(), at.center().y() + dy});
        }
    }
    stop_following();
    const QRectF shown = layout_.place_rect(cursor);
    layout_.show_range(shown.top(), shown.bottom());
    relayout();
}

// --- context menu

void TranscriptView::contextMenuEvent(QContextMenuEvent* event) {
    const bool by_key = event->reason() == QContextMenuEvent::Keyboard;
    const Hit hit = by_key ? Hit{} : hit_at(viewport()->mapFromGlobal(event->globalPos()));
    const int row = by_key ? focused_ : hit.row;
    QMenu menu(this);
    menu.setObjectName(QStringLiteral("messageMenu"));
    fill_menu(menu, row, hit);
    if (menu.isEmpty()) return;
    QPoint at = event->globalPos();
    if (by_key) {
        const QRect shown = message_rect(row).intersected(viewport()->rect());
        at = viewport()->mapToGlobal(shown.isEmpty() ? viewport()->rect().center()
                                                     : shown.topLeft() + QPoint(20, 20));
    }
    menu.exec(at);
}

void TranscriptView::fill_menu(QMenu& menu, int row, const Hit& hit) {
    if (has_selection()) {
        menu.addAction(tr("Copy selection"), this, &TranscriptView::copy)->setShortcut(QKeySequence::Copy);
        menu.addSeparator();
    }
    if (!hit.link.isEmpty()) {
        const QString link = hit.link;
        if (is_safe_address(link))
            menu.addAction(tr("Open link"), this, [this, link] { Q_EMIT link_activated(link); });
        menu.addAction(tr("Copy link address"), this, [link] { QApplication::clipboard()->setText(link); });
        menu.addSeparator();
    }
    if (row >= 0 && row < layout_.count()) {
        const MessageData& data = layout_.item(row).data();
        const bool idle = !layout_.context.busy;
        menu.addAction(tr("Copy as text"), this, [this, row] {
            layout_.ensure_parsed(row);
            const int last = std::max(0, layout_.item(row).footer() - 1);
            QApplication::clipboard()->setText(
                layout_.selected_text({row, 0, 0}, {row, last, layout_.item(row).text_length(last)}));
        });
        menu.addAction(tr("Copy as Markdown"), this, [this, row] { copy_message(row); });
        const int part = hit.row == row ? hit.code : -1;
        if (part >= 0) menu.addAction(tr("Copy code"), this, [this, row, part] { copy_code(row, part); });
        menu.addSeparator();
        menu.addAction(tr("Edit"), this, [this, row] { edit_message(row); })->setEnabled(idle);
        if (data.role == Role::assistant) {
            menu.addAction(tr("Regenerate"), this, [this, row] { act(row, MessageAction::regenerate); })
                ->setEnabled(idle);
            if (row == layout_.count() - 1 && layout_.context.continuable)
                menu.addAction(tr("Continue"), this,
                               [this, row] { act(row, MessageAction::continue_answer); })
                    ->setEnabled(idle);
        }
        if (data.version_count > 1) {
            menu.addAction(tr("Previous version"), this,
                           [this, row] { act(row, MessageAction::previous_version); })
                ->setEnabled(idle && data.version > 1);
            menu.addAction(tr("Next version"), this, [this, row] { act(row, MessageAction::next_version); })
                ->setEnabled(idle && data.version < data.version_count);
        }
        if (!data.stats_help.isEmpty())
            menu.addAction(tr("What the numbers mean"), this, [this, row] {
                const QPoint at = message_rect(row).bottomLeft();
                QToolTip::showText(viewport()->mapToGlobal(at), layout_.item(row).data().stats_help,
                                   viewport());
            });
        menu.addSeparator();
    }
    if (layout_.count() > 0)
        menu.addAction(tr("Select all"), this, &TranscriptView::select_all)
            ->setShortcut(QKeySequence::SelectAll);
}

}  // namespace recto::ui
