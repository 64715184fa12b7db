// The main window's menus and what their entries do.
#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
#include <QDialog>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QMenuBar>
#include <QMessageBox>
#include <QPushButton>
#include <QScrollArea>

#include "ui/better_answers_dialog.h"
#include "ui/chat/chat_view.h"
#include "ui/chat_tab_bar.h"
#include "ui/main_window.h"
#include "ui/model_sizes.h"
#include "ui/sidebar.h"
#include "ui/starter_model.h"
#include "ui/theme/theme.h"
#include "ui/window_actions.h"

namespace recto::ui {
namespace {

QKeySequence keys(const char* text) {
    return QKeySequence(QString::fromLatin1(text));
}

// The last row that is an answer; -1: none.
int last_answer(const Chat* chat) {
    if (chat == nullptr || !chat->is_open()) return -1;
    for (int row = chat->message_count() - 1; row >= 0; --row)
        if (chat->message(row).role == Role::assistant) return row;
    return -1;
}

}  // namespace

void MainWindow::build_menus() {
    actions_ = new WindowActions(menuBar(), this);
    auto* name = new QLabel(QStringLiteral("Recto"), menuBar());
    name->setObjectName(QStringLiteral("app_name"));
    menuBar()->setObjectName(QStringLiteral("menu_bar"));
    const auto restyle = [this, name] {
        name->setFont(theme_->palette().fonts.strong);
        name->setContentsMargins(14, 0, 4, 0);
        // A menu bar places its corner only when it is given one: the zoomed name would keep its old place.
        menuBar()->setCornerWidget(name, Qt::TopLeftCorner);
    };
    connect(theme_, &Theme::changed, this, restyle);
    restyle();
    build_file_menu();
    build_chat_menu();
    build_model_menu();
    build_view_menu();
    build_help_menu();
}

void MainWindow::build_file_menu() {
    QMenu* menu = actions_->add_menu("file_menu", [] { return tr("File"); });
    actions_->add(
        menu, "new_chat", [] { return tr("New chat"); }, {keys("Ctrl+N"), keys("Ctrl+T")},
        [this] { new_chat(); });
    actions_->add(
        menu, "close_tab", [] { return tr("Close tab"); }, {keys("Ctrl+W")},
        [this] { close_tab(tabs_->currentIndex()); });
    actions_->add(
        menu, "reopen_tab", [] { return tr("Reopen closed tab"); }, {keys("Ctrl+Shift+T")},
        [this] { reopen_tab(); });
    menu->addSeparator();
    actions_->add(
        menu, "search", [] { return tr("Search chats"); }, {keys("Ctrl+K")},
        [this] {
            session_->settings().set_sidebar_visible(true);
            sidebar_->focus_search();
        });
    menu->addSeparator();
    actions_->add(
        menu, "quit", [] { return tr("Quit"); }, {keys("Ctrl+Q")}, [this] { close(); });
}

void MainWindow::build_chat_menu() {
    QMenu* menu = actions_->add_menu("chat_menu", [] { return tr("Chat"); });
    const auto chat_action = [&](const char* name, WindowActions::Text text,
                                 const QList<QKeySequence>& shortcut, void (*run)(MainWindow*, Chat*)) {
        actions_->add(menu, name, std::move(text), shortcut, [this, run] {
            if (Chat* chat = current_chat()) run(this, chat);
        });
    };
    const auto view_action = [&](const char* name, WindowActions::Text text,
                                 const QList<QKeySequence>& shortcut, void (*run)(ChatView*)) {
        actions_->add(menu, name, std::move(text), shortcut, [this, run] {
            if (Chat* chat = current_chat()) run(view_of(chat->id()));
        });
    };
    view_action(
        "focus_input", [] { return tr("Go to the input"); }, {keys("Ctrl+L")},
        [](ChatView* v) { v->focus_input(); });
    view_action(
        "edit_prompt", [] { return tr("Edit the last prompt"); }, {keys("Ctrl+Up")},
        [](ChatView* v) { v->edit_last_prompt(); });
    view_action(
        "regenerate", [] { return tr("Answer again"); }, {keys("Ctrl+R")},
        [](ChatView* v) { v->regenerate_last(); });
    chat_action(
        "continue_answer", [] { return tr("Continue the answer"); }, {keys("Alt+Return"), keys("Alt+Enter")},
        [](MainWindow*, Chat* c) { c->continue_answer(); });
    view_action(
        "previous_version", [] { return tr("Previous version"); }, {keys("Alt+Left")},
        [](ChatView* v) { v->show_version_of_focused(-1); });
    view_action(
        "next_version", [] { return tr("Next version"); }, {keys("Alt+Right")},
        [](ChatView* v) { v->show_version_of_focused(1); });
    view_action(
        "copy_answer", [] { return tr("Copy the last answer"); }, {keys("Ctrl+Shift+C")},
        [](ChatView* v) { v->copy_last_answer(); });
    menu->addSeparator();
    view_action(
        "system_prompt", [] { return tr("System prompt"); }, {keys("Ctrl+I")},
        [](ChatView* v) { v->toggle_prompt(); });
    view_action(
        "sampling", [] { return tr("Sampling"); }, {}, [](ChatView* v) { v->toggle_sampling(); });
    menu->addSeparator();
    chat_action(
        "rename_chat", [] { return tr("Rename…"); }, {keys("F2")},
        [](MainWindow* w, Chat* c) { w->rename_chat(c); });
    chat_action(
        "delete_chat", [] { return tr("Delete"); }, {}, [](MainWindow* w, Chat* c) { w->delete_chat(c); });
    menu->addSeparator();
    chat_action(
        "stop_chat", [] { return tr("Stop"); }, {}, [](MainWindow*, Chat* c) { c->stop(); });
    actions_->add(
        menu, "stop_all", [] { return tr("Stop all chats"); }, {keys("Ctrl+Shift+Esc")},
        [this] { session_->stop_all(); });
    menu->addSeparator();
    actions_->add(
        menu, "four_chats", [] { return tr("Start four chats with one shared system prompt"); }, {},
        [this] { show_four_chats(); });
}

void MainWindow::build_model_menu() {
    QMenu* menu = actions_->add_menu("model_menu", [] { return tr("Model"); });
    actions_->add(
        menu, "open_model", [] { return tr("Open model file…"); }, {keys("Ctrl+M")},
        [this] { opener_->choose_file(); });
    actions_->add(
        menu, "open_folder", [] { return tr("Open model folder…"); }, {},
        [this] { opener_->choose_folder(); });
    QMenu* recent = actions_->add_menu(
        "recent_menu", [] { return tr("Recent models"); }, menu);
    connect(recent, &QMenu::aboutToShow, this, [this, recent] { fill_recent_models(recent); });
    connect(menu, &QMenu::aboutToShow, this, [this, recent] {
        recent->menuAction()->setVisible(!session_->settings().recent_models().isEmpty());
    });
    menu->addSeparator();
    actions_->add(
        menu, "reload_model", [] { return tr("Reload"); }, {keys("Ctrl+Shift+R")},
        [this] { session_->host()->reload(); });
    actions_->add(
        menu, "eject_model", [] { return tr("Eject"); }, {}, [this] { session_->host()->eject(); });
    actions_->add(
        menu, "cancel_load", [] { return tr("Cancel loading"); }, {},
        [this] { session_->host()->cancel_load(); });
    menu->addSeparator();
    actions_->add(
        menu, "benchmark", [] { return tr("Benchmark"); }, {keys("Ctrl+Shift+M")},
        [this] { show_benchmark(); });
    actions_->add(
        menu, "better_answers", [] { return tr("Better answers…"); }, {}, [this] { show_better_answers(); });
}

void MainWindow::build_view_menu() {
    QMenu* menu = actions_->add_menu("view_menu", [] { return tr("View"); });
    Settings& settings = session_->settings();
    const auto toggle = [&](const char* name, WindowActions::Text text, const char* key, auto run) {
        actions_->add(menu, name, std::move(text), {keys(key)}, run)->setCheckable(true);
    };
    toggle(
        "toggle_sidebar", [] { return tr("Sidebar"); }, "Ctrl+B",
        [&settings] { settings.set_sidebar_visible(!settings.sidebar_visible()); });
    toggle(
        "toggle_panel", [] { return tr("Live panel"); }, "Ctrl+J",
        [&settings] { settings.set_panel_visible(!settings.panel_visible()); });
    toggle(
        "full_screen", [] { return tr("Full screen"); }, "F11",
        [this] { setWindowState(windowState() ^ Qt::WindowFullScreen); });
    menu->addSeparator();
    actions_->add(
        menu, "zoom_in", [] { return tr("Larger text"); }, {keys("Ctrl++"), keys("Ctrl+=")},
        [this] { zoom_by(10); });
    actions_->add(
        menu, "zoom_out", [] { return tr("Smaller text"); }, {keys("Ctrl+-")}, [this] { zoom_by(-10); });
    actions_->add(
        menu, "zoom_reset", [] { return tr("Normal text"); }, {keys("Ctrl+0")}, [this] { zoom_by(0); });
    menu->addSeparator();

    const auto choice = [&](QMenu* parent, const char* name, WindowActions::Text text,
                            std::function<void()> run) {
        actions_->add(parent, name, std::move(text), {}, std::move(run))->setCheckable(true);
    };
    QMenu* theme = actions_->add_menu(
        "theme_menu", [] { return tr("Appearance"); }, menu);
    choice(
        theme, "theme_system", [] { return tr("As the system"); },
        [&settings] { settings.set_theme(ThemeChoice::system); });
    choice(
        theme, "theme_light", [] { return tr("Light"); },
        [&settings] { settings.set_theme(ThemeChoice::light); });
    choice(
        theme, "theme_dark", [] { return tr("Dark"); },
        [&settings] { settings.set_theme(ThemeChoice::dark); });
    QMenu* language = actions_->add_menu(
        "language_menu", [] { return tr("Language"); }, menu);
    choice(
        language, "language_system", [] { return tr("As the system"); },
        [&settings] { settings.set_language(QStringLiteral("system")); });
    choice(
        language, "language_en", [] { return QStringLiteral("English"); },
        [&settings] { settings.set_language(QStringLiteral("en")); });
    choice(
        language, "language_zh_TW", [] { return QStringLiteral("繁體中文"); },
        [&settings] { settings.set_language(QStringLiteral("zh_TW")); });
    menu->addSeparator();

    const auto turn = [this](int by) {
        if (tabs_->count() > 0)
            tabs_->setCurrentIndex((tabs_->currentIndex() + by + tabs_->count()) % tabs_->count());
    };
    actions_->add(
        menu, "next_tab", [] { return tr("Next tab"); }, {keys("Ctrl+Tab"), keys("Ctrl+PgDown")},
        [turn] { turn(1); });
    actions_->add(
        menu, "previous_tab", [] { return tr("Previous tab"); }, {keys("Ctrl+Shift+Tab"), keys("Ctrl+PgUp")},
        [turn] { turn(-1); });
    actions_->add(
        menu, "next_pane", [] { return tr("Next pane"); }, {keys("F6")}, [this] { cycle_panes(1); });
    actions_->add(
        menu, "previous_pane", [] { return tr("Previous pane"); }, {keys("Shift+F6")},
        [this] { cycle_panes(-1); });
    for (int i = 1; i <= 9; ++i)
        actions_->add(
            nullptr, qPrintable(QStringLiteral("tab_%1").arg(i)), [i] { return tr("Tab %1").arg(i); },
            {QKeySequence(Qt::ALT | Qt::Key(Qt::Key_0 + i))},
            [this, i] {
                if (i <= tabs_->count()) tabs_->setCurrentIndex(i - 1);
            });
}

void MainWindow::build_help_menu() {
    QMenu* menu = actions_->add_menu("help_menu", [] { return tr("Help"); });
    actions_->add(
        menu, "shortcuts", [] { return tr("Keyboard shortcuts"); }, {keys("F1")},
        [this] { show_shortcuts(); });
    actions_->add(
        menu, "about", [] { return tr("About Recto"); }, {}, [this] { show_about(); });
}

void MainWindow::update_actions() {
    const auto enable = [this](const char* name, bool on) { actions_->action(name)->setEnabled(on); };
    const auto check = [this](const char* name, bool on) { actions_->action(name)->setChecked(on); };
    const Chat* chat = current_chat();
    const bool idle = chat != nullptr && !chat->busy();
    const int answer = last_answer(chat);
    const HostState state = session_->host()->state();
    const bool ready = state == HostState::ready;
    const bool held = session_->host()->held();  // something is measured: nothing else may compute
    enable("focus_input", chat != nullptr);
    enable("regenerate", idle && answer >= 0 && ready && !held);
    enable("continue_answer", idle && answer >= 0 && answer == chat->message_count() - 1 && ready && !held);
    bool versions = false;  // of any message: which one is meant, the view knows
    for (int row = 0; idle && row < chat->message_count(); ++row)
        versions = versions || chat->version_count(row) > 1;
    for (const char* name : {"previous_version", "next_version"})
        enable(name, versions);
    enable("edit_prompt", idle && chat->message_count() > 0);
    for (const char* name : {"system_prompt", "sampling"})
        enable(name, chat != nullptr);
    enable("copy_answer", answer >= 0 && chat->message(answer).loaded);
    enable("rename_chat", chat != nullptr && chat->message_count() > 0);
    enable("delete_chat", chat != nullptr && chat->message_count() > 0);
    enable("stop_chat", chat != nullptr && chat->busy());
    enable("stop_all", session_->busy_count() > 0);
    enable("four_chats", ready && !held);
    enable("close_tab", tabs_->count() > 0);
    enable("reopen_tab", !closed_.isEmpty());
    enable("reload_model",
           state != HostState::loading && !held && !session_->host()->last_request().path.empty());
    enable("eject_model", ready);
    enable("cancel_load", state == HostState::loading);

    const Settings& settings = session_->settings();
    check("toggle_sidebar", settings.sidebar_visible());
    check("toggle_panel", settings.panel_visible());
    check("full_screen", isFullScreen());
    check("theme_system", settings.theme() == ThemeChoice::system);
    check("theme_light", settings.theme() == ThemeChoice::light);
    check("theme_dark", settings.theme() == ThemeChoice::dark);
    for (const char* language : {"system", "en", "zh_TW"})
        check(qPrintable(QStringLiteral("language_%1").arg(QLatin1String(language))),
              settings.language() == QLatin1String(language));
}

void MainWindow::fill_recent_models(QMenu* menu) {
    menu->clear();
    for (const QString& path : session_->settings().recent_models())
        menu->addAction(QFileInfo(path).fileName(), this, [this, path] { opener_->ask_and_load(path); })
            ->setToolTip(path);
}

void MainWindow::show_better_answers() {
    auto* dialog = new BetterAnswersDialog(theme_, available_memory(), default_models_folder(), this);
    connect(dialog, &BetterAnswersDialog::open_file_wanted, opener_, &ModelOpener::choose_file);
    connect(dialog, &BetterAnswersDialog::open_folder_wanted, opener_, &ModelOpener::choose_folder);
    dialog->open();
}

void MainWindow::show_shortcuts() {
    auto* dialog = new QDialog(this);
    dialog->setObjectName(QStringLiteral("shortcuts_dialog"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("Keyboard shortcuts"));
    auto* content = new QWidget;
    auto* grid = new QGridLayout(content);
    grid->setContentsMargins(20, 16, 20, 16);
    grid->setHorizontalSpacing(28);
    int row = 0;
    const auto add = [&](const QString& what, const QString& key) {
        auto* name = new QLabel(what, content);
        auto* value = new QLabel(key, content);
        value->setProperty("dim", true);
        grid->addWidget(name, row, 0);
        grid->addWidget(value, row++, 1);
    };
    const bool enter = session_->settings().send_key() == SendKey::enter;
    add(tr("Send"), enter ? tr("Enter") : tr("Ctrl+Enter"));
    add(tr("New line"), enter ? tr("Shift+Enter") : tr("Enter"));
    add(tr("Stop the answer"), tr("Esc"));
    add(tr("Rename, delete in the chat list"), tr("F2, Del"));
    add(tr("Pause, step on the block map"), tr("Space, ."));
    for (const auto& [name, key] : actions_->shortcuts())
        add(name, key);
    auto* scroll = new QScrollArea(dialog);
    scroll->setWidget(content);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    auto* outer = new QVBoxLayout(dialog);
    outer->setContentsMargins(0, 0, 0, 0);
    outer->addWidget(scroll);
    dialog->resize(460, 560);
    dialog->open();
}

void MainWindow::show_about() {
    auto* box = new QMessageBox(this);
    box->setObjectName(QStringLiteral("about_box"));
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->setWindowTitle(tr("About Recto"));
    box->setIconPixmap(windowIcon().pixmap(64, 64));
    box->setText(tr("Recto %1").arg(QApplication::applicationVersion()));
    box->setInformativeText(tr("Chats with language models on this computer, and shows how their memory is "
                               "paged.\n\nApache License 2.0. "
                               "Built with Qt %1.")
                                .arg(QLatin1String(qVersion())));
    box->open();
}

}  // namespace recto::ui
