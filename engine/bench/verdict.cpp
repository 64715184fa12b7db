#include "engine/bench/verdict.h"

#include <algorithm>
#include <cmath>

#include "engine/bench/compare_report.h"

namespace recto {
namespace {

bool same_shape(const BenchRow& a, const BenchRow& b) {
    return a.sequences == b.sequences && a.depth == b.depth && a.prompt_tokens == b.prompt_tokens &&
           a.output_tokens == b.output_tokens;
}

}  // namespace

std::optional<Verdict> judge(const TimedFigure& a, const TimedFigure& b, bool higher_is_better) {
    Verdict v;
    v.a = a.median();
    v.b = b.median();
    if (a.samples.empty() || b.samples.empty() || v.a == 0) return std::nullopt;
    v.runs_a = int(a.samples.size());
    v.runs_b = int(b.samples.size());
    v.ratio = v.b / v.a;
    v.floor = std::max(0.01, self_spread(a.samples));
    v.p = rank_test_p(a.samples, b.samples);
    if (std::min(v.runs_a, v.runs_b) < fewest_runs) {
        v.word = "too few runs";
        return v;
    }
    const bool above = std::abs(v.ratio - 1) > v.floor;
    v.word = "within noise";
    if (above && !ranges_overlap(a.samples, b.samples))
        v.word = "clear";
    else if (above && v.p < 0.05)
        v.word = "likely";
    if (v.word != "within noise") v.better = (v.ratio > 1) == higher_is_better ? 'B' : 'A';
    return v;
}

std::vector<Verdict> judge_rows(const std::vector<BenchRow>& rows, bool load_comparable) {
    std::vector<Verdict> verdicts;
    const auto add = [&](std::optional<Verdict> v, const char* figure, const BenchRow* row) {
        if (!v) return;
        v->figure = figure;
        if (row) {
            v->sequences = row->sequences;
            v->prompt_tokens = row->prompt_tokens;
            v->output_tokens = row->output_tokens;
            v->depth = row->depth;
        }
        verdicts.push_back(*v);
    };
    bool loads_judged = !load_comparable;
    for (const BenchRow& a : rows) {
        if (a.side != 'A') continue;
        for (const BenchRow& b : rows) {
            if (b.side != 'B' || !same_shape(a, b)) continue;
            if (!loads_judged) add(judge(a.load_s, b.load_s, false), "load_s", nullptr);
            loads_judged = true;
            for (const ReportColumn& c : report_columns())
                add(judge(a.*c.figure, b.*c.figure, c.higher_is_better), c.name, &a);
        }
    }
    return verdicts;
}

}  // namespace recto
