// Thousands of random requests over a pool that is always too small: every one is answered exactly as when
// run alone, and every block is free at the end.
#include <random>

#include "engine/fake_model.h"
#include "engine/fake_tokenizer.h"
// Qt comes after them.
#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

constexpr int vocab = FakeTokenizer::vocab;
const std::vector<std::int32_t> eos{FakeTokenizer::eos_id, FakeTokenizer::turn_end_id};

class Random {
  public:
    explicit Random(unsigned seed) : engine_(seed) {}
    int below(int n) { return int(engine_() % unsigned(n)); }
    bool one_in(int n) { return below(n) == 0; }

  private:
    std::mt19937 engine_;
};

void make_beam_search(Random& random, SamplingParams& s) {
    s.use_beam_search = true;
    s.temperature = 0;
    s.top_k = 0;
    s.top_p = 1;
    s.min_p = 0;
    s.best_of = 2 + random.below(3);
    s.n = 1 + random.below(*s.best_of);
    s.length_penalty = random.one_in(2) ? 1.0 : random.below(5) - 2;
    s.early_stopping = EarlyStopping(random.below(3));
}

// Of a row, unless RECTO_SOAK_REQUESTS asks for another number.
int requests_of_row(int usual) {
    bool given = false;
    const int wanted = qEnvironmentVariableIntValue("RECTO_SOAK_REQUESTS", &given);
    return given ? wanted : usual;
}

// `plain`: nothing that keeps a device from drawing its tokens.
Request random_request(Random& random, const std::vector<std::vector<std::int32_t>>& texts, bool plain) {
    Request r;
    // Begins like an earlier text as often as not, up to any point of it.
    const auto& base = texts[std::size_t(random.below(int(texts.size())))];
    const int shared = random.below(int(std::min<std::size_t>(base.size(), 30)) + 1);
    r.prompt.assign(base.begin(), base.begin() + shared);
    for (std::int32_t t : fake_prompt(std::uint64_t(random.below(1 << 20)), 1 + random.below(14), vocab))
        r.prompt.push_back(t);
    r.owner = std::uint64_t(1 + random.below(5));
    r.priority = random.below(3) - 1;
    SamplingParams& s = r.sampling;
    s.max_tokens = 1 + random.below(24);
    s.temperature = random.one_in(2) ? 0.0 : 0.8;
    s.seed = random.below(1 << 20);
    if (!plain && !s.greedy() && random.one_in(3)) s.n = 2 + random.below(3);
    if (!plain && !s.greedy() && random.one_in(12)) s.best_of = s.n + 1 + random.below(2);
    if (random.one_in(4)) s.top_k = 1 + random.below(10);
    if (random.one_in(4)) s.top_p = 0.6;
    if (random.one_in(6)) s.min_p = 0.1;
    if (random.one_in(8)) s.ignore_eos = true;
    if (random.one_in(5)) s.stop_token_ids = {random.below(vocab)};
    if (random.one_in(12)) s.max_tokens.reset();
    if (random.one_in(3))
        s.stop = {std::string(1, char('a' + random.below(26))) + std::string(1, char('a' + random.below(26))),
                  "END of", "bc"};
    if (plain) return r;
    if (random.one_in(6)) s.repetition_penalty = 1.4;
    if (random.one_in(6)) s.presence_penalty = 0.9;
    if (random.one_in(5)) s.min_tokens = 1 + random.below(s.max_tokens.value_or(24));
    if (random.one_in(8)) s.logprobs = random.below(3);
    if (random.one_in(10) && !s.best_of) s.prompt_logprobs = 1;
    if (random.one_in(10)) s.bad_words = {"ab", "EN"};
    if (random.one_in(8)) make_beam_search(random, s);
    return r;
}

bool is_prefix(const Harness::Output& part, const Harness::Output& whole) {
    return part.ids.size() <= whole.ids.size() &&
           std::equal(part.ids.begin(), part.ids.end(), whole.ids.begin());
}

// `asynchronous`: a device that draws itself, with steps enqueued ahead.
void add_rows(bool asynchronous) {
    const auto row = [asynchronous](const char* name) -> QTestData& {
        return QTest::addRow("%s%s", name, asynchronous ? ", overlapped" : "");
    };
    row("blocks of 4") << 4 << 20 << 0 << 8 << 2000 << 0 << asynchronous;
    row("blocks of 4, chunks of 1") << 4 << 20 << 1 << 8 << 700 << 0 << asynchronous;
    row("blocks of 4, chunks of 7") << 4 << 17 << 7 << 8 << 1000 << 0 << asynchronous;
    row("blocks of 1") << 1 << 70 << 5 << 6 << 700 << 0 << asynchronous;
    row("blocks of 16") << 16 << 6 << 0 << 16 << 1000 << 0 << asynchronous;
    row("one place") << 4 << 20 << 3 << 1 << 300 << 0 << asynchronous;
    row("blocks of 4, swap of 500") << 4 << 20 << 0 << 8 << 2000 << 500 << asynchronous;
    row("blocks of 4, swap of 9, chunks of 7") << 4 << 17 << 7 << 8 << 1000 << 9 << asynchronous;
    row("blocks of 1, swap of 100") << 1 << 70 << 5 << 6 << 700 << 100 << asynchronous;
    row("blocks of 16, swap of 20") << 16 << 6 << 0 << 16 << 1000 << 20 << asynchronous;
}

}  // namespace

class TestEngineSoak : public QObject {
    Q_OBJECT
  private slots:
    void everyRequestIsAnsweredAsIfAlone_data() {
        QTest::addColumn<int>("blockSize");
        QTest::addColumn<int>("blocks");
        QTest::addColumn<int>("chunk");
        QTest::addColumn<int>("maxSequences");
        QTest::addColumn<int>("requests");
        QTest::addColumn<int>("swap");
        QTest::addColumn<bool>("asynchronous");
        for (const bool asynchronous : {false, true})
            add_rows(asynchronous);
    }
    void everyRequestIsAnsweredAsIfAlone() {
        QFETCH(int, blockSize);
        QFETCH(int, blocks);
        QFETCH(int, chunk);
        QFETCH(int, maxSequences);
        QFETCH(int, requests);
        QFETCH(int, swap);
        QFETCH(bool, asynchronous);
        requests = requests_of_row(requests);
        const FakeTokenizer tokenizer;
        EngineOptions options = small_options(blocks, blockSize);
        options.max_num_seqs = maxSequences;
        options.max_num_batched_tokens = 40;
        options.fixed_chunk_tokens = chunk;
        options.swap_space_bytes = std::uint64_t(swap * blockSize) * sizeof(std::int32_t);
        Harness h(vocab, options, &tokenizer, eos, asynchronous);
        EngineOptions roomy = small_options(400, blockSize);
        roomy.max_num_seqs = std::max(8, maxSequences);
        roomy.max_num_batched_tokens = 64;
        roomy.prefix_caching = false;
        Harness reference(vocab, roomy, &tokenizer, eos);

        Random random(unsigned(blocks * 31 + chunk));
        std::vector<std::vector<std::int32_t>> texts;
        for (std::uint64_t i = 0; i < 4; ++i)
            texts.push_back(fake_prompt(9000 + i, 40, vocab));
        std::map<RequestId, Request> sent;
        std::set<RequestId> cancelled;
        int refused = 0;
        while (int(sent.size()) < requests || h.engine->has_work()) {
            if (int(sent.size()) < requests && random.one_in(2)) {
                // By turns of 50 requests, so that there are steps which hold plain ones only.
                const bool plain = asynchronous && sent.size() / 50 % 2 == 0;
                const Request r = random_request(random, texts, plain);
                try {
                    sent[h.engine->submit(r)] = r;
                } catch (const Error&) {
                    ++refused;
                }
            }
            if (!sent.empty() && random.one_in(40)) {
                const RequestId id = RequestId(1 + random.below(int(sent.size())));
                if (h.engine->cancel(id)) cancelled.insert(id);
            }
            for (const RequestEvent& e : h.step()) {
                if (!e.request_finished || !random.one_in(3)) continue;
                auto turn = sent.at(e.request).prompt;  // what a next turn would begin with
                const auto& ids = h.answers.at(e.request).outputs.begin()->second.ids;
                turn.insert(turn.end(), ids.begin(), ids.end());
                texts[std::size_t(random.below(4))] = turn;
            }
            const BlockPool::Counts c = h.engine->snapshot().counts;
            QCOMPARE(c.used + c.cached + c.free, blocks);
        }

        QCOMPARE(h.model->overlapped > requests / 20, asynchronous);
        QCOMPARE(h.engine->snapshot().counts.used, 0);
        QVERIFY(h.engine->snapshot().prefix_hits > 0);
        QVERIFY(maxSequences == 1 || h.engine->snapshot().preemptions > std::uint64_t(requests) / 20);
        QVERIFY(cancelled.size() > 3);
        QCOMPARE(h.engine->snapshot().swap_used, 0);
        QCOMPARE(h.engine->snapshot().swaps > 0, swap > 0);
        QCOMPARE(h.engine->snapshot().blocks_in > 0, swap > 0);
        for (const auto& [id, r] : sent) {
            const RequestId single = reference.engine->submit(r);
            reference.run();
            const Harness::Answer& expected = reference.answers.at(single);
            const Harness::Answer& got = h.answers.at(id);
            QVERIFY(got.finished);
            QCOMPARE(got.outputs.size(), std::size_t(r.sampling.n));
            for (const auto& [index, output] : got.outputs) {
                QVERIFY2(output.error.empty(), output.error.c_str());
                if (cancelled.contains(id)) {
                    QVERIFY(r.sampling.best_of || r.sampling.use_beam_search ||
                            is_prefix(output, expected.outputs.at(index)));
                    continue;
                }
                QVERIFY(output == expected.outputs.at(index));
                QCOMPARE(output.logprobs.size(), expected.outputs.at(index).logprobs.size());
            }
            if (cancelled.contains(id)) continue;
            QCOMPARE(got.prompt_logprobs.size(), expected.prompt_logprobs.size());
            if (r.sampling.greedy() && !r.sampling.use_beam_search && r.sampling.repetition_penalty == 1.0 &&
                r.sampling.presence_penalty == 0 && r.sampling.bad_words.empty() &&
                r.sampling.min_tokens == 0) {
                const auto& ids = got.outputs.at(0).ids;
                QVERIFY(ids == expected_greedy(r.prompt, int(ids.size()), vocab));
            }
        }
    }
};

RECTO_TEST_CLASS(TestEngineSoak);
#include "test_engine_soak.moc"
