// The main window's tabs: each a view of a chat, or the benchmark's; opened, closed, restored.
#include <QGuiApplication>
#include <QInputDialog>
#include <QInputMethod>
#include <QLineEdit>
#include <QMenu>
#include <QStackedWidget>

#include "ui/bench/bench_view.h"
#include "ui/chat/chat_view.h"
#include "ui/chat/composition_guard.h"
#include "ui/chat_tab_bar.h"
#include "ui/four_chats.h"
#include "ui/main_window.h"
#include "ui/message_bar.h"
#include "ui/panel/live_panel.h"
#include "ui/sidebar.h"
#include "ui/status_line.h"

namespace recto::ui {

Chat* MainWindow::current_chat() const {
    return session_->chat(tabs_->chat_at(tabs_->currentIndex()));
}

ChatView* MainWindow::view_of(ChatId id) const {
    return views_.value(id);
}

void MainWindow::open_chat(Chat* chat) {
    if (chat == nullptr || chat->trashed()) return;
    int index = tabs_->index_of(chat->id());
    if (index < 0) {
        index = tabs_->add_chat(chat->id());
        describe_chat(chat);
    }
    tabs_->setCurrentIndex(index);
    show_tab(index);
}

void MainWindow::show_tab(int index) {
    commit_input();
    if (tabs_->chat_at(index) == benchmark_tab) {
        show_benchmark_view();
        return;
    }
    Chat* chat = session_->chat(tabs_->chat_at(index));
    if (chat == nullptr) return;
    ChatView* view = views_.value(chat->id());
    if (view == nullptr) {
        view = make_view(chat);
        views_.insert(chat->id(), view);
        stack_->addWidget(view);
    }
    stack_->setCurrentWidget(view);
    panel_->feed()->set_current_chat(chat->owner());
    sidebar_->set_open_chat(chat->id());
    view->focus_input();
    update_title();
    update_actions();
}

// A word being composed belongs to the chat it is typed in.
void MainWindow::commit_input() {
    QGuiApplication::inputMethod()->commit();
    if (auto* view = qobject_cast<ChatView*>(stack_->currentWidget())) view->commit_input();
}

void MainWindow::new_chat() {
    if (!session_->is_ready()) return;
    Chat* open = current_chat();
    const bool fresh =
        open != nullptr && open->is_open() && open->message_count() == 0 && open->draft().isEmpty();
    if (fresh) {
        view_of(open->id())->focus_input();
        return;
    }
    open_chat(session_->new_chat());
}

void MainWindow::close_tab(int index) {
    const ChatId id = tabs_->chat_at(index);
    if (id == 0) return;
    commit_input();
    if (id == benchmark_tab) {
        close_benchmark_tab(index);
        return;
    }
    Chat* chat = session_->chat(id);
    tabs_->removeTab(index);
    if (ChatView* view = views_.take(id)) {
        stack_->removeWidget(view);
        view->deleteLater();
    }
    closed_.removeAll(id);
    closed_ << id;
    // Its answer goes on: the chat owns it, not the tab.
    if (chat != nullptr && chat->busy()) {
        const QPointer<Chat> kept = chat;
        toast_->show_message(tr("“%1” goes on answering.").arg(chat->title()),
                             {{tr("Show"), [this, kept] { open_chat(kept); }}, {tr("Stop"), [kept] {
                                                                                    if (kept) kept->stop();
                                                                                }}});
    }
    discard_if_unused(chat);
    if (tabs_->count() == 0 && !quitting_) new_chat();
    update_title();
    update_actions();
}

// A chat that nobody wrote in would only stand in the list.
void MainWindow::discard_if_unused(Chat* chat) {
    if (chat == nullptr || chat->trashed() || chat->busy() || !chat->is_open() || chat->message_count() > 0)
        return;
    const ChatRecord& record = chat->record();
    if (!record.draft.isEmpty() || !record.system_prompt.isEmpty() || !record.sampling.isEmpty() ||
        record.renamed)
        return;
    const ChatId id = chat->id();
    closed_.removeAll(id);
    session_->trash_chat(id);
    session_->delete_chat(id);
}

void MainWindow::reopen_tab() {
    while (!closed_.isEmpty()) {
        const ChatId id = closed_.takeLast();
        if (id == benchmark_tab) {
            show_benchmark();
            return;
        }
        Chat* chat = session_->chat(id);
        if (chat == nullptr || chat->trashed() || tabs_->index_of(chat->id()) >= 0) continue;
        open_chat(chat);
        return;
    }
    update_actions();
}

void MainWindow::delete_chat(Chat* chat) {
    const ChatId id = chat->id();
    const QString title = chat->title();
    session_->trash_chat(id);
    toast_->show_message(tr("“%1” was deleted.").arg(title), {{tr("Undo"), [this, id] {
                                                                   session_->restore_chat(id);
                                                                   open_chat(session_->chat(id));
                                                               }}});
}

void MainWindow::rename_chat(Chat* chat) {
    auto* dialog = new QInputDialog(this);
    dialog->setObjectName(QStringLiteral("rename_dialog"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("Rename chat"));
    dialog->setLabelText(tr("Title"));
    dialog->setTextValue(chat->title());
    const QPointer<Chat> kept = chat;
    connect(dialog, &QInputDialog::textValueSelected, this, [kept](const QString& text) {
        if (kept && !text.trimmed().isEmpty()) kept->rename(text.trimmed());
    });
    dialog->open();
    if (auto* field = dialog->findChild<QLineEdit*>()) new CompositionGuard(field);
}

void MainWindow::show_four_chats() {
    Chat* open = current_chat();
    const QList<Chat*> chats = start_four_chats(session_);
    if (chats.isEmpty()) {
        if (open != nullptr) toast_->show_message(open->send_blocked_reason());
        return;
    }
    const int place = open != nullptr && open->message_count() == 0 ? tabs_->currentIndex() : -1;
    for (Chat* chat : chats)
        open_chat(chat);
    if (place >= 0) close_tab(place);  // the empty chat that the offer stood in
    open_chat(chats.front());
}

ChatView* MainWindow::make_view(Chat* chat) {
    auto* view = new ChatView(chat, theme_, &session_->settings(), stack_);
    connect(view, &ChatView::shared_start_requested, this, [this] { show_four_chats(); });
    connect(view, &ChatView::link_hovered, status_, &StatusLine::show_address);
    connect(view, &ChatView::announce, status_, &StatusLine::announce);
    return view;
}

void MainWindow::show_benchmark() {
    if (!session_->is_ready()) return;
    int index = tabs_->index_of(benchmark_tab);
    if (index < 0) {
        index = tabs_->add_chat(benchmark_tab);
        describe_benchmark();
    }
    tabs_->setCurrentIndex(index);
    show_tab(index);
}

void MainWindow::show_benchmark_view() {
    if (bench_ == nullptr) {
        bench_ = make_benchmark_view();
        stack_->addWidget(bench_);
    }
    closed_.removeAll(benchmark_tab);
    stack_->setCurrentWidget(bench_);
    sidebar_->set_open_chat(0);
    bench_->focus_first();
    describe_benchmark();
    update_title();
    update_actions();
}

BenchView* MainWindow::make_benchmark_view() {
    const ModelRequest like = opener_->request_for({});
    auto* view = new BenchView(theme_, session_, QString::fromStdString(like.device), like.threads, stack_);
    connect(view, &BenchView::state_changed, this, [this] { describe_benchmark(); });
    connect(view, &BenchView::announce, status_, &StatusLine::announce);
    return view;
}

void MainWindow::describe_benchmark() {
    tabs_->describe(benchmark_tab, tr("Benchmark"), bench_ != nullptr ? bench_->state_text() : QString(),
                    false, {});
}

// A run goes on: the session owns it, not the tab.
void MainWindow::close_benchmark_tab(int index) {
    tabs_->removeTab(index);
    if (bench_ != nullptr) {
        stack_->removeWidget(bench_);
        bench_->deleteLater();
        bench_ = nullptr;
    }
    closed_.removeAll(benchmark_tab);
    closed_ << benchmark_tab;
    if (session_->benchmark().active())
        toast_->show_message(tr("The benchmark goes on."),
                             {{tr("Show"), [this] { show_benchmark(); }},
                              {tr("Stop"), [this] { session_->benchmark().stop(); }}});
    if (tabs_->count() == 0 && !quitting_) new_chat();
    update_title();
    update_actions();
}

void MainWindow::describe_chat(Chat* chat) {
    const bool has_color = session_->palette().has(chat->owner());
    tabs_->describe(chat->id(), chat->title(), chat->state_text(), has_color,
                    has_color ? session_->style(chat->owner()) : OwnerStyle{});
    if (chat == current_chat()) {
        update_title();
        update_actions();
    }
}

void MainWindow::forget_chat(Chat* chat) {
    const int index = tabs_->index_of(chat->id());
    if (index >= 0) close_tab(index);
    closed_.removeAll(chat->id());
}

void MainWindow::restore_tabs() {
    const ChatId current = session_->settings().current_chat();
    tabs_->blockSignals(true);  // only the shown chat is opened, not each one on the way
    for (const ChatId id : session_->settings().open_chats()) {
        Chat* chat = session_->chat(id);
        if (chat == nullptr || chat->trashed() || tabs_->index_of(id) >= 0) continue;
        tabs_->add_chat(id);
        describe_chat(chat);
    }
    if (session_->settings().benchmark_open()) {
        tabs_->add_chat(benchmark_tab);
        describe_benchmark();
    }
    tabs_->blockSignals(false);
    if (tabs_->count() == 0) {
        new_chat();
        return;
    }
    const int index = std::max(tabs_->index_of(current), 0);
    tabs_->setCurrentIndex(index);
    show_tab(index);
}

void MainWindow::show_tab_menu(int index, QPoint global) {
    const ChatId id = tabs_->chat_at(index);
    Chat* chat = session_->chat(id);
    if (chat == nullptr && id != benchmark_tab) return;
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    menu->addAction(tr("Close tab"), this, [this, id] { close_tab(tabs_->index_of(id)); });
    QAction* others = menu->addAction(tr("Close other tabs"), this, [this, id] {
        for (int i = tabs_->count() - 1; i >= 0; --i)
            if (tabs_->chat_at(i) != id) close_tab(i);
    });
    others->setEnabled(tabs_->count() > 1);
    if (chat != nullptr) {
        menu->addSeparator();
        menu->addAction(tr("Rename…"), chat, [this, chat] { rename_chat(chat); });
    }
    menu->popup(global);
}

}  // namespace recto::ui
