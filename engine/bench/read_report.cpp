// A saved benchmark report, read back.
#include <limits>

#include "engine/bench/compare_report.h"
#include "kernels/error.h"

namespace recto {
namespace {

using Json = nlohmann::ordered_json;

TimedFigure figure(const Json& row, const char* name) {
    TimedFigure f;
    if (const auto found = row.find(name); found != row.end())
        f.samples = found->at("samples").get<std::vector<double>>();
    return f;
}

std::optional<double> optional_number(const Json& json, const char* name) {
    const auto found = json.find(name);
    if (found == json.end() || found->is_null()) return std::nullopt;
    return found->get<double>();
}

std::vector<int> steps(const Json& json, std::size_t count) {
    std::vector<int> list;
    if (json.contains("list")) {
        list = json.at("list").get<std::vector<int>>();
    } else {
        const int first = json.at("first").get<int>();
        const auto length = json.at("count").get<std::size_t>();
        for (std::size_t i = 0; i < length && i < count; ++i)
            list.push_back(first + int(i));
    }
    for (const int step : list)
        if (step < 0 || std::size_t(step) >= count) throw std::out_of_range("a step that is not in step_s");
    return list;
}

BenchRun read_run(const Json& json) {
    BenchRun run;
    run.place = json.at("place").get<int>();
    run.started_s = json.value("started_s", 0.0);
    run.warmups = json.value("warmups", 0);
    if (const auto found = json.find("void"); found != json.end() && found->is_string())
        run.void_reason = found->get<std::string>();
    run.steady_share = json.value("steady_share", 0.0);
    run.step_s = json.at("step_s").get<std::vector<double>>();
    for (const Json& r : json.at("requests")) {
        BenchRun::Request request;
        request.t_request = r.at("t_request").get<double>();
        request.t_start = r.at("t_start").get<double>();
        request.steps = steps(r.at("steps"), run.step_s.size());
        run.requests.push_back(std::move(request));
    }
    run.clock_mhz = optional_number(json, "clock_mhz");
    run.memory_clock_mhz = optional_number(json, "memory_clock_mhz");
    run.temperature_c = optional_number(json, "temperature_c");
    run.power_w = optional_number(json, "power_w");
    run.energy_j = optional_number(json, "energy_j");
    run.other_load = optional_number(json, "other_load");
    run.held_back = json.value("held_back", "");
    return run;
}

char letter(const Json& json, const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() && !found->get<std::string>().empty()
               ? found->get<std::string>().front()
               : ' ';
}

BenchRow read_row(const Json& json) {
    BenchRow row;
    row.side = letter(json, "side");
    row.model = json.at("model").get<std::string>();
    row.sequences = json.at("sequences").get<int>();
    row.prompt_tokens = json.at("prompt_tokens").get<int>();
    row.output_tokens = json.at("output_tokens").get<int>();
    row.depth = json.at("depth").get<int>();
    row.load_s = figure(json, "load_s");
    row.weight_bytes = json.at("weight_bytes").get<std::uint64_t>();
    row.kv_tokens = json.at("kv_tokens").get<std::uint64_t>();
    row.kv_pool_tokens = json.value("kv_pool_tokens", std::uint64_t(0));
    row.peak_bytes = json.at("peak_bytes").get<std::uint64_t>();
    for (const ReportColumn& c : report_columns())
        row.*c.figure = figure(json, c.name);
    const Json& itl = json.at("itl_s");
    row.itl_p95_s = itl.value("p95", 0.0);
    row.itl_p99_s = itl.value("p99", 0.0);
    row.itl_max_s = itl.value("pooled_max", 0.0);
    row.itl_gaps = itl.value("gaps", std::uint64_t(0));
    row.input_tokens_mean = json.value("input_tokens_mean", double(row.depth + row.prompt_tokens));
    row.warmups = json.value("warmups", 0);
    row.voided = json.value("voided", 0);
    row.steady_voided = json.value("steady_voided", 0);
    row.throttled = json.value("throttled", false);
    if (json.contains("runs"))
        for (const Json& run : json.at("runs"))
            row.runs.push_back(read_run(run));
    return row;
}

Verdict read_verdict(const Json& json) {
    Verdict v;
    v.figure = json.at("figure").get<std::string>();
    v.sequences = json.value("sequences", 0);
    v.prompt_tokens = json.value("prompt_tokens", 0);
    v.output_tokens = json.value("output_tokens", 0);
    v.depth = json.value("depth", 0);
    v.a = json.value("a", 0.0);
    v.b = json.value("b", 0.0);
    v.ratio = json.at("ratio").get<double>();
    v.floor = json.value("floor", 0.01);
    v.p = json.value("p", 1.0);
    v.word = json.at("verdict").get<std::string>();
    v.better = letter(json, "better");
    v.runs_a = json.value("runs_a", 0);
    v.runs_b = json.value("runs_b", 0);
    return v;
}

}  // namespace

CompareReport read_report(const Json& json, const std::string& where) {
    CompareReport report;
    try {
        report.header = json.at("header");
        if (!report.header.is_object()) throw std::out_of_range("a header that is no object");
        for (const Json& row : json.at("rows"))
            report.rows.push_back(read_row(row));
        for (const Json& verdict : json.at("verdicts"))
            report.verdicts.push_back(read_verdict(verdict));
        if (json.contains("first_differences"))
            for (const Json& d : json.at("first_differences"))
                report.first_differences.push_back({d.at("sequences").get<int>(), d.at("depth").get<int>(),
                                                    d.at("first").get<std::vector<int>>(),
                                                    d.at("median").get<double>(),
                                                    d.at("identical").get<int>()});
    } catch (const std::exception& e) {
        throw Error(ErrorKind::input, where + ": expected a benchmark report, found " + e.what());
    }
    return report;
}

}  // namespace recto
