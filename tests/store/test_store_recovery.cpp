#include <QDir>
#include <QProcess>
#include <QRandomGenerator>
#include <QThread>
#include <csignal>
#include <cstdio>

#include "store/store_fixture.h"
#include "support/child.h"
#include "support/registry.h"
#include "ui/store/database.h"
#include "ui/store/schema.h"

using namespace recto;
using namespace recto::test;
using namespace recto::ui;

namespace {

constexpr int victim_flush_ms = 25;

// Streams an answer character by character, and says on stdout how much of it was acknowledged, until it is
// killed.
int stream_until_killed() {
    ChatStore store(nullptr, victim_flush_ms);
    QString error;
    if (!open_store(store, qEnvironmentVariable("RECTO_TEST_ARGUMENT"), &error)) return 1;
    const ChatId chat = store.take_chat_id();
    store.save_chat(make_chat(chat, QStringLiteral("victim")));
    const MessageId question = store.take_message_id(), answer = store.take_message_id();
    MessageRecord row = make_message(answer, chat, question, Role::assistant, {});
    row.state = MessageState::streaming;
    store.add_messages({make_message(question, chat, 0, Role::user, QStringLiteral("question")), row});
    if (!flush(store)) return 1;
    for (int written = 0;; ++written) {
        store.append_text(answer, QString(QChar(u'a' + written % 26)), {written});
        if (written % 50 != 49) {
            QCoreApplication::processEvents();
            continue;
        }
        if (!flush(store)) return 1;
        std::printf("%lld %d\n", static_cast<long long>(chat), written + 1);  // acknowledged
        std::fflush(stdout);
    }
}
const RegisterChild victim("store_victim", stream_until_killed);

void touch(const QString& path) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
}

}  // namespace

class TestStoreRecovery : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    // What was acknowledged before the kill is there afterwards, and the answer is marked, not lost.
    void killedWhileStreaming() {
        QTemporaryDir dir;
        for (int round = 0; round < 8; ++round) {
            QProcess child;
            start_child(child, "store_victim", dir.path());
            const int lines =
                1 + int(QRandomGenerator::global()->bounded(20));  // a random moment in the stream
            QByteArray last;
            for (int i = 0; i < lines; ++i) {
                QTRY_VERIFY_WITH_TIMEOUT(child.canReadLine(), 30'000);
                last = child.readLine();
            }
            ::kill(pid_t(child.processId()), SIGKILL);
            QVERIFY(child.waitForFinished(30'000));
            while (child.canReadLine())
                last = child.readLine();
            const QList<QByteArray> numbers = last.trimmed().split(' ');
            const ChatId chat = numbers[0].toLongLong();
            const int acknowledged = numbers[1].toInt();

            ChatStore store;
            QString error;
            QVERIFY2(open_store(store, dir.path(), &error), qPrintable(error));
            QCOMPARE(store.info().notices.size(), 1);  // "ended unexpectedly"
            const auto contents = load(store, chat);
            QCOMPARE(contents->messages.size(), 2);
            QCOMPARE(contents->messages[0].content, QStringLiteral("question"));
            const MessageRecord& answer = contents->messages[1];
            QCOMPARE(answer.state, MessageState::stopped);
            QCOMPARE(answer.finish_reason, QStringLiteral("interrupted"));
            QVERIFY2(answer.content.size() >= acknowledged,
                     qPrintable(QStringLiteral("%1 of %2").arg(answer.content.size()).arg(acknowledged)));
            QCOMPARE(answer.token_ids.size(), std::size_t(answer.content.size()));
            for (int i = 0; i < answer.content.size(); ++i) {
                QCOMPARE(answer.content[i], QChar(u'a' + i % 26));
                QCOMPARE(answer.token_ids[std::size_t(i)], i);
            }
        }
    }

    void cleanEndNeedsNoRecovery() {
        QTemporaryDir dir;
        {
            ChatStore store;
            QVERIFY(open_store(store, dir.path()));
        }
        QVERIFY(!QFile::exists(store_paths(dir.path()).running_flag()));
        ChatStore store;
        QVERIFY(open_store(store, dir.path()));
        QVERIFY(store.info().notices.isEmpty());
        QVERIFY(QFile::exists(store_paths(dir.path()).running_flag()));
    }

    void lockedProfileSaysByWhom() {
        QTemporaryDir dir;
        ChatStore first, second;
        QVERIFY(open_store(first, dir.path()));
        QString error;
        QVERIFY(!open_store(second, dir.path(), &error));
        QVERIFY2(error.contains(QString::number(QCoreApplication::applicationPid())), qPrintable(error));
        first.close();
        ChatStore third;
        QVERIFY(open_store(third, dir.path()));
    }

    void migratesWithABackup() {
        QTemporaryDir dir;
        const QString path = dir.filePath(QStringLiteral("old.sqlite"));
        const QString backups = dir.filePath(QStringLiteral("backups"));
        Schema schema{Migration{{QStringLiteral("CREATE TABLE chats(id INTEGER PRIMARY KEY, title TEXT)")}}};
        Database db(path, Database::Mode::read_write);
        QCOMPARE(migrate(db, schema, backups), QString());  // an empty file needs no backup
        QVERIFY(!QDir(backups).exists());
        db.run(QStringLiteral("INSERT INTO chats(title) VALUES('old')"));
        schema.push_back(
            Migration{{QStringLiteral("ALTER TABLE chats ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'")}});
        QVERIFY(!migrate(db, schema, backups).isEmpty());
        QCOMPARE(db.schema_number(), 2);
        QCOMPARE(db.value(QStringLiteral("SELECT mood FROM chats")).toString(), QStringLiteral("calm"));
        const QStringList kept = QDir(backups).entryList(QDir::Files);
        QCOMPARE(kept.size(), 1);
        Database backup(QDir(backups).filePath(kept[0]), Database::Mode::read_only);
        QCOMPARE(backup.schema_number(), 1);
        QCOMPARE(backup.value(QStringLiteral("SELECT title FROM chats")).toString(), QStringLiteral("old"));
        QCOMPARE(migrate(db, schema, backups), QString());  // nothing left to do
    }

    void failedMigrationChangesNothing() {
        QTemporaryDir dir;
        Schema schema{Migration{{QStringLiteral("CREATE TABLE chats(id INTEGER PRIMARY KEY, title TEXT)")}}};
        Database db(dir.filePath(QStringLiteral("old.sqlite")), Database::Mode::read_write);
        migrate(db, schema, dir.path());
        schema.push_back(Migration{{QStringLiteral("ALTER TABLE chats ADD COLUMN mood TEXT"),
                                    QStringLiteral("ALTER TABLE nowhere ADD COLUMN x TEXT")}});
        QVERIFY_EXCEPTION_THROWN(migrate(db, schema, dir.filePath(QStringLiteral("b"))), SqlError);
        QCOMPARE(db.schema_number(), 1);
        QVERIFY_EXCEPTION_THROWN(db.run(QStringLiteral("SELECT mood FROM chats")), SqlError);
    }

    void keepsThreeBackups() {
        QTemporaryDir dir;
        const QString backups = dir.filePath(QStringLiteral("backups"));
        Database db(dir.filePath(QStringLiteral("a.sqlite")), Database::Mode::read_write);
        db.run(QStringLiteral("CREATE TABLE t(x)"));
        QStringList made;
        for (int i = 0; i < 5; ++i) {
            made << QFileInfo(back_up(db, backups)).fileName();
            QThread::msleep(2);  // their names are times to the millisecond
        }
        QCOMPARE(QDir(backups).entryList(QDir::Files, QDir::Name), made.mid(2));
    }

    void newerSchemaIsReadOnly() {
        QTemporaryDir dir;
        {
            ChatStore store;
            QVERIFY(open_store(store, dir.path()));
            store.save_chat(make_chat(1, QStringLiteral("from the future")));
            QVERIFY(flush(store));
        }
        {
            Database db(store_paths(dir.path()).database(), Database::Mode::read_write);
            db.run(QStringLiteral("PRAGMA user_version = 999"));
        }
        ChatStore store;
        QVERIFY(open_store(store, dir.path()));
        QVERIFY(store.read_only());
        QVERIFY(store.info().notices.first().contains(QStringLiteral("999")));
        QCOMPARE(store.info().chats.first().title, QStringLiteral("from the future"));
        bool refused = false;
        store.save_chat(make_chat(2, QStringLiteral("x")), &store,
                        [&](bool ok, const QString&) { refused = !ok; });
        QTRY_VERIFY(refused);
    }

    // Pages overwritten with noise, found after a crash: what can be read is saved, the damaged file is kept.
    void damagedFileIsRebuilt() {
        QTemporaryDir dir;
        const StorePaths paths = store_paths(dir.path());
        {
            ChatStore store;
            QVERIFY(open_store(store, dir.path()));
            for (int c = 1; c <= 40; ++c) {
                store.save_chat(make_chat(c, QStringLiteral("chat %1").arg(c)));
                store.add_messages({make_message(c, c, 0, Role::user, QString(3000, QLatin1Char('m')))});
            }
            QVERIFY(flush(store));
        }
        QFile file(paths.database());
        QVERIFY(file.open(QIODevice::ReadWrite));
        const qint64 page = 4096, pages = file.size() / page;
        QVERIFY(pages > 30);
        file.seek((pages - 8) * page);
        file.write(QByteArray(3 * page, '\xA5'));
        file.close();
        touch(paths.running_flag());

        ChatStore store;
        QString error;
        QVERIFY2(open_store(store, dir.path(), &error), qPrintable(error));
        QCOMPARE(store.info().notices.size(), 1);
        QCOMPARE(store.info().chats.size(), 40);
        int kept = 0;
        for (const ChatRecord& chat : store.info().chats)
            kept += int(load(store, chat.id)->messages.size());
        QVERIFY2(kept >= 30 && kept < 40,
                 qPrintable(QString::number(kept)));  // a row fills a page; three are gone
        QVERIFY(store.info().notices.first().contains(QStringLiteral("40 chats and %1 messages").arg(kept)));
        QCOMPARE(QDir(paths.folder).entryList({QStringLiteral("*.damaged-*")}, QDir::Files).size(), 1);
    }

    void fileThatIsNoDatabaseIsSetAside() {
        QTemporaryDir dir;
        const StorePaths paths = store_paths(dir.path());
        QVERIFY(QDir().mkpath(paths.folder));
        QFile file(paths.database());
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(QByteArray(10'000, 'x'));
        file.close();
        ChatStore store;
        QString error;
        QVERIFY2(open_store(store, dir.path(), &error), qPrintable(error));
        QCOMPARE(store.info().notices.size(), 1);
        QVERIFY(store.info().chats.isEmpty());
        store.save_chat(make_chat(1, QStringLiteral("c")));
        QVERIFY(flush(store));
    }

    void valuesThatNoRectoWroteAreShownWithANote() {
        QTemporaryDir dir;
        {
            ChatStore store;
            QVERIFY(open_store(store, dir.path()));
            store.save_chat(make_chat(1, QStringLiteral("c")));
            store.add_messages({make_message(1, 1, 0, Role::user, QStringLiteral("q"))});
            QVERIFY(flush(store));
        }
        {
            Database db(store_paths(dir.path()).database(), Database::Mode::read_write);
            db.run(
                QStringLiteral("UPDATE messages SET role = 'wizard', state = 'asleep', sampling = '{broken', "
                               "timings = 'null'"));
            db.run(QStringLiteral("UPDATE chats SET sampling = '[1,2]'"));
        }
        ChatStore store;
        QVERIFY(open_store(store, dir.path()));
        const auto contents = load(store, 1);
        QCOMPARE(contents->messages[0].content, QStringLiteral("q"));
        QVERIFY(contents->messages[0].note.contains(QStringLiteral("wizard")));
        QVERIFY(contents->messages[0].note.contains(QStringLiteral("asleep")));
        QVERIFY(contents->chat.sampling.isEmpty());
    }

    void trashIsEmptiedAfterThirtyDays() {
        QTemporaryDir dir;
        {
            ChatStore store;
            QVERIFY(open_store(store, dir.path()));
            for (const int days : {29, 31}) {
                ChatRecord chat = make_chat(days, QString::number(days));
                chat.trashed_at = QDateTime::currentDateTimeUtc().addDays(-days);
                store.save_chat(chat);
            }
            QVERIFY(flush(store));
        }
        ChatStore store;
        QVERIFY(open_store(store, dir.path()));
        QCOMPARE(store.info().chats.size(), 1);
        QCOMPARE(store.info().chats.first().title, QStringLiteral("29"));
    }
};

RECTO_TEST_CLASS(TestStoreRecovery);
#include "test_store_recovery.moc"
