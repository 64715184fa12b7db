// EngineHost without Qt's event loop: the test is the reader of the mailbox. ThreadSanitizer sees all of it.
#include <QTest>
#include <map>
#include <semaphore>

#include "support/fake_chat.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;
using namespace recto::ui;

namespace {

// Reads a host's mailbox on the test's thread, sleeping until it is woken.
class Reader {
  public:
    Reader(int number, EngineFactory factory)
        : host(
              number, [this] { wake_.release(); }, std::move(factory)) {}

    // Until `done`, which looks at what has arrived.
    template <class Done>
    void wait(Done done) {
        for (;;) {
            take();
            if (done()) return;
            if (host.mailbox().arm()) wake_.acquire();
        }
    }
    void take() {
        Mailbox::Batch batch = host.mailbox().take();
        if (batch.snapshot) snapshot = batch.snapshot;
        if (batch.pool_events) {
            const auto& events = batch.pool_events->events;
            pool_events.insert(pool_events.end(), events.begin(), events.end());
        }
        for (HostEvent& event : batch.events)
            std::visit([this](auto& e) { keep(e); }, event);
    }
    void load(const char* path = "/models/fake") {
        host.load({.path = path});
        wait([this] { return status.state == HostState::ready || status.state == HostState::failed; });
    }
    AnswerRequest question(const std::string& text, int max_tokens) {
        AnswerRequest request;
        request.ticket = host.next_ticket();
        request.messages = {{"user", text, {}}};
        request.sampling.temperature = 0;
        request.sampling.max_tokens = max_tokens;
        request.sampling.ignore_eos = true;
        request.owner = request.ticket;
        return request;
    }
    Ticket ask(const std::string& text, int max_tokens) {
        const AnswerRequest request = question(text, max_tokens);
        host.answer(request);
        return request.ticket;
    }
    bool finished(Ticket ticket) { return answers[ticket].finished; }
    std::shared_ptr<const PoolSnapshot> fresh_snapshot() {
        snapshot.reset();
        host.request_snapshot();
        wait([this] { return snapshot != nullptr; });
        return snapshot;
    }

    struct Answer {
        std::vector<std::int32_t> prompt, ids;
        std::string text, error;
        FinishReason finish = FinishReason::none;
        bool finished = false, context_full = false, refused = false;
        RequestMetrics metrics;
    };
    HostStatus status;
    std::vector<HostState> states;
    std::vector<LoadProgress> progress;
    std::map<Ticket, Answer> answers;
    std::map<Ticket, TokenCount> counts;
    std::vector<EstimateReport> estimates;
    std::vector<BlockDescription> descriptions;
    std::vector<RenderedPrompt> prompts;
    std::vector<PoolEvent> pool_events;
    std::shared_ptr<const PoolSnapshot> snapshot;
    bool paused = false;

  private:
    void keep(HostStateChange& e) {
        status = e.status;
        states.push_back(e.status.state);
    }
    void keep(LoadProgress& e) { progress.push_back(e); }
    void keep(EstimateReport& e) { estimates.push_back(e); }
    void keep(AnswerStarted& e) { answers[e.ticket].prompt = *e.prompt_ids; }
    void keep(AnswerUpdate& e) {
        Answer& a = answers[e.ticket];
        QVERIFY(!a.finished);
        a.text += e.text;
        a.ids.insert(a.ids.end(), e.token_ids.begin(), e.token_ids.end());
        a.finished = e.finished;
        a.finish = e.finish;
        a.error = e.error;
        a.context_full = e.context_full;
        a.refused = e.refused;
        a.metrics = e.metrics;
    }
    void keep(TokenCount& e) { counts[e.ticket] = e; }
    void keep(RenderedPrompt& e) { prompts.push_back(e); }
    void keep(BlockDescription& e) { descriptions.push_back(e); }
    void keep(PausedChange& e) { paused = e.paused; }
    std::counting_semaphore<> wake_{0};

  public:
    EngineHost host;  // last: its thread wakes what stands above
};

}  // namespace

class TestEngineHost : public QObject {
    Q_OBJECT
    CharacterTokenizer tokenizer_;

  private Q_SLOTS:
    void loadsAndSaysWhat() {
        Reader r(0, fake_factory());
        QVERIFY(r.host.status().state == HostState::empty);
        r.load();
        QVERIFY(r.status.state == HostState::ready);
        QCOMPARE(r.status.model->name, std::string("Fake"));
        QCOMPARE(r.status.model->kv_blocks, 256);
        QVERIFY(r.host.status().state == HostState::ready);
        QVERIFY(!r.progress.empty());
        r.host.eject();
        r.wait([&] { return r.status.state == HostState::empty; });
    }

    void failedLoadIsOneSentence() {
        Reader r(0, fake_factory({.load_error = "/models/fake: expected a GGUF file, found a picture."}));
        r.load();
        QVERIFY(r.status.state == HostState::failed);
        QCOMPARE(r.status.error, std::string("/models/fake: expected a GGUF file, found a picture."));
        const Ticket ticket = r.ask("hi", 5);
        r.wait([&] { return r.finished(ticket); });
        QVERIFY(r.answers[ticket].refused);
        QCOMPARE(r.answers[ticket].error, std::string("No model is loaded: load one to go on."));
    }

    // The estimate reads the headers: a bad file is found before anything is given up for it.
    void badFileLeavesTheModelThatIsThere() {
        EngineFactory factory = fake_factory();
        const auto estimate = factory.estimate;
        factory.estimate = [estimate](const ModelRequest& request) {
            if (request.path == "/models/bad") throw Error(ErrorKind::input, "/models/bad: found a picture.");
            return estimate(request);
        };
        Reader r(0, factory);
        r.load();
        r.host.load({.path = "/models/bad"});
        r.wait([&] { return !r.status.error.empty(); });
        QVERIFY(r.status.state == HostState::ready);
        QCOMPARE(r.status.error, std::string("/models/bad: found a picture."));
        QCOMPARE(r.status.model->path.string(), std::string("/models/fake"));
        const Ticket ticket = r.ask("still there", 5);
        r.wait([&] { return r.finished(ticket); });
        QCOMPARE(r.answers[ticket].ids.size(), std::size_t(5));
    }

    void loadCanBeCancelled() {
        Reader r(0, fake_factory({.wait_for_cancel = true}));
        r.host.load({.path = "/models/fake"});
        r.wait([&] { return !r.progress.empty(); });  // it is inside the factory
        r.host.cancel_load();
        r.wait([&] { return r.status.state == HostState::empty; });
        QCOMPARE(r.states, (std::vector<HostState>{HostState::loading, HostState::empty}));
    }

    void estimateComesBeforeTheLoad() {
        Reader r(0, fake_factory());
        r.load();
        const Ticket ticket = r.host.estimate({.path = "/models/next"});
        r.wait([&] { return !r.estimates.empty(); });
        QCOMPARE(r.estimates[0].ticket, ticket);
        QCOMPARE(r.estimates[0].name, std::string("next"));
        QCOMPARE(r.estimates[0].returned_bytes, std::uint64_t(1000));  // the weights that would leave
    }

    void answersAsTheModelDoes() {
        Reader r(0, fake_factory());
        r.load();
        const Ticket a = r.ask("one", 40), b = r.ask("two", 60);
        r.wait([&] { return r.finished(a) && r.finished(b); });
        for (const auto& [ticket, n] : {std::pair{a, 40}, {b, 60}}) {
            const Reader::Answer& answer = r.answers[ticket];
            QCOMPARE(answer.ids, fake_answer(answer.prompt, n, true));
            QCOMPARE(answer.text, tokenizer_.text(answer.ids));
            QCOMPARE(answer.finish, FinishReason::length);
            QVERIFY(!answer.context_full);
        }
        QCOMPARE(r.fresh_snapshot()->engine.counts.used, 0);
    }

    void twoHostsShareNothing() {
        Reader first(0, fake_factory()), second(1, fake_factory());
        first.host.load({.path = "/models/a"});
        second.host.load({.path = "/models/b"});
        first.wait([&] { return first.status.state == HostState::ready; });
        second.wait([&] { return second.status.state == HostState::ready; });
        const Ticket a = first.ask("same", 80), b = second.ask("same", 80);
        QVERIFY(a != b);
        first.wait([&] { return first.finished(a); });
        second.wait([&] { return second.finished(b); });
        QCOMPARE(first.answers[a].text, second.answers[b].text);
        first.host.eject();
        first.wait([&] { return first.status.state == HostState::empty; });
        const Ticket c = second.ask("still here", 5);
        second.wait([&] { return second.finished(c); });
        QCOMPARE(second.answers[c].ids.size(), std::size_t(5));
        QCOMPARE(first.snapshot, nullptr);
        QCOMPARE(second.fresh_snapshot()->host, 1);
    }

    void stepsByHandWhilePaused() {
        Reader r(0, fake_factory());
        r.load();
        r.host.set_paused(true);
        r.wait([&] { return r.paused; });
        const Ticket ticket = r.ask("hi", 50);
        r.host.step(3);  // the first computes the prompt and brings a token
        r.wait([&] { return r.answers[ticket].ids.size() == 3; });
        QCOMPARE(r.fresh_snapshot()->engine.step, std::uint64_t(3));
        QVERIFY(r.fresh_snapshot()->paused);
        r.host.step();
        r.wait([&] { return r.answers[ticket].ids.size() == 4; });
        r.host.set_paused(false);
        r.wait([&] { return r.finished(ticket); });
        QCOMPARE(r.answers[ticket].ids, fake_answer(r.answers[ticket].prompt, 50, true));
    }

    void cancelReturnsTheBlocks_data() {
        QTest::addColumn<bool>("paused");
        QTest::newRow("running") << false;
        QTest::newRow("paused") << true;
    }
    void cancelReturnsTheBlocks() {
        QFETCH(bool, paused);
        // So long an answer cannot end by itself while the test looks away.
        Reader r(0, fake_factory({.options = FakeChat::chat_options(20'000, 160'000)}));
        r.load();
        r.host.set_paused(true);
        const Ticket ticket = r.ask("hello there", 150'000);
        r.host.step(5);
        r.wait([&] { return r.answers[ticket].ids.size() == 5; });
        QVERIFY(r.fresh_snapshot()->engine.counts.used > 0);
        if (!paused) r.host.set_paused(false);
        r.host.cancel(ticket);
        r.wait([&] { return r.finished(ticket); });
        QCOMPARE(r.answers[ticket].finish, FinishReason::abort);
        QVERIFY(r.answers[ticket].ids.size() >= 5);
        QCOMPARE(r.fresh_snapshot()->engine.counts.used, 0);
    }

    void theEndOfTheContextIsNamed() {
        Reader r(0, fake_factory({.options = FakeChat::chat_options(64, 48)}));
        r.load();
        const AnswerRequest request = [&] {
            AnswerRequest q = r.question("hi", 1);
            q.sampling.max_tokens.reset();
            return q;
        }();
        r.host.answer(request);
        r.wait([&] { return r.finished(request.ticket); });
        const Reader::Answer& answer = r.answers[request.ticket];
        QVERIFY(answer.context_full);
        QCOMPARE(answer.prompt.size() + answer.ids.size(), std::size_t(48));
    }

    void whatNeverFitsIsRefusedWithNumbers() {
        Reader r(0, fake_factory({.options = FakeChat::chat_options(64, 48)}));
        r.load();
        const Ticket ticket = r.ask(std::string(100, 'x'), 5);
        r.wait([&] { return r.finished(ticket); });
        QVERIFY(r.answers[ticket].refused);
        const QString sentence = QString::fromStdString(r.answers[ticket].error);
        QVERIFY2(sentence.contains(QStringLiteral("48")), qPrintable(sentence));
    }

    void theNextTurnFindsItsPastInTheCache() {
        Reader r(0, fake_factory());
        r.load();
        const Ticket first = r.ask("tell me", 64);
        r.wait([&] { return r.finished(first); });
        const Reader::Answer& before = r.answers[first];
        AnswerRequest next = r.question("tell me", 4);
        next.messages.push_back({"assistant", before.text, before.ids});
        next.messages.push_back({"user", "and then", {}});
        r.host.answer(next);
        r.wait([&] { return r.finished(next.ticket); });
        // Everything but the last generated token was computed: p + n − 1 tokens, in whole blocks of 8.
        const int computed = int(before.prompt.size()) + 64 - 1;
        // The answer's own control tokens (if the fake said any) end the splice; then only the prompt is
        // found.
        const bool clean =
            std::count_if(before.ids.begin(), before.ids.end(), [](int id) { return id < 2; }) == 0;
        if (clean) QCOMPARE(r.answers[next.ticket].metrics.cached_tokens, computed / 8 * 8);
        QVERIFY(r.answers[next.ticket].metrics.cached_tokens >= int(before.prompt.size()) / 8 * 8);
    }

    void brokenTemplateIsNamedAndAnotherCanBeChosen() {
        Reader r(0, fake_factory({.chat_template = "{% for %}"}));
        r.load();
        QVERIFY(r.status.state == HostState::ready);
        QVERIFY(!r.status.model->template_error.empty());
        const Ticket ticket = r.ask("hi", 5);
        r.wait([&] { return r.finished(ticket); });
        QVERIFY(r.answers[ticket].error.starts_with("The model's chat template cannot be used: "));
        QCOMPARE(r.status.model->family_template, std::string("chatml"));  // the vocabulary has <|im_start|>
        QCOMPARE(r.status.model->known_templates.front(), std::string("chatml"));
        AnswerRequest known = r.question("hi", 5);
        known.template_id = "chatml";
        r.host.answer(known);
        r.wait([&] { return r.finished(known.ticket); });
        QCOMPARE(r.answers[known.ticket].ids.size(), std::size_t(5));
        known.ticket = r.host.next_ticket();
        known.template_id = "of my own";
        r.host.answer(known);
        r.wait([&] { return r.finished(known.ticket); });
        QCOMPARE(r.answers[known.ticket].error,
                 std::string("There is no chat template named \"of my own\"."));
    }

    void countsTokens() {
        Reader r(0, fake_factory());
        r.load();
        const Ticket text = r.host.count_tokens("abcde");
        const Ticket prompt = r.host.count_prompt(AnswerRequest{}, "abcde");
        r.wait([&] { return r.counts.count(prompt) == 1; });
        QCOMPARE(r.counts[text].tokens, 5);
        // <|im_start|> user \n abcde <|im_end|> \n <|im_start|> assistant \n
        QCOMPARE(r.counts[prompt].prompt_tokens, 1 + 5 + 5 + 1 + 1 + 1 + 10);
    }

    void describesABlock() {
        Reader r(0, fake_factory());
        r.load();
        r.host.set_paused(true);
        const Ticket ticket = r.ask("hello", 50);
        r.host.step();
        r.wait([&] { return r.answers[ticket].ids.size() == 1; });
        r.host.describe_block(0);
        r.wait([&] { return !r.descriptions.empty(); });
        const BlockDescription& d = r.descriptions[0];
        QCOMPARE(d.detail.tokens.size(), std::size_t(8));
        QCOMPARE(d.token_texts[0], std::string("<|im_start|>"));
        QCOMPARE(d.token_texts[1], std::string("u"));
        QCOMPARE(d.detail.places.size(), std::size_t(1));
        QCOMPARE(d.detail.places[0].owner, OwnerId(ticket));
    }

    void poolEventsComeWhenWatched() {
        Reader r(0, fake_factory());
        r.load();
        r.host.watch_pool_events(true);
        const Ticket ticket = r.ask("hello", 30);
        r.wait([&] { return r.finished(ticket); });
        const auto count = [&](PoolEventKind kind) {
            return std::count_if(r.pool_events.begin(), r.pool_events.end(),
                                 [kind](const PoolEvent& e) { return e.kind == kind; });
        };
        r.wait([&] { return count(PoolEventKind::free) > 0; });
        QVERIFY(count(PoolEventKind::alloc) > 0);
        QCOMPARE(count(PoolEventKind::alloc), count(PoolEventKind::free));
    }

    void shutdownKeepsTheTextSoFar() {
        Reader r(0, fake_factory());
        r.load();
        r.host.set_paused(true);
        const Ticket ticket = r.ask("hello", 500);
        r.host.step(10);
        r.wait([&] { return r.answers[ticket].ids.size() == 10; });
        r.host.shutdown();
        r.take();
        QVERIFY(r.finished(ticket));
        QCOMPARE(r.answers[ticket].finish, FinishReason::abort);
        QVERIFY(r.status.state == HostState::closed);
        const Ticket late = r.ask("anyone there", 5);  // not accepted: nothing may come
        r.host.shutdown();
        r.take();
        QVERIFY(r.answers.count(late) == 0);
    }
};

RECTO_TEST_CLASS(TestEngineHost);
#include "test_engine_host.moc"
