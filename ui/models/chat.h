// One chat: its messages, its draft and its generation. Tabs are views of it; several may show it. GUI
// thread.
//
// What is typed is committed before the engine sees it; what is generated is kept whatever happens to the
// engine.
#pragma once
#include <QObject>
#include <QPointer>
#include <deque>
#include <functional>
#include <set>
#include <vector>

#include "ui/host/host_client.h"
#include "ui/store/chat_store.h"
#include "ui/store/message_tree.h"

namespace recto::ui {

class Settings;

enum class ChatState : std::uint8_t {
    idle,
    queued,   // committed, or in the engine and not yet started
    waiting,  // for blocks: see blocks_missing() and place_in_line()
    prefill,
    generating,
    stopping,
    failed,  // the last answer failed: problem(); sending again is possible
};

class Chat : public QObject {
    Q_OBJECT
  public:
    // `stored`: the store knows it already. A new chat is stored with its first message, draft or setting.
    Chat(const ChatRecord& record, bool stored, ChatStore* store, Settings* settings,
         QObject* parent = nullptr);
    ~Chat() override;

    // --- what it is
    ChatId id() const { return record_.id; }
    OwnerId owner() const { return OwnerId(record_.id); }  // of its blocks
    const ChatRecord& record() const { return record_; }
    QString title() const;  // "New chat" until there is something to name it by
    bool trashed() const { return record_.trashed_at.isValid(); }
    HostClient* host() const { return host_; }  // the engine it talks to; may be null
    void set_host(HostClient* host);

    // --- messages. Skeletons come first, contents in pages from the end.
    void open();                            // loads; nothing when already open
    bool is_open() const { return open_; }  // skeletons are there: the transcript can be shown
    bool is_loaded() const { return unloaded_ == 0 && open_; }  // every shown content is there
    const MessageTree& tree() const { return tree_; }
    int message_count() const { return int(tree_.path().size()); }
    const MessageRecord& message(int row) const { return tree_.at(tree_.path()[std::size_t(row)]); }
    int version_index(int row) const;  // 0-based
    int version_count(int row) const;
    void ensure_loaded(int first_row, int last_row);  // asks for contents that a view is about to show

    // --- its generation
    ChatState state() const { return state_; }
    bool busy() const { return ticket_ != 0 || committing_; }  // an answer is wanted or under way
    QString state_text() const;  // "idle", "generating 61 tok/s", "waiting: 12 blocks short, 2nd in line"
    double speed_tok_s() const { return speed_; }  // over the last second; 0 unless generating
    double prefill_fraction() const { return prefill_fraction_; }
    double prefill_tok_s() const { return prefill_speed_; }
    int blocks() const { return blocks_; }                  // it holds now
    int blocks_missing() const { return blocks_missing_; }  // waiting
    int place_in_line() const { return place_in_line_; }    // waiting: 1 = next
    QString problem() const { return problem_; }            // failed: one sentence
    int context_used() const { return context_used_; }      // tokens of the last prompt and answer
    int context_limit() const;                              // 0: no model
    QString template_in_use() const { return template_in_use_; }
    QString send_blocked_reason() const;                // one sentence; empty: can send
    MessageId answering() const { return answering_; }  // the message that grows; 0: none

    // --- what a person does. False: not possible now (send_blocked_reason(), or busy()).
    bool send(const QString& text);  // the draft is cleared once the row is committed
    void stop();
    void abandon();  // Recto is closing: what the engine did not end any more ends here, with its text
    bool regenerate(int row);                 // of an answer: a sibling
    bool edit(int row, const QString& text);  // a sibling; of a user's message it is answered again
    bool continue_answer();                   // the last answer goes on where it ended
    bool retry();                             // answers the last user message that has no answer
    void show_version(int row, int index);
    void rename(const QString& title);
    void set_system_prompt(const QString& text);
    void set_sampling(const QJsonObject& sampling);
    void set_template(const QString& template_id);
    const QString& draft() const { return record_.draft; }
    void set_draft(const QString& text);        // stored within a second
    SamplingParams effective_sampling() const;  // settings, then this chat
    AnswerRequest conversation() const;         // as the next answer would see it

    // From the session: one snapshot serves every chat.
    void take_snapshot(const PoolSnapshot& snapshot);
    void put_in_trash();
    void restore();

  Q_SIGNALS:
    void opened();                     // skeletons; the transcript model resets
    void path_changed(int first_row);  // rows from here on are other messages
    void message_added(int row);
    void messages_changed(int first_row, int last_row);  // contents, states
    void text_appended(int row, const QString& text);    // also counts as changed
    void state_changed();                                // state, speed, waiting numbers
    void record_changed();                               // title, system prompt, sampling, trash
    void draft_restored(const QString& text);            // a failed send gives it back
    void answer_finished(int row);                       // -1: on a version that is not shown

  private:
    void add_rows(const QList<MessageRecord>& rows, const QString& typed);
    void start_answer(MessageId answer);
    void submit(MessageId answer, bool continues);
    void on_started(const AnswerStarted& started);
    void on_update(const AnswerUpdate& update);
    void finish(MessageState state, const QString& reason, const QString& error);
    void fail_answer(const QString& sentence);
    void set_state(ChatState state);
    void note_speed(const RequestMetrics& metrics);
    MessageRecord new_message(Role role, MessageId parent, const QString& text) const;
    MessageRecord new_answer(MessageId parent) const;
    AnswerRequest conversation_to(MessageId leaf) const;
    void save_record();
    // Paging (chat_pages.cpp)
    void take_chat(const ChatContents& contents);
    void take_page(const QList<MessageId>& asked, const QList<MessageRecord>& messages, const QString& error);
    void request_page(const QList<MessageId>& ids);
    void load_next_page();
    void count_unloaded();
    void measure_context();
    void when_loaded(std::function<void()> then);

    ChatRecord record_;
    bool stored_;
    ChatStore* store_;
    Settings* settings_;
    QPointer<HostClient> host_;
    QMetaObject::Connection host_state_, host_held_;
    std::vector<QMetaObject::Connection> answer_signals_;  // of the host, while an answer is under way

    MessageTree tree_;
    bool open_ = false, opening_ = false;
    int unloaded_ = 0;               // on the path
    std::set<MessageId> requested_;  // pages on their way
    std::vector<std::function<void()>> waiting_for_load_;

    ChatState state_ = ChatState::idle;
    bool committing_ = false;  // the rows of an answer are on their way to the disk
    bool stop_wanted_ = false;
    Ticket ticket_ = 0;  // 0: the engine has nothing of this chat
    RequestId request_ = 0;
    MessageId answering_ = 0;
    AnswerTimings timings_;  // of the answer under way
    QString problem_, template_in_use_;
    double speed_ = 0, prefill_fraction_ = 0, prefill_speed_ = 0;
    int blocks_ = 0, blocks_missing_ = 0, place_in_line_ = 0, context_used_ = 0;
    std::deque<std::pair<double, int>> recent_;   // (engine time, output tokens) of the last second
    std::pair<double, int> last_prefill_{0, -1};  // (engine time, computed tokens) of the last snapshot
};

// Under an answer: "prompt 412 (384 from cache) · queue 2 ms · first token 38 ms · prefill 2,140 tok/s · 74
// out · decode 61.2 tok/s · end of turn". Empty when there is nothing to say.
QString statistics_line(const MessageRecord& message);
// The same numbers with their formulas (DESIGN §9), for hovering.
QString statistics_help(const MessageRecord& message);
// First line, cut at a word after about 40 characters (20 for Chinese, Japanese, Korean text).
QString title_from_text(const QString& text);

}  // namespace recto::ui
