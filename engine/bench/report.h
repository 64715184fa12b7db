// A benchmark report as JSON, CSV and Markdown. The field names are part of the command line's contract.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "engine/bench/bench.h"

namespace recto {

// `command_line` repeats the run; paths above the model's folder are left out of everything.
nlohmann::ordered_json report_json(const BenchReport& report, const std::string& command_line);
std::string report_csv(const BenchReport& report);
std::string report_markdown(const BenchReport& report);

}  // namespace recto
