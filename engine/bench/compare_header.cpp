#include "engine/bench/compare_header.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/bench/compare_report.h"
#include "engine/bench/machine.h"
#include "engine/bench/row_run.h"
#include "engine/bench/verdict.h"
#include "engine/build_info.h"

namespace recto {
namespace {

using Json = nlohmann::ordered_json;

constexpr int definitions_version = 3;  // of the figures and of the protocol
constexpr double clock_tolerance = 0.01;
constexpr double other_load_limit = 0.10;

std::string hex(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "%016llx", (unsigned long long)value);
    return text;
}

Json loads_json(const LoadedSide& side) {
    Json loads = Json::array();
    for (const LoadRecord& r : side.loads()) {
        Json stages = Json::object();
        for (const LoadStage& s : r.stages)
            stages[s.name] = s.seconds;
        loads.push_back({{"seconds", r.seconds}, {"page_cache", r.page_cache}, {"stages", stages}});
    }
    return loads;
}

Json side_json(const LoadedSide& side) {
    Json json = side.description();
    json["prompt_ids_fnv1a"] = hex(side.prompt_hash);
    json["loads"] = loads_json(side);
    return json;
}

// Settings that the sides do not share: what is tested, and what should not differ.
Json differing(const Json& a, const Json& b) {
    static const std::set<std::string> identity = {
        "model",     "model_name",        "weight_bytes",    "host_weight_bytes",
        "tokenizer", "vocabulary_sha256", "template_sha256", "warnings"};
    Json names = Json::array();
    for (const auto& [key, value] : a.items())
        if (identity.count(key) == 0 && (!b.contains(key) || b[key] != value)) names.push_back(key);
    return names;
}

std::vector<double> run_values(const std::vector<BenchRow>& rows, char side,
                               std::optional<double> BenchRun::*field) {
    std::vector<double> values;
    for (const BenchRow& row : rows)
        if (side == ' ' || row.side == side)
            for (const BenchRun& run : row.runs)
                if (run.*field) values.push_back(*(run.*field));
    return values;
}

void add_range(Json& json, const char* name, const std::vector<double>& values) {
    if (values.empty()) return;
    json[name] = {
        {"median", quantile(values, 0.5)}, {"min", quantile(values, 0)}, {"max", quantile(values, 1)}};
}

Json clocks(const std::vector<BenchRow>& rows) {
    Json json = Json::object();
    add_range(json, "clock_mhz", run_values(rows, ' ', &BenchRun::clock_mhz));
    add_range(json, "memory_clock_mhz", run_values(rows, ' ', &BenchRun::memory_clock_mhz));
    add_range(json, "temperature_c", run_values(rows, ' ', &BenchRun::temperature_c));
    add_range(json, "power_w", run_values(rows, ' ', &BenchRun::power_w));
    add_range(json, "other_load", run_values(rows, ' ', &BenchRun::other_load));
    return json;
}

std::string row_name(const BenchRow& row) {
    return std::string(1, row.side) + ", " + std::to_string(row.sequences) + " sequences, depth " +
           std::to_string(row.depth);
}

Json voided_runs(const std::vector<BenchRow>& rows) {
    Json list = Json::array();
    const auto add = [&list](const BenchRow& row, const BenchRun& run, const std::string& figure,
                             const std::string& reason) {
        list.push_back({{"side", std::string(1, row.side)},
                        {"sequences", row.sequences},
                        {"depth", row.depth},
                        {"place", run.place},
                        {"figure", figure},
                        {"reason", reason}});
    };
    for (const BenchRow& row : rows) {
        for (const BenchRun& run : row.runs) {
            if (!run.void_reason.empty())
                add(row, run, "all", run.void_reason);
            else if (run.steady_share < 0.5)
                add(row, run, "total_decode_tok_s",
                    "all sequences decoded in " + std::to_string(std::lround(run.steady_share * 100)) +
                        " % of the steps, at least half are needed");
        }
    }
    return list;
}

Json warnings(const HeaderFacts& f, const std::vector<BenchRow>& rows) {
    Json list = Json::array();
    if (f.sides.size() == 2) {
        const double a = quantile(run_values(rows, 'A', &BenchRun::clock_mhz), 0.5);
        const double b = quantile(run_values(rows, 'B', &BenchRun::clock_mhz), 0.5);
        if (a > 0 && b > 0 && std::abs(b / a - 1) > clock_tolerance)
            list.push_back("the median clocks of A and B differ by more than 1 %");
        if (!loads_comparable(f.sides))
            list.push_back("the page cache was not alike before the loads: load times are not compared");
        if (f.options.workload.repeats < fewest_runs)
            list.push_back("fewer than " + std::to_string(fewest_runs) +
                           " runs a side cannot tell a difference from noise; 6 are the default");
    }
    const std::vector<double> other = run_values(rows, ' ', &BenchRun::other_load);
    if (!other.empty() && quantile(other, 0.5) > other_load_limit)
        list.push_back("other programs used " + std::to_string(std::lround(quantile(other, 0.5) * 100)) +
                       " % of the processor during the runs");
    for (const BenchRow& row : rows)
        if (row.throttled) list.push_back(row_name(row) + ": throttled, every repetition was held back");
    return list;
}

// As asked for: B may not be loaded yet.
int sides_wanted(const HeaderFacts& f) {
    return f.options.b ? 2 : 1;
}

// "A B B A | …" in words: what was loaded when.
std::string residency(const HeaderFacts& f) {
    if (sides_wanted(f) == 1) return "one model";
    return f.together ? "both models stay loaded, the other idle" : "loaded in turn";
}

std::string order_text(const HeaderFacts& f) {
    const std::vector<char> order = run_order(sides_wanted(f), f.options.workload.repeats);
    return {order.begin(), order.end()};
}

}  // namespace

bool loads_comparable(const std::vector<const LoadedSide*>& sides) {
    std::set<std::string> states;
    for (const LoadedSide* side : sides)
        for (const LoadRecord& r : side->loads())
            states.insert(r.page_cache);
    return states.size() == 1 && (*states.begin() == "warm" || *states.begin() == "cold");
}

Json file_hashes(const ModelFiles& files) {
    Json list = Json::array();
    for (const auto* group : {&files.weights, &files.others}) {
        for (const auto& file : *group) {
            const FileHash h = hash_file(file);
            list.push_back({{"file", h.name},
                            {"bytes", h.bytes},
                            {"sha256", h.sha256},
                            {"of", h.whole ? "the whole file" : "its first and last MiB"}});
        }
    }
    return list;
}

Json report_header(const HeaderFacts& f, const std::vector<BenchRow>& rows) {
    const BenchOptions& w = f.options.workload;
    const LoadedSide& a = *f.sides.front();
    Json sides = Json::object();
    for (const LoadedSide* side : f.sides)
        sides[std::string(1, side->name())] = side_json(*side);
    const Json& settings = sides["A"];
    Json h = {{"recto", version()},
              {"commit", commit()},
              {"build", build_description()},
              {"definitions", definitions_version},
              {"device", f.device.name},
              {"device_kind", f.device.kind},
              {"device_memory_bytes", f.device.memory_total},
              {"kernels", f.device.kernels},
              {"threads", f.device.threads}};
    for (const auto& [name, text] : f.monitor)
        h["driver_facts"][name] = text;
    h["machine"] = describe_machine();
    h["os"] = h["machine"].value("kernel", "");
    h["clocks"] = clocks(rows);
    h["device_init_s"] = f.device_init_s;
    // The settings of A stand at the top too: with one model they are the report's.
    for (const char* key :
         {"model", "model_name", "quantization", "activations", "kv_cache_dtype", "block_size", "kv_blocks",
          "max_model_len", "max_num_seqs", "max_num_batched_tokens"})
        h[key] = settings.value(key, Json());
    if (f.sides.size() == 2) {
        h["against"] = sides["B"]["model"];
        h["differing_settings"] = differing(f.sides[0]->description(), f.sides[1]->description());
    }
    h["prompt_ids_fnv1a"] = hex(a.prompt_hash);
    h["prompts"] =
        f.text_prompts ? "the same text for both sides, whose tokenizers differ" : "random token ids";
    h["prefix_caching"] = false;
    h["sampling"] = "greedy, ignore_eos";
    h["seed"] = w.seed;
    h["prompt_tokens"] = w.prompt_tokens;
    h["output_tokens"] = w.output_tokens;
    h["sequences"] = w.sequences;
    h["depths"] = w.depths;
    h["repeats"] = w.repeats;
    h["order"] = order_text(f);
    h["residency"] = residency(f);
    h["pause_s"] = f.pause_s;
    h["max_warmups"] = w.max_warmups;
    h["max_retries"] = w.max_retries;
    h["page_cache_warmed"] = f.page_cache_warmed;
    h["load_stages"] = settings["loads"].empty() ? Json::object() : settings["loads"].back()["stages"];
    for (const ReportColumn& c : report_columns())
        h["formulas"][c.name] = c.formula;
    h["formulas"]["letters"] = formula_letters;
    if (f.sides.size() == 2) h["formulas"]["verdicts"] = verdict_letters;
    h["kv_tokens_definition"] = kv_tokens_definition;
    h["peak_bytes_definition"] = peak_bytes_definition;
    h["voided_runs"] = voided_runs(rows);
    h["warnings"] = warnings(f, rows);
    h["sides"] = std::move(sides);
    h["started_unix_s"] = f.started_unix_s;
    h["started"] = local_time(f.started_unix_s);
    if (f.ended_unix_s > 0) {
        h["ended_unix_s"] = f.ended_unix_s;
        h["ended"] = local_time(f.ended_unix_s);
    }
    if (!f.interrupted.empty()) h["interrupted"] = f.interrupted;
    h["command"] = f.options.command_line;
    return h;
}

}  // namespace recto
