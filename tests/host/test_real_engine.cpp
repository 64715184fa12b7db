// One smoke test of the real factory: the starter model, loaded, asked twice.
#include <QSignalSpy>
#include <QTest>

#include "support/model_data.h"
#include "support/registry.h"
#include "ui/host/host_client.h"

using namespace recto;
using namespace recto::ui;

class TestRealEngine : public QObject {
    Q_OBJECT

    struct Answer {
        std::string text;
        std::vector<std::int32_t> ids;
        bool finished = false;
        RequestMetrics metrics;
        std::string error;
    };
    static Answer ask(HostClient& client, AnswerRequest request) {
        Answer answer;
        QObject context;
        connect(&client, &HostClient::answer_updated, &context,
                [&](Ticket, std::shared_ptr<const AnswerUpdate> u) {
                    answer.text += u->text;
                    answer.ids.insert(answer.ids.end(), u->token_ids.begin(), u->token_ids.end());
                    answer.finished = u->finished;
                    answer.metrics = u->metrics;
                    answer.error = u->error;
                });
        client.answer(std::move(request));
        [&] { QTRY_VERIFY_WITH_TIMEOUT(answer.finished, 120'000); }();
        return answer;
    }

  private Q_SLOTS:
    void starterModelLoadsAndAnswers() {
        HostClient client(0);
        ModelRequest model;
        model.path = test::starter_path();
        model.device = "cpu";
        model.engine.kv_blocks = 128;
        client.estimate(model);
        QTRY_VERIFY_WITH_TIMEOUT(client.last_estimate(), 60'000);
        QVERIFY2(client.last_estimate()->error.empty(), client.last_estimate()->error.c_str());
        QVERIFY(client.last_estimate()->memory.fits);
        QSignalSpy progress(&client, &HostClient::load_progress);
        client.load(model);
        QTRY_VERIFY_WITH_TIMEOUT(client.ready() || client.state() == HostState::failed, 120'000);
        QVERIFY2(client.ready(), qPrintable(client.error()));
        QVERIFY(progress.count() > 0);
        const LoadedModelInfo& info = *client.model();
        QCOMPARE(info.kv_blocks, 128);
        QCOMPARE(info.max_model_len, 128 * 16);  // the pool is smaller than the model's 8,192
        QCOMPARE(info.template_id, std::string("model"));
        QCOMPARE(info.family_template, std::string("chatml"));
        QCOMPARE(info.fingerprint.size(), std::size_t(16));
        QVERIFY(!info.device.kernels.empty());
        double stages = 0;
        for (const LoadStage& stage : info.load_stages)
            stages += stage.seconds;
        QVERIFY(std::abs(stages - info.load_seconds) <= 0.01 * info.load_seconds + 1e-3);

        AnswerRequest request;
        request.messages = {{"user", "What is the capital of France?", {}}};
        request.template_id = "chatml";  // the model's own puts a system prompt before it
        request.sampling.temperature = 0;
        request.sampling.max_tokens = 40;
        const Answer first = ask(client, request);
        QVERIFY2(first.error.empty(), first.error.c_str());
        QCOMPARE(first.text,
                 std::string("The capital of France is Paris."));  // llama.cpp, greedy, the same ids
        request.messages.push_back({"assistant", first.text, first.ids});
        request.messages.push_back({"user", "And of Italy?", {}});
        const Answer second = ask(client, request);
        // The whole past was computed but for the answer's last token: p + n − 1 tokens, in whole blocks
        // of 16.
        const int past = first.metrics.prompt_tokens + int(first.ids.size()) - 1;
        QVERIFY2(second.metrics.cached_tokens >= past / 16 * 16,
                 qPrintable(QString::number(second.metrics.cached_tokens)));
    }

    void aFileThatIsNoModelIsASentence() {
        HostClient client(0);
        client.load({.path = RECTO_SOURCE_DIR "/CMakeLists.txt", .device = "cpu"});
        QTRY_VERIFY_WITH_TIMEOUT(client.state() == HostState::failed, 60'000);
        QVERIFY2(client.error().contains(QStringLiteral("CMakeLists.txt")), qPrintable(client.error()));
    }
};

RECTO_TEST_CLASS(TestRealEngine);
#include "test_real_engine.moc"
