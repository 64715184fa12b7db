// The chats on disk. SQLite on a thread of its own; the GUI thread runs no query: every call returns at once
// and answers later on the calling (GUI) thread, through a callback that is dropped when `context` has died.
//
// A write is acknowledged once its transaction is on disk (WAL, synchronous FULL). Streamed text is collected
// and committed at most once a second, so `kill -9` loses at most that. When a commit fails (disk full)
// nothing is dropped: all writes wait in memory in order and are tried again; `trouble` says so until
// `recovered`.
#pragma once
#include <QObject>
#include <QThread>
#include <functional>
#include <memory>

#include "ui/store/records.h"

namespace recto::ui {

class StoreWorker;

class ChatStore : public QObject {
    Q_OBJECT
  public:
    // `flush_ms`: how long streamed text may wait. Tests shorten it.
    explicit ChatStore(QObject* parent = nullptr, int flush_ms = 1000);
    ~ChatStore() override;  // close()

    using Done = std::function<void(bool ok, const QString& error)>;

    // Lock, check, migrate, recover, list → opened or open_failed (another Recto holds it, unreadable folder
    // …).
    void open(const StorePaths& paths);
    bool is_open() const { return open_; }
    bool read_only() const { return info_.read_only; }
    const StoreInfo& info() const { return info_; }  // as it was at opening
    // Writes everything out, closes and unlocks; waits for it. Idempotent.
    void close();

    // Ids are handed out here and at once: the lock makes this process the only writer.
    ChatId take_chat_id() { return next_chat_++; }
    MessageId take_message_id() { return next_message_++; }

    // --- chats
    void save_chat(const ChatRecord& chat, QObject* context = nullptr,
                   Done done = {});  // insert or update all fields
    void save_draft(ChatId chat, const QString& draft);
    void purge_chat(ChatId chat, QObject* context = nullptr,
                    Done done = {});  // for good; the log is truncated too
    // Every message's skeleton; contents of the last `page` messages of the shown path.
    void load_chat(ChatId chat, int page, QObject* context,
                   std::function<void(std::shared_ptr<const ChatContents>, const QString& error)> done);
    void load_messages(
        ChatId chat, const QList<MessageId>& ids, QObject* context,
        std::function<void(std::shared_ptr<const QList<MessageRecord>>, const QString& error)> done);

    // --- messages
    // All in one transaction, in order (parents first), and shown: their parents point at them.
    void add_messages(const QList<MessageRecord>& messages, QObject* context = nullptr, Done done = {});
    void append_text(MessageId message, const QString& text, const std::vector<std::int32_t>& token_ids);
    // The answer's end: everything but its content and ids, which are what was appended.
    void finish_message(const MessageRecord& message, QObject* context = nullptr, Done done = {});
    // An answer goes on: its state is streaming again.
    void reopen_message(MessageId message);
    void show_child(ChatId chat, MessageId parent, MessageId child);  // parent 0: the chat's first message

    // Acknowledged once everything asked for before it is on disk.
    void flush(QObject* context, Done done);

  Q_SIGNALS:
    void opened(const recto::ui::StoreInfo& info);
    void open_failed(const QString& sentence);
    void trouble(const QString& sentence);  // a commit failed; text is kept in memory and tried again
    void recovered();
    void refused(
        const QString& sentence);  // one write was impossible and is gone (also told to its callback)

  private:
    friend class StoreWorker;
    void post(std::function<void(StoreWorker&)> work);
    QThread thread_;
    StoreWorker* worker_ = nullptr;  // lives on thread_
    const int flush_ms_;
    bool open_ = false, closed_ = false;
    StoreInfo info_;
    ChatId next_chat_ = 1;
    MessageId next_message_ = 1;
};

}  // namespace recto::ui
