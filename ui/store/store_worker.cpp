#include "ui/store/store_worker.h"

#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QFileInfo>

#include "ui/store/chat_rows.h"
#include "ui/store/recovery.h"
#include "ui/store/schema.h"
#include "ui/store/store_text.h"

namespace recto::ui {

namespace {

constexpr int trash_days = 30;
constexpr int snapshot_days = 7;
constexpr int retry_ms = 1000;

void make_private_folder(const QString& folder) {
    if (!QDir().mkpath(folder))
        throw SqlError(StoreText::tr("%1: the folder cannot be made.").arg(folder), 14);
    QFile::setPermissions(folder, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
}

std::unique_ptr<QLockFile> take_lock(const QString& path) {
    auto lock = std::make_unique<QLockFile>(path);
    lock->setStaleLockTime(0);  // only a dead owner's lock is taken over
    if (lock->tryLock(0)) return lock;
    if (lock->error() == QLockFile::LockFailedError) {
        qint64 pid = 0;
        QString host, program;
        lock->getLockInfo(&pid, &host, &program);
        throw SqlError(
            StoreText::tr(
                "These chats are open in another Recto (process %1): use that window, or start this "
                "one with --profile and another folder.")
                .arg(pid),
            5);
    }
    throw SqlError(StoreText::tr("%1: the lock cannot be written; check the folder's permissions.").arg(path),
                   14);
}

}  // namespace

StoreWorker::StoreWorker(int flush_ms) : flush_ms_(flush_ms), flush_timer_(this), retry_timer_(this) {
    flush_timer_.setSingleShot(true);
    retry_timer_.setSingleShot(true);
    connect(&flush_timer_, &QTimer::timeout, this, &StoreWorker::commit);
    connect(&retry_timer_, &QTimer::timeout, this, &StoreWorker::commit);
}

StoreWorker::~StoreWorker() {
    close();
}

Database& StoreWorker::db() {
    if (!db_) throw Error(ErrorKind::runtime, "The chats are not open.");
    return *db_;
}

StoreInfo StoreWorker::open(const StorePaths& paths) {
    paths_ = paths;
    make_private_folder(paths.folder);
    make_private_folder(paths.state_folder);
    lock_ = take_lock(paths.lock());
    const bool unclean = QFileInfo::exists(paths.running_flag());
    StoreInfo info;
    try {
        const QString notice = open_connection(paths, unclean, info);
        if (!notice.isEmpty()) info.notices.append(notice);
        info.read_only = read_only_;
        if (!read_only_) {
            QFile flag(paths.running_flag());
            if (!flag.open(QIODevice::WriteOnly))
                throw SqlError(StoreText::tr("%1: cannot be written.").arg(flag.fileName()), 14);
            const int closed = rows::close_interrupted(*db_);
            if (closed > 0)
                info.notices.append(
                    StoreText::tr("Recto ended unexpectedly: %1 unfinished answers were kept as they were.")
                        .arg(closed));
            const qint64 old = QDateTime::currentDateTimeUtc().addDays(-trash_days).toMSecsSinceEpoch();
            db_->run(QStringLiteral("DELETE FROM chats WHERE trashed_at IS NOT NULL AND trashed_at < ?"),
                     {old});
        }
        info.chats = rows::read_chats(*db_);
        const auto next = [this](const char* table) {
            return db_->value(QStringLiteral("SELECT max(seq) FROM sqlite_sequence WHERE name = ?"),
                              {QLatin1String(table)})
                       .toLongLong() +
                   1;
        };
        info.next_chat = next("chats");
        info.next_message = next("messages");
    } catch (...) {
        db_.reset();
        lock_.reset();
        throw;
    }
    return info;
}

// Returns a notice, or nothing.
QString StoreWorker::open_connection(const StorePaths& paths, bool unclean, StoreInfo& info) {
    const QString path = paths.database();
    const auto connect_now = [&] { db_ = std::make_unique<Database>(path, Database::Mode::read_write); };
    const auto damage = [&]() -> QString {
        try {
            db_->schema_number();
            return unclean ? find_damage(*db_) : QString();
        } catch (const SqlError& e) {
            if (!e.damaged()) throw;
            return QString::fromUtf8(e.what());
        }
    };
    connect_now();
    if (!damage().isEmpty()) {
        db_.reset();
        info.notices.append(rebuild_database(path));
        connect_now();
    }
    QFile::setPermissions(path, QFile::ReadOwner | QFile::WriteOwner);
    const int newest = int(current_schema().size());
    if (db_->schema_number() > newest) {
        const int number = db_->schema_number();
        db_ = std::make_unique<Database>(path, Database::Mode::read_only);
        read_only_ = true;
        return StoreText::
            tr("These chats were written by a newer Recto (schema %1, this one knows %2): they can be read, "
               "not changed. Update Recto to go on.")
                .arg(number)
                .arg(newest);
    }
    // FULL: with one commit a second the sync is cheap, and a power cut loses nothing that was acknowledged.
    db_->run(is_network_file_system(paths.folder) ? QStringLiteral("PRAGMA journal_mode = TRUNCATE")
                                                  : QStringLiteral("PRAGMA journal_mode = WAL"));
    for (const char* pragma :
         {"PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON", "PRAGMA secure_delete = ON"})
        db_->run(QLatin1String(pragma));
    return migrate(*db_, current_schema(), paths.backups());
}

void StoreWorker::keep_snapshot() {
    if (!db_ || read_only_) return;
    const QFileInfoList all =
        QDir(paths_.backups()).entryInfoList({QStringLiteral("chats-*.sqlite")}, QDir::Files, QDir::Time);
    if (!all.isEmpty() && all.first().lastModified().daysTo(QDateTime::currentDateTime()) < snapshot_days)
        return;
    if (db_->value(QStringLiteral("SELECT count(*) FROM messages")).toLongLong() == 0) return;
    back_up(*db_, paths_.backups());
}

void StoreWorker::close() {
    if (!db_) return;
    flush_timer_.stop();
    retry_timer_.stop();
    const bool saved = commit();
    db_.reset();
    if (saved && !read_only_ && !damage_seen_) QFile::remove(paths_.running_flag());
    lock_.reset();
    while (!waiting_.empty()) {
        if (waiting_.front().ack)
            waiting_.front().ack(false, StoreText::tr("Recto closed before this could be written."));
        waiting_.pop_front();
    }
}

void StoreWorker::write(std::function<void(Database&)> apply, Ack ack) {
    if (!db_ || read_only_) {
        const QString why = read_only_ ? StoreText::tr("The chats are open for reading only.")
                                       : StoreText::tr("The chats are not open.");
        if (ack) ack(false, why);
        return;
    }
    take_streamed();  // what was streamed before belongs before
    waiting_.push_back({std::move(apply), std::move(ack)});
    if (!in_trouble_) commit();
}

void StoreWorker::append_text(MessageId message, const QString& text,
                              const std::vector<std::int32_t>& token_ids) {
    Delta& delta = streamed_[message];
    delta.text += text;
    delta.token_ids.insert(delta.token_ids.end(), token_ids.begin(), token_ids.end());
    if (!flush_timer_.isActive()) flush_timer_.start(flush_ms_);
}

void StoreWorker::save_draft(ChatId chat, const QString& draft) {
    drafts_[chat] = draft;
    if (!flush_timer_.isActive()) flush_timer_.start(flush_ms_);
}

void StoreWorker::take_streamed() {
    for (auto& [message, delta] : streamed_) {
        waiting_.push_back({[message = message, delta = std::move(delta)](Database& db) {
                                rows::append_delta(db, message, delta.text, delta.token_ids);
                            },
                            {}});
    }
    for (auto& [chat, draft] : drafts_)
        waiting_.push_back(
            {[chat = chat, draft = draft](Database& db) { rows::write_draft(db, chat, draft); }, {}});
    streamed_.clear();
    drafts_.clear();
}

bool StoreWorker::commit() {
    if (!db_ || read_only_) return true;
    take_streamed();
    flush_timer_.stop();
    if (waiting_.empty()) return true;
    std::deque<Write> done;
    try {
        db_->transaction([this] {
            for (const Write& write : waiting_)
                write.apply(*db_);
        });
        done.swap(waiting_);
    } catch (const SqlError& e) {
        if (e.refused()) {
            commit_one_by_one();
            return waiting_.empty();
        }
        if (!in_trouble_) Q_EMIT trouble(QString::fromUtf8(e.what()));
        in_trouble_ = true;
        retry_timer_.start(retry_ms);
        return false;
    }
    if (in_trouble_) Q_EMIT recovered();
    in_trouble_ = false;
    for (const Write& write : done)
        if (write.ack) write.ack(true, {});
    return true;
}

// One of the waiting writes is impossible; the others must not suffer from it.
void StoreWorker::commit_one_by_one() {
    while (!waiting_.empty()) {
        const Write write = waiting_.front();
        try {
            db_->transaction([&] { write.apply(*db_); });
        } catch (const SqlError& e) {
            if (!e.refused()) {
                if (!in_trouble_) Q_EMIT trouble(QString::fromUtf8(e.what()));
                in_trouble_ = true;
                retry_timer_.start(retry_ms);
                return;
            }
            waiting_.pop_front();
            Q_EMIT refused(QString::fromUtf8(e.what()));
            if (write.ack) write.ack(false, QString::fromUtf8(e.what()));
            continue;
        }
        waiting_.pop_front();
        if (write.ack) write.ack(true, {});
    }
    if (in_trouble_) Q_EMIT recovered();
    in_trouble_ = false;
}

QList<MessageRecord> StoreWorker::read_messages(ChatId chat, const QList<MessageId>& ids) {
    int damaged = 0;
    QList<MessageRecord> messages = rows::read_messages(db(), chat, ids, &damaged);
    damage_seen_ = damage_seen_ || damaged > 0;
    return messages;
}

void StoreWorker::purge(ChatId chat, Ack ack) {
    write(
        [chat](Database& db) { db.run(QStringLiteral("DELETE FROM chats WHERE id = ?"), {qlonglong(chat)}); },
        [this, ack = std::move(ack)](bool ok, const QString& error) {
            // secure_delete has overwritten the rows; the log must not keep them either.
            if (ok && db_) db_->run(QStringLiteral("PRAGMA wal_checkpoint(TRUNCATE)"));
            if (ack) ack(ok, error);
        });
}

}  // namespace recto::ui
