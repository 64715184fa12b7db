#include "engine/bench/run.h"

#include <algorithm>
#include <limits>
#include <map>

#include "kernels/error.h"

namespace recto {
namespace {

constexpr double least_steady_share = 0.5;

double median_of(const RunResult& r, const std::function<double(const RequestMetrics&)>& value) {
    std::vector<double> values;
    for (const RequestMetrics& m : r.requests)
        values.push_back(value(m));
    return quantile(values, 0.5);
}

struct Span {
    double first_request = std::numeric_limits<double>::infinity();
    double last_first_token = 0, first_end = std::numeric_limits<double>::infinity(), end = 0;
};

Span span_of(const std::vector<RequestMetrics>& requests) {
    Span s;
    for (const RequestMetrics& m : requests) {
        s.first_request = std::min(s.first_request, m.t_request);
        s.last_first_token = std::max(s.last_first_token, m.t_first);
        s.first_end = std::min(s.first_end, m.t_last);
        s.end = std::max(s.end, m.t_last);
    }
    return s;
}

std::string why_void(const std::vector<RequestMetrics>& requests, int output_tokens) {
    for (const RequestMetrics& m : requests) {
        if (m.preemptions > 0) return "a sequence was preempted: the pool is too small";
        if (m.cached_tokens > 0)
            return std::to_string(m.cached_tokens) + " tokens of a prompt came from the prefix cache";
        if (m.output_tokens != output_tokens)
            return "a sequence gave " + std::to_string(m.output_tokens) + " of " +
                   std::to_string(output_tokens) + " tokens";
    }
    return {};
}

// All sequences of one step commit at one time, so that equal times are one step.
void keep_times(RunResult& r) {
    const double begin = span_of(r.requests).first_request;
    std::vector<double>& steps = r.run.step_s;
    for (const RequestMetrics& m : r.requests)
        steps.insert(steps.end(), m.token_times.begin(), m.token_times.end());
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    for (const RequestMetrics& m : r.requests) {
        BenchRun::Request kept;
        kept.t_request = m.t_request - begin;
        kept.t_start = m.t_start - begin;
        for (const double t : m.token_times)
            kept.steps.push_back(int(std::lower_bound(steps.begin(), steps.end(), t) - steps.begin()));
        r.run.requests.push_back(std::move(kept));
    }
    for (double& t : steps)
        t -= begin;
}

double steady_share(const RunResult& r) {
    int first = 0;
    int last = std::numeric_limits<int>::max();
    for (const BenchRun::Request& q : r.run.requests) {
        if (q.steps.empty()) return 0;
        first = std::max(first, q.steps.front());
        last = std::min(last, q.steps.back());
    }
    return r.run.step_s.empty() ? 0 : double(std::max(last - first, 0)) / double(r.run.step_s.size());
}

}  // namespace

RunResult run_once(Engine& engine, const Prompts& prompts, int output_tokens,
                   const std::function<bool()>& cancelled) {
    std::map<RequestId, std::size_t> index;
    RunResult result;
    result.requests.resize(prompts.size());
    result.outputs.resize(prompts.size());
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        Request request;
        request.prompt = prompts[i];
        request.sampling.temperature = 0;
        request.sampling.ignore_eos = true;
        request.sampling.max_tokens = output_tokens;
        request.owner = i + 1;
        index[engine.submit(std::move(request))] = i;
    }
    while (engine.has_work()) {
        if (cancelled && cancelled()) {
            for (const auto& [id, i] : index)
                engine.cancel(id);
            throw Error(ErrorKind::cancelled, "the benchmark was stopped");
        }
        for (RequestEvent& event : engine.step()) {
            const std::size_t i = index.at(event.request);
            result.outputs[i].insert(result.outputs[i].end(), event.token_ids.begin(), event.token_ids.end());
            if (!event.request_finished) continue;
            if (event.finish == FinishReason::error) throw Error(ErrorKind::runtime, event.error);
            result.requests[i] = std::move(event.metrics);
        }
    }
    result.run.void_reason = why_void(result.requests, output_tokens);
    keep_times(result);
    result.run.steady_share = steady_share(result);
    return result;
}

double total_tok_s(const RunResult& r) {
    const Span s = span_of(r.requests);
    double tokens = 0;
    for (const RequestMetrics& m : r.requests)
        tokens += m.output_tokens;
    return tokens / (s.end - s.first_request);
}

double steady_tok_s(const RunResult& r) {
    const Span s = span_of(r.requests);
    if (s.first_end <= s.last_first_token) return 0;
    double tokens = 0;
    for (const RequestMetrics& m : r.requests)
        for (const double t : m.token_times)
            if (t > s.last_first_token && t <= s.first_end) ++tokens;
    return tokens / (s.first_end - s.last_first_token);
}

void record(BenchRow& row, const RunResult& r, std::vector<double>& gaps,
            const std::vector<std::int64_t>& characters, const Tokenizer* tokenizer) {
    row.ttft_s.samples.push_back(median_of(r, [](const auto& m) { return m.ttft_s(); }));
    row.prefill_tok_s.samples.push_back(median_of(r, [](const auto& m) { return m.prefill_tok_s(); }));
    if (row.output_tokens > 1) {  // one token has no time to the next
        row.decode_tok_s.samples.push_back(median_of(r, [](const auto& m) { return m.decode_tok_s(); }));
        row.tpot_s.samples.push_back(median_of(r, [](const auto& m) { return m.tpot_s(); }));
    }
    row.total_tok_s.samples.push_back(total_tok_s(r));
    if (r.run.steady_share >= least_steady_share)
        row.total_decode_tok_s.samples.push_back(steady_tok_s(r));
    else
        ++row.steady_voided;
    std::vector<double> run_gaps;
    for (const RequestMetrics& m : r.requests)
        for (std::size_t i = 1; i < m.token_times.size(); ++i)
            run_gaps.push_back(m.token_times[i] - m.token_times[i - 1]);
    if (!run_gaps.empty()) row.itl_s.samples.push_back(quantile(run_gaps, 0.5));
    gaps.insert(gaps.end(), run_gaps.begin(), run_gaps.end());
    row.itl_gaps = gaps.size();
    row.itl_p95_s = quantile(gaps, 0.95);
    row.itl_p99_s = quantile(gaps, 0.99);
    row.itl_max_s = quantile(gaps, 1.0);
    if (r.run.energy_j)
        row.energy_j_token.samples.push_back(*r.run.energy_j / double(row.sequences) /
                                             double(row.output_tokens));
    if (characters.empty() || tokenizer == nullptr) return;
    std::vector<double> prefill;
    std::vector<double> decoded;
    for (std::size_t i = 0; i < r.requests.size(); ++i) {
        const RequestMetrics& m = r.requests[i];
        if (m.t_first > m.t_start) prefill.push_back(double(characters[i]) / (m.t_first - m.t_start));
        if (m.t_last <= m.t_first || r.outputs[i].empty()) continue;
        const std::span<const std::int32_t> later(r.outputs[i].begin() + 1, r.outputs[i].end());
        decoded.push_back(double(count_characters(decode(*tokenizer, later))) / (m.t_last - m.t_first));
    }
    row.prefill_char_s.samples.push_back(quantile(prefill, 0.5));
    row.decode_char_s.samples.push_back(quantile(decoded, 0.5));
}

}  // namespace recto
