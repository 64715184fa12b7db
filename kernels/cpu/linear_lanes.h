// One tile of 16 outputs against a panel of rows, over lanes. Order of roundings, the same for every variant:
//   int8:      acc = fma(float(Σ q·x8), scale_w · scale_x, acc), then acc = fma(offset_w, scale_x · Σ x8,
//   acc),
//              chunk after chunk of min(group, 32) inputs
//   floating:  w = scale · q + offset (rounded once), acc = fma(w, x, acc), input after input
#pragma once
#include <cmath>
#include <cstring>

#include "kernels/cpu/kernel_table.h"

namespace recto::cpu {

template <class L, bool Nibbles, bool Signed, bool Offset, int Chunk, int Rows>
void int8_tile(const GroupedTile& tile, const void* panel_memory, float* out) {
    constexpr int steps = Chunk / 4;
    constexpr int chunk_bytes = Nibbles ? 64 * steps / 2 : 64 * steps;
    const auto* panel = static_cast<const std::uint8_t*>(panel_memory);
    const std::uint8_t *values = tile.values, *ahead = tile.ahead;
    typename L::F acc[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
        acc[r] = tile.continues ? L::load(out + r * lanes) : L::zero();
    for (std::int64_t g = 0; g < tile.groups; ++g) {
        const typename L::F scale = L::load(tile.scale + g * lanes);
        const typename L::F offset = Offset ? L::load(tile.offset + g * lanes) : L::zero();
        for (std::int64_t c = 0; c < tile.chunks_per_group; ++c) {
            if (tile.ahead != nullptr) {  // few rows: memory is the limit, and tiles follow each other in it
#pragma GCC unroll 8
                for (int j = 0; j < chunk_bytes / 64; ++j)
                    L::prefetch(ahead + 64 * j);
                ahead += chunk_bytes;
            }
            typename L::Bytes w[steps];
            if constexpr (Nibbles) {
#pragma GCC unroll 8
                for (int j = 0; j < steps / 2; ++j) {
                    const typename L::Bytes b = L::load_bytes(values + 64 * j);
                    w[2 * j] = L::low_nibbles(b);
                    w[2 * j + 1] = L::high_nibbles(b);
                }
            } else {
#pragma GCC unroll 8
                for (int j = 0; j < steps; ++j)
                    w[j] = L::load_bytes(values + 64 * j);
            }
            const auto* x = reinterpret_cast<const std::int8_t*>(panel);
            const auto* scale_x = reinterpret_cast<const float*>(panel + Rows * Chunk);
            const float* sum_x = scale_x + Rows;
            const auto* shift_x = reinterpret_cast<const std::int32_t*>(sum_x + Rows);
            // A few rows advance together: one sum of 8 dependent products would leave the multipliers
            // waiting.
            constexpr int jam = Rows % 4 == 0 ? 4 : Rows == 6 ? 3 : Rows;
#pragma GCC unroll 16
            for (int r = 0; r < Rows; r += jam) {
                typename L::I dot[jam];
#pragma GCC unroll 4
                for (int i = 0; i < jam; ++i) {
                    dot[i] = L::zero_i();
                    if (!Nibbles && Signed && !L::bytes_shifted) dot[i] = L::set1_i(shift_x[r + i]);
                    if (!Nibbles && !Signed && L::bytes_shifted) dot[i] = L::set1_i(-shift_x[r + i]);
                }
#pragma GCC unroll 8
                for (int j = 0; j < steps; ++j) {
#pragma GCC unroll 4
                    for (int i = 0; i < jam; ++i) {
                        const std::int8_t* four = x + (r + i) * Chunk + 4 * j;
                        dot[i] = Nibbles ? L::dot_nibbles(dot[i], w[j], four) : L::dot(dot[i], w[j], four);
                    }
                }
#pragma GCC unroll 4
                for (int i = 0; i < jam; ++i) {
                    const typename L::F s = L::mul(scale, L::set1(scale_x[r + i]));
                    acc[r + i] = L::fma(L::to_float(dot[i]), s, acc[r + i]);
                    if constexpr (Offset) acc[r + i] = L::fma(offset, L::set1(sum_x[r + i]), acc[r + i]);
                }
            }
            values += chunk_bytes;
            panel += Rows * (Chunk + 12);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
        L::store(out + r * lanes, acc[r]);
}

template <class L, bool Nibbles, bool Signed, bool Offset, int Rows>
void float_tile(const GroupedTile& tile, const void* panel, float* out) {
    const auto* x = static_cast<const float*>(panel);
    const std::uint8_t* values = tile.values;
    typename L::F acc[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
        acc[r] = L::zero();
    const std::int64_t step = Nibbles ? 8 : 4;
    const std::int64_t group_steps = (tile.group_size + step - 1) / step;
    for (std::int64_t g = 0; g < tile.groups; ++g) {
        const typename L::F scale = L::load(tile.scale + g * lanes);
        const typename L::F offset = Offset ? L::load(tile.offset + g * lanes) : L::zero();
        auto one_input = [&](typename L::I q) {
            typename L::F w = L::mul(scale, L::to_float(Signed ? L::sub_i(q, L::set1_i(128)) : q));
            if constexpr (Offset) w = L::add(w, offset);
#pragma GCC unroll 16
            for (int r = 0; r < Rows; ++r)
                acc[r] = L::fma(w, L::set1(x[r]), acc[r]);
            x += Rows;
        };
        for (std::int64_t s = 0; s < group_steps; ++s, values += 64) {
            const typename L::I four = L::load_i(values);
            const typename L::I mask = L::set1_i(Nibbles ? 15 : 255);
            one_input(L::and_i(four, mask));
            one_input(L::and_i(L::template shift_right<8>(four), mask));
            one_input(L::and_i(L::template shift_right<16>(four), mask));
            one_input(L::and_i(L::template shift_right<24>(four), mask));
            if constexpr (Nibbles) {
                one_input(L::and_i(L::template shift_right<4>(four), mask));
                one_input(L::and_i(L::template shift_right<12>(four), mask));
                one_input(L::and_i(L::template shift_right<20>(four), mask));
                one_input(L::template shift_right<28>(four));
            }
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
        L::store(out + r * lanes, acc[r]);
}

template <class L, DType D>
inline typename L::F load_widened(const void* base, std::int64_t index) {
    if constexpr (D == DType::f32) return L::load(static_cast<const float*>(base) + index);
    if constexpr (D == DType::f16) return L::load_f16(static_cast<const std::uint16_t*>(base) + index);
    if constexpr (D == DType::bf16) return L::load_bf16(static_cast<const std::uint16_t*>(base) + index);
}

template <class L, DType D, int Rows>
void dense_tile(const void* values, std::int64_t cols, const float* x, float* out) {
    typename L::F acc[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
        acc[r] = L::zero();
    for (std::int64_t k = 0; k < cols; ++k, x += Rows) {
        const typename L::F w = load_widened<L, D>(values, k * lanes);
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r)
            acc[r] = L::fma(w, L::set1(x[r]), acc[r]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
        L::store(out + r * lanes, acc[r]);
}

// Which instances exist: panels of 1, 2, 4, 6, 8, 12 rows up to the set's max_rows.
template <class L, int Rows>
TileKernel tile_of(const TileVariant& v) {
    if (v.floating) {
        if (v.nibbles) {
            return v.offset ? float_tile<L, true, false, true, Rows>
                            : float_tile<L, true, false, false, Rows>;
        }
        if (v.is_signed) {
            return v.offset ? float_tile<L, false, true, true, Rows>
                            : float_tile<L, false, true, false, Rows>;
        }
        return v.offset ? float_tile<L, false, false, true, Rows> : float_tile<L, false, false, false, Rows>;
    }
    auto chosen = [&]<int Chunk>() -> TileKernel {
        if (v.nibbles) {
            return v.offset ? int8_tile<L, true, false, true, Chunk, Rows>
                            : int8_tile<L, true, false, false, Chunk, Rows>;
        }
        if (v.is_signed) {
            return v.offset ? int8_tile<L, false, true, true, Chunk, Rows>
                            : int8_tile<L, false, true, false, Chunk, Rows>;
        }
        return v.offset ? int8_tile<L, false, false, true, Chunk, Rows>
                        : int8_tile<L, false, false, false, Chunk, Rows>;
    };
    return v.chunk == 16 ? chosen.template operator()<16>() : chosen.template operator()<32>();
}

template <class L>
TileKernel select_tile(const TileVariant& v, int rows) {
    switch (rows) {
        case 1:
            return tile_of<L, 1>(v);
        case 2:
            return tile_of<L, 2>(v);
        case 4:
            return tile_of<L, 4>(v);
        case 6:
            if constexpr (L::max_rows >= 6) return tile_of<L, 6>(v);
            break;
        case 8:
            if constexpr (L::max_rows >= 8) return tile_of<L, 8>(v);
            break;
        case 12:
            if constexpr (L::max_rows >= 12) return tile_of<L, 12>(v);
            break;
    }
    return nullptr;
}

template <class L, int Rows>
DenseKernel dense_of(DType d) {
    switch (d) {
        case DType::f32:
            return dense_tile<L, DType::f32, Rows>;
        case DType::f16:
            return dense_tile<L, DType::f16, Rows>;
        case DType::bf16:
            return dense_tile<L, DType::bf16, Rows>;
        default:
            return nullptr;
    }
}

template <class L>
DenseKernel select_dense(DType d, int rows) {
    switch (rows) {
        case 1:
            return dense_of<L, 1>(d);
        case 2:
            return dense_of<L, 2>(d);
        case 4:
            return dense_of<L, 4>(d);
        case 6:
            if constexpr (L::max_rows >= 6) return dense_of<L, 6>(d);
            break;
        case 8:
            if constexpr (L::max_rows >= 8) return dense_of<L, 8>(d);
            break;
        case 12:
            if constexpr (L::max_rows >= 12) return dense_of<L, 12>(d);
            break;
    }
    return nullptr;
}

template <class L>
void prefetch_run(const std::uint8_t* p, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += 64)
        L::prefetch(p + i);
}

// Scales and offsets of groups begin … end of a tile as FP32, exact: [end − begin][16] each.
template <class L>
void decode_planes(const PackedPart& part, const std::uint8_t* tile, std::int64_t begin, std::int64_t end,
                   float* scale, float* offset) {
    using F = typename L::F;
    const std::int64_t super = (part.cols + super_group - 1) / super_group;
    const std::int64_t per_super = part.form.group_size > 0 ? super_group / part.form.group_size : 1;
    auto each = [&](float* out, auto value) {
        for (std::int64_t g = begin; g < end; ++g)
            L::store(out + (g - begin) * lanes, value(g));
    };
    const auto* halves = reinterpret_cast<const std::uint16_t*>(tile);
    const std::uint8_t* factors = tile + super * lanes * 2;
    switch (part.form.scale) {
        case ScaleForm::f16:
            each(scale, [&](std::int64_t g) { return L::load_f16(halves + g * lanes); });
            break;
        case ScaleForm::bf16:
            each(scale, [&](std::int64_t g) { return L::load_bf16(halves + g * lanes); });
            break;
        case ScaleForm::f32:
            std::memcpy(scale, tile + begin * lanes * 4, std::size_t(end - begin) * lanes * 4);
            break;
        case ScaleForm::f16_times_u6:
        case ScaleForm::f16_times_i8:
            each(scale, [&](std::int64_t g) {
                return L::mul(L::load_f16(halves + g / per_super * lanes),
                              L::load_i8(reinterpret_cast<const std::int8_t*>(factors) + g * lanes));
            });
            break;
    }
    const std::uint8_t* plane = tile + part.offset_plane;
    const auto* offset_halves = reinterpret_cast<const std::uint16_t*>(plane);
    switch (part.form.offset) {
        case OffsetForm::none:
            break;
        case OffsetForm::f16:
            each(offset, [&](std::int64_t g) { return L::load_f16(offset_halves + g * lanes); });
            break;
        case OffsetForm::f32:
            std::memcpy(offset, plane + begin * lanes * 4, std::size_t(end - begin) * lanes * 4);
            break;
        case OffsetForm::zero_point:  // −scale · z
            each(offset, [&](std::int64_t g) {
                const F z = part.form.integer == QuantInt::u4 ? L::load_u4(plane + g * 8)
                                                              : L::load_u8(plane + g * lanes);
                return L::mul(L::sub(L::zero(), L::load(scale + (g - begin) * lanes)), z);
            });
            break;
        case OffsetForm::f16_times_u6:
            each(offset, [&](std::int64_t g) {
                const F d = L::sub(L::zero(), L::load_f16(offset_halves + g / per_super * lanes));
                return L::mul(d, L::load_u8(plane + super * lanes * 2 + g * lanes));
            });
            break;
    }
}

// Where a row's quantized chunks go; see kernel_table.h for the panel.
struct QuantizedChunks {
    std::uint8_t* panel = nullptr;
    int chunk = activation_group;
    int rows = 1, r = 0;
    std::int64_t chunks = 0;

    std::uint8_t* at(std::int64_t c) const {
        return panel + std::size_t(c) * std::size_t(rows) * std::size_t(chunk + 12);
    }
    void put_extras(std::int64_t c, float scale, std::int32_t sum) const {
        std::uint8_t* extra = at(c) + rows * chunk;
        const float scaled_sum = scale * float(sum);
        const std::int32_t shift = -128 * sum;
        std::memcpy(extra + 4 * r, &scale, 4);
        std::memcpy(extra + 4 * (rows + r), &scaled_sum, 4);
        std::memcpy(extra + 4 * (2 * rows + r), &shift, 4);
    }
};

// Up to 16 groups of 32, so that their divisions are one.
template <class L>
void quantize_groups(const float* x, int n, std::int64_t first, const QuantizedChunks& to) {
    const auto magnitude = L::set1_i(0x7FFFFFFF);
    std::int32_t top_bits[lanes] = {};
    for (int g = 0; g < n; ++g) {
        const auto lo = L::load(x + g * activation_group), hi = L::load(x + g * activation_group + lanes);
        const auto top = L::max_i(L::and_i(L::bits(lo), magnitude), L::and_i(L::bits(hi), magnitude));
        top_bits[g] = L::largest_i(top);
    }
    float largest[lanes], scales[lanes], inverses[lanes];
    std::memcpy(largest, top_bits, sizeof largest);
    const auto top = L::load(largest), most = L::set1(127.0F);
    L::store(scales, L::div(top, most));
    L::store(inverses, L::div(most, top));
    for (int g = 0; g < n; ++g) {
        float scale = scales[g], inverse = inverses[g];
        if (top_bits[g] >= 0x7F800000) {
            scale = std::nanf("");
            inverse = 0.0F;
        } else if (!(largest[g] >= 1e-30F)) {
            scale = inverse = 0.0F;
        }
        auto q_lo = L::zero_i(), q_hi = L::zero_i();
        if (inverse != 0.0F) {
            q_lo = L::round(L::mul(L::load(x + g * activation_group), L::set1(inverse)));
            q_hi = L::round(L::mul(L::load(x + g * activation_group + lanes), L::set1(inverse)));
        }
        if (to.chunk == activation_group) {
            auto* values = reinterpret_cast<std::int8_t*>(to.at(first + g)) + to.r * activation_group;
            L::store_i8(values, q_lo);
            L::store_i8(values + lanes, q_hi);
            to.put_extras(first + g, scale, L::sum_i(L::add_i(q_lo, q_hi)));
            continue;
        }
        const std::int64_t c = 2 * (first + g);
        L::store_i8(reinterpret_cast<std::int8_t*>(to.at(c)) + to.r * lanes, q_lo);
        to.put_extras(c, scale, L::sum_i(q_lo));
        if (c + 1 >= to.chunks) continue;
        L::store_i8(reinterpret_cast<std::int8_t*>(to.at(c + 1)) + to.r * lanes, q_hi);
        to.put_extras(c + 1, scale, L::sum_i(q_hi));
    }
}

// Groups of 32: scale = largest / 127, values rounded half to even. A group with a NaN or an infinity gets a
// NaN scale, so that its row, and no other, is not finite; one whose largest is below 1e-30 counts as zero.
template <class L>
void quantize_row(const float* x, const std::int32_t* order, std::int64_t cols, int chunk, int rows, int r,
                  void* panel_memory) {
    auto* panel = static_cast<std::uint8_t*>(panel_memory);
    const std::int64_t groups = (cols + activation_group - 1) / activation_group;
    QuantizedChunks to{panel, chunk, rows, r, (cols + chunk - 1) / chunk};
    for (std::int64_t first = 0; first < groups; first += lanes) {
        const int n = int(groups - first < lanes ? groups - first : lanes);
        float gathered[lanes * activation_group];
        const float* from = x + first * activation_group;
        if (order != nullptr || (first + n) * activation_group > cols) {
            for (std::int64_t i = 0; i < std::int64_t(n) * activation_group; ++i) {
                const std::int64_t k = first * activation_group + i;
                gathered[i] = k < cols ? x[order != nullptr ? order[k] : k] : 0.0F;
            }
            from = gathered;
        }
        quantize_groups<L>(from, n, first, to);
    }
}

}  // namespace recto::cpu
