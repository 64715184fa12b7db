// Chats over a model without weights. Everything is stepped by the test or waits on a condition.
#include <QAbstractItemModelTester>
#include <QElapsedTimer>
#include <QProcess>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <csignal>
#include <cstdio>

#include "support/child.h"
#include "support/fake_chat.h"
#include "support/registry.h"
#include "ui/models/chat_list_model.h"
#include "ui/models/sampling_json.h"
#include "ui/models/transcript_model.h"
#include "ui/store/database.h"

using namespace recto;
using namespace recto::test;
using namespace recto::ui;

namespace {

bool start(Session& session) {
    QSignalSpy ready(&session, &Session::ready);
    session.start();
    return QTest::qWaitFor([&] { return !ready.isEmpty(); }, 30'000);
}

bool load_model(Session& session) {
    session.host()->load({.path = "/models/fake"});
    return QTest::qWaitFor([&] { return session.host()->ready(); }, 30'000);
}

// Greedy, exactly n tokens.
QJsonObject exactly(int n) {
    return {{QStringLiteral("temperature"), 0.0},
            {QStringLiteral("max_tokens"), n},
            {QStringLiteral("ignore_eos"), true}};
}

const MessageRecord& last(const Chat* chat) {
    return chat->message(chat->message_count() - 1);
}

std::vector<std::int32_t> prompt_for(const QString& question) {
    const CharacterTokenizer tokenizer;
    return tokenizer.encode(
        "<|im_start|>user\n" + question.toStdString() + "<|im_end|>\n<|im_start|>assistant\n",
        {.parse_special = true});
}

int used_blocks(Session& session) {
    QSignalSpy spy(session.host(), &HostClient::snapshot_ready);
    session.host()->request_snapshot();
    if (!QTest::qWaitFor([&] { return !spy.isEmpty(); }, 30'000)) return -1;
    return session.host()->last_snapshot()->engine.counts.used;
}

// Answers one question slowly, step by step, and says on stdout what is shown, until it is killed.
int session_until_killed() {
    Session session(ProfilePaths::in(qEnvironmentVariable("RECTO_TEST_ARGUMENT")), fake_factory());
    if (!start(session) || !load_model(session)) return 1;
    session.host()->set_paused(true);
    Chat* chat = session.new_chat();
    chat->set_sampling(exactly(900));
    if (!chat->send(QStringLiteral("kill me"))) return 1;
    for (std::size_t wanted = 1;; ++wanted) {
        session.host()->step();
        if (!QTest::qWaitFor([&] { return last(chat).token_ids.size() >= wanted; }, 30'000)) return 1;
        if (wanted % 10 != 0) continue;
        bool stored = false;
        session.store().flush(&session, [&](bool ok, const QString&) { stored = ok; });
        if (!QTest::qWaitFor([&] { return stored; }, 30'000)) return 1;
        std::printf("%d\n", int(wanted));
        std::fflush(stdout);
    }
}
const RegisterChild victim("session_victim", session_until_killed);

}  // namespace

class TestSession : public QObject {
    Q_OBJECT
    CharacterTokenizer tokenizer_;

  private Q_SLOTS:
    void twoChatsAnswerAtOnce() {
        QTemporaryDir dir;
        Session session(ProfilePaths::in(dir.path()), fake_factory());
        QVERIFY(start(session));
        QVERIFY(load_model(session));
        Chat* a = session.new_chat();
        Chat* b = session.new_chat();
        TranscriptModel transcript_a(a), transcript_b(b);
        const QAbstractItemModelTester tester_a(&transcript_a), tester_b(&transcript_b);
        for (Chat* chat : {a, b})
            chat->set_sampling(exactly(300));
        QVERIFY(a->send(QStringLiteral("first")));
        QVERIFY(b->send(QStringLiteral("second")));
        QVERIFY(!a->send(QStringLiteral("again")));  // busy
        QVERIFY(!a->send_blocked_reason().isEmpty());
        QCOMPARE(session.busy_count(), 2);
        QTRY_VERIFY(!a->busy() && !b->busy());
        for (const auto& [chat, question] :
             {std::pair{a, QStringLiteral("first")}, {b, QStringLiteral("second")}}) {
            QCOMPARE(chat->message_count(), 2);
            const MessageRecord& answer = last(chat);
            QCOMPARE(answer.token_ids, fake_answer(prompt_for(question), 300, true));
            QCOMPARE(answer.content.toStdString(), tokenizer_.text(answer.token_ids));
            QCOMPARE(answer.state, MessageState::done);
            QCOMPARE(answer.finish_reason, QStringLiteral("length"));
            QCOMPARE(answer.model_name, QStringLiteral("Fake"));
            QCOMPARE(answer.template_id, QStringLiteral("model"));
            QCOMPARE(answer.timings.output_tokens, 300);
            QCOMPARE(answer.timings.prompt_tokens, int(prompt_for(question).size()));
            QCOMPARE(chat->title(), question);
            QVERIFY(statistics_line(answer).contains(QStringLiteral("300 out")));
        }
        QCOMPARE(transcript_a.rowCount(), 2);
        QCOMPARE(transcript_a.data(transcript_a.index(1), TranscriptModel::text_role).toString(),
                 last(a).content);
        QCOMPARE(used_blocks(session), 0);
    }

    // When the engine has the prompt, the rows are on disk.
    void promptIsCommittedBeforeTheEngineSeesIt() {
        QTemporaryDir dir;
        const ProfilePaths paths = ProfilePaths::in(dir.path());
        Session session(paths, fake_factory());
        QVERIFY(start(session));
        QVERIFY(load_model(session));
        session.host()->set_paused(true);
        Chat* chat = session.new_chat();
        QSignalSpy started(session.host(), &HostClient::answer_started);
        QVERIFY(chat->send(QStringLiteral("on disk first")));
        QVERIFY(started.wait(30'000));
        Database db(paths.store().database(), Database::Mode::read_only);
        QCOMPARE(db.value(QStringLiteral("SELECT content FROM messages WHERE role = 'user'")).toString(),
                 QStringLiteral("on disk first"));
        QCOMPARE(db.value(QStringLiteral("SELECT state FROM messages WHERE role = 'assistant'")).toString(),
                 QStringLiteral("streaming"));
    }

    void stopReturnsTheBlocks() {
        QTemporaryDir dir;
        FakeChat fake;
        fake.options = FakeChat::chat_options(20'000, 160'000);  // the answer cannot end by itself meanwhile
        Session session(ProfilePaths::in(dir.path()), fake_factory(fake));
        QVERIFY(start(session));
        QVERIFY(load_model(session));
        session.host()->set_paused(true);
        Chat* chat = session.new_chat();
        chat->set_sampling(exactly(150'000));
        QVERIFY(chat->send(QStringLiteral("a long story")));
        session.host()->step(6);
        QTRY_COMPARE(last(chat).token_ids.size(), std::size_t(6));
        QVERIFY(used_blocks(session) > 0);
        session.host()->set_paused(false);
        chat->stop();
        QTRY_VERIFY(!chat->busy());
        QCOMPARE(last(chat).state, MessageState::stopped);
        QVERIFY(last(chat).token_ids.size() >= 6);
        QCOMPARE(used_blocks(session), 0);
        QCOMPARE(chat->state(), ChatState::idle);
    }

    void regenerateAndEditMakeSiblings() {
        QTemporaryDir dir;
        Session session(ProfilePaths::in(dir.path()), fake_factory());
        QVERIFY(start(session));
        QVERIFY(load_model(session));
        Chat* chat = session.new_chat();
        TranscriptModel transcript(chat);
        const QAbstractItemModelTester tester(&transcript);
        chat->set_sampling(exactly(20));
        QVERIFY(chat->send(QStringLiteral("one")));
        QTRY_VERIFY(!chat->busy());
        const QString first = last(chat).content;
        chat->set_sampling(exactly(30));
        QVERIFY(!chat->regenerate(0));  // a question is no answer
        QVERIFY(chat->regenerate(1));
        QTRY_VERIFY(!chat->busy());
        QCOMPARE(chat->version_count(1), 2);
        QCOMPARE(chat->version_index(1), 1);
        QCOMPARE(last(chat).token_ids.size(), std::size_t(30));
        chat->show_version(1, 0);
        QCOMPARE(last(chat).content, first);
        QCOMPARE(transcript.data(transcript.index(1), TranscriptModel::version_count_role).toInt(), 2);
        QVERIFY(chat->edit(0, QStringLiteral("two")));  // asked again, beside the old one
        QTRY_VERIFY(!chat->busy());
        QCOMPARE(chat->version_count(0), 2);
        QCOMPARE(chat->message(0).content, QStringLiteral("two"));
        QCOMPARE(last(chat).token_ids, fake_answer(prompt_for(QStringLiteral("two")), 30, true));
        QVERIFY(chat->edit(1, QStringLiteral("what it should have said")));
        QCOMPARE(chat->version_count(1), 2);
        QVERIFY(last(chat).token_ids.empty());
        QVERIFY(!chat->busy());
        chat->show_version(0, 0);
        QCOMPARE(chat->message(0).content, QStringLiteral("one"));
        QCOMPARE(last(chat).content, first);  // its own tail, as it was left
        QCOMPARE(chat->tree().size(), 6);     // nothing was overwritten
        QCOMPARE(transcript.rowCount(), 2);
    }

    void continueGoesOnWhereItEnded() {
        QTemporaryDir dir;
        Session session(ProfilePaths::in(dir.path()), fake_factory());
        QVERIFY(start(session));
        QVERIFY(load_model(session));
        Chat* chat = session.new_chat();
        chat->set_sampling(exactly(25));
        QVERIFY(chat->send(QStringLiteral("go")));
        QTRY_VERIFY(!chat->busy());
        QVERIFY(chat->continue_answer());
        QTRY_VERIFY(!chat->busy());
        QCOMPARE(chat->message_count(), 2);
        const auto whole = fake_answer(prompt_for(QStringLiteral("go")), 50, true);
        if (std::count(whole.begin(), whole.begin() + 25, 1) ==
            0)  // the fake may end a turn; that is not sent again
            QCOMPARE(last(chat).token_ids, whole);
        QCOMPARE(last(chat).token_ids.size(), std::size_t(50));
    }

    void restartRestoresChats() {
        QTemporaryDir dir;
        const ProfilePaths paths = ProfilePaths::in(dir.path());
        QString answer, second_answer;
        ChatId id = 0, second = 0;
        {
            Session session(paths, fake_factory());
            QVERIFY(start(session));
            QVERIFY(load_model(session));
            Chat* chat = session.new_chat(QStringLiteral("be a pirate"));
            id = chat->id();
            chat->set_sampling(exactly(40));
            QVERIFY(chat->send(QStringLiteral("remember me")));
            QTRY_VERIFY(!chat->busy());
            QVERIFY(chat->regenerate(1));
            QTRY_VERIFY(!chat->busy());
            chat->show_version(1, 0);
            answer = last(chat).content;
            chat->set_draft(QStringLiteral("unsent"));
            Chat* other = session.new_chat();
            second = other->id();
            other->rename(QStringLiteral("Renamed"));
            session.host()->set_paused(true);
            other->set_sampling(exactly(500));
            QVERIFY(other->send(QStringLiteral("interrupted by quitting")));
            session.host()->step(7);
            QTRY_COMPARE(last(other).token_ids.size(), std::size_t(7));
            second_answer = last(other).content;
            session.shutdown();
        }
        Session session(paths, fake_factory());
        QVERIFY(start(session));
        QCOMPARE(session.chats().size(), 2);
        Chat* chat = session.chat(id);
        QCOMPARE(chat->title(), QStringLiteral("remember me"));
        QCOMPARE(chat->draft(), QStringLiteral("unsent"));
        QCOMPARE(chat->record().system_prompt, QStringLiteral("be a pirate"));
        QCOMPARE(chat->record().sampling, exactly(40));
        QVERIFY(!chat->is_open());  // reading the list loads nothing
        TranscriptModel transcript(chat);
        const QAbstractItemModelTester tester(&transcript);
        chat->open();
        QTRY_VERIFY(chat->is_loaded());
        QCOMPARE(transcript.rowCount(), 2);
        QCOMPARE(last(chat).content, answer);
        QCOMPARE(chat->version_count(1), 2);
        QCOMPARE(chat->version_index(1), 0);
        Chat* other = session.chat(second);
        other->open();
        QTRY_VERIFY(other->is_loaded());
        QCOMPARE(other->title(), QStringLiteral("Renamed"));
        QCOMPARE(last(other).content, second_answer);
        QCOMPARE(last(other).state, MessageState::stopped);
        QVERIFY(load_model(session));
        other->set_sampling(exactly(3));
        QVERIFY(other->continue_answer());
        QTRY_VERIFY(!other->busy());
        QCOMPARE(last(other).token_ids.size(), std::size_t(10));
    }

    // Closing while a prompt is on its way to the disk: it is there at the next start, and nobody speaks of a
    // crash.
    void closingRightAfterSendingIsNoCrash() {
        QTemporaryDir dir;
        const ProfilePaths paths = ProfilePaths::in(dir.path());
        {
            Session session(paths, fake_factory());
            QVERIFY(start(session));
            QVERIFY(load_model(session));
            QVERIFY(session.new_chat()->send(QStringLiteral("just in time")));
            session.shutdown();
        }
        Session session(paths, fake_factory());
        QSignalSpy notices(&session, &Session::notice);
        QVERIFY(start(session));
        QCOMPARE(notices.count(), 0);
        Chat* chat = session.chats().first();
        chat->open();
        QTRY_VERIFY(chat->is_loaded());
        QCOMPARE(chat->message(0).content, QStringLiteral("just in time"));
        QCOMPARE(last(chat).state, MessageState::stopped);
    }

    void killLosesNothingThatWasCommitted() {
        QTemporaryDir dir;
        QProcess child;
        start_child(child, "session_victim", dir.path());
        QByteArray line;
        for (int i = 0; i < 3; ++i) {
            QTRY_VERIFY_WITH_TIMEOUT(child.canReadLine(), 60'000);
            line = child.readLine();
        }
        ::kill(pid_t(child.processId()), SIGKILL);
        QVERIFY(child.waitForFinished(30'000));
        Session session(ProfilePaths::in(dir.path()), fake_factory());
        QSignalSpy notices(&session, &Session::notice);
        QVERIFY(start(session));
        QVERIFY(notices.count() >= 1);
        QCOMPARE(session.chats().size(), 1);
        Chat* chat = session.chats().first();
        chat->open();
        QTRY_VERIFY(chat->is_loaded());
        QCOMPARE(chat->message(0).content, QStringLiteral("kill me"));
        const auto& ids = last(chat).token_ids;
        QVERIFY(int(ids.size()) >= line.trimmed().toInt());
        QCOMPARE(ids, fake_answer(prompt_for(QStringLiteral("kill me")), int(ids.size()), true));
        QCOMPARE(last(chat).content.toStdString(), tokenizer_.text(ids));
        QCOMPARE(last(chat).state, MessageState::stopped);
        QVERIFY(statistics_line(last(chat)).contains(QStringLiteral("unexpectedly")));
    }

    // Room for one and a half: the second says how many blocks it lacks, then goes on by itself.
    void aChatWaitsForBlocksAndThenGoesOn() {
        QTemporaryDir dir;
        FakeChat fake;
        fake.options = FakeChat::chat_options(16, 128);
        fake.options.prefix_caching = false;
        Session session(ProfilePaths::in(dir.path()), fake_factory(fake));
        QVERIFY(start(session));
        QVERIFY(load_model(session));
        session.host()->set_paused(true);
        Chat* first = session.new_chat();
        Chat* second = session.new_chat();
        for (Chat* chat : {first, second})
            chat->set_sampling(exactly(10));
        QVERIFY(first->send(QString(60, QLatin1Char('a'))));
        session.host()->step();
        QTRY_COMPARE(last(first).token_ids.size(), std::size_t(1));
        QVERIFY(second->send(QString(60, QLatin1Char('b'))));
        QTRY_VERIFY(second->context_used() > 0);  // the engine has it
        session.host()->step();
        QTRY_COMPARE(second->state(), ChatState::waiting);
        QVERIFY(second->blocks_missing() > 0);
        QCOMPARE(second->place_in_line(), 1);
        QVERIFY(second->state_text().contains(QString::number(second->blocks_missing())));
        session.host()->set_paused(false);
        QTRY_VERIFY(!first->busy() && !second->busy());
        QCOMPARE(last(second).token_ids, fake_answer(prompt_for(QString(60, QLatin1Char('b'))), 10, true));
    }

    void theEndOfTheContextKeepsTheText() {
        QTemporaryDir dir;
        FakeChat fake;
        fake.options = FakeChat::chat_options(64, 64);
        Session session(ProfilePaths::in(dir.path()), fake_factory(fake));
        QVERIFY(start(session));
        QVERIFY(load_model(session));
        Chat* chat = session.new_chat();
        chat->set_sampling({{QStringLiteral("ignore_eos"), true}});
        QVERIFY(chat->send(QStringLiteral("talk")));
        QTRY_VERIFY(!chat->busy());
        QCOMPARE(last(chat).state, MessageState::context_full);
        QVERIFY(!last(chat).content.isEmpty());
        QCOMPARE(chat->context_used(), 64);
        QCOMPARE(chat->context_limit(), 64);
        QVERIFY(statistics_line(last(chat)).contains(QStringLiteral("context full")));
        QVERIFY(chat->send(QStringLiteral("more")));  // cannot fit: refused with the numbers, nothing lost
        QTRY_VERIFY(!chat->busy());
        QCOMPARE(chat->state(), ChatState::failed);
        QVERIFY2(chat->problem().contains(QStringLiteral("64")), qPrintable(chat->problem()));
        QCOMPARE(chat->message_count(), 4);
    }

    void wrongSamplingIsNamed() {
        QTemporaryDir dir;
        Session session(ProfilePaths::in(dir.path()), fake_factory());
        QVERIFY(start(session));
        QVERIFY(load_model(session));
        Chat* chat = session.new_chat();
        QVERIFY(!sampling_problem({{QStringLiteral("top_p"), 1.5}}).isEmpty());
        chat->set_sampling({{QStringLiteral("top_p"), 1.5}});
        QVERIFY(chat->send(QStringLiteral("hi")));
        QTRY_COMPARE(chat->state(), ChatState::failed);
        QVERIFY2(chat->problem().contains(QStringLiteral("top_p")), qPrintable(chat->problem()));
        chat->set_sampling(exactly(5));
        QVERIFY(chat->retry());
        QTRY_COMPARE(chat->state(), ChatState::idle);
        QCOMPARE(last(chat).token_ids.size(), std::size_t(5));
        QCOMPARE(chat->version_count(1), 2);
    }

    void sendingWithoutAModelSaysWhy() {
        QTemporaryDir dir;
        Session session(ProfilePaths::in(dir.path()), fake_factory({.load_error = "the file is bad"}));
        QVERIFY(start(session));
        Chat* chat = session.new_chat();
        QVERIFY(!chat->send(QStringLiteral("hi")));
        QCOMPARE(chat->send_blocked_reason(), QStringLiteral("No model is loaded."));
        session.host()->load({.path = "/models/bad"});
        QTRY_COMPARE(chat->send_blocked_reason(), QStringLiteral("the file is bad"));
        QCOMPARE(chat->message_count(), 0);
    }

    void trashCanBeUndone() {
        QTemporaryDir dir;
        const ProfilePaths paths = ProfilePaths::in(dir.path());
        Session session(paths, fake_factory());
        QVERIFY(start(session));
        QVERIFY(load_model(session));
        ChatListModel list(&session);
        const QAbstractItemModelTester tester(&list);
        Chat* chat = session.new_chat();
        chat->set_sampling(exactly(5));
        QVERIFY(chat->send(QStringLiteral("keep me")));
        QTRY_VERIFY(!chat->busy());
        QCOMPARE(list.rowCount(), 2);  // a heading and the chat
        session.trash_chat(chat->id());
        QCOMPARE(list.rowCount(), 0);
        QCOMPARE(session.trash().size(), 1);
        session.restore_chat(chat->id());
        QCOMPARE(list.rowCount(), 2);
        session.trash_chat(chat->id());
        session.delete_chat(chat->id());
        QVERIFY(session.trash().isEmpty());
        session.shutdown();
        Session again(paths, fake_factory());
        QVERIFY(start(again));
        QVERIFY(again.chats().isEmpty() && again.trash().isEmpty());
    }

    void listIsFilteredAndShowsStates() {
        QTemporaryDir dir;
        Session session(ProfilePaths::in(dir.path()), fake_factory());
        QVERIFY(start(session));
        QVERIFY(load_model(session));
        ChatListModel list(&session);
        const QAbstractItemModelTester tester(&list);
        for (const QString& title : {QStringLiteral("臺南行程"), QStringLiteral("Regex for logs"),
                                     QStringLiteral("ＲＥＧＥＸ two")}) {
            Chat* chat = session.new_chat();
            chat->rename(title);
        }
        QCOMPARE(list.rowCount(), 4);
        list.set_filter(QStringLiteral("regex"));
        QCOMPARE(list.rowCount(), 3);
        list.set_filter(QStringLiteral("南行"));
        QCOMPARE(list.rowCount(), 2);
        const QModelIndex row = list.index(1);
        QCOMPARE(row.data().toString(), QStringLiteral("臺南行程"));
        QCOMPARE(row.data(ChatListModel::hue_role).toInt(), -1);
        Chat* chat = list.chat_at(row);
        QVERIFY(chat);
        QCOMPARE(list.index_of(chat->id()), row);
        session.style(chat->owner());
        QCOMPARE(row.data(ChatListModel::hue_role).toInt(), int(OwnerHue::sky));
        session.host()->set_paused(true);
        chat->set_sampling(exactly(50));
        QVERIFY(chat->send(QStringLiteral("x")));
        QTRY_VERIFY(list.index_of(chat->id()).data(ChatListModel::busy_role).toBool());
        session.host()->set_paused(false);
        QTRY_COMPARE(list.index_of(chat->id()).data(ChatListModel::state_text_role).toString(),
                     QStringLiteral("idle"));
        QVERIFY(list.index(0).flags() == Qt::NoItemFlags);
    }

    // Two chats with one system prompt: the second finds the first one's blocks.
    void sharedSystemPromptIsShared() {
        QTemporaryDir dir;
        Session session(ProfilePaths::in(dir.path()), fake_factory());
        QVERIFY(start(session));
        QVERIFY(load_model(session));
        session.host()->set_paused(true);
        const QString prompt(64, QLatin1Char('s'));
        Chat* a = session.new_chat(prompt);
        Chat* b = session.new_chat(prompt);
        for (Chat* chat : {a, b})
            chat->set_sampling(exactly(200));
        QVERIFY(a->send(QStringLiteral("x")));
        session.host()->step();
        QTRY_COMPARE(last(a).token_ids.size(), std::size_t(1));
        QVERIFY(b->send(QStringLiteral("y")));
        QTRY_VERIFY(b->context_used() > 0);
        session.host()->step();
        QTRY_COMPARE(last(b).token_ids.size(), std::size_t(1));
        QVERIFY(used_blocks(session) > 0);
        // <|im_start|> system \n and 64 characters are 72 equal tokens before <|im_end|>: nine blocks of 8 at
        // least.
        QVERIFY(session.host()->last_snapshot()->engine.counts.shared >= 9);
        session.stop_all();
        QTRY_VERIFY(session.busy_count() == 0);
    }

    // 300,000 tokens: the transcript is there at once, contents follow in pages.
    void longChatOpensAtOnce() {
        QTemporaryDir dir;
        const ProfilePaths paths = ProfilePaths::in(dir.path());
        {
            Session session(paths, fake_factory());
            QVERIFY(start(session));
            ChatRecord record;
            record.id = session.store().take_chat_id();
            record.created = record.updated = QDateTime::currentDateTimeUtc();
            session.store().save_chat(record);
            QList<MessageRecord> messages;
            for (int i = 0; i < 1200; ++i) {
                MessageRecord m;
                m.id = session.store().take_message_id();
                m.chat = record.id;
                m.parent = i == 0 ? 0 : m.id - 1;
                m.role = i % 2 ? Role::assistant : Role::user;
                m.created = record.created;
                m.content = QString::number(i) + QString(1000, QLatin1Char('x'));
                messages.append(m);
            }
            session.store().add_messages(messages);
        }
        Session session(paths, fake_factory());
        QVERIFY(start(session));
        Chat* chat = session.chats().first();
        TranscriptModel transcript(chat);
        QElapsedTimer timer;
        timer.start();
        chat->open();
        QTRY_VERIFY(chat->is_open());
        const qint64 opened_ms = timer.elapsed();
        QCOMPARE(transcript.rowCount(), 1200);
        QVERIFY(last(chat).loaded);
        chat->ensure_loaded(0, 5);  // a view that jumps to the top
        QTRY_VERIFY(chat->message(0).loaded);
        QVERIFY(transcript.data(transcript.index(0), TranscriptModel::text_role)
                    .toString()
                    .startsWith(QLatin1Char('0')));
        QTRY_VERIFY(chat->is_loaded());
        qInfo("1,200 messages, 1.2 million characters: shown after %lld ms, complete after %lld ms",
              opened_ms, timer.elapsed());
        for (int row = 0; row < 1200; ++row)
            QVERIFY(chat->message(row).content.startsWith(QString::number(row) + QLatin1Char('x')));
    }

    void titlesAreCutAtAWord_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("title");
        QTest::newRow("short") << QStringLiteral("  Hello there \nsecond line")
                               << QStringLiteral("Hello there");
        QTest::newRow("long") << QStringLiteral(
                                     "Why does a paged KV cache waste less memory than a contiguous one?")
                              << QStringLiteral("Why does a paged KV cache waste less…");
        QTest::newRow("one word") << QString(60, QLatin1Char('x'))
                                  << QString(40, QLatin1Char('x')) + QStringLiteral("…");
        QTest::newRow("Chinese") << QString(30, QChar(u'臺'))
                                 << QString(20, QChar(u'臺')) + QStringLiteral("…");
    }
    void titlesAreCutAtAWord() {
        QFETCH(QString, text);
        QFETCH(QString, title);
        QCOMPARE(title_from_text(text), title);
    }
};

RECTO_TEST_CLASS(TestSession);
#include "test_session.moc"
