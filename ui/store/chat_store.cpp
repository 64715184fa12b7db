#include "ui/store/chat_store.h"

#include <QPointer>

#include "ui/store/chat_rows.h"
#include "ui/store/message_tree.h"
#include "ui/store/store_text.h"
#include "ui/store/store_worker.h"

namespace recto::ui {

namespace {

// Carries an answer back to the GUI thread, unless who asked is gone.
template <class F>
void answer(ChatStore* store, bool has_context, const QPointer<QObject>& context, F deliver) {
    QMetaObject::invokeMethod(
        store,
        [has_context, context, deliver = std::move(deliver)] {
            if (!has_context || context) deliver();
        },
        Qt::QueuedConnection);
}

StoreWorker::Ack acknowledge(ChatStore* store, QObject* context, ChatStore::Done done) {
    if (!done) return {};
    return [store, has_context = context != nullptr, guard = QPointer<QObject>(context),
            done = std::move(done)](bool ok, const QString& error) {
        answer(store, has_context, guard, [done, ok, error] { done(ok, error); });
    };
}

}  // namespace

ChatStore::ChatStore(QObject* parent, int flush_ms)
    : QObject(parent), worker_(new StoreWorker(flush_ms)), flush_ms_(flush_ms) {
    worker_->moveToThread(&thread_);
    connect(worker_, &StoreWorker::trouble, this, &ChatStore::trouble);
    connect(worker_, &StoreWorker::recovered, this, &ChatStore::recovered);
    connect(worker_, &StoreWorker::refused, this, &ChatStore::refused);
    thread_.setObjectName(QStringLiteral("recto-store"));
    thread_.start();
}

ChatStore::~ChatStore() {
    close();
}

void ChatStore::post(std::function<void(StoreWorker&)> work) {
    if (closed_) return;
    QMetaObject::invokeMethod(
        worker_, [worker = worker_, work = std::move(work)] { work(*worker); }, Qt::QueuedConnection);
}

void ChatStore::open(const StorePaths& paths) {
    post([this, paths](StoreWorker& worker) {
        StoreInfo info;
        QString error;
        try {
            info = worker.open(paths);
        } catch (const Error& e) {
            error = QString::fromUtf8(e.what());
        }
        answer(this, false, {}, [this, info, error] {
            if (!error.isEmpty()) {
                Q_EMIT open_failed(error);
                return;
            }
            info_ = info;
            next_chat_ = info.next_chat;
            next_message_ = info.next_message;
            open_ = true;
            Q_EMIT opened(info_);
        });
        if (!error.isEmpty()) return;
        try {
            worker.keep_snapshot();
        } catch (const Error& e) {
            Q_EMIT worker.refused(StoreText::tr("No backup of the chats could be made: ") +
                                  QString::fromUtf8(e.what()));
        }
    });
}

void ChatStore::close() {
    if (closed_) return;
    QMetaObject::invokeMethod(
        worker_, [worker = worker_] { worker->close(); }, Qt::BlockingQueuedConnection);
    closed_ = true;
    open_ = false;
    worker_->deleteLater();  // on its own thread, as it ends
    worker_ = nullptr;
    thread_.quit();
    thread_.wait();
}

void ChatStore::save_chat(const ChatRecord& chat, QObject* context, Done done) {
    post([chat, ack = acknowledge(this, context, std::move(done))](StoreWorker& worker) {
        worker.write([chat](Database& db) { rows::write_chat(db, chat); }, ack);
    });
}

void ChatStore::save_draft(ChatId chat, const QString& draft) {
    post([chat, draft](StoreWorker& worker) { worker.save_draft(chat, draft); });
}

void ChatStore::purge_chat(ChatId chat, QObject* context, Done done) {
    post([chat, ack = acknowledge(this, context, std::move(done))](StoreWorker& worker) {
        worker.purge(chat, ack);
    });
}

void ChatStore::load_chat(ChatId chat, int page, QObject* context,
                          std::function<void(std::shared_ptr<const ChatContents>, const QString&)> done) {
    post([this, chat, page, has_context = context != nullptr, guard = QPointer<QObject>(context),
          done = std::move(done)](StoreWorker& worker) {
        auto contents = std::make_shared<ChatContents>();
        QString error;
        try {
            worker.commit();  // a failure is reported by itself, and reading goes on
            Database& db = worker.db();
            for (const ChatRecord& record : rows::read_chats(db))
                if (record.id == chat) contents->chat = record;
            contents->messages = rows::read_skeletons(db, chat);
            MessageTree tree;
            tree.reset(contents->messages, contents->chat.shown_root);
            const auto& path = tree.path();
            const std::size_t first = path.size() > std::size_t(page) ? path.size() - std::size_t(page) : 0;
            const QList<MessageId> last_page(path.begin() + std::ptrdiff_t(first), path.end());
            QHash<MessageId, MessageRecord> full;
            for (const MessageRecord& message : worker.read_messages(chat, last_page))
                full.insert(message.id, message);
            for (MessageRecord& message : contents->messages)
                if (const auto at = full.constFind(message.id); at != full.constEnd()) message = *at;
        } catch (const Error& e) {
            error = QString::fromUtf8(e.what());
        }
        answer(this, has_context, guard,
               [done, contents, error] { done(error.isEmpty() ? contents : nullptr, error); });
    });
}

void ChatStore::load_messages(
    ChatId chat, const QList<MessageId>& ids, QObject* context,
    std::function<void(std::shared_ptr<const QList<MessageRecord>>, const QString&)> done) {
    post([this, chat, ids, has_context = context != nullptr, guard = QPointer<QObject>(context),
          done = std::move(done)](StoreWorker& worker) {
        auto messages = std::make_shared<QList<MessageRecord>>();
        QString error;
        try {
            *messages = worker.read_messages(chat, ids);
        } catch (const Error& e) {
            error = QString::fromUtf8(e.what());
        }
        answer(this, has_context, guard,
               [done, messages, error] { done(error.isEmpty() ? messages : nullptr, error); });
    });
}

void ChatStore::add_messages(const QList<MessageRecord>& messages, QObject* context, Done done) {
    post([messages, ack = acknowledge(this, context, std::move(done))](StoreWorker& worker) {
        worker.write(
            [messages](Database& db) {
                for (const MessageRecord& message : messages)
                    rows::insert_message(db, message);
            },
            ack);
    });
}

void ChatStore::append_text(MessageId message, const QString& text,
                            const std::vector<std::int32_t>& token_ids) {
    post([message, text, token_ids](StoreWorker& worker) { worker.append_text(message, text, token_ids); });
}

void ChatStore::finish_message(const MessageRecord& message, QObject* context, Done done) {
    MessageRecord without_text = message;
    without_text.content.clear();
    without_text.token_ids.clear();
    post([message = std::move(without_text),
          ack = acknowledge(this, context, std::move(done))](StoreWorker& worker) {
        worker.write([message](Database& db) { rows::finish_message(db, message); }, ack);
    });
}

void ChatStore::reopen_message(MessageId message) {
    post([message](StoreWorker& worker) {
        worker.write([message](Database& db) { rows::reopen_message(db, message); }, {});
    });
}

void ChatStore::show_child(ChatId chat, MessageId parent, MessageId child) {
    post([chat, parent, child](StoreWorker& worker) {
        worker.write([chat, parent, child](Database& db) { rows::show_child(db, chat, parent, child); }, {});
    });
}

void ChatStore::flush(QObject* context, Done done) {
    post([ack = acknowledge(this, context, std::move(done))](StoreWorker& worker) {
        worker.write([](Database&) {}, ack);  // an empty write behind everything else
    });
}

}  // namespace recto::ui
