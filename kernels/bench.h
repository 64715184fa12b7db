// What `recto-cli kernels` prints: checks against the reference, timings with their share of the machine's
// measured ceilings, and the kernel chosen for each shape.
#pragma once
#include <iosfwd>
#include <string>

#include "kernels/backend.h"

namespace recto {

// Ceilings of the machine, measured in this run; 0 where the backend cannot tell.
struct Ceilings {
    double read_bytes_s = 0;  // streaming reads by all workers
    double int8_ops_s = 0;    // multiply and add counted as two
    double fp32_ops_s = 0;
};
Ceilings measure_ceilings(Backend& backend);

// Every case whose name contains `filter` against the reference; one line each. Returns the number of failures.
int run_check(Backend& backend, std::ostream& out, const std::string& filter = {});

// Timings whose name contains `filter` (all when empty): single operations and whole steps of a 135M model
// (SmolLM2's shapes, Q4_1 with a Q8_0 embedding) with random weights.
void run_bench(Backend& backend, const std::string& filter, std::ostream& out);

// Which variant serves which weight form and number of rows, for the processor's best set or `max_isa`.
void list_variants(const CpuOptions& options, std::ostream& out);
// The same of a card, for the shapes of well-known models.
void list_card_variants(const DeviceInfo& device, std::ostream& out);

}  // namespace recto
