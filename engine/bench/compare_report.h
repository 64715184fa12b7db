// A benchmark report as JSON, CSV and Markdown. The field names are part of the command line's contract.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/bench/compare.h"

namespace recto {

// The table's columns, in one place for CSV, Markdown and the window.
struct ReportColumn {
    const char* name;     // the JSON key: "ttft_s"
    const char* formula;  // "t_1 − t_req"
    const char* format;   // for printf: "%.4f"
    TimedFigure BenchRow::*figure;
    bool higher_is_better;
    bool always;  // false: only in rows that have samples of it
};
const std::vector<ReportColumn>& report_columns();
// What the letters of those formulas, and of a verdict, stand for: printed once, below the formulas.
extern const char* const formula_letters;
extern const char* const verdict_letters;

nlohmann::ordered_json report_json(const CompareReport& report);
// The other way round, for reports that were saved. Error(input) that starts with `where`, if it is no report
// of this program. Unknown keys are ignored.
CompareReport read_report(const nlohmann::ordered_json& json, const std::string& where);
std::string report_csv(const CompareReport& report);
// The table with what it was measured on in a few lines; and the same with the whole header, which a stranger
// needs.
std::string report_table(const CompareReport& report);
std::string report_markdown(const CompareReport& report);

}  // namespace recto
