#include "engine/bench/compare_report.h"

#include <cstdio>
#include <sstream>

#include "engine/bench/verdict.h"

namespace recto {
namespace {

using Json = nlohmann::ordered_json;

// A figure without samples was void in every run: its numbers are null, never 0.
Json figure(const TimedFigure& f) {
    if (f.samples.empty())
        return {{"median", nullptr},
                {"iqr", nullptr},
                {"min", nullptr},
                {"max", nullptr},
                {"samples", f.samples}};
    return {
        {"median", f.median()}, {"iqr", f.iqr()}, {"min", f.min()}, {"max", f.max()}, {"samples", f.samples}};
}

Json steps_json(const std::vector<int>& steps) {
    // One token a step from the first to the last is the rule: two numbers say it.
    const bool plain = !steps.empty() && steps.back() - steps.front() + 1 == int(steps.size());
    if (plain) return {{"first", steps.front()}, {"count", steps.size()}};
    return {{"list", steps}};
}

Json run_json(const BenchRun& run) {
    Json requests = Json::array();
    for (const BenchRun::Request& r : run.requests) {
        Json request = {{"t_request", r.t_request}, {"t_start", r.t_start}};
        request["steps"] = steps_json(r.steps);
        requests.push_back(std::move(request));
    }
    Json json = {{"place", run.place},
                 {"started_s", run.started_s},
                 {"warmups", run.warmups},
                 {"void", run.void_reason.empty() ? Json() : Json(run.void_reason)},
                 {"steady_share", run.steady_share}};
    const auto add = [&json](const char* name, const std::optional<double>& value) {
        if (value) json[name] = *value;
    };
    add("clock_mhz", run.clock_mhz);
    add("memory_clock_mhz", run.memory_clock_mhz);
    add("temperature_c", run.temperature_c);
    add("power_w", run.power_w);
    add("energy_j", run.energy_j);
    add("other_load", run.other_load);
    if (!run.held_back.empty()) json["held_back"] = run.held_back;
    json["step_s"] = run.step_s;
    json["requests"] = std::move(requests);
    return json;
}

double mean_steady_share(const BenchRow& row) {
    double sum = 0;
    for (const BenchRun& run : row.runs)
        sum += run.steady_share;
    return row.runs.empty() ? 0 : sum / double(row.runs.size());
}

Json row_json(const BenchRow& row) {
    Json json = {{"side", std::string(1, row.side)},   {"model", row.model},
                 {"sequences", row.sequences},         {"prompt_tokens", row.prompt_tokens},
                 {"output_tokens", row.output_tokens}, {"depth", row.depth},
                 {"load_s", figure(row.load_s)},       {"weight_bytes", row.weight_bytes},
                 {"kv_tokens", row.kv_tokens},         {"kv_pool_tokens", row.kv_pool_tokens},
                 {"peak_bytes", row.peak_bytes}};
    for (const ReportColumn& c : report_columns()) {
        const TimedFigure& f = row.*c.figure;
        if (!c.always && f.samples.empty()) continue;
        json[c.name] = figure(f);
    }
    json["itl_s"]["p95"] = row.itl_p95_s;
    json["itl_s"]["p99"] = row.itl_p99_s;
    json["itl_s"]["pooled_max"] = row.itl_max_s;
    json["itl_s"]["gaps"] = row.itl_gaps;
    json["input_tokens_mean"] = row.input_tokens_mean;
    json["steady_share"] = mean_steady_share(row);
    json["warmups"] = row.warmups;
    json["voided"] = row.voided;
    json["steady_voided"] = row.steady_voided;
    json["throttled"] = row.throttled;
    json["runs"] = Json::array();
    for (const BenchRun& run : row.runs)
        json["runs"].push_back(run_json(run));
    return json;
}

Json verdict_json(const Verdict& v) {
    return {{"figure", v.figure},
            {"sequences", v.sequences},
            {"prompt_tokens", v.prompt_tokens},
            {"output_tokens", v.output_tokens},
            {"depth", v.depth},
            {"a", v.a},
            {"b", v.b},
            {"ratio", v.ratio},
            {"floor", v.floor},
            {"p", v.p},
            {"verdict", v.word},
            {"better", v.better == ' ' ? Json() : Json(std::string(1, v.better))},
            {"runs_a", v.runs_a},
            {"runs_b", v.runs_b}};
}

std::string formatted(const char* format, double value) {
    char text[40];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string csv_text(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text)
        quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
}

// No number where every run was void.
std::string csv_number(const TimedFigure& f, double value) {
    return f.samples.empty() ? "" : formatted("%.9g", value);
}

}  // namespace

const char* const formula_letters =
    "p: the prompt's tokens; c: those of them that the prefix cache held; n: output tokens; t_req: when the "
    "request came; t_start: when its first step began; t_i: when the step of its i-th output token was "
    "committed; times in seconds; Σ, max and min: over all sequences of a run";
static_assert(fewest_runs == 5, "the sentence below says so");
const char* const verdict_letters =
    "p: of the exact rank test, two-sided; floor: the larger of 1 % and what A's own runs differ by; clear: "
    "the ranges of the runs do not overlap, and |B ÷ A − 1| > floor; likely: p < 0.05, and |B ÷ A − 1| > "
    "floor; too few runs: fewer than 5 a side";

const std::vector<ReportColumn>& report_columns() {
    static const std::vector<ReportColumn> table = {
        {"ttft_s", "t_1 − t_req", "%.4g", &BenchRow::ttft_s, false, true},
        {"prefill_tok_s", "(p − c) ÷ (t_1 − t_start)", "%.1f", &BenchRow::prefill_tok_s, true, true},
        {"decode_tok_s", "(n − 1) ÷ (t_n − t_1), one sequence", "%.2f", &BenchRow::decode_tok_s, true, true},
        {"tpot_s", "(t_n − t_1) ÷ (n − 1)", "%.4g", &BenchRow::tpot_s, false, true},
        {"itl_s", "t_{i+1} − t_i, median", "%.4g", &BenchRow::itl_s, false, true},
        {"total_tok_s", "Σn ÷ (max t_n − min t_req)", "%.1f", &BenchRow::total_tok_s, true, true},
        {"total_decode_tok_s", "tokens between the last t_1 and the first t_n ÷ that span", "%.1f",
         &BenchRow::total_decode_tok_s, true, true},
        {"prefill_char_s", "characters of the prompt ÷ (t_1 − t_start)", "%.1f", &BenchRow::prefill_char_s,
         true, false},
        {"decode_char_s", "characters behind the first token ÷ (t_n − t_1)", "%.1f", &BenchRow::decode_char_s,
         true, false},
        {"energy_j_token", "the board's energy ÷ Σn", "%.4g", &BenchRow::energy_j_token, false, false},
    };
    return table;
}

Json report_json(const CompareReport& r) {
    Json rows = Json::array();
    for (const BenchRow& row : r.rows)
        rows.push_back(row_json(row));
    Json verdicts = Json::array();
    for (const Verdict& v : r.verdicts)
        verdicts.push_back(verdict_json(v));
    Json json = {{"header", r.header}, {"rows", rows}, {"verdicts", verdicts}};
    if (r.first_differences.empty()) return json;
    json["first_differences"] = Json::array();
    for (const FirstDifference& d : r.first_differences)
        json["first_differences"].push_back({{"sequences", d.sequences},
                                             {"depth", d.depth},
                                             {"first", d.first},
                                             {"median", d.median},
                                             {"identical", d.identical}});
    return json;
}

std::string report_csv(const CompareReport& r) {
    std::ostringstream out;
    out << "side,model,sequences,prompt_tokens,output_tokens,depth,load_s,weight_bytes,kv_tokens,peak_bytes";
    for (const ReportColumn& c : report_columns())
        out << ',' << c.name << ',' << c.name << "_iqr";
    out << '\n';
    for (const BenchRow& row : r.rows) {
        out << row.side << ',' << csv_text(row.model) << ',' << row.sequences << ',' << row.prompt_tokens
            << ',' << row.output_tokens << ',' << row.depth << ','
            << csv_number(row.load_s, row.load_s.median()) << ',' << row.weight_bytes << ',' << row.kv_tokens
            << ',' << row.peak_bytes;
        for (const ReportColumn& c : report_columns()) {
            const TimedFigure& f = row.*c.figure;
            out << ',' << csv_number(f, f.median()) << ',' << csv_number(f, f.iqr());
        }
        out << '\n';
    }
    return out.str();
}

}  // namespace recto
