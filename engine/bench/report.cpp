#include "engine/bench/report.h"

#include <sys/utsname.h>

#include <cstdio>
#include <functional>
#include <sstream>

#include "engine/build_info.h"

namespace recto {
namespace {

using Json = nlohmann::ordered_json;

Json figure(const TimedFigure& f) {
    return {
        {"median", f.median()}, {"iqr", f.iqr()}, {"min", f.min()}, {"max", f.max()}, {"samples", f.samples}};
}

Json header(const BenchReport& r, const std::string& command_line) {
    utsname os{};
    uname(&os);
    Json stages = Json::object();
    for (const LoadStage& s : r.load_stages)
        stages[s.name] = s.seconds;
    char hash[24];
    std::snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r.prompt_ids_hash);
    return {{"recto", version()},
            {"commit", commit()},
            {"build", build_description()},
            {"definitions", 1},
            {"device", r.device},
            {"kernels", r.kernels},
            {"threads", r.threads},
            {"os", std::string(os.sysname) + " " + os.release},
            {"model", r.model_path},
            {"model_name", r.model_name},
            {"quantization", r.quantization},
            {"activations", r.activations},
            {"kv_cache_dtype", r.kv_dtype},
            {"block_size", r.block_size},
            {"max_num_batched_tokens", r.max_num_batched_tokens},
            {"prefix_caching", false},
            {"sampling", "greedy, ignore_eos"},
            {"prompt_ids_fnv1a", hash},
            {"seed", r.options.seed},
            {"repeats", r.options.repeats},
            {"load_stages", stages},
            {"started_unix_s", r.started_unix_s},
            {"ended_unix_s", r.ended_unix_s},
            {"command", command_line}};
}

// The table's columns, in one place for CSV and Markdown: title, formula, value.
struct Column {
    const char* title;
    const char* formula;
    const char* format;
    std::function<const TimedFigure*(const BenchRow&)> value;
};

const std::vector<Column>& columns() {
    static const std::vector<Column> table = {
        {"ttft_s", "t_1 − t_req", "%.4f", [](const BenchRow& r) { return &r.ttft_s; }},
        {"prefill_tok_s", "(p − c) ÷ (t_1 − t_start)", "%.1f",
         [](const BenchRow& r) { return &r.prefill_tok_s; }},
        {"decode_tok_s", "(n − 1) ÷ (t_n − t_1), one sequence", "%.2f",
         [](const BenchRow& r) { return &r.decode_tok_s; }},
        {"tpot_s", "(t_n − t_1) ÷ (n − 1)", "%.5f", [](const BenchRow& r) { return &r.tpot_s; }},
        {"itl_s", "t_{i+1} − t_i, median", "%.5f", [](const BenchRow& r) { return &r.itl_s; }},
        {"total_tok_s", "Σn ÷ (max t_n − min t_req)", "%.1f",
         [](const BenchRow& r) { return &r.total_tok_s; }},
        {"total_decode_tok_s", "tokens between the last t_1 and the first t_n ÷ that span", "%.1f",
         [](const BenchRow& r) { return &r.total_decode_tok_s; }},
    };
    return table;
}

std::string formatted(const char* format, double value) {
    char text[40];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

}  // namespace

Json report_json(const BenchReport& r, const std::string& command_line) {
    Json rows = Json::array();
    for (const BenchRow& row : r.rows) {
        Json itl = figure(row.itl_s);
        itl["p95"] = row.itl_p95_s;
        itl["p99"] = row.itl_p99_s;
        itl["pooled_max"] = row.itl_max_s;
        rows.push_back({{"side", std::string(1, row.side)},
                        {"model", r.model_path},
                        {"sequences", row.sequences},
                        {"prompt_tokens", row.prompt_tokens},
                        {"output_tokens", row.output_tokens},
                        {"depth", row.depth},
                        {"load_s", figure(r.load_s)},
                        {"weight_bytes", r.weight_bytes},
                        {"kv_tokens", row.kv_tokens},
                        {"peak_bytes", row.peak_bytes},
                        {"ttft_s", figure(row.ttft_s)},
                        {"prefill_tok_s", figure(row.prefill_tok_s)},
                        {"decode_tok_s", figure(row.decode_tok_s)},
                        {"tpot_s", figure(row.tpot_s)},
                        {"itl_s", itl},
                        {"total_tok_s", figure(row.total_tok_s)},
                        {"total_decode_tok_s", figure(row.total_decode_tok_s)},
                        {"steady_share", row.steady_share},
                        {"warmups", row.warmups},
                        {"voided", row.voided}});
    }
    return {{"header", header(r, command_line)}, {"rows", rows}, {"verdicts", Json::array()}};
}

std::string report_csv(const BenchReport& r) {
    std::ostringstream out;
    out << "side,model,sequences,prompt_tokens,output_tokens,depth,load_s,weight_bytes,kv_tokens,peak_bytes";
    for (const Column& c : columns())
        out << ',' << c.title << ',' << c.title << "_iqr";
    out << '\n';
    for (const BenchRow& row : r.rows) {
        std::string name = r.model_path;
        for (char& ch : name)
            if (ch == ',' || ch == '"') ch = '_';
        out << row.side << ',' << name << ',' << row.sequences << ',' << row.prompt_tokens << ','
            << row.output_tokens << ',' << row.depth << ',' << r.load_s.median() << ',' << r.weight_bytes
            << ',' << row.kv_tokens << ',' << row.peak_bytes;
        for (const Column& c : columns())
            out << ',' << c.value(row)->median() << ',' << c.value(row)->iqr();
        out << '\n';
    }
    return out.str();
}

std::string report_markdown(const BenchReport& r) {
    std::ostringstream out;
    out << r.model_path << " (" << r.quantization << ") on " << r.device << ", " << r.kernels << ", "
        << r.threads << " threads; load " << formatted("%.3f", r.load_s.median()) << " s; Recto " << version()
        << " " << commit() << "\n\n";
    out << "| sequences | prompt | output | depth |";
    for (const Column& c : columns())
        out << ' ' << c.title << " |";
    out << "\n|---|---|---|---|";
    for (std::size_t i = 0; i < columns().size(); ++i)
        out << "---|";
    out << '\n';
    for (const BenchRow& row : r.rows) {
        out << "| " << row.sequences << " | " << row.prompt_tokens << " | " << row.output_tokens << " | "
            << row.depth << " |";
        for (const Column& c : columns())
            out << ' ' << formatted(c.format, c.value(row)->median()) << " ± "
                << formatted(c.format, c.value(row)->iqr() / 2) << " |";
        out << '\n';
    }
    out << "\nMedian ± half the interquartile range of " << r.options.repeats << " runs.";
    for (const Column& c : columns())
        out << ' ' << c.title << " = " << c.formula << ';';
    out << '\n';
    return out.str();
}

}  // namespace recto
