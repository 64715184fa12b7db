// The header that makes a report reproducible (users.md §5, last paragraph): nothing of the user's name, no
// path above a model's folder.
#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/bench/compare.h"
#include "engine/bench/side.h"

namespace recto {

struct HeaderFacts {
    const CompareOptions& options;
    const DeviceInfo device;  // before anything was loaded
    DeviceFacts monitor;      // what the driver tells
    double device_init_s = 0;
    std::vector<const LoadedSide*> sides;  // A, or A and B
    bool together = true;                  // both stay loaded
    bool text_prompts = false;
    bool page_cache_warmed = false;
    double pause_s = 0;
    std::int64_t started_unix_s = 0, ended_unix_s = 0;  // ended: 0 while it runs
    std::string interrupted;                            // how far it came; empty: to its end
};

nlohmann::ordered_json report_header(const HeaderFacts& facts, const std::vector<BenchRow>& rows);

// Whether load times may be set against each other: the page cache was alike before every load, warm or cold.
bool loads_comparable(const std::vector<const LoadedSide*>& sides);

// Hashes of a model's files; reads up to 64 MiB of each, so only after everything is measured.
nlohmann::ordered_json file_hashes(const ModelFiles& files);

}  // namespace recto
