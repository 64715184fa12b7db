// A benchmark report as Markdown: rows of one model, or figures of A beside B with the verdict.
#include <algorithm>
#include <cstdio>
#include <sstream>

#include "engine/bench/compare_report.h"
#include "engine/json_text.h"

namespace recto {
namespace {

using Json = nlohmann::ordered_json;

std::string formatted(const char* format, double value) {
    char text[40];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string spread(const ReportColumn& c, const BenchRow& row) {
    const TimedFigure& f = row.*c.figure;
    if (f.samples.empty()) return row.runs.empty() ? "not run" : "void";
    if (f.samples.size() == 1) return formatted(c.format, f.median());
    return formatted(c.format, f.median()) + " ± " + formatted(c.format, f.iqr() / 2);
}

std::string mib(std::uint64_t bytes) {
    return formatted("%.1f MiB", double(bytes) / (1 << 20));
}

std::vector<const ReportColumn*> used_columns(const CompareReport& r) {
    std::vector<const ReportColumn*> used;
    for (const ReportColumn& c : report_columns())
        if (c.always || std::any_of(r.rows.begin(), r.rows.end(),
                                    [&](const BenchRow& row) { return !(row.*c.figure).samples.empty(); }))
            used.push_back(&c);
    return used;
}

bool compares(const CompareReport& r) {
    return std::any_of(r.rows.begin(), r.rows.end(), [](const BenchRow& row) { return row.side == 'B'; });
}

const BenchRow* row_of(const CompareReport& r, char side, const BenchRow* like = nullptr) {
    for (const BenchRow& row : r.rows)
        if (row.side == side &&
            (like == nullptr || (row.sequences == like->sequences && row.depth == like->depth &&
                                 row.prompt_tokens == like->prompt_tokens)))
            return &row;
    return nullptr;
}

std::string text_at(const Json& json, const char* key) {
    if (!json.is_object() || !json.contains(key)) return "?";
    const Json& value = json[key];
    return value.is_string() ? value.get<std::string>() : json_text(value);
}

std::string page_cache(const Json& side) {
    std::string states;
    if (side.is_object() && side.contains("loads"))
        for (const Json& load : side["loads"]) {
            const std::string state = text_at(load, "page_cache");
            if (states.find(state) == std::string::npos) states += (states.empty() ? "" : ", ") + state;
        }
    return states.empty() ? "?" : states;
}

// One line a side: what it is, its load and its memory, which have no spread.
void write_sides(std::ostringstream& out, const CompareReport& r) {
    for (const char side : {'A', 'B'}) {
        const BenchRow* row = row_of(r, side);
        if (row == nullptr) continue;
        if (row->load_s.samples.empty()) {
            out << side << ": " << row->model << ", not loaded yet\n\n";
            continue;
        }
        const Json sides = r.header.value("sides", Json::object());
        const Json about = sides.value(std::string(1, side), Json::object());
        out << side << ": " << row->model << " (" << text_at(about, "quantization") << "), weights "
            << mib(row->weight_bytes) << ", " << row->kv_tokens << " tokens fit, load "
            << formatted("%.3f", row->load_s.median()) << " s (page cache " << page_cache(about) << ")\n\n";
    }
    out << "On " << text_at(r.header, "device") << ", " << text_at(r.header, "kernels");
    if (text_at(r.header, "device_kind") == "cpu") out << ", " << text_at(r.header, "threads") << " threads";
    out << "; Recto " << text_at(r.header, "recto") << " " << text_at(r.header, "commit") << "; order "
        << text_at(r.header, "order") << ", " << text_at(r.header, "residency") << "\n\n";
}

bool interrupted(const CompareReport& r) {
    return r.header.is_object() && r.header.contains("interrupted");
}

// Memory is there before a row's first run, but is not its figure then.
std::string peak(const BenchRow& row) {
    return row.runs.empty() ? "not run" : mib(row.peak_bytes);
}

void write_one_model(std::ostringstream& out, const CompareReport& r) {
    const auto columns = used_columns(r);
    out << "| sequences | prompt | output | depth | peak memory |";
    for (const ReportColumn* c : columns)
        out << ' ' << c->name << " |";
    out << "\n|---|---|---|---|---|";
    for (std::size_t i = 0; i < columns.size(); ++i)
        out << "---|";
    out << '\n';
    for (const BenchRow& row : r.rows) {
        out << "| " << row.sequences << " | " << row.prompt_tokens << " | " << row.output_tokens << " | "
            << row.depth << " | " << peak(row) << " |";
        for (const ReportColumn* c : columns)
            out << ' ' << spread(*c, row) << " |";
        out << '\n';
    }
}

const Verdict* verdict_of(const CompareReport& r, const BenchRow& row, const std::string& figure) {
    for (const Verdict& v : r.verdicts)
        if (v.figure == figure &&
            (figure == "load_s" || (v.sequences == row.sequences && v.depth == row.depth)))
            return &v;
    return nullptr;
}

void write_verdict(std::ostringstream& out, const Verdict* v) {
    if (v == nullptr) {
        out << " | |\n";
        return;
    }
    out << ' ' << formatted("%.3f", v->ratio) << " | ";
    if (v->word == "clear")
        out << "**clear: " << v->better << " is better**";
    else if (v->word == "likely")
        out << "likely: " << v->better << " is better";
    else
        out << v->word;
    out << " (p " << formatted("%.3f", v->p) << ", floor " << formatted("%.1f", v->floor * 100) << " %) |\n";
}

void write_comparison(std::ostringstream& out, const CompareReport& r) {
    out << "| sequences | depth | figure | A | B | B ÷ A | verdict |\n|---|---|---|---|---|---|---|\n";
    if (const BenchRow* a = row_of(r, 'A'), *b = row_of(r, 'B'); a && b) {
        static const ReportColumn load = {"load_s", "", "%.4g", &BenchRow::load_s, false, true};
        out << "| | | load_s | " << spread(load, *a) << " | " << spread(load, *b) << " |";
        write_verdict(out, verdict_of(r, *a, "load_s"));
    }
    for (const BenchRow& a : r.rows) {
        const BenchRow* b = a.side == 'A' ? row_of(r, 'B', &a) : nullptr;
        if (b == nullptr) continue;
        for (const ReportColumn* c : used_columns(r)) {
            out << "| " << a.sequences << " | " << a.depth << " | " << c->name << " | " << spread(*c, a)
                << " | " << spread(*c, *b) << " |";
            write_verdict(out, verdict_of(r, a, c->name));
        }
        out << "| " << a.sequences << " | " << a.depth << " | peak memory | " << peak(a) << " | " << peak(*b)
            << " | | |\n";
    }
    for (const FirstDifference& d : r.first_differences) {
        out << "\nGreedy outputs, " << d.sequences << " sequences, depth " << d.depth << ": " << d.identical
            << " of " << d.first.size() << " are equal";
        if (d.identical < int(d.first.size()))
            out << "; the first difference stands behind " << formatted("%.10g", d.median)
                << " equal tokens (median over the prompts)";
        out << ".\n";
    }
}

std::string void_sentence(const Json& run) {
    return "void: " + text_at(run, "side") + ", " + text_at(run, "sequences") + " sequences, depth " +
           text_at(run, "depth") + ", run " + std::to_string(run.value("place", 0) + 1) + ", " +
           text_at(run, "figure") + ": " + text_at(run, "reason");
}

void write_notes(std::ostringstream& out, const CompareReport& r) {
    out << "\nMedian ± half the interquartile range of "
        << (interrupted(r) ? "the runs that were done, at most " : "") << text_at(r.header, "repeats")
        << " runs. Memory and counts have no spread.";
    const char* separator = " ";
    for (const ReportColumn* c : used_columns(r)) {
        out << separator << c->name << " = " << c->formula;
        separator = "; ";
    }
    out << ". In these formulas " << formula_letters << ".\n";
    if (compares(r)) out << "\nIn verdicts " << verdict_letters << ".\n";
    for (const char* list : {"warnings", "voided_runs"}) {
        if (!r.header.is_object() || !r.header.contains(list)) continue;
        for (const Json& item : r.header[list])
            out << "\n- " << (item.is_string() ? item.get<std::string>() : void_sentence(item));
    }
    out << '\n';
}

}  // namespace

std::string report_table(const CompareReport& r) {
    std::ostringstream out;
    if (interrupted(r)) out << "**Interrupted: " << text_at(r.header, "interrupted") << ".**\n\n";
    write_sides(out, r);
    if (compares(r))
        write_comparison(out, r);
    else
        write_one_model(out, r);
    write_notes(out, r);
    return out.str();
}

std::string report_markdown(const CompareReport& r) {
    std::ostringstream out;
    out << report_table(r) << "\nTo repeat it:\n";
    for (const auto& item : r.header.items())
        if (const std::string& key = item.key(); key != "formulas")  // they stand above
            out << "- " << key << ": " << text_at(r.header, key.c_str()) << '\n';
    return out.str();
}

}  // namespace recto
