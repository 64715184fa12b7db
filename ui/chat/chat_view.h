// One view of one chat: transcript above, input below. Several may show the same chat; closing one changes
// nothing about the chat.
#pragma once
#include <QPointer>
#include <QTimer>
#include <QWidget>

#include "ui/models/chat.h"
#include "ui/models/transcript_model.h"

class QLabel;
class QPushButton;
class QStackedWidget;

namespace recto::ui {

class InputBox;
class PromptPopover;
class SamplingPopover;
class Settings;
class Theme;
class TranscriptView;

class ChatView : public QWidget {
    Q_OBJECT
  public:
    ChatView(Chat* chat, Theme* theme, Settings* settings, QWidget* parent = nullptr);
    ~ChatView() override;

    Chat* chat() const { return chat_; }
    TranscriptView* transcript() const { return transcript_; }
    InputBox* input() const { return input_; }

    void focus_input();
    void toggle_prompt();  // the system prompt's panel
    void toggle_sampling();
    void edit_last_prompt();
    void regenerate_last();
    void show_version_of_focused(int step);  // -1, +1
    void copy_last_answer();
    // Ends a composition and takes its word over into the draft. Before a tab switch or a close.
    void commit_input();

  Q_SIGNALS:
    void shared_start_requested();  // four chats with one system prompt
    void link_hovered(const QString& address);
    void announce(const QString& sentence);  // for screen readers: answer started, finished, stopped, failed

  protected:
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void connect_chat();
    void connect_input();
    void update_state();
    void update_page();
    void update_record();
    void send(const QString& text);
    void count_tokens();
    void take_count(Ticket ticket, const std::shared_ptr<const TokenCount>& count);
    void announce_state();
    QString live_line() const;
    QWidget* make_empty_page();
    void retranslate();
    int last_row(Role role) const;

    QPointer<Chat> chat_;
    Theme* theme_;
    Settings* settings_;
    TranscriptModel* model_;
    QStackedWidget* pages_;
    TranscriptView* transcript_;
    QWidget* empty_;
    QLabel *empty_title_, *empty_text_;
    QPushButton* shared_start_;
    InputBox* input_;
    SamplingPopover* sampling_;
    PromptPopover* prompt_;
    QTimer count_timer_;
    QPointer<HostClient> counting_host_;
    Ticket count_ticket_ = 0;
    bool sending_ = false;
    QString seen_draft_;  // as this view last knew it
    ChatState announced_ = ChatState::idle;
};

}  // namespace recto::ui
