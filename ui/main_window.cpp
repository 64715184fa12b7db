#include "ui/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QHBoxLayout>
#include <QInputMethod>
#include <QLabel>
#include <QListView>
#include <QMenuBar>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QScreen>
#include <QSplitter>
#include <QStackedWidget>
#include <QStyle>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/bench/bench_view.h"
#include "ui/chat/chat_view.h"
#include "ui/chat_tab_bar.h"
#include "ui/icons.h"
#include "ui/language.h"
#include "ui/message_bar.h"
#include "ui/model_card.h"
#include "ui/models/chat_list_model.h"
#include "ui/panel/live_panel.h"
#include "ui/sidebar.h"
#include "ui/status_line.h"
#include "ui/theme/theme.h"
#include "ui/window_actions.h"

namespace recto::ui {

MainWindow::MainWindow(Theme* theme, Language* language, Session* session, LoadChoices choices,
                       QWidget* parent)
    : QMainWindow(parent), theme_(theme), language_(language), session_(session) {
    setObjectName(QStringLiteral("main_window"));
    setAcceptDrops(true);
    for (const char* key : {"theme", "language", "text_zoom"})
        apply_settings(QString::fromLatin1(key));
    opener_ = new ModelOpener(theme, &session->settings(), session->host(), std::move(choices), this);
    build();
    build_menus();
    connect_session();
    restore_layout();
    retranslate();
    qApp->installEventFilter(this);  // Ctrl+wheel, wherever the pointer is
    if (session->is_ready()) restore_tabs();
}

MainWindow::~MainWindow() = default;

void MainWindow::build() {
    sidebar_ = new Sidebar(theme_, session_, this);
    tabs_ = new ChatTabBar(theme_, this);
    plus_ = new QToolButton(this);
    plus_->setObjectName(QStringLiteral("new_tab_button"));
    plus_->setAutoRaise(true);
    stack_ = new QStackedWidget(this);
    banner_ = new MessageBar(theme_, this);
    banner_->setObjectName(QStringLiteral("banner"));
    toast_ = new MessageBar(theme_, this);
    toast_->setObjectName(QStringLiteral("toast"));
    panel_ = new LivePanel(theme_, session_, session_->host(), this);
    status_ = new StatusLine(theme_, session_, this);

    auto* tab_row = new QWidget(this);
    tab_row->setObjectName(QStringLiteral("tab_row"));
    tab_row->setAttribute(Qt::WA_StyledBackground);
    auto* tab_layout = new QHBoxLayout(tab_row);
    tab_layout->setContentsMargins(0, 0, 6, 0);
    tab_layout->setSpacing(6);
    tab_layout->addWidget(tabs_, 0);
    tab_layout->addWidget(plus_);
    tab_layout->addStretch(1);

    auto* middle = new QWidget(this);
    middle->setObjectName(QStringLiteral("middle"));
    auto* column = new QVBoxLayout(middle);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(tab_row);
    column->addWidget(banner_);
    column->addWidget(stack_, 1);
    column->addWidget(toast_);

    splitter_ = new QSplitter(Qt::Horizontal, this);
    splitter_->setObjectName(QStringLiteral("main_splitter"));
    splitter_->setHandleWidth(1);
    splitter_->setChildrenCollapsible(false);
    for (QWidget* pane : {static_cast<QWidget*>(sidebar_), middle, static_cast<QWidget*>(panel_)})
        splitter_->addWidget(pane);
    splitter_->setStretchFactor(1, 1);

    auto* center = new QWidget(this);
    auto* outer = new QVBoxLayout(center);
    outer->setContentsMargins(0, 0, 0, 0);
    outer->setSpacing(0);
    outer->addWidget(splitter_, 1);
    outer->addWidget(status_);
    setCentralWidget(center);

    connect(plus_, &QToolButton::clicked, this, [this] { new_chat(); });
    connect(tabs_, &QTabBar::currentChanged, this, [this](int index) { show_tab(index); });
    connect(tabs_, &ChatTabBar::close_wanted, this, [this](int index) { close_tab(index); });
    connect(tabs_, &ChatTabBar::menu_wanted, this,
            [this](int index, QPoint at) { show_tab_menu(index, at); });
    connect(sidebar_, &Sidebar::new_chat_wanted, this, [this] { new_chat(); });
    connect(sidebar_, &Sidebar::chat_wanted, this, [this](Chat* chat) { open_chat(chat); });
    connect(sidebar_, &Sidebar::rename_wanted, this, [this](Chat* chat) { rename_chat(chat); });
    connect(sidebar_, &Sidebar::delete_wanted, this, [this](Chat* chat) { delete_chat(chat); });
    connect(sidebar_->model_card(), &ModelCard::open_wanted, opener_, &ModelOpener::choose_file);
    connect(sidebar_->model_card(), &ModelCard::better_answers_wanted, this,
            [this] { show_better_answers(); });
    const auto restyle = [this, tab_row] {
        const Palette& p = theme_->palette();
        tab_row->setStyleSheet(QStringLiteral("QWidget#tab_row{background:%1;border-bottom:1px solid %2}")
                                   .arg(p.panel.name(), p.line.name()));
        plus_->setIcon(make_icon(QStringLiteral("plus"), p.dim));
        panel_->setMinimumWidth(int(264 * p.zoom));
    };
    connect(theme_, &Theme::changed, this, restyle);
    restyle();
}

void MainWindow::connect_session() {
    connect(session_, &Session::ready, this, [this] { restore_tabs(); });
    connect(session_, &Session::chat_changed, this, [this](Chat* chat) { describe_chat(chat); });
    connect(session_, &Session::chat_removed, this, [this](Chat* chat) { forget_chat(chat); });
    connect(session_, &Session::notice, this,
            [this](const QString& sentence) { banner_->show_message(sentence); });
    connect(session_, &Session::store_trouble, this,
            [this](const QString& sentence) { banner_->show_message(sentence, {}, true); });
    connect(session_, &Session::store_recovered, this,
            [this] { banner_->show_message(tr("Everything that waited is saved again.")); });
    connect(session_->host(), &HostClient::state_changed, this, [this] { update_actions(); });
    connect(session_->host(), &HostClient::held_changed, this, [this] { update_actions(); });
    connect(session_->host(), &HostClient::load_refused, this, [this](const QString& sentence) {
        if (session_->host()->held()) banner_->show_message(sentence);
    });
    connect(&session_->settings(), &Settings::changed, this,
            [this](const QString& key) { apply_settings(key); });
    connect(&session_->settings(), &Settings::save_failed, this,
            [this](const QString& sentence) { banner_->show_message(sentence, {}, true); });
    connect(qApp, &QGuiApplication::commitDataRequest, this, [this] {
        quitting_ = true;  // the desktop ends the session: no question, everything is kept
        save_layout();
    });
    if (!session_->settings().notice().isEmpty()) banner_->show_message(session_->settings().notice());
}

void MainWindow::restore_layout() {
    Settings& settings = session_->settings();
    const Metrics& m = theme_->palette().metrics;
    resize(QSize(1440, 900).boundedTo(screen()->availableSize()));
    if (!settings.geometry().isEmpty() && restoreGeometry(settings.geometry())) fit_to_screen();
    splitter_->setSizes({m.sidebar_width, width() - m.sidebar_width - m.panel_width - 2, m.panel_width});
    if (!settings.splitter().isEmpty()) splitter_->restoreState(settings.splitter());
    sidebar_->setVisible(settings.sidebar_visible());
    panel_->setVisible(settings.panel_visible());
}

// The place may be one on a larger screen, or on one that is gone: Qt moves it, but leaves its size.
void MainWindow::fit_to_screen() {
    if (isMaximized() || isFullScreen()) return;  // the desktop sizes it
    const QScreen* there = QGuiApplication::screenAt(geometry().center());
    QRect room = (there != nullptr ? there : screen())->availableGeometry();
    room.setTop(room.top() + style()->pixelMetric(QStyle::PM_TitleBarHeight, nullptr, this));
    QRect place(geometry().topLeft(), geometry().size().boundedTo(room.size()));
    place.moveTopLeft({std::clamp(place.x(), room.left(), room.right() + 1 - place.width()),
                       std::clamp(place.y(), room.top(), room.bottom() + 1 - place.height())});
    setGeometry(place);
}

void MainWindow::save_layout() {
    Settings& settings = session_->settings();
    settings.set_geometry(saveGeometry());
    settings.set_splitter(splitter_->saveState());
    QList<ChatId> open;
    for (int i = 0; i < tabs_->count(); ++i)
        if (tabs_->chat_at(i) != benchmark_tab) open << tabs_->chat_at(i);
    settings.set_open_chats(open);
    settings.set_benchmark_open(tabs_->index_of(benchmark_tab) >= 0);
    settings.set_current_chat(tabs_->chat_at(tabs_->currentIndex()));
    QString error;
    settings.save(&error);  // a failure arrives as Settings::save_failed
}

void MainWindow::update_title() {
    const Chat* chat = current_chat();
    const bool benchmark = tabs_->chat_at(tabs_->currentIndex()) == benchmark_tab;
    const QString title = chat != nullptr ? chat->title() : benchmark ? tr("Benchmark") : QString();
    setWindowTitle(title.isEmpty() ? QStringLiteral("Recto") : tr("%1 — Recto").arg(title));
}

void MainWindow::closeEvent(QCloseEvent* event) {
    commit_input();
    if (!quitting_ && (session_->busy_count() > 0 || session_->benchmark().active())) {
        event->ignore();
        ask_to_quit();
        return;
    }
    quitting_ = true;
    save_layout();
    session_->shutdown();
    event->accept();
}

void MainWindow::quit_now() {
    quitting_ = true;
    close();
}

void MainWindow::ask_to_quit() {
    if (findChild<QMessageBox*>(QStringLiteral("quit_question")) != nullptr) return;
    const QString sentence =
        session_->benchmark().active()
            ? tr("A benchmark is running. It is stopped, and what it has measured so far is not kept.")
            : tr("%n chat(s) still answer. What is there is kept; the rest is not written.", nullptr,
                 session_->busy_count());
    auto* box =
        new QMessageBox(QMessageBox::Question, tr("Quit Recto?"), sentence, QMessageBox::NoButton, this);
    box->setObjectName(QStringLiteral("quit_question"));
    box->setAttribute(Qt::WA_DeleteOnClose);
    auto* quit = box->addButton(tr("Stop and quit"), QMessageBox::AcceptRole);
    quit->setObjectName(QStringLiteral("quit_confirm"));
    box->addButton(tr("Go on"), QMessageBox::RejectRole)->setObjectName(QStringLiteral("quit_cancel"));
    connect(quit, &QAbstractButton::clicked, this, [this] { quit_now(); });
    box->open();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (ModelOpener::dropped_model(event->mimeData()).isEmpty()) return;
    event->acceptProposedAction();
    show_drop_hint(true);
}

void MainWindow::dragLeaveEvent(QDragLeaveEvent*) {
    show_drop_hint(false);
}

void MainWindow::dropEvent(QDropEvent* event) {
    show_drop_hint(false);
    const QString path = ModelOpener::dropped_model(event->mimeData());
    if (path.isEmpty()) return;
    event->acceptProposedAction();
    opener_->ask_and_load(path);
}

void MainWindow::show_drop_hint(bool on) {
    if (drop_hint_ == nullptr) {
        drop_hint_ = new QLabel(centralWidget());
        drop_hint_->setObjectName(QStringLiteral("drop_hint"));
        drop_hint_->setAlignment(Qt::AlignCenter);
        drop_hint_->setAttribute(Qt::WA_TransparentForMouseEvents);
    }
    const Palette& p = theme_->palette();
    QColor veil = p.background;
    veil.setAlpha(225);
    drop_hint_->setStyleSheet(QStringLiteral("QLabel{background:%1;color:%2;border:2px dashed %3}")
                                  .arg(veil.name(QColor::HexArgb), p.text.name(), p.accent.name()));
    drop_hint_->setFont(p.fonts.heading);
    drop_hint_->setText(tr("Drop to load this model"));
    drop_hint_->setGeometry(centralWidget()->rect());
    drop_hint_->setVisible(on);
    drop_hint_->raise();
}

void MainWindow::apply_settings(const QString& key) {
    const Settings& settings = session_->settings();
    if (key == QStringLiteral("theme")) theme_->set_mode(ColorMode(int(settings.theme())));
    if (key == QStringLiteral("text_zoom")) theme_->set_zoom(settings.text_zoom() / 100.0);
    if (key == QStringLiteral("language")) {
        language_->set(settings.language());
        theme_->set_language(language_->current());
    }
    if (key == QStringLiteral("panel_visible") && panel_ != nullptr)
        panel_->setVisible(settings.panel_visible());
    if (key == QStringLiteral("sidebar_visible") && sidebar_ != nullptr)
        sidebar_->setVisible(settings.sidebar_visible());
    if (actions_ != nullptr) update_actions();
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::Wheel) {
        auto* wheel = static_cast<QWheelEvent*>(event);
        auto* widget = qobject_cast<QWidget*>(watched);
        if ((wheel->modifiers() & Qt::ControlModifier) != 0 && widget != nullptr &&
            widget->window() == this) {
            if (wheel->angleDelta().y() != 0) zoom_by(wheel->angleDelta().y() > 0 ? 10 : -10);
            return true;
        }
    }
    return QMainWindow::eventFilter(watched, event);
}

void MainWindow::zoom_by(int percent) {
    Settings& settings = session_->settings();
    settings.set_text_zoom(percent == 0 ? 100 : settings.text_zoom() + percent);
}

void MainWindow::cycle_panes(int direction) {
    QList<QWidget*> stops;
    if (sidebar_->isVisible()) stops << sidebar_->list();
    if (Chat* chat = current_chat()) stops << view_of(chat->id());
    if (bench_ != nullptr && stack_->currentWidget() == bench_) stops << bench_;
    if (panel_->isVisible()) stops << panel_->widget();
    int at = -1;
    for (int i = 0; i < stops.size(); ++i)
        if (stops[i] == focusWidget() || stops[i]->isAncestorOf(focusWidget())) at = i;
    QWidget* next = stops[(at + direction + stops.size()) % stops.size()];
    if (auto* view = qobject_cast<ChatView*>(next)) {
        view->focus_input();
    } else if (next == bench_) {
        bench_->focus_first();
    } else if (next == panel_->widget()) {
        panel_->findChild<QWidget*>(QStringLiteral("block_map"))->setFocus(Qt::ShortcutFocusReason);
    } else {
        next->setFocus(Qt::ShortcutFocusReason);
    }
}

void MainWindow::changeEvent(QEvent* event) {
    QMainWindow::changeEvent(event);
    if (event->type() == QEvent::LanguageChange && actions_ != nullptr) retranslate();
}

void MainWindow::retranslate() {
    actions_->retranslate();
    plus_->setToolTip(tr("New chat (Ctrl+N)"));
    plus_->setAccessibleName(tr("New chat"));
    for (Chat* chat : session_->chats())
        describe_chat(chat);
    describe_benchmark();
    update_title();
    update_actions();
}

}  // namespace recto::ui
