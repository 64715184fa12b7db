// Beam search against a plain one: texts and scores in a list, no blocks, no engine.
#include "engine/fake_model.h"
#include "engine/fake_tokenizer.h"
// Qt comes after them.
#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

constexpr int vocab = FakeTokenizer::vocab;

struct Found {
    std::vector<std::int32_t> ids;
    double cumulative = 0;
    double score = 0;
    bool by_length = false;
};

std::vector<double> log_softmax(std::span<const std::int32_t> context) {
    const auto row = fake_logits(context, vocab);
    double sum = 0;
    for (float x : row)
        sum += std::exp(double(x));
    std::vector<double> out;
    for (float x : row)
        out.push_back(double(x) - std::log(sum));
    return out;
}

// The rules as vLLM V0's documentation and code state them, written down again: 2 · width candidates a step
// over all beams, EOS and the token limit finish, length = prompt + output without the EOS.
std::vector<Found> plain_search(const std::vector<std::int32_t>& prompt, int width, int max_tokens,
                                double penalty, EarlyStopping early, const std::vector<std::int32_t>& eos) {
    const auto is_eos = [&](std::int32_t t) { return std::ranges::count(eos, t) > 0; };
    const auto score = [&](double sum, std::size_t output, bool ended) {
        return sum / std::pow(double(prompt.size() + output - (ended ? 1 : 0)), penalty);
    };
    const auto better = [](const Found& a, const Found& b) { return a.score > b.score; };
    std::vector<Found> beams{{}}, finished;
    while (true) {
        std::vector<Found> candidates;
        for (const Found& beam : beams) {
            auto context = prompt;
            context.insert(context.end(), beam.ids.begin(), beam.ids.end());
            const auto logprobs = log_softmax(context);
            for (std::int32_t t = 0; t < vocab; ++t) {
                Found f = beam;
                f.ids.push_back(t);
                f.cumulative += logprobs[std::size_t(t)];
                candidates.push_back(std::move(f));
            }
        }
        std::ranges::stable_sort(candidates,
                                 [](const Found& a, const Found& b) { return a.cumulative > b.cumulative; });
        candidates.resize(std::size_t(2 * width));
        std::vector<Found> running;
        for (Found& f : candidates) {
            const bool ended = is_eos(f.ids.back());
            f.by_length = !ended && int(f.ids.size()) >= max_tokens;
            f.score = score(f.cumulative, f.ids.size(), ended);
            (ended || f.by_length ? finished : running).push_back(f);
        }
        std::ranges::stable_sort(finished, better);
        if (int(finished.size()) > width) finished.resize(std::size_t(width));
        if (running.empty()) return finished;
        if (int(finished.size()) == width) {
            const double worst = finished.back().score;
            const std::size_t longest = early == EarlyStopping::never && penalty > 0 ? std::size_t(max_tokens)
                                                                                     : running[0].ids.size();
            if (early == EarlyStopping::yes || worst >= score(running[0].cumulative, longest, false))
                return finished;
        }
        if (int(running.size()) > width) running.resize(std::size_t(width));
        beams = running;
    }
}

Request beam_request(std::uint64_t seed, int prompt_tokens, int width, int n, int max_tokens) {
    Request r = greedy_request(fake_prompt(seed, prompt_tokens, vocab), max_tokens);
    r.sampling.use_beam_search = true;
    r.sampling.beam_width = width;
    r.sampling.n = n;
    return r;
}

void compare(const Harness::Answer& got, const Request& r, const std::vector<std::int32_t>& eos) {
    const auto expected = plain_search(r.prompt, r.sampling.width(), *r.sampling.max_tokens,
                                       r.sampling.length_penalty, r.sampling.early_stopping, eos);
    QVERIFY(got.finished);
    QCOMPARE(int(got.outputs.size()), r.sampling.n);
    for (const auto& [i, output] : got.outputs) {
        const Found& f = expected.at(std::size_t(i));
        QVERIFY2(output.ids == f.ids, qPrintable(QString::number(i)));
        QVERIFY(std::abs(output.cumulative_logprob - f.cumulative) < 1e-4);
        QCOMPARE(output.finish, f.by_length ? FinishReason::length : FinishReason::stop);
    }
}

}  // namespace

class TestEngineBeams : public QObject {
    Q_OBJECT
  private slots:
    void equalsAPlainSearch_data() {
        QTest::addColumn<double>("penalty");
        QTest::addColumn<int>("early");
        for (const double penalty : {1.0, 0.0, -1.0, 2.5})
            for (const EarlyStopping early : {EarlyStopping::no, EarlyStopping::yes, EarlyStopping::never})
                QTest::addRow("penalty %g, early stopping %d", penalty, int(early)) << penalty << int(early);
    }
    void equalsAPlainSearch() {
        QFETCH(double, penalty);
        QFETCH(int, early);
        const std::vector<std::int32_t> eos{0, 1, 7};
        Harness h(vocab, small_options(200), nullptr, eos);
        std::map<RequestId, Request> sent;
        for (std::uint64_t i = 0; i < 12; ++i) {
            Request r = beam_request(i, 3 + int(i), 2 + int(i % 4), 1 + int(i % 2), 12);
            r.sampling.length_penalty = penalty;
            r.sampling.early_stopping = EarlyStopping(early);
            sent[h.engine->submit(r)] = r;
        }
        h.run();
        int ended = 0;
        for (const auto& [id, r] : sent) {
            compare(h.answers.at(id), r, eos);
            if (QTest::currentTestFailed()) return;
            ended += h.answers.at(id).outputs.at(0).finish == FinishReason::stop;
        }
        QVERIFY(ended > 2);
        QCOMPARE(h.engine->snapshot().counts.used, 0);
    }

    // Pools that hold less than the beams need: they wait for each other, are preempted and swapped.
    void poolsTooSmallDoNotChangeIt_data() {
        QTest::addColumn<int>("blocks");
        QTest::addColumn<int>("swap");
        QTest::addColumn<int>("chunk");
        QTest::addColumn<bool>("caching");
        QTest::newRow("holds one beam") << 7 << 0 << 0 << true;
        QTest::newRow("holds one beam, no cache") << 7 << 0 << 0 << false;
        QTest::newRow("holds one beam, chunks of 3") << 7 << 0 << 3 << true;
        QTest::newRow("holds one beam, swap") << 7 << 100 << 0 << true;
        QTest::newRow("holds two beams, little swap") << 12 << 4 << 0 << false;
        QTest::newRow("holds most, swap") << 20 << 100 << 5 << true;
    }
    void poolsTooSmallDoNotChangeIt() {
        QFETCH(int, blocks);
        QFETCH(int, swap);
        QFETCH(int, chunk);
        QFETCH(bool, caching);
        const std::vector<std::int32_t> eos{0};
        EngineOptions o = small_options(blocks);
        o.swap_space_bytes = std::uint64_t(swap) * 16;
        o.fixed_chunk_tokens = chunk;
        o.prefix_caching = caching;
        Harness h(vocab, o, nullptr, eos);
        std::map<RequestId, Request> sent;
        for (std::uint64_t i = 0; i < 8; ++i) {
            Request r = beam_request(50 + i, 5 + int(i), 2 + int(i % 4), 2, 15);
            sent[h.engine->submit(r)] = r;
        }
        std::map<RequestId, std::vector<std::int32_t>> greedy;
        for (std::uint64_t i = 0; i < 4; ++i) {
            const auto p = fake_prompt(90 + i, 6, vocab);
            Request r = greedy_request(p, 12);
            r.sampling.ignore_eos = true;
            greedy[h.engine->submit(r)] = p;
        }
        h.run();
        for (const auto& [id, r] : sent) {
            compare(h.answers.at(id), r, eos);
            if (QTest::currentTestFailed()) return;
        }
        for (const auto& [id, p] : greedy)
            QVERIFY(h.only(id).ids == expected_greedy(p, 12, vocab));
        QVERIFY(h.engine->snapshot().preemptions > 0);
        QCOMPARE(h.engine->snapshot().swaps > 0, swap > 0);
        QCOMPARE(h.engine->snapshot().counts.used, 0);
        QCOMPARE(h.engine->snapshot().swap_used, 0);
    }

    // The prompt's blocks are shared; the last one, partly filled, is copied by all but one.
    void beamsShareTheirBlocks() {
        Harness h(vocab, small_options(64));
        h.engine->submit(beam_request(3, 38, 4, 1, 10));
        h.step();  // 10 blocks, and four beams
        QCOMPARE(h.engine->snapshot().counts.used, 10);
        QCOMPARE(h.engine->snapshot().counts.shared, 10);
        QCOMPARE(h.engine->snapshot().running, 4);
        h.step();
        QCOMPARE(h.model->copies, 3);
        QCOMPARE(h.model->rows_computed, std::int64_t(38 + 4));
        h.run();
        QCOMPARE(h.engine->snapshot().counts.used, 0);
    }

    void textStopsAndLogprobsAreTheBeams() {
        const FakeTokenizer tokenizer;
        Harness h(vocab, small_options(100), &tokenizer);
        Request r = beam_request(5, 9, 3, 3, 10);
        r.sampling.logprobs = 2;
        const RequestId id = h.engine->submit(r);
        h.run();
        for (const auto& [i, o] : h.answers.at(id).outputs) {
            QCOMPARE(o.text, decode(tokenizer, o.ids));
            QCOMPARE(o.logprobs.size(), o.ids.size());
            double sum = 0;
            for (std::size_t k = 0; k < o.ids.size(); ++k) {
                QCOMPARE(o.logprobs[k][0].token, o.ids[k]);
                sum += double(o.logprobs[k][0].logprob);
            }
            QVERIFY(std::abs(sum - o.cumulative_logprob) < 1e-4);
        }
        const RequestMetrics& m = h.answers.at(id).metrics;
        QCOMPARE(m.output_tokens, 30);
        QCOMPARE(m.output0_tokens, 10);
        QCOMPARE(m.token_times.size(), std::size_t(10));

        // The best answer's fourth and fifth character as a stop string: whatever is found ends before one,
        // or has none.
        const std::string text = h.only(id).text;
        r.sampling.stop = {text.substr(3, 2)};
        const RequestId stopped = h.engine->submit(r);
        h.run();
        int ended = 0;
        for (const auto& [i, o] : h.answers.at(stopped).outputs) {
            QVERIFY(o.text.find(r.sampling.stop[0]) == std::string::npos);
            if (o.finish == FinishReason::stop) {
                ++ended;
                QCOMPARE(o.stop_string, r.sampling.stop[0]);
            }
        }
        QVERIFY(ended > 0);
    }

    void cancelReportsEveryOutputAndFreesAll() {
        EngineOptions o = small_options(9);
        o.swap_space_bytes = 1000;
        Harness h(vocab, o);
        for (int steps = 0; steps < 12; ++steps) {
            const RequestId id = h.engine->submit(beam_request(6, 9, 4, 3, 20));
            for (int i = 0; i < steps; ++i)
                h.step();
            QVERIFY(h.engine->cancel(id));
            QCOMPARE(h.engine->snapshot().counts.used, 0);
            QCOMPARE(h.engine->snapshot().swap_used, 0);
            h.run();
            QCOMPARE(h.answers.at(id).outputs.size(), std::size_t(3));
            for (const auto& [i, output] : h.answers.at(id).outputs)
                QCOMPARE(output.finish, FinishReason::abort);
        }
    }

    void aFailedRowEndsTheSearchAlone() {
        Harness h(vocab, small_options(64));
        h.model->poison_token = 7;
        Request bad = beam_request(1, 5, 3, 2, 5);
        bad.prompt.push_back(7);
        const RequestId a = h.engine->submit(bad), b = h.engine->submit(beam_request(2, 5, 3, 2, 3));
        h.run();
        for (const auto& [i, o] : h.answers.at(a).outputs)
            QCOMPARE(o.finish, FinishReason::error);
        QVERIFY(h.answers.at(a).finished && h.answers.at(b).finished);
        QCOMPARE(h.engine->snapshot().counts.used, 0);
    }

    void moreBeamsThanPlacesAreRefused() {
        Harness h(vocab, small_options(64));
        try {
            h.engine->submit(beam_request(2, 5, 9, 2, 3));
            QFAIL("accepted");
        } catch (const Error& e) {
            QCOMPARE(e.what(),
                     "a beam search of width 9 needs as many places in a step, and max_num_seqs is 8: "
                     "choose fewer beams or raise max_num_seqs");
        }
    }
};

RECTO_TEST_CLASS(TestEngineBeams);
#include "test_engine_beams.moc"
