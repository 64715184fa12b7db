#include "kernels/cpu/select.h"

#include <algorithm>

namespace recto::cpu {

PanelPlan plan_panels(std::int64_t rows, int max_rows) {
    constexpr int sizes[] = {1, 2, 4, 6, 8, 12, 16};
    auto cover = [&](std::int64_t n) {
        for (const int s : sizes) {
            if (s >= n && s <= max_rows) return s;
        }
        return max_rows;
    };
    PanelPlan p;
    p.size = cover(rows);
    p.full = rows / p.size;
    p.tail_rows = int(rows % p.size);
    p.tail_size = p.tail_rows > 0 ? cover(p.tail_rows) : 0;
    return p;
}

Schedule schedule_linear(std::int64_t units, std::int64_t panels, int panel_rows, std::size_t row_bytes,
                         int threads) {
    // Half of a 1 MiB second-level cache for activations; the rest is for weights and outputs.
    constexpr std::size_t band_bytes = 512 << 10;
    Schedule s;
    const std::size_t panel_bytes = std::max<std::size_t>(1, row_bytes * std::size_t(panel_rows));
    s.band_panels = std::clamp<std::int64_t>(std::int64_t(band_bytes / panel_bytes), 1,
                                             std::max<std::int64_t>(1, panels));
    s.bands = (panels + s.band_panels - 1) / s.band_panels;
    s.grain = std::clamp<std::int64_t>(units * s.bands / (std::int64_t(threads) * 8), 1, 64);
    return s;
}

TileVariant variant_of(const WeightForm& form, int chunk, Activations mode) {
    TileVariant v;
    v.nibbles = form.integer == QuantInt::u4;
    v.is_signed = form.integer == QuantInt::i8;
    v.offset = form.offset != OffsetForm::none;
    v.chunk = chunk;
    v.floating = mode == Activations::floating;
    return v;
}

std::string describe(const TileVariant& v, int panel_rows, const char* isa) {
    std::string s = std::string(v.nibbles     ? "u4"
                                : v.is_signed ? "i8"
                                              : "u8") +
                    (v.offset ? " with offset" : "");
    s += v.floating ? ", float32 activations" : ", int8 activations in sums of " + std::to_string(v.chunk);
    return s + ", 16 outputs x " + std::to_string(panel_rows) + " rows, " + isa;
}

}  // namespace recto::cpu
