#include "kernels/draw_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/exp.h"
#include "kernels/philox.h"
#include "kernels/synthetic.h"

namespace recto {
namespace {

RowDraw how(double temperature, int top_k, double top_p, float min_p) {
    RowDraw d;
    d.kind = DrawKind::random;
    d.inverse_temperature = 1.0F / float(temperature);
    d.top_k = top_k;
    d.top_p = top_p;
    d.min_p = min_p;
    return d;
}

RowDraw greedy() {
    RowDraw d;
    d.kind = DrawKind::greedy;
    return d;
}

}  // namespace

std::vector<DrawCase> draw_cases() {
    using enum LogitShape;
    return {
        {"greedy 32000", 32000, 32000, natural, greedy()},
        {"greedy, ties, ids below 49152 of 49280", 49280, 49152, tied, greedy()},
        {"greedy 262208", 262208, 262208, natural, greedy(), 1, 0, 3},
        {"greedy, a broken row", 32000, 32000, natural, greedy(), 1, 0, 4, 2},
        {"not drawn", 1024, 1024, natural, RowDraw{}},
        {"random, 7 ids", 7, 7, natural, how(1, 0, 1, 0)},
        {"random 32000", 32000, 32000, natural, how(1, 0, 1, 0)},
        {"random 262208 at temperature 1.5", 262208, 262208, natural, how(1.5, 0, 1, 0), 1, 0, 5},
        {"random at temperature 0.01", 32000, 32000, natural, how(0.01, 0, 1, 0)},
        {"random, flat", 32001, 32000, flat, how(1, 0, 1, 0)},
        {"random, falling", 4096, 4096, falling, how(1, 0, 1, 0)},
        {"random, a broken row", 32000, 32000, natural, how(0.8, 0, 0.9, 0), 1, 0, 4, 1},
        {"top_p 0.9", 32000, 32000, natural, how(1, 0, 0.9, 0)},
        {"top_p 0.3, ties", 32000, 31999, tied, how(1, 0, 0.3, 0)},
        {"top_p 0.5, flat", 32000, 32000, flat, how(1, 0, 0.5, 0)},
        {"top_p 0.999, falling", 4096, 4096, falling, how(2, 0, 0.999, 0)},
        {"top_p 0.95 of 151936 at temperature 0.7", 151936, 151936, natural, how(0.7, 0, 0.95, 0), 1, 0, 5},
        {"top_p next to nothing", 32000, 32000, natural, how(1, 0, 1e-9, 0)},
        {"top_k 40", 32000, 32000, natural, how(1, 40, 1, 0)},
        {"top_k 5, ties", 32000, 32000, tied, how(2, 5, 1, 0)},
        {"top_k 1, flat", 32000, 32000, flat, how(1, 1, 1, 0)},
        {"top_k 20000, falling", 32000, 32000, falling, how(1, 20000, 1, 0)},
        {"min_p 0.1", 32000, 32000, natural, how(1, 0, 1, 0.1F)},
        {"min_p 1", 32000, 32000, tied, how(1, 0, 1, 1.0F)},
        {"top_k 100, top_p 0.8, min_p 0.01", 128256, 128256, natural, how(1.2, 100, 0.8, 0.01F), 1, 0, 7},
        {"top_k 3, top_p 0.5, ties", 1000, 1000, tied, how(1, 3, 0.5, 0)},
        {"scaled and capped, top_p 0.9", 32000, 32000, natural, how(1, 0, 0.9, 0), 0.5F, 30.0F},
    };
}

std::vector<float> draw_logits(const DrawCase& c) {
    const std::size_t n = std::size_t(c.rows) * std::size_t(c.vocab);
    std::vector<float> x(n, 0.0F);
    if (c.shape == LogitShape::natural || c.shape == LogitShape::tied)
        for (std::uint64_t part = 0; part < 6; ++part) {
            const std::vector<float> uniform = random_floats(n, 3.0F, 100 + part);
            for (std::size_t i = 0; i < n; ++i)
                x[i] += uniform[i];
        }
    for (int r = 0; r < c.rows; ++r) {
        float* row = x.data() + std::ptrdiff_t(r) * c.vocab;
        for (int i = 0; i < c.vocab; ++i) {
            if (c.shape == LogitShape::natural && i % 1009 == r % 1009) row[i] += 6.0F;
            if (c.shape == LogitShape::tied) row[i] = std::round(row[i] * 4) / 4;
            if (c.shape == LogitShape::falling) row[i] = float(-i) / 16;
            if (i >= c.valid) row[i] = 1e6F;
        }
        if (r == c.broken_row)
            row[c.valid / 3] = r % 2 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                          : -std::numeric_limits<float>::infinity();
    }
    return x;
}

RowDraw draw_of(const DrawCase& c, int row) {
    RowDraw d = c.draw;
    d.seed = 0x9E3779B97F4A7C15ULL * std::uint64_t(row + 1);
    d.output_index = std::uint32_t(row * 37);
    return d;
}

std::vector<std::int32_t> expected_draws(const DrawCase& c) {
    const std::vector<float> logits = draw_logits(c);
    std::vector<std::int32_t> ids;
    for (int r = 0; r < c.rows; ++r)
        ids.push_back(reference::draw(logits.data() + std::ptrdiff_t(r) * c.vocab, c.valid,
                                      {c.valid, c.logits_scale, c.softcap}, draw_of(c, r)));
    return ids;
}

std::vector<std::int32_t> run_draws(Backend& backend, const DrawCase& c) {
    const std::vector<float> host = draw_logits(c);
    const auto memory = backend.allocate(host.size() * sizeof(float));
    backend.upload(memory->data(), host.data(), host.size() * sizeof(float));
    BatchLimits limits;
    limits.max_rows = limits.max_sequences = limits.max_outputs = c.rows;
    limits.max_blocks = 1;
    const auto batch = backend.make_batch(limits);
    StepBatch step;
    step.max_blocks = 1;
    for (int r = 0; r < c.rows; ++r) {
        for (auto* v : {&step.positions, &step.token_ids})
            v->push_back(0);
        for (auto* v :
             {&step.row_sequence, &step.slots, &step.query_start, &step.block_tables, &step.logit_rows})
            v->push_back(r);
        step.context_tokens.push_back(1);
        step.draws.push_back(draw_of(c, r));
    }
    step.query_start.push_back(c.rows);
    backend.upload_batch(*batch, step);
    const Tensor logits{memory->data(), DType::f32, c.rows, c.vocab, c.vocab};
    backend.draw(*batch, {c.valid, c.logits_scale, c.softcap}, logits);
    backend.fetch_drawn(*batch);
    const auto ids = backend.drawn(*batch, 0);
    return {ids.begin(), ids.end()};
}

namespace reference {

std::int32_t draw(const float* logits, int valid, const DrawArgs& args, const RowDraw& how) {
    std::vector<float> x(logits, logits + valid);
    if (how.kind == DrawKind::none || !std::ranges::all_of(x, [](float v) { return std::isfinite(v); }))
        return -1;
    for (float& v : x) {
        v *= args.logits_scale;
        if (args.softcap > 0) v = args.softcap * std::tanh(v / args.softcap);
    }
    if (how.kind == DrawKind::greedy) return std::int32_t(std::max_element(logits, logits + valid) - logits);

    const float largest = *std::ranges::max_element(x);
    std::vector<float> weight;
    for (float v : x)
        weight.push_back(exp_negative((v - largest) * how.inverse_temperature));
    std::vector<std::int32_t> order(x.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(), [&](std::int32_t i) { return weight[std::size_t(i)]; });
    const auto at = [&](std::size_t rank) { return weight[std::size_t(order[rank])]; };

    std::size_t kept = order.size();
    while (at(kept - 1) < how.min_p)
        --kept;
    if (how.top_k > 0 && std::size_t(how.top_k) < kept) {
        std::size_t k = std::size_t(how.top_k);
        while (k < kept && at(k) == at(k - 1))
            ++k;
        kept = k;
    }
    if (how.top_p < 1) {
        double total = 0;
        for (std::size_t i = kept; i-- > 0;)
            total += double(at(i));
        const double target = how.top_p * total * (1 - 1e-6);  // the margin of survivors.cpp
        double before = 0;
        std::size_t i = 0;
        while (i < kept && (i == 0 || before < target || at(i) == at(i - 1))) {
            // Equal weights share their fate: what came before counts without them.
            std::size_t end = i;
            while (end < kept && at(end) == at(i))
                before += double(at(end++));
            i = end;
        }
        kept = i;
    }
    std::int32_t best = -1;
    double best_score = 0;
    for (std::size_t i = 0; i < kept; ++i) {
        const std::int32_t id = order[i];
        const double score = double(at(i)) / -std::log(token_uniform(how.seed, how.output_index, id));
        if (score < best_score || (score == best_score && id > best)) continue;
        best_score = score;
        best = id;
    }
    return best;
}

}  // namespace reference

}  // namespace recto
