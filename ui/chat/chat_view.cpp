#include "ui/chat/chat_view.h"

#include <QAccessible>
#include <QDesktopServices>
#include <QKeyEvent>
#include <QLabel>
#include <QLocale>
#include <QPushButton>
#include <QStackedWidget>
#include <QUrl>
#include <QVBoxLayout>

#include "ui/chat/input_box.h"
#include "ui/chat/prompt_popover.h"
#include "ui/chat/sampling_popover.h"
#include "ui/chat/transcript_view.h"
#include "ui/settings/settings.h"
#include "ui/theme/theme.h"

namespace recto::ui {

namespace {
constexpr int count_delay_ms = 150;
}

ChatView::ChatView(Chat* chat, Theme* theme, Settings* settings, QWidget* parent)
    : QWidget(parent),
      chat_(chat),
      theme_(theme),
      settings_(settings),
      model_(new TranscriptModel(chat, this)),
      pages_(new QStackedWidget(this)),
      transcript_(new TranscriptView(theme, this)),
      input_(new InputBox(theme, this)) {
    setObjectName(QStringLiteral("chatView"));
    empty_ = make_empty_page();
    pages_->setObjectName(QStringLiteral("chatPages"));
    pages_->addWidget(transcript_);
    pages_->addWidget(empty_);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(pages_, 1);
    column->addWidget(input_);
    sampling_ = new SamplingPopover(theme, this);
    prompt_ = new PromptPopover(theme, this);
    // No focus proxy: Tab would stop at the proxy on its way to the widgets before it.
    setTabOrder(transcript_, shared_start_);
    setTabOrder(shared_start_, input_->field());

    transcript_->set_model(model_);
    connect_chat();
    connect_input();
    seen_draft_ = chat_->draft();
    input_->set_text(seen_draft_);
    retranslate();
    chat_->open();
    update_record();
    update_state();
}

ChatView::~ChatView() = default;

QWidget* ChatView::make_empty_page() {
    auto* page = new QWidget(this);
    page->setObjectName(QStringLiteral("emptyChat"));
    page->installEventFilter(this);
    empty_title_ = new QLabel(page);
    empty_title_->setFont(theme_->palette().fonts.heading);
    empty_title_->setAlignment(Qt::AlignCenter);
    empty_text_ = new QLabel(page);
    empty_text_->setProperty("dim", true);
    empty_text_->setWordWrap(true);
    empty_text_->setAlignment(Qt::AlignCenter);
    empty_text_->setMinimumWidth(320);
    shared_start_ = new QPushButton(page);
    shared_start_->setObjectName(QStringLiteral("sharedStartButton"));
    auto* column = new QVBoxLayout(page);
    column->setSpacing(theme_->palette().metrics.pad);
    column->addStretch(2);
    column->addWidget(empty_title_, 0, Qt::AlignHCenter);
    column->addWidget(empty_text_);  // an alignment would hide its height for width from the layout
    column->addWidget(shared_start_, 0, Qt::AlignHCenter);
    column->addStretch(3);
    connect(shared_start_, &QPushButton::clicked, this, &ChatView::shared_start_requested);
    return page;
}

void ChatView::connect_chat() {
    connect(chat_, &Chat::state_changed, this, &ChatView::update_state);
    connect(chat_, &Chat::opened, this, &ChatView::update_state);
    connect(chat_, &Chat::path_changed, this, &ChatView::update_state);
    connect(chat_, &Chat::record_changed, this, &ChatView::update_record);
    connect(chat_, &Chat::message_added, this, [this] {
        if (sending_) {
            sending_ = false;
            const QSignalBlocker quiet(input_);  // the chat clears its draft itself
            input_->clear();
            input_->set_token_count(-1, 0);
        }
        update_state();
    });
    connect(chat_, &Chat::draft_restored, this, [this](const QString& text) {
        sending_ = false;
        const QString now = input_->text();
        if (!now.contains(text)) input_->set_text(now.isEmpty() ? text : text + QStringLiteral("\n") + now);
    });
    connect(chat_, &Chat::text_appended, this, [this] { transcript_->set_live_line(live_line()); });
    connect(transcript_, &TranscriptView::rows_needed, chat_, &Chat::ensure_loaded);
    connect(transcript_, &TranscriptView::regenerate_requested, chat_, &Chat::regenerate);
    connect(transcript_, &TranscriptView::continue_requested, chat_, &Chat::continue_answer);
    connect(transcript_, &TranscriptView::version_requested, chat_, &Chat::show_version);
    connect(transcript_, &TranscriptView::edit_submitted, chat_, &Chat::edit);
    connect(transcript_, &TranscriptView::link_hovered, this, &ChatView::link_hovered);
    connect(transcript_, &TranscriptView::link_activated, this,
            [](const QString& address) { QDesktopServices::openUrl(QUrl(address)); });
}

void ChatView::connect_input() {
    input_->set_send_key(settings_->send_key());
    connect(settings_, &Settings::changed, this, [this](const QString&) {
        input_->set_send_key(settings_->send_key());
        update_record();
    });
    connect(input_, &InputBox::send_requested, this, &ChatView::send);
    connect(input_, &InputBox::stop_requested, chat_, &Chat::stop);
    connect(input_, &InputBox::text_changed, this, [this](const QString& text) {
        seen_draft_ = text;
        chat_->set_draft(text);
        count_timer_.start();
    });
    connect(input_, &InputBox::recall_requested, this, [this] {
        if (const int row = last_row(Role::user); row >= 0) input_->set_text(chat_->message(row).content);
    });
    connect(input_->sampling_button(), &QPushButton::clicked, this, &ChatView::toggle_sampling);
    connect(input_->prompt_button(), &QPushButton::clicked, this, &ChatView::toggle_prompt);
    connect(sampling_, &SamplingPopover::sampling_changed, chat_, &Chat::set_sampling);
    connect(prompt_, &PromptPopover::prompt_changed, chat_, &Chat::set_system_prompt);
    count_timer_.setSingleShot(true);
    count_timer_.setInterval(count_delay_ms);
    connect(&count_timer_, &QTimer::timeout, this, &ChatView::count_tokens);
}

void ChatView::send(const QString& text) {
    sending_ = true;
    if (!chat_->send(text)) sending_ = false;
    update_state();
}

void ChatView::count_tokens() {
    HostClient* host = chat_->host();
    const QString text = input_->text();
    if (!host || !host->ready() || host->held() || text.isEmpty()) return input_->set_token_count(-1, 0);
    if (host != counting_host_) {
        if (counting_host_) disconnect(counting_host_, &HostClient::tokens_counted, this, nullptr);
        counting_host_ = host;
        connect(host, &HostClient::tokens_counted, this, &ChatView::take_count);
    }
    count_ticket_ = host->count_prompt(chat_->conversation(), text);
}

void ChatView::take_count(Ticket ticket, const std::shared_ptr<const TokenCount>& count) {
    if (!chat_ || ticket != count_ticket_ || !count->error.empty()) return;
    const int used = count->prompt_tokens > 0 ? count->prompt_tokens : chat_->context_used() + count->tokens;
    input_->set_token_count(count->tokens, chat_->context_limit() - used);
}

void ChatView::update_page() {
    const bool empty = chat_->is_open() && chat_->message_count() == 0;
    pages_->setCurrentWidget(empty ? empty_ : transcript_);
}

void ChatView::update_state() {
    if (!chat_) return;
    update_page();
    const bool busy = chat_->busy();
    transcript_->set_busy(busy);
    const int rows = chat_->is_open() ? chat_->message_count() : 0;
    bool continuable = false;
    if (!busy && rows > 0) {
        const MessageRecord& last = chat_->message(rows - 1);
        continuable =
            last.role == Role::assistant &&
            (last.state == MessageState::stopped || last.finish_reason == QLatin1String("length")) &&
            last.state != MessageState::context_full;
    }
    transcript_->set_continuable(continuable);
    transcript_->set_live_line(live_line());
    input_->set_busy(busy, chat_->state() == ChatState::stopping);
    input_->set_blocked_reason(busy ? QString() : chat_->send_blocked_reason());
    input_->set_context({chat_->context_used(), chat_->context_limit(), chat_->blocks()});
    announce_state();
}

void ChatView::update_record() {
    if (!chat_) return;
    const SamplingParams effective = chat_->effective_sampling();
    input_->set_sampling_summary(sampling_summary(effective));
    sampling_->set_sampling(effective, chat_->record().sampling);
    prompt_->set_prompt(chat_->record().system_prompt);
    input_->set_has_system_prompt(!chat_->record().system_prompt.trimmed().isEmpty());
    // The draft was changed elsewhere, perhaps in another view of this chat.
    const QString& draft = chat_->draft();
    if (draft == seen_draft_) return;
    seen_draft_ = draft;
    if (sending_ || input_->field()->hasFocus()) return;
    const QSignalBlocker quiet(input_);
    input_->set_text(draft);
}

QString ChatView::live_line() const {
    if (!chat_ || !chat_->busy()) return {};
    const QLocale locale;
    const QString dot = QStringLiteral("  \u00b7  ");
    switch (chat_->state()) {
        case ChatState::prefill: {
            QString line =
                tr("reading the prompt") + dot + tr("%1 %").arg(qRound(chat_->prefill_fraction() * 100));
            if (chat_->prefill_tok_s() > 0)
                line += dot + tr("%1 tok/s").arg(locale.toString(qRound(chat_->prefill_tok_s())));
            return line;
        }
        case ChatState::generating: {
            QString line = tr("decoding");
            if (chat_->speed_tok_s() > 0)
                line += dot + tr("%1 tok/s").arg(locale.toString(qRound(chat_->speed_tok_s())));
            const MessageId id = chat_->answering();
            if (id != 0 && chat_->tree().contains(id))
                line += dot + tr("%n token(s)", nullptr, int(chat_->tree().at(id).token_ids.size()));
            return line;
        }
        default:
            return chat_->state_text();
    }
}

// Once each, never a token.
void ChatView::announce_state() {
    const ChatState state = chat_->state();
    if (state == announced_) return;
    const ChatState before = std::exchange(announced_, state);
    const bool was_busy = before == ChatState::generating || before == ChatState::prefill ||
                          before == ChatState::stopping || before == ChatState::waiting;
    if (state == ChatState::generating && before != ChatState::generating)
        Q_EMIT announce(tr("Answer started"));
    else if (state == ChatState::failed)
        Q_EMIT announce(tr("Failed: %1").arg(chat_->problem()));
    else if (state == ChatState::idle && was_busy)
        Q_EMIT announce(before == ChatState::stopping ? tr("Stopped") : tr("Answer finished"));
}

// --- what the window's menus and shortcuts ask for

void ChatView::focus_input() {
    input_->field()->setFocus(Qt::ShortcutFocusReason);
}
void ChatView::toggle_prompt() {
    prompt_->toggle_above(input_->prompt_button());
}
void ChatView::toggle_sampling() {
    sampling_->toggle_above(input_->sampling_button());
}

int ChatView::last_row(Role role) const {
    for (int row = chat_->is_open() ? chat_->message_count() - 1 : -1; row >= 0; --row)
        if (chat_->message(row).role == role) return row;
    return -1;
}

void ChatView::edit_last_prompt() {
    if (const int row = last_row(Role::user); row >= 0) transcript_->edit_message(row);
}

void ChatView::regenerate_last() {
    if (const int row = last_row(Role::assistant); row >= 0) chat_->regenerate(row);
}

void ChatView::show_version_of_focused(int step) {
    const int row =
        transcript_->focused_message() >= 0 ? transcript_->focused_message() : last_row(Role::assistant);
    if (row < 0 || chat_->busy()) return;
    const int index = chat_->version_index(row) + step;
    if (index >= 0 && index < chat_->version_count(row)) chat_->show_version(row, index);
}

void ChatView::copy_last_answer() {
    if (const int row = last_row(Role::assistant); row >= 0) transcript_->copy_message(row);
}

void ChatView::commit_input() {
    input_->field()->guard().commit_then([this] {
        if (chat_) chat_->set_draft(input_->text());
    });
}

void ChatView::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    input_->set_pane_height(height());
}

void ChatView::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape && event->modifiers() == Qt::NoModifier && chat_ && chat_->busy())
        return chat_->stop();
    QWidget::keyPressEvent(event);
}

bool ChatView::eventFilter(QObject* watched, QEvent* event) {
    if (watched == empty_ && event->type() == QEvent::Paint) {
        QPainter painter(empty_);
        painter.fillRect(empty_->rect(), theme_->palette().background);
    }
    return QWidget::eventFilter(watched, event);
}

void ChatView::retranslate() {
    setAccessibleName(tr("Chat"));
    empty_title_->setText(tr("What shall we talk about?"));
    empty_text_->setText(
        tr("Everything runs on this machine. To see paging and sharing happen, start four chats at once and "
           "watch "
           "the block map on the right."));
    shared_start_->setText(tr("Start four chats with one shared system prompt"));
    shared_start_->setAccessibleName(shared_start_->text());
    shared_start_->setToolTip(
        tr("They answer at the same time, and the blocks of the system prompt exist once"));
}

void ChatView::changeEvent(QEvent* event) {
    if (event->type() == QEvent::LanguageChange) {
        retranslate();
        update_record();
        update_state();
    }
    QWidget::changeEvent(event);
}

}  // namespace recto::ui
