// Which kernel serves a shape: pure functions of numbers, printed by `recto-cli kernels --list` and tested.
#pragma once
#include <cstdint>
#include <string>

#include "kernels/cpu/kernel_table.h"

namespace recto::cpu {

constexpr int max_panel_rows = 16;

// Rows cut into panels: `full` panels of `size`, then one whose kernel has `tail_size` ≥ `tail_rows` rows.
struct PanelPlan {
    int size = 1;
    std::int64_t full = 0;
    int tail_rows = 0;
    int tail_size = 0;
    std::int64_t panels() const { return full + (tail_rows > 0 ? 1 : 0); }
};
PanelPlan plan_panels(std::int64_t rows, int max_rows);

// Work items of one linear: bands of panels (outer) × units of 16 outputs (inner), `grain` units a hand-out.
struct Schedule {
    std::int64_t band_panels = 1;
    std::int64_t bands = 1;
    std::int64_t grain = 1;
};
Schedule schedule_linear(std::int64_t units, std::int64_t panels, int panel_rows, std::size_t row_bytes,
                         int threads);

TileVariant variant_of(const WeightForm& form, int chunk, Activations mode);
std::string describe(const TileVariant& variant, int panel_rows, const char* isa);

}  // namespace recto::cpu
