// The window: composes sidebar, tabs, chat views, live panel and status line around a Session. Holds no state
// of a chat; a tab is a view of one.
#pragma once
#include <QHash>
#include <QMainWindow>
#include <QPointer>

#include "ui/model_opener.h"
#include "ui/models/session.h"

class QLabel;
class QSplitter;
class QStackedWidget;
class QToolButton;

namespace recto::ui {

class BenchView;
class ChatTabBar;
class ChatView;
class Language;
class LivePanel;
class MessageBar;
class Sidebar;
class StatusLine;
class Theme;
class WindowActions;

class MainWindow : public QMainWindow {
    Q_OBJECT
  public:
    MainWindow(Theme* theme, Language* language, Session* session, LoadChoices choices,
               QWidget* parent = nullptr);
    ~MainWindow() override;

    Session* session() const { return session_; }
    ModelOpener* opener() const { return opener_; }
    Chat* current_chat() const;
    ChatView* view_of(ChatId id) const;  // null: no tab, or never shown
    WindowActions* actions_list() const { return actions_; }

    void open_chat(Chat* chat);  // its tab, made when needed, to the front
    void new_chat();
    void close_tab(int index);
    void reopen_tab();
    void delete_chat(Chat* chat);
    void rename_chat(Chat* chat);
    void show_four_chats();
    void show_benchmark();                                // its tab, made when needed, to the front
    BenchView* benchmark_view() const { return bench_; }  // null: no tab, or never shown
    void show_better_answers();
    void quit_now();            // no question; what is there is kept
    void zoom_by(int percent);  // 0: back to 100

  protected:
    void closeEvent(QCloseEvent* event) override;
    void changeEvent(QEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dragLeaveEvent(QDragLeaveEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void build();
    void build_menus();  // menus are in main_window_menus.cpp, tabs in main_window_tabs.cpp
    void build_file_menu();
    void build_chat_menu();
    void build_model_menu();
    void build_view_menu();
    void build_help_menu();
    void connect_session();
    void restore_tabs();
    void restore_layout();
    void fit_to_screen();
    void save_layout();
    void show_tab(int index);
    void commit_input();
    ChatView* make_view(Chat* chat);
    BenchView* make_benchmark_view();
    void show_benchmark_view();
    void close_benchmark_tab(int index);
    void describe_chat(Chat* chat);
    void describe_benchmark();
    void forget_chat(Chat* chat);
    void discard_if_unused(Chat* chat);
    void fill_recent_models(QMenu* menu);
    void update_actions();
    void update_title();
    void apply_settings(const QString& key);
    void cycle_panes(int direction);
    void show_tab_menu(int index, QPoint global);
    void show_shortcuts();
    void show_about();
    void ask_to_quit();
    void show_drop_hint(bool on);
    void retranslate();

    Theme* theme_;
    Language* language_;
    Session* session_;
    ModelOpener* opener_ = nullptr;
    WindowActions* actions_ = nullptr;
    Sidebar* sidebar_ = nullptr;
    ChatTabBar* tabs_ = nullptr;
    QToolButton* plus_ = nullptr;
    QStackedWidget* stack_ = nullptr;
    QHash<ChatId, ChatView*> views_;
    BenchView* bench_ = nullptr;
    LivePanel* panel_ = nullptr;
    MessageBar* banner_ = nullptr;  // trouble
    MessageBar* toast_ = nullptr;   // undo, stop
    QSplitter* splitter_ = nullptr;
    StatusLine* status_ = nullptr;
    QLabel* drop_hint_ = nullptr;  // covers the window while a model is dragged over it
    QList<ChatId> closed_;         // for reopening, newest last
    bool quitting_ = false;
};

}  // namespace recto::ui
