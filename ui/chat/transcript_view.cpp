#include "ui/chat/transcript_view.h"

#include <QAccessible>
#include <QDateTime>
#include <QHelpEvent>
#include <QLocale>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <QUrl>
#include <algorithm>
#include <cmath>

#include "ui/chat/column.h"
#include "ui/chat/message_editor.h"
#include "ui/chat/text_field.h"
#include "ui/chat/transcript_accessible.h"
#include "ui/models/transcript_model.h"
#include "ui/theme/theme.h"

namespace recto::ui {

TranscriptView::TranscriptView(Theme* theme, QWidget* parent)
    : QAbstractScrollArea(parent), theme_(theme), follow_button_(new QPushButton(viewport())) {
    install_transcript_accessibility();
    setObjectName(QStringLiteral("transcript"));
    setFocusPolicy(Qt::StrongFocus);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    viewport()->setMouseTracking(true);
    viewport()->setCursor(Qt::ArrowCursor);

    follow_button_->setObjectName(QStringLiteral("followButton"));
    follow_button_->setFocusPolicy(Qt::TabFocus);
    follow_button_->hide();
    connect(follow_button_, &QPushButton::clicked, this, [this] {
        scroll_to_end();
        setFocus();
    });

    layout_.text = [this](int row) {
        return model_ ? model_->index(row, 0).data(TranscriptModel::text_role).toString() : QString();
    };
    layout_.needed = [this](int first, int last) {
        needed_first_ = needed_first_ < 0 ? first : std::min(needed_first_, first);
        needed_last_ = std::max(needed_last_, last);
    };
    late_text_.setSingleShot(true);
    connect(&late_text_, &QTimer::timeout, this, [this] {
        const auto rows = std::exchange(late_rows_, {});
        for (const int row : rows)
            if (row < layout_.count()) on_data_changed(row, row, {TranscriptModel::text_role});
    });
    autoscroll_.setInterval(30);
    connect(&autoscroll_, &QTimer::timeout, this, [this] {
        const qreal over = drag_point_.y() < 0 ? drag_point_.y()
                                               : std::max<qreal>(0, drag_point_.y() - viewport()->height());
        if (over == 0) return autoscroll_.stop();
        verticalScrollBar()->setValue(verticalScrollBar()->value() + int(std::clamp<qreal>(over, -60, 60)));
        selection_to_ = place_at(drag_point_);
        viewport()->update();
    });
    connect(theme_, &Theme::changed, this, &TranscriptView::apply_theme);
    layout_.context.palette = &theme_->palette();
    changeEvent(nullptr);
}

TranscriptView::~TranscriptView() = default;

void TranscriptView::set_model(QAbstractItemModel* model) {
    if (model_) model_->disconnect(this);
    model_ = model;
    if (model_) {
        connect(model_, &QAbstractItemModel::modelReset, this, &TranscriptView::reset_rows);
        connect(model_, &QAbstractItemModel::rowsInserted, this,
                [this](const QModelIndex&, int first, int last) { on_rows_inserted(first, last); });
        connect(model_, &QAbstractItemModel::rowsRemoved, this,
                [this](const QModelIndex&, int first, int last) { on_rows_removed(first, last); });
        connect(model_, &QAbstractItemModel::dataChanged, this,
                [this](const QModelIndex& first, const QModelIndex& last, const QList<int>& roles) {
                    on_data_changed(first.row(), last.row(), roles);
                });
    }
    reset_rows();
}

MessageData TranscriptView::read_row(int row) const {
    const QModelIndex index = model_->index(row, 0);
    MessageData data;
    data.id = index.data(TranscriptModel::message_id_role).toLongLong();
    data.role = Role(index.data(TranscriptModel::role_role).toInt());
    data.state = MessageState(index.data(TranscriptModel::state_role).toInt());
    data.loaded = index.data(TranscriptModel::loaded_role).toBool();
    data.live = index.data(TranscriptModel::live_role).toBool();
    data.chars = data.loaded ? 0 : index.data(TranscriptModel::chars_role).toInt();
    if (data.loaded && !data.live) data.chars = index.data(TranscriptModel::chars_role).toInt();
    data.version = index.data(TranscriptModel::version_role).toInt();
    data.version_count = index.data(TranscriptModel::version_count_role).toInt();
    data.stats = index.data(TranscriptModel::stats_role).toString();
    data.stats_help = index.data(TranscriptModel::stats_help_role).toString();
    data.error = index.data(TranscriptModel::error_role).toString();
    data.note = index.data(TranscriptModel::note_role).toString();
    data.created = index.data(TranscriptModel::created_role).toDateTime();
    return data;
}

void TranscriptView::reset_rows() {
    cancel_edit();
    clear_selection();
    focused_ = -1;
    hover_ = {};
    late_rows_.clear();
    layout_.clear();
    const int count = model_ ? model_->rowCount() : 0;
    std::vector<MessageData> rows;
    rows.reserve(size_t(count));
    for (int row = 0; row < count; ++row)
        rows.push_back(read_row(row));
    update_context();
    layout_.insert(0, rows);
    following_ = true;
    new_text_ = false;
    schedule_relayout();
}

void TranscriptView::on_rows_inserted(int first, int last) {
    std::vector<MessageData> rows;
    for (int row = first; row <= last; ++row)
        rows.push_back(read_row(row));
    // A person who has just sent something wants to see the answer. (Another version brings its tail at
    // once.)
    const bool sent = first == last && first == layout_.count() && last + 1 == model_->rowCount() &&
                      isVisible() && restore_offset_ < 0 && rows.back().role == Role::user;
    if (first < layout_.count()) {
        cancel_edit();
        clear_selection();
        focused_ = -1;
    }
    if (first > 0 && first == layout_.count()) layout_.item(first - 1).invalidate_footer();
    layout_.insert(first, rows);
    if (sent) following_ = true;
    new_text_ |= !following_;
    schedule_relayout();
}

// Another version replaces a message and its tail: the reader stays where it was.
void TranscriptView::on_rows_removed(int first, int last) {
    if (editing_row_ >= first) cancel_edit();
    clear_selection();
    hover_ = pressed_ = {};
    if (restore_offset_ < 0) restore_offset_ = layout_.offset();
    layout_.remove(first, last);
    schedule_relayout();
}

void TranscriptView::on_data_changed(int first, int last, const QList<int>& roles) {
    const bool text = roles.isEmpty() || roles.contains(TranscriptModel::text_role) ||
                      roles.contains(TranscriptModel::live_role);
    const bool only_grew = first == last && first + 1 == layout_.count() && !roles.isEmpty() && text;
    const int open_part = only_grew ? layout_.item(first).first_open_part() : 0;
    int wait = 0;
    for (int row = first; row <= last && row < layout_.count(); ++row) {
        layout_.set_data(row, read_row(row));
        if (!text || !isVisible()) continue;  // a hidden view catches up when it is shown
        const int row_wait = layout_.text_changed(row);
        if (row_wait == 0) continue;
        if (std::find(late_rows_.begin(), late_rows_.end(), row) == late_rows_.end())
            late_rows_.push_back(row);
        wait = wait == 0 ? row_wait : std::min(wait, row_wait);
    }
    if (wait > 0 && !late_text_.isActive()) late_text_.start(wait);
    new_text_ |= text && !following_ && last == layout_.count() - 1;
    only_grew ? schedule_from(first, open_part) : schedule_relayout();
}

void TranscriptView::schedule_relayout() {
    changed_all_ = true;
    schedule();
}

void TranscriptView::schedule_from(int row, int part) {
    if (changed_row_ >= 0 && changed_row_ != row) changed_all_ = true;
    changed_part_ = changed_row_ < 0 ? part : std::min(changed_part_, part);
    changed_row_ = row;
    schedule();
}

void TranscriptView::schedule() {
    if (relayout_scheduled_) return;
    relayout_scheduled_ = true;
    QTimer::singleShot(0, this, [this] {
        if (relayout_scheduled_) apply_changes();
    });
}

void TranscriptView::update_context() {
    // Measured on the whole pane, so that the column stands over the input box's, scroll bar or not.
    const Column column = column_in(width(), theme_->palette());
    column_x_ = column.x;
    layout_.context.palette = &theme_->palette();
    layout_.set_viewport(column.width, viewport()->height());
}

void TranscriptView::relayout() {
    changed_row_ = -1;
    changed_all_ = true;
    apply_changes();
}

void TranscriptView::apply_changes() {
    relayout_scheduled_ = false;
    if (!isVisible()) return;
    const qreal offset_before = layout_.offset();
    update_context();
    if (following_) layout_.scroll_to_end();
    layout_.lay_out();
    if (following_) layout_.scroll_to_end();
    sync_scroll_bar();
    if (layout_.at_end()) new_text_ = false;
    place_editor();
    place_follow_button();
    if (needed_first_ >= 0) {
        const int first = std::exchange(needed_first_, -1), last = std::exchange(needed_last_, -1);
        Q_EMIT rows_needed(first, last);
    }
    // A token changes the end of one message: what stands above it is not painted again.
    const int row = std::exchange(changed_row_, -1);
    const bool partly = !std::exchange(changed_all_, false) && row >= 0 && row < layout_.count() &&
                        layout_.offset() == offset_before;
    if (!partly) return viewport()->update();
    const int part = std::min(changed_part_, layout_.item(row).footer());
    const qreal top = layout_.item_top(row) + layout_.item(row).part_top(part) - layout_.offset();
    viewport()->update(0, int(top) - 1, viewport()->width(), viewport()->height());
}

void TranscriptView::sync_scroll_bar() {
    syncing_ = true;
    const int page = viewport()->height();
    QScrollBar* bar = verticalScrollBar();
    bar->setPageStep(page);
    bar->setSingleStep(int(text_line_height(theme_->palette())) * 2);
    bar->setRange(0, std::max(0, int(layout_.total_height()) - page));
    bar->setValue(int(layout_.offset()));
    syncing_ = false;
}

void TranscriptView::scrollContentsBy(int, int) {
    if (syncing_) return;
    const qreal dy = verticalScrollBar()->value() - layout_.offset();
    if (dy == 0) return;
    if (std::abs(dy) <= 3 * layout_.viewport_height())
        layout_.scroll_by(dy);
    else
        layout_.scroll_to(verticalScrollBar()->value());
    layout_.lay_out();
    following_ = layout_.at_end();
    relayout();
}

void TranscriptView::stop_following() {
    following_ = false;
    place_follow_button();
}

void TranscriptView::scroll_to_end() {
    following_ = true;
    new_text_ = false;
    relayout();
}

void TranscriptView::show_message(int row) {
    if (row < 0 || row >= layout_.count()) return;
    layout_.show_item(row);
    following_ = layout_.at_end();
    relayout();
}

void TranscriptView::set_busy(bool busy) {
    if (layout_.context.busy == busy) return;
    layout_.context.busy = busy;
    layout_.invalidate_footers();
    schedule_relayout();
}

void TranscriptView::set_continuable(bool continuable) {
    if (layout_.context.continuable == continuable) return;
    layout_.context.continuable = continuable;
    layout_.invalidate_footers();
    schedule_relayout();
}

void TranscriptView::set_live_line(const QString& line) {
    if (layout_.context.live_line == line) return;
    layout_.context.live_line = line;
    const int row = layout_.count() - 1;
    if (row < 0 || !layout_.item(row).data().live) return;
    layout_.item(row).invalidate_footer();
    schedule_from(row, layout_.item(row).footer());
}

void TranscriptView::apply_theme() {
    follow_button_->setFont(theme_->palette().fonts.note);
    update_context();
    layout_.set_palette(&theme_->palette());
    schedule_relayout();
}

QPointF TranscriptView::origin() const {
    return {column_x_, -layout_.offset()};
}
QPointF TranscriptView::to_content(QPointF point) const {
    return point - origin();
}

void TranscriptView::paintEvent(QPaintEvent* event) {
    if (relayout_scheduled_) apply_changes();  // a block without a layout would be a hole
    QPainter painter(viewport());
    const Palette& palette = theme_->palette();
    painter.fillRect(event->rect(), palette.background);
    if (layout_.count() == 0 || layout_.context.width <= 0) return;
    const QRectF visible(event->rect());
    TextPlace from = selection_from_, to = selection_to_;
    if (to < from) std::swap(from, to);
    for (int row = layout_.item_at(to_content(visible.topLeft()).y()); row < layout_.count(); ++row) {
        const QPointF at = origin() + QPointF(0, layout_.item_top(row));
        if (at.y() > visible.bottom()) break;
        const MessageItem& item = layout_.item(row);
        std::vector<TextRange> ranges;
        int first_part = 0;
        if (from != to && row >= from.item && row <= to.item) {
            first_part = row == from.item ? from.part : 0;
            const int last_part = row == to.item ? to.part : item.footer() - 1;
            for (int part = first_part; part <= last_part; ++part)
                ranges.push_back({row == from.item && part == from.part ? from.offset : 0,
                                  row == to.item && part == to.part ? to.offset : item.text_length(part)});
        }
        MessageLook look;
        look.focused = ring_ && hasFocus() && row == focused_;
        look.hovered = hover_.row == row;
        if (look.hovered) {
            look.hovered_action = hover_.action;
            look.hovered_code = hover_.code;
        }
        item.paint(painter, at, visible, layout_.context, look, ranges, first_part);
    }
}

void TranscriptView::resizeEvent(QResizeEvent*) {
    update_context();
    relayout();
}

void TranscriptView::showEvent(QShowEvent* event) {
    QAbstractScrollArea::showEvent(event);
    // Texts that grew while nobody looked.
    for (int row = 0; row < layout_.count(); ++row)
        if (layout_.item(row).parsed()) layout_.text_changed(row, true);
    relayout();
}

void TranscriptView::place_follow_button() {
    const bool wanted = !following_ && layout_.count() > 0 && !layout_.at_end();
    if (!wanted) return follow_button_->hide();
    follow_button_->setText(new_text_ ? tr("\u2193 new text") : tr("\u2193 to the end"));
    follow_button_->setAccessibleName(new_text_ ? tr("New text below, go to the end") : tr("Go to the end"));
    follow_button_->setToolTip(tr("Go to the end and follow the answer (End)"));
    follow_button_->adjustSize();
    follow_button_->move((viewport()->width() - follow_button_->width()) / 2,
                         viewport()->height() - follow_button_->height() - 10);
    follow_button_->show();
    follow_button_->raise();
}

// --- editing in place

void TranscriptView::edit_message(int row) {
    if (row < 0 || row >= layout_.count() || layout_.context.busy || !layout_.item(row).data().loaded) return;
    cancel_edit();
    editing_row_ = row;
    editor_ = new MessageEditor(theme_, layout_.item(row).data().role, layout_.text(row), viewport());
    connect(editor_, &MessageEditor::rejected, this, [this] {
        cancel_edit();
        setFocus();
    });
    connect(editor_, &MessageEditor::accepted, this, [this](const QString& text) {
        const int edited = editing_row_;
        cancel_edit();
        setFocus();
        Q_EMIT edit_submitted(edited, text);
    });
    connect(editor_, &MessageEditor::height_wanted, this, &TranscriptView::schedule_relayout);
    clear_selection();
    place_editor();
    editor_->show();
    following_ = false;
    layout_.show_item(row);
    relayout();
    editor_->field()->setFocus();
}

void TranscriptView::cancel_edit() {
    if (!editor_) return;
    if (editing_row_ < layout_.count()) layout_.set_editor_height(editing_row_, 0);
    editor_->deleteLater();
    editor_->hide();
    editor_ = nullptr;
    editing_row_ = -1;
    schedule_relayout();
}

void TranscriptView::place_editor() {
    if (!editor_) return;
    const qreal height = editor_->wanted_height(std::max(120, viewport()->height() / 2));
    if (height != layout_.item(editing_row_).editor_height()) {
        layout_.set_editor_height(editing_row_, height);
        layout_.lay_out();
        sync_scroll_bar();
    }
    const QRectF body = layout_.item(editing_row_).body_rect(layout_.context);
    editor_->setGeometry(
        body.translated(origin() + QPointF(0, layout_.item_top(editing_row_))).toAlignedRect());
}

// --- titles for people and screen readers

QRect TranscriptView::message_rect(int row) const {
    if (row < 0 || row >= layout_.count()) return {};
    return QRectF(origin() + QPointF(0, layout_.item_top(row)),
                  QSizeF(layout_.context.width, layout_.item(row).height()))
        .toAlignedRect();
}

QString TranscriptView::message_title(int row) const {
    if (row < 0 || row >= layout_.count()) return {};
    const MessageData& data = layout_.item(row).data();
    const QString who = data.role == Role::user     ? tr("You")
                        : data.role == Role::system ? tr("System prompt")
                                                    : tr("Answer");
    const QString text = data.loaded ? layout_.text(row).left(400).simplified() : QString();
    const QString words = text.size() > 80 ? text.left(80) + QChar(0x2026) : text;
    const QString time =
        data.created.isValid() ? QLocale().toString(data.created.time(), QLocale::ShortFormat) : QString();
    return time.isEmpty() ? tr("%1: %2").arg(who, words) : tr("%1, %2: %3").arg(who, time, words);
}

bool TranscriptView::is_safe_address(const QString& address) {
    const QUrl url(address, QUrl::StrictMode);
    const QString scheme = url.scheme();
    const bool web = scheme == QLatin1String("http") || scheme == QLatin1String("https");
    return url.isValid() && ((web && !url.host().isEmpty()) || scheme == QLatin1String("mailto"));
}

bool TranscriptView::event(QEvent* event) {
    // While a message has the focus, the keys it answers are not the window's.
    return QAbstractScrollArea::event(event);
}

void TranscriptView::changeEvent(QEvent* event) {
    if (!event || event->type() == QEvent::LanguageChange) {
        setAccessibleName(tr("Messages"));
        setAccessibleDescription(
            tr("Up and Down go from message to message, the Menu key shows what can be done"));
        layout_.invalidate_footers();
        schedule_relayout();
    }
    if (event) QAbstractScrollArea::changeEvent(event);
}

}  // namespace recto::ui
