// What runs on the store's thread: opening and checking, a queue of writes with one commit for all that wait,
// reads.
#pragma once
#include <QLockFile>
#include <QObject>
#include <QTimer>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "ui/store/database.h"
#include "ui/store/records.h"

namespace recto::ui {

class StoreWorker : public QObject {
    Q_OBJECT
  public:
    using Ack = std::function<void(bool ok, const QString& error)>;  // called on this thread

    explicit StoreWorker(int flush_ms);
    ~StoreWorker() override;

    StoreInfo open(const StorePaths& paths);  // Error with one sentence
    void keep_snapshot();                     // weekly
    void close();
    Database& db();  // Error when not open

    // Written with everything that waits, in order. `apply` may run more than once: after a failed commit.
    void write(std::function<void(Database&)> apply, Ack ack);
    void append_text(MessageId message, const QString& text, const std::vector<std::int32_t>& token_ids);
    void save_draft(ChatId chat, const QString& draft);
    // Tries to commit all that waits. False: it still waits.
    bool commit();
    void purge(ChatId chat, Ack ack);
    // Damage met on the way is remembered: the next start checks the file and rebuilds it.
    QList<MessageRecord> read_messages(ChatId chat, const QList<MessageId>& ids);

  Q_SIGNALS:
    void trouble(const QString& sentence);
    void recovered();
    void refused(const QString& sentence);

  private:
    struct Write {
        std::function<void(Database&)> apply;
        Ack ack;
    };
    struct Delta {
        QString text;
        std::vector<std::int32_t> token_ids;
    };
    QString open_connection(const StorePaths& paths, bool unclean, StoreInfo& info);
    void take_streamed();
    void commit_one_by_one();

    const int flush_ms_;
    StorePaths paths_;
    std::unique_ptr<QLockFile> lock_;
    std::unique_ptr<Database> db_;
    bool read_only_ = false;
    std::deque<Write> waiting_;
    std::map<MessageId, Delta> streamed_;
    std::map<ChatId, QString> drafts_;
    QTimer flush_timer_, retry_timer_;
    bool in_trouble_ = false;
    bool damage_seen_ = false;
};

}  // namespace recto::ui
