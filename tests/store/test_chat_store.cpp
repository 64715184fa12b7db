#include <sys/resource.h>

#include <QElapsedTimer>
#include <QFileInfo>
#include <csignal>

#include "store/store_fixture.h"
#include "support/registry.h"
#include "ui/store/database.h"

using namespace recto;
using namespace recto::test;
using namespace recto::ui;

class TestChatStore : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void keepsEveryFieldOfAChat() {
        QTemporaryDir dir;
        ChatRecord chat = make_chat(1, QStringLiteral("臺南行程"));
        chat.renamed = true;
        chat.system_prompt = QStringLiteral("be brief");
        chat.sampling = {{QStringLiteral("temperature"), 0.25}};
        chat.draft = QStringLiteral("half a thought");
        chat.model = QStringLiteral("/m.gguf");
        chat.template_id = QStringLiteral("chatml");
        chat.position = 1.5;
        {
            ChatStore store;
            QVERIFY(open_store(store, dir.path()));
            QCOMPARE(store.take_chat_id(), ChatId(1));
            store.save_chat(chat);
            chat.title = QStringLiteral("臺南");  // an update, not a second row
            store.save_chat(chat);
        }
        ChatStore store;
        QVERIFY(open_store(store, dir.path()));
        QCOMPARE(store.info().chats.size(), 1);
        const ChatRecord& read = store.info().chats.first();
        QCOMPARE(read.title, chat.title);
        QCOMPARE(read.renamed, true);
        QCOMPARE(read.created, chat.created);
        QCOMPARE(read.system_prompt, chat.system_prompt);
        QCOMPARE(read.sampling, chat.sampling);
        QCOMPARE(read.draft, chat.draft);
        QCOMPARE(read.model, chat.model);
        QCOMPARE(read.template_id, chat.template_id);
        QCOMPARE(read.position, chat.position);
        QVERIFY(!read.trashed_at.isValid());
        QCOMPARE(store.take_chat_id(), ChatId(2));
    }

    void keepsEveryFieldOfAnAnswer() {
        QTemporaryDir dir;
        MessageRecord answer = make_message(2, 1, 1, Role::assistant, {});
        answer.state = MessageState::streaming;
        {
            ChatStore store;
            QVERIFY(open_store(store, dir.path()));
            store.save_chat(make_chat(1, QStringLiteral("c")));
            store.add_messages({make_message(1, 1, 0, Role::user, QStringLiteral("hi")), answer});
            store.append_text(2, QStringLiteral("Grüße "), {7, -1, 1 << 30});
            store.append_text(2, QStringLiteral("𝄞"), {0});
            answer.state = MessageState::context_full;
            answer.finish_reason = QStringLiteral("length");
            answer.model_name = QStringLiteral("M");
            answer.model_path = QStringLiteral("/m");
            answer.model_hash = QStringLiteral("ff");
            answer.template_id = QStringLiteral("model");
            answer.system_prompt = QStringLiteral("s");
            answer.sampling = {{QStringLiteral("top_k"), 5}};
            answer.timings = {.prompt_tokens = 3,
                              .cached_tokens = 2,
                              .output_tokens = 4,
                              .preemptions = 1,
                              .queue_s = 0.1,
                              .ttft_s = 0.2,
                              .prefill_tok_s = 30,
                              .decode_tok_s = 40,
                              .paused_s = 0.5,
                              .valid = true};
            store.finish_message(answer);
        }
        ChatStore store;
        QVERIFY(open_store(store, dir.path()));
        const auto contents = load(store, 1);
        QCOMPARE(contents->messages.size(), 2);
        QCOMPARE(contents->chat.shown_root, MessageId(1));
        QCOMPARE(contents->messages[0].shown_child, MessageId(2));
        const MessageRecord& read = contents->messages[1];
        QVERIFY(read.loaded);
        QCOMPARE(read.content, QStringLiteral("Grüße 𝄞"));
        QCOMPARE(read.chars, int(read.content.size()));
        QCOMPARE(read.token_ids, (std::vector<std::int32_t>{7, -1, 1 << 30, 0}));
        QCOMPARE(read.state, MessageState::context_full);
        QCOMPARE(read.finish_reason, answer.finish_reason);
        QCOMPARE(read.model_name, answer.model_name);
        QCOMPARE(read.model_path, answer.model_path);
        QCOMPARE(read.model_hash, answer.model_hash);
        QCOMPARE(read.template_id, answer.template_id);
        QCOMPARE(read.system_prompt, answer.system_prompt);
        QCOMPARE(read.sampling, answer.sampling);
        QCOMPARE(read.timings.to_json(), answer.timings.to_json());
        QCOMPARE(store.take_message_id(), MessageId(3));
    }

    void folderIsPrivate() {
        QTemporaryDir dir;
        ChatStore store;
        QVERIFY(open_store(store, dir.path()));
        const auto others = QFile::ReadGroup | QFile::WriteGroup | QFile::ExeGroup | QFile::ReadOther |
                            QFile::WriteOther | QFile::ExeOther;
        QVERIFY((QFileInfo(store_paths(dir.path()).folder).permissions() & others) == 0);
    }

    // Another connection sees what was acknowledged, while the store is still open.
    void acknowledgedMeansOnDisk() {
        QTemporaryDir dir;
        ChatStore store;
        QVERIFY(open_store(store, dir.path()));
        store.save_chat(make_chat(1, QStringLiteral("c")));
        bool acknowledged = false;
        store.add_messages({make_message(1, 1, 0, Role::user, QStringLiteral("kept"))}, &store,
                           [&](bool ok, const QString&) { acknowledged = ok; });
        QTRY_VERIFY(acknowledged);
        Database other(store_paths(dir.path()).database(), Database::Mode::read_only);
        QCOMPARE(other.value(QStringLiteral("SELECT content FROM messages")).toString(),
                 QStringLiteral("kept"));
        QCOMPARE(other.value(QStringLiteral("PRAGMA journal_mode")).toString(), QStringLiteral("wal"));
    }

    // Streamed text waits for its second; whatever is asked for afterwards takes it along.
    void streamedTextIsCollected() {
        QTemporaryDir dir;
        ChatStore store(nullptr, 3'600'000);
        QVERIFY(open_store(store, dir.path()));
        store.save_chat(make_chat(1, QStringLiteral("c")));
        MessageRecord answer = make_message(1, 1, 0, Role::assistant, {});
        answer.state = MessageState::streaming;
        store.add_messages({answer});
        QVERIFY(flush(store));
        for (int i = 0; i < 100; ++i)
            store.append_text(1, QStringLiteral("x"), {i});
        Database other(store_paths(dir.path()).database(), Database::Mode::read_only);
        QCOMPARE(other.value(QStringLiteral("SELECT count(*) FROM deltas")).toInt(), 0);
        QVERIFY(flush(store));
        QCOMPARE(other.value(QStringLiteral("SELECT count(*) FROM deltas")).toInt(), 1);  // one row for all
        QCOMPARE(load(store, 1)->messages[0].content, QString(100, QLatin1Char('x')));
        QCOMPARE(load(store, 1)->messages[0].token_ids.size(), std::size_t(100));
    }

    void streamedTextIsCommittedByItself() {
        QTemporaryDir dir;
        ChatStore store(nullptr, 20);
        QVERIFY(open_store(store, dir.path()));
        store.save_chat(make_chat(1, QStringLiteral("c")));
        store.add_messages({make_message(1, 1, 0, Role::assistant, {})});
        store.append_text(1, QStringLiteral("abc"), {1});
        store.save_draft(1, QStringLiteral("soon"));
        Database other(store_paths(dir.path()).database(), Database::Mode::read_only);
        QTRY_COMPARE(other.value(QStringLiteral("SELECT content FROM deltas")).toString(),
                     QStringLiteral("abc"));
        QTRY_COMPARE(other.value(QStringLiteral("SELECT draft FROM chats")).toString(),
                     QStringLiteral("soon"));
    }

    void siblingsAreNeverOverwritten() {
        QTemporaryDir dir;
        ChatStore store;
        QVERIFY(open_store(store, dir.path()));
        store.save_chat(make_chat(1, QStringLiteral("c")));
        store.add_messages({make_message(1, 1, 0, Role::user, QStringLiteral("q")),
                            make_message(2, 1, 1, Role::assistant, QStringLiteral("first"))});
        store.add_messages({make_message(3, 1, 1, Role::assistant, QStringLiteral("second"))});
        QCOMPARE(load(store, 1)->messages[0].shown_child, MessageId(3));
        store.show_child(1, 1, 2);
        const auto contents = load(store, 1);
        QCOMPARE(contents->messages[0].shown_child, MessageId(2));
        QCOMPARE(contents->messages.size(), 3);
    }

    // An impossible write is refused by name; its neighbours are kept.
    void oneBadWriteHarmsNoOther() {
        QTemporaryDir dir;
        ChatStore store(nullptr, 3'600'000);
        QVERIFY(open_store(store, dir.path()));
        QSignalSpy refused(&store, &ChatStore::refused);
        store.save_chat(make_chat(1, QStringLiteral("c")));
        bool told = false;
        store.add_messages({make_message(1, 99, 0, Role::user, QStringLiteral("no such chat"))}, &store,
                           [&](bool ok, const QString& error) { told = !ok && !error.isEmpty(); });
        store.add_messages({make_message(2, 1, 0, Role::user, QStringLiteral("good"))});
        QVERIFY(flush(store));
        QTRY_VERIFY(told);
        QCOMPARE(refused.count(), 1);
        const auto contents = load(store, 1);
        QCOMPARE(contents->messages.size(), 1);
        QCOMPARE(contents->messages[0].content, QStringLiteral("good"));
    }

    // A disk that is full, by the kernel's limit on this process's file size.
    void fullDiskKeepsTheTextAndTriesAgain() {
        QTemporaryDir dir;
        ChatStore store(nullptr, 20);
        QVERIFY(open_store(store, dir.path()));
        store.save_chat(make_chat(1, QStringLiteral("c")));
        QVERIFY(flush(store));
        QSignalSpy trouble(&store, &ChatStore::trouble), recovered(&store, &ChatStore::recovered);
        std::signal(SIGXFSZ, SIG_IGN);
        rlimit limit{};
        QCOMPARE(getrlimit(RLIMIT_FSIZE, &limit), 0);
        const rlimit small{128 * 1024, limit.rlim_max};
        QCOMPARE(setrlimit(RLIMIT_FSIZE, &small), 0);
        bool acknowledged = false;
        const QString text(1'000'000, QLatin1Char('w'));
        MessageRecord answer = make_message(1, 1, 0, Role::assistant, text);
        answer.state = MessageState::streaming;
        store.add_messages({answer}, &store, [&](bool ok, const QString&) { acknowledged = ok; });
        store.append_text(1, QStringLiteral(" and more"), {1});
        const bool troubled = QTest::qWaitFor([&] { return !trouble.isEmpty(); }, 20'000);
        const bool too_early = acknowledged;
        QCOMPARE(setrlimit(RLIMIT_FSIZE, &limit), 0);
        QVERIFY(troubled);
        QVERIFY(!too_early);
        QTRY_COMPARE_WITH_TIMEOUT(recovered.count(), 1, 20'000);
        QTRY_VERIFY(acknowledged);
        QCOMPARE(trouble.count(), 1);
        QCOMPARE(load(store, 1)->messages[0].content, text + QStringLiteral(" and more"));
    }

    void purgeLeavesNoTrace() {
        QTemporaryDir dir;
        {
            ChatStore store;
            QVERIFY(open_store(store, dir.path()));
            store.save_chat(make_chat(1, QStringLiteral("c")));
            store.add_messages({make_message(1, 1, 0, Role::user, QStringLiteral("TOPSECRETWORD"))});
            QVERIFY(flush(store));
            bool purged = false;
            store.purge_chat(1, &store, [&](bool ok, const QString&) { purged = ok; });
            QTRY_VERIFY(purged);
            for (const char* suffix : {"", "-wal"}) {
                QFile file(store_paths(dir.path()).database() + QLatin1String(suffix));
                if (!file.open(QIODevice::ReadOnly)) continue;
                QVERIFY(!file.readAll().contains("TOPSECRETWORD"));
            }
            QCOMPARE(load(store, 1)->messages.size(), 0);
        }
        ChatStore store;
        QVERIFY(open_store(store, dir.path()));
        QCOMPARE(store.take_chat_id(), ChatId(2));  // an id is never given twice
        QCOMPARE(store.take_message_id(), MessageId(2));
    }

    // 300,000 tokens: 1,200 messages of about 1,000 characters.
    void openingALongChatReadsOnePage() {
        QTemporaryDir dir;
        ChatStore store;
        QVERIFY(open_store(store, dir.path()));
        store.save_chat(make_chat(1, QStringLiteral("long")));
        QList<MessageRecord> messages;
        for (int i = 1; i <= 1200; ++i)
            messages.append(make_message(i, 1, i - 1, i % 2 ? Role::user : Role::assistant,
                                         QString(1000, QLatin1Char('a'))));
        store.add_messages(messages);
        QVERIFY(flush(store));
        QElapsedTimer timer;
        timer.start();
        const auto contents = load(store, 1, 32);
        qInfo("a chat of 1,200 messages and 1.2 million characters opened in %lld ms", timer.elapsed());
        QCOMPARE(contents->messages.size(), 1200);
        int loaded = 0;
        for (const MessageRecord& m : contents->messages) {
            loaded += m.loaded ? 1 : 0;
            QCOMPARE(m.chars, 1000);
        }
        QCOMPARE(loaded, 32);
        QVERIFY(contents->messages.last().loaded);
        std::shared_ptr<const QList<MessageRecord>> page;
        store.load_messages(
            1, {1, 2, 5000}, &store,
            [&](std::shared_ptr<const QList<MessageRecord>> p, const QString&) { page = std::move(p); });
        QTRY_VERIFY(page);
        QCOMPARE(page->size(), 2);
    }

    void callbackOfADeadAskerIsDropped() {
        QTemporaryDir dir;
        ChatStore store;
        QVERIFY(open_store(store, dir.path()));
        bool called = false;
        {
            QObject asker;
            store.save_chat(make_chat(1, QStringLiteral("c")), &asker,
                            [&](bool, const QString&) { called = true; });
        }
        QVERIFY(flush(store));
        QVERIFY(!called);
    }
};

RECTO_TEST_CLASS(TestChatStore);
#include "test_chat_store.moc"
