#include <QSignalSpy>
#include <QTest>

#include "support/fake_chat.h"
#include "support/registry.h"
#include "ui/host/host_client.h"

using namespace recto;
using namespace recto::test;
using namespace recto::ui;

class TestHostClient : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void signalsAreFewerThanTokens() {
        HostClient client(0, fake_factory());
        client.load({.path = "/models/fake"});
        QTRY_VERIFY(client.ready());
        int tokens = 0, updates = 0;
        bool finished = false;
        connect(&client, &HostClient::answer_updated, this,
                [&](Ticket, std::shared_ptr<const AnswerUpdate> u) {
                    tokens += int(u->token_ids.size());
                    ++updates;
                    finished = finished || u->finished;
                });
        AnswerRequest request;
        request.messages = {{"user", "hello", {}}};
        request.sampling.temperature = 0;
        request.sampling.max_tokens = 900;
        request.sampling.ignore_eos = true;
        client.answer(request);
        QTRY_VERIFY(finished);
        QCOMPARE(tokens, 900);
        // The fake makes thousands of tokens a second, a drain comes every 16 ms.
        QVERIFY2(updates < 450, qPrintable(QString::number(updates)));
    }

    void timerRestsWhenNothingHappens() {
        HostClient client(0, fake_factory());
        client.load({.path = "/models/fake"});
        QTRY_VERIFY(client.ready());
        QTRY_VERIFY(!client.draining());
        QSignalSpy spy(&client, &HostClient::snapshot_ready);
        client.request_snapshot();  // wakes it again
        QTRY_COMPARE(spy.count(), 1);
        QTRY_VERIFY(!client.draining());
    }

    void shutdownDeliversTheLastWords() {
        HostClient client(0, fake_factory());
        client.load({.path = "/models/fake"});
        QTRY_VERIFY(client.ready());
        client.set_paused(true);
        AnswerRequest request;
        request.messages = {{"user", "hello", {}}};
        request.sampling.max_tokens = 500;
        request.sampling.ignore_eos = true;
        std::shared_ptr<const AnswerUpdate> last;
        connect(&client, &HostClient::answer_updated, this,
                [&](Ticket, std::shared_ptr<const AnswerUpdate> u) { last = u; });
        client.answer(request);
        client.step(4);
        QTRY_VERIFY(last);
        client.shutdown();
        QVERIFY(last->finished);
        QCOMPARE(last->finish, FinishReason::abort);
        QVERIFY(client.state() == HostState::closed);
    }

    void errorsArriveAsASentence() {
        HostClient client(0, fake_factory({.load_error = "the file is bad"}));
        client.load({.path = "/models/fake"});
        QTRY_COMPARE(client.error(), QStringLiteral("the file is bad"));
        QVERIFY(client.state() == HostState::failed);
    }
};

RECTO_TEST_CLASS(TestHostClient);
#include "test_host_client.moc"
