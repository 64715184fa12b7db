#include "kernels/cpu/packed.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "kernels/cpu/threads.h"
#include "kernels/error.h"

namespace recto::cpu {

namespace {

std::size_t round_up(std::size_t n, std::size_t to) {
    return (n + to - 1) / to * to;
}

const char* scale_name(ScaleForm s) {
    switch (s) {
        case ScaleForm::f16:
            return "f16";
        case ScaleForm::bf16:
            return "bf16";
        case ScaleForm::f16_times_u6:
            return "f16*u6";
        case ScaleForm::f16_times_i8:
            return "f16*i8";
        case ScaleForm::f32:
            return "f32";
    }
    return "?";
}

const char* offset_name(OffsetForm o) {
    switch (o) {
        case OffsetForm::none:
            return "";
        case OffsetForm::zero_point:
            return "+zero-point";
        case OffsetForm::f16:
            return "+f16";
        case OffsetForm::f16_times_u6:
            return "+f16*u6";
        case OffsetForm::f32:
            return "+f32";
    }
    return "?";
}

bool composed(const WeightForm& f) {
    return f.scale == ScaleForm::f16_times_u6 || f.scale == ScaleForm::f16_times_i8;
}

// Bytes of a tile's planes. `super` and `groups` are counts a row.
std::size_t scale_plane_bytes(const WeightForm& f, std::size_t super, std::size_t groups) {
    switch (f.scale) {
        case ScaleForm::f16:
        case ScaleForm::bf16:
            return groups * lanes * 2;
        case ScaleForm::f32:
            return groups * lanes * 4;
        case ScaleForm::f16_times_u6:
        case ScaleForm::f16_times_i8:
            return super * lanes * 2 + groups * lanes;
    }
    return 0;
}

std::size_t offset_plane_bytes(const WeightForm& f, std::size_t super, std::size_t groups) {
    switch (f.offset) {
        case OffsetForm::none:
            return 0;
        case OffsetForm::zero_point:
            return f.integer == QuantInt::u4 ? groups * lanes / 2 : groups * lanes;
        case OffsetForm::f16:
            return groups * lanes * 2;
        case OffsetForm::f32:
            return groups * lanes * 4;
        case OffsetForm::f16_times_u6:
            return super * lanes * 2 + groups * lanes;
    }
    return 0;
}

void lay_out(PackedPart& p, Activations mode) {
    p.tiles = (p.rows + lanes - 1) / lanes;
    const WeightForm& f = p.form;
    if (!f.grouped) {
        p.tile_bytes = round_up(std::size_t(p.cols) * lanes * dtype_bytes(f.dense), 64);
        return;
    }
    assert(f.group_size > 0 && p.cols % f.group_size == 0);
    assert(f.group_size == p.cols || f.group_size % 16 == 0);
    p.groups = p.cols / f.group_size;
    p.chunk = f.group_size % activation_group == 0 || p.groups == 1 ? activation_group : 16;
    p.chunks_per_group = (f.group_size + p.chunk - 1) / p.chunk;
    p.chunks = p.groups * p.chunks_per_group;
    const auto super = std::size_t((p.cols + super_group - 1) / super_group);
    p.offset_plane = round_up(scale_plane_bytes(f, super, std::size_t(p.groups)), 64);
    p.values = p.offset_plane + round_up(offset_plane_bytes(f, super, std::size_t(p.groups)), 64);
    const std::size_t chunk_bytes = std::size_t(p.chunk) * lanes / (f.integer == QuantInt::u4 ? 2 : 1);
    p.tile_bytes = p.values + std::size_t(p.chunks) * chunk_bytes;
    (void)mode;
}

// Buffers of one packing worker: the planes of the rows that are read at once.
struct TileBuffers {
    std::vector<std::uint8_t> q, zero_point, offset_factor;
    std::vector<float> scale, offset;
    std::vector<std::int8_t> scale_factor;
    std::vector<std::uint16_t> super_scale, super_offset;
    std::vector<std::uint8_t> dense;
};

void fit(TileBuffers& b, const PackedPart& p, std::size_t rows) {
    if (!p.form.grouped) {
        b.dense.resize(std::size_t(p.cols) * rows * dtype_bytes(p.form.dense));
        return;
    }
    const auto groups = std::size_t(p.groups) * rows;
    const auto super = std::size_t((p.cols + super_group - 1) / super_group) * rows;
    b.q.resize(std::size_t(p.cols) * rows);
    b.scale.resize(groups);
    b.offset.resize(groups);
    b.zero_point.resize(groups);
    b.scale_factor.resize(groups);
    b.offset_factor.resize(groups);
    b.super_scale.resize(super);
    b.super_offset.resize(super);
}

// plane[g][lane] = convert(rows[lane][g])
template <class T, class S, class Convert>
void transpose_plane(std::uint8_t* plane, const S* rows, std::size_t count, int n, Convert convert) {
    auto* out = reinterpret_cast<T*>(plane);
    for (int r = 0; r < n; ++r) {
        for (std::size_t g = 0; g < count; ++g)
            out[g * lanes + std::size_t(r)] = convert(rows[std::size_t(r) * count + g]);
    }
}

// Of n rows from row `first` of the buffers on.
void pack_planes(const PackedPart& p, const TileBuffers& b, std::size_t first, int n, std::uint8_t* tile) {
    const auto groups = std::size_t(p.groups);
    const auto super = std::size_t((p.cols + super_group - 1) / super_group);
    const std::size_t at = first * groups, super_at = first * super;
    auto same = [](auto v) { return v; };
    auto to_f16 = [](float v) { return f32_to_f16(v); };
    switch (p.form.scale) {
        case ScaleForm::f16:
            transpose_plane<std::uint16_t>(tile, b.scale.data() + at, groups, n, to_f16);
            break;
        case ScaleForm::bf16:
            transpose_plane<std::uint16_t>(tile, b.scale.data() + at, groups, n,
                                           [](float v) { return f32_to_bf16(v); });
            break;
        case ScaleForm::f32:
            transpose_plane<float>(tile, b.scale.data() + at, groups, n, same);
            break;
        case ScaleForm::f16_times_u6:
        case ScaleForm::f16_times_i8:
            transpose_plane<std::uint16_t>(tile, b.super_scale.data() + super_at, super, n, same);
            transpose_plane<std::int8_t>(tile + super * lanes * 2, b.scale_factor.data() + at, groups, n,
                                         same);
            break;
    }
    std::uint8_t* plane = tile + p.offset_plane;
    switch (p.form.offset) {
        case OffsetForm::none:
            break;
        case OffsetForm::f16:
            transpose_plane<std::uint16_t>(plane, b.offset.data() + at, groups, n, to_f16);
            break;
        case OffsetForm::f32:
            transpose_plane<float>(plane, b.offset.data() + at, groups, n, same);
            break;
        case OffsetForm::f16_times_u6:
            transpose_plane<std::uint16_t>(plane, b.super_offset.data() + super_at, super, n, same);
            transpose_plane<std::uint8_t>(plane + super * lanes * 2, b.offset_factor.data() + at, groups, n,
                                          same);
            break;
        case OffsetForm::zero_point:
            if (p.form.integer != QuantInt::u4) {
                transpose_plane<std::uint8_t>(plane, b.zero_point.data() + at, groups, n, same);
                break;
            }
            for (int r = 0; r < n; ++r) {
                for (std::size_t g = 0; g < groups; ++g) {
                    const std::uint8_t z = b.zero_point[at + std::size_t(r) * groups + g];
                    plane[g * 8 + std::size_t(r % 8)] |= std::uint8_t(r < 8 ? z & 15 : z << 4);
                }
            }
            break;
    }
}

// Four inputs of a row are one 32-bit word of the tile, so a row is written word by word, 64 bytes apart.
void pack_values(const PackedPart& p, const std::uint8_t* rows, int n, std::uint8_t* values) {
    const std::int64_t padded =
        p.chunk * p.chunks;  // a group is either a multiple of the chunk or the whole row
    std::vector<std::uint8_t> row(std::size_t(padded), 0);
    const bool nibbles = p.form.integer == QuantInt::u4;
    const std::uint8_t flip = p.form.integer == QuantInt::i8 ? 0x80 : 0;
    for (int r = 0; r < n; ++r) {
        const std::uint8_t* q = rows + std::size_t(r) * std::size_t(p.cols);
        std::uint8_t* out = values + 4 * r;
        if (padded != p.cols) {
            std::memcpy(row.data(), q, std::size_t(p.cols));
            q = row.data();
        }
        if (nibbles) {
            for (std::int64_t k = 0; k < padded; k += 8, out += 64) {
                std::uint32_t lo, hi;
                std::memcpy(&lo, q + k, 4);
                std::memcpy(&hi, q + k + 4, 4);
                const std::uint32_t both = lo | (hi << 4);
                std::memcpy(out, &both, 4);
            }
        } else {
            const std::uint32_t flips = flip * 0x01010101U;
            for (std::int64_t k = 0; k < padded; k += 4, out += 64) {
                std::uint32_t four;
                std::memcpy(&four, q + k, 4);
                four ^= flips;
                std::memcpy(out, &four, 4);
            }
        }
    }
}

template <class T>
void interleave(const std::uint8_t* rows, std::int64_t cols, int n, std::uint8_t* tile) {
    const auto* in = reinterpret_cast<const T*>(rows);
    auto* out = reinterpret_cast<T*>(tile);
    for (std::int64_t k0 = 0; k0 < cols; k0 += 64) {
        const std::int64_t k1 = std::min<std::int64_t>(k0 + 64, cols);
        for (int r = 0; r < n; ++r) {
            for (std::int64_t k = k0; k < k1; ++k)
                out[k * lanes + r] = in[r * cols + k];
        }
    }
}

void pack_dense_tile(const WeightRows& source, const PackedPart& p, std::int64_t t, TileBuffers& b) {
    std::uint8_t* tile = p.data.data() + std::size_t(t) * p.tile_bytes;
    const int n = int(std::min<std::int64_t>(lanes, p.rows - t * lanes));
    source.read_dense(t * lanes, n, b.dense.data());
    if (p.form.dense == DType::f32)
        interleave<std::uint32_t>(b.dense.data(), p.cols, n, tile);
    else
        interleave<std::uint16_t>(b.dense.data(), p.cols, n, tile);
}

// The tiles from t to `end`, read at once.
void pack_tiles(const WeightRows& source, const PackedPart& p, std::int64_t t, std::int64_t end,
                TileBuffers& b) {
    WeightPlanes planes;
    planes.q = b.q.data();
    if (composed(p.form)) {
        planes.super_scale = b.super_scale.data();
        planes.scale_factor = b.scale_factor.data();
    } else {
        planes.scale = b.scale.data();
    }
    if (p.form.offset == OffsetForm::zero_point) planes.zero_point = b.zero_point.data();
    if (p.form.offset == OffsetForm::f16 || p.form.offset == OffsetForm::f32) planes.offset = b.offset.data();
    if (p.form.offset == OffsetForm::f16_times_u6) {
        planes.super_offset = b.super_offset.data();
        planes.offset_factor = b.offset_factor.data();
    }
    source.read(t * lanes, std::min(end * lanes, p.rows) - t * lanes, planes);
    for (std::size_t first = 0; t < end; ++t, first += lanes) {
        std::uint8_t* tile = p.data.data() + std::size_t(t) * p.tile_bytes;
        const int n = int(std::min<std::int64_t>(lanes, p.rows - t * lanes));
        pack_planes(p, b, first, n, tile);
        pack_values(p, b.q.data() + first * std::size_t(p.cols), n, tile + p.values);
    }
}

void pack_part(const WeightRows& source, const PackedPart& p, ThreadPool& pool,
               std::vector<TileBuffers>& buffers) {
    const auto threads = std::int64_t(pool.threads());
    // Tiles read at once: what the source likes, as long as every worker has some.
    const std::int64_t run = p.form.grouped
                                 ? std::clamp<std::int64_t>(source.preferred_rows() / lanes, 1,
                                                            std::max<std::int64_t>(1, p.tiles / threads))
                                 : 1;
    const std::int64_t runs = (p.tiles + run - 1) / run;
    pool.parallel_for(runs, std::max<std::int64_t>(1, runs / (threads * 4)),
                      [&](int worker, std::int64_t begin, std::int64_t end) {
                          TileBuffers& b = buffers[std::size_t(worker)];
                          fit(b, p, std::size_t(run * lanes));
                          for (std::int64_t i = begin; i < end; ++i) {
                              if (p.form.grouped)
                                  pack_tiles(source, p, i * run, std::min((i + 1) * run, p.tiles), b);
                              else
                                  pack_dense_tile(source, p, i, b);
                          }
                      });
}

int input_of(PackedMatrix& m, const WeightRows& source, const PackedPart& p) {
    const auto order = source.input_permutation();
    assert(order.empty() || std::int64_t(order.size()) == p.cols);
    const bool quantized = p.form.grouped && m.mode != Activations::floating;
    PackedMatrix::Input in{{order.begin(), order.end()}, quantized ? p.chunk : activation_group, quantized};
    for (std::size_t i = 0; i < m.inputs.size(); ++i) {
        if (m.inputs[i].chunk == in.chunk && m.inputs[i].quantized == quantized &&
            m.inputs[i].permutation == in.permutation) {
            return int(i);
        }
    }
    m.inputs.push_back(std::move(in));
    return int(m.inputs.size()) - 1;
}

}  // namespace

std::size_t PackedMatrix::bytes() const {
    std::size_t n = 0;
    for (const PackedPart& p : parts)
        n += p.data.size() + p.bias.size() * sizeof(float);
    return n;
}

std::string PackedMatrix::describe() const {
    std::string s;
    for (const PackedPart& p : parts) {
        std::string one;
        if (p.form.grouped) {
            const char* q = p.form.integer == QuantInt::u4   ? "u4"
                            : p.form.integer == QuantInt::u8 ? "u8"
                                                             : "i8";
            one = std::string(q) + " g" + std::to_string(p.form.group_size) + " " + scale_name(p.form.scale) +
                  offset_name(p.form.offset) + ", " +
                  (mode == Activations::int8         ? "int8"
                   : mode == Activations::int8_twice ? "int8 (twice)"
                                                     : "float32") +
                  " activations";
        } else {
            one = std::string(dtype_name(p.form.dense)) + ", float32 activations";
        }
        if (s.find(one) == std::string::npos) s += (s.empty() ? "" : " | ") + one;
    }
    return s + ", " + isa;
}

std::unique_ptr<PackedMatrix> pack_matrix(std::span<const WeightRows* const> sources, Activations mode,
                                          ThreadPool& pool, const std::string& isa, WeightMemory& memory) {
    assert(!sources.empty());
    auto m = std::make_unique<PackedMatrix>();
    m->mode = mode;
    m->isa = isa;
    m->cols_ = sources[0]->cols();
    for (const WeightRows* source : sources) {
        assert(source->cols() == m->cols_);
        PackedPart p;
        p.rows = source->rows();
        p.cols = source->cols();
        p.first_output = m->rows_;
        p.form = source->form();
        lay_out(p, mode);
        p.data = memory.take(std::size_t(p.tiles) * p.tile_bytes);
        p.input = input_of(*m, *source, p);
        if (const auto bias = source->bias(); !bias.empty()) {
            assert(std::int64_t(bias.size()) == p.rows);
            p.bias.assign(std::size_t(p.tiles) * lanes, 0.0F);
            std::copy(bias.begin(), bias.end(), p.bias.begin());
        }
        m->rows_ += p.rows;
        m->parts.push_back(std::move(p));
    }
    std::vector<TileBuffers> buffers(std::size_t(pool.threads()));
    for (std::size_t i = 0; i < sources.size(); ++i)
        pack_part(*sources[i], m->parts[i], pool, buffers);
    return m;
}

namespace {

float plane_scale(const PackedPart& p, const std::uint8_t* tile, std::int64_t g, int lane) {
    const auto at = std::size_t(g) * lanes + std::size_t(lane);
    const std::int64_t super = (p.cols + super_group - 1) / super_group;
    std::uint16_t half;
    switch (p.form.scale) {
        case ScaleForm::f32: {
            float v;
            std::memcpy(&v, tile + at * 4, 4);
            return v;
        }
        case ScaleForm::f16:
        case ScaleForm::bf16:
            std::memcpy(&half, tile + at * 2, 2);
            return p.form.scale == ScaleForm::f16 ? f16_to_f32(half) : bf16_to_f32(half);
        case ScaleForm::f16_times_u6:
        case ScaleForm::f16_times_i8: {
            const std::int64_t s = g * p.form.group_size / super_group;
            std::memcpy(&half, tile + (std::size_t(s) * lanes + std::size_t(lane)) * 2, 2);
            return f16_to_f32(half) * float(std::int8_t(tile[std::size_t(super) * lanes * 2 + at]));
        }
    }
    return 0;
}

float plane_offset(const PackedPart& p, const std::uint8_t* tile, std::int64_t g, int lane, float scale) {
    const std::uint8_t* plane = tile + p.offset_plane;
    const auto at = std::size_t(g) * lanes + std::size_t(lane);
    std::uint16_t half;
    switch (p.form.offset) {
        case OffsetForm::none:
            return 0;
        case OffsetForm::f32: {
            float v;
            std::memcpy(&v, plane + at * 4, 4);
            return v;
        }
        case OffsetForm::f16:
            std::memcpy(&half, plane + at * 2, 2);
            return f16_to_f32(half);
        case OffsetForm::zero_point: {
            if (p.form.integer != QuantInt::u4) return -scale * float(plane[at]);
            const std::uint8_t two = plane[g * 8 + lane % 8];
            return -scale * float(lane < 8 ? two & 15 : two >> 4);
        }
        case OffsetForm::f16_times_u6: {
            const std::int64_t super = (p.cols + super_group - 1) / super_group;
            const std::int64_t s = g * p.form.group_size / super_group;
            std::memcpy(&half, plane + (std::size_t(s) * lanes + std::size_t(lane)) * 2, 2);
            return -f16_to_f32(half) * float(plane[std::size_t(super) * lanes * 2 + at]);
        }
    }
    return 0;
}

int value_at(const PackedPart& p, const std::uint8_t* values, std::int64_t k, int lane) {
    if (p.form.integer == QuantInt::u4) {
        const std::uint8_t two = values[k / 8 * 64 + lane * 4 + k % 4];
        return k % 8 < 4 ? two & 15 : two >> 4;
    }
    const int v = values[k / 4 * 64 + lane * 4 + k % 4];
    return p.form.integer == QuantInt::i8 ? v - 128 : v;
}

}  // namespace

void unpack_row(const PackedMatrix& matrix, std::int64_t row, float scale, float* out) {
    const PackedPart* part = &matrix.parts.back();
    for (const PackedPart& p : matrix.parts) {
        if (row >= p.first_output && row < p.first_output + p.rows) part = &p;
    }
    const std::int64_t local = row - part->first_output;
    assert(local >= 0 && local < part->rows);
    const std::uint8_t* tile = part->tile(local / lanes);
    const int lane = int(local % lanes);
    const auto& order = matrix.inputs[std::size_t(part->input)].permutation;
    float w_scale = 0, w_offset = 0;
    for (std::int64_t k = 0; k < part->cols; ++k) {
        float w;
        if (part->form.grouped) {
            if (k % part->form.group_size == 0) {
                w_scale = plane_scale(*part, tile, k / part->form.group_size, lane);
                w_offset = plane_offset(*part, tile, k / part->form.group_size, lane, w_scale);
            }
            w = w_scale * float(value_at(*part, tile + part->values, k, lane)) + w_offset;
        } else if (part->form.dense == DType::f32) {
            std::memcpy(&w, tile + (k * lanes + lane) * 4, 4);
        } else {
            std::uint16_t half;
            std::memcpy(&half, tile + (k * lanes + lane) * 2, 2);
            w = widen_16(half, part->form.dense);
        }
        out[order.empty() ? k : order[std::size_t(k)]] = w * scale;
    }
}

}  // namespace recto::cpu
