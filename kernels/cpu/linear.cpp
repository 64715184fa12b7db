// The CPU's linear: rows become panels, outputs become tiles of 16, and a work item is a run of tiles against
// a band of panels that stays in the second-level cache.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "kernels/cpu/backend.h"
#include "kernels/cpu/packed.h"
#include "kernels/cpu/select.h"

namespace recto::cpu {

namespace {

// [cols padded to 32][panel rows]; the padding is zero. A row of `zero_cols` zeros when there is no x.
void fill_float_panel(const float* x, const std::int32_t* order, std::int64_t cols, int panel_rows, int r,
                      float* panel, std::int64_t zero_cols = 0) {
    const std::int64_t padded = (std::max(cols, zero_cols) + 31) / 32 * 32;
    for (std::int64_t k = 0; k < padded; ++k) {
        panel[k * panel_rows + r] = k < cols ? x[order != nullptr ? order[k] : k] : 0.0F;
    }
}

// What rounding to int8 left of a row: x − scale · q, in the panel's own order of inputs. Plain loops: the
// same bits under every instruction set.
void subtract_quantized(const float* x, const std::int32_t* order, std::int64_t cols, int chunk,
                        int panel_rows, int r, const std::uint8_t* panel, float* left) {
    for (std::int64_t c = 0; c * chunk < cols; ++c) {
        const std::uint8_t* at = panel + std::size_t(c) * int8_panel_bytes(1, chunk, panel_rows);
        const auto* q = reinterpret_cast<const std::int8_t*>(at) + r * chunk;
        float scale;
        std::memcpy(&scale, at + panel_rows * chunk + 4 * r, sizeof scale);
        const std::int64_t first = c * chunk, n = std::min<std::int64_t>(chunk, cols - first);
        for (std::int64_t i = 0; i < n; ++i) {
            const float taken = scale * float(q[i]);
            left[first + i] = x[order != nullptr ? order[first + i] : first + i] - taken;
        }
    }
}

}  // namespace

class LinearRun {
  public:
    LinearRun(CpuBackend& backend, Tensor x, const PackedMatrix& w, Epilogue epilogue, Tensor out)
        : backend_(backend),
          kernels_(backend.kernels_),
          x_(x),
          w_(w),
          epilogue_(epilogue),
          out_(out),
          terms_(w.mode == Activations::int8_twice ? 2 : 1),
          plan_(plan_panels(x.rows * terms_, panel_rows(backend.kernels_, w))) {}

    void prepare_inputs() {
        if (backend_.panels_.size() < w_.inputs.size()) backend_.panels_.resize(w_.inputs.size());
        for (std::size_t i = 0; i < w_.inputs.size(); ++i) {
            const PackedMatrix::Input& in = w_.inputs[i];
            const std::int64_t chunks = (x_.cols + in.chunk - 1) / in.chunk;
            Input form;
            form.stride = panel_bytes(in, chunks, plan_.size);
            form.panels = backend_.panels_[i].get<std::uint8_t>(
                form.stride * std::size_t(plan_.full) + panel_bytes(in, chunks, plan_.tail_size) + 64);
            inputs_.push_back(form);
            const std::int32_t* order = in.permutation.empty() ? nullptr : in.permutation.data();
            // Whole panels, so that no two workers write into one cache line.
            const std::int64_t grain = x_.rows > max_panel_rows ? plan_.size / terms_ : 4;
            backend_.pool_.parallel_for(x_.rows, grain,
                                        [&](int worker, std::int64_t begin, std::int64_t end) {
                                            for (std::int64_t r = begin; r < end; ++r)
                                                fill_row(worker, in, form, order, r);
                                        });
        }
    }

    // Gated epilogues need gate and up tiles of the same columns.
    bool pairable() const {
        if (w_.parts.size() == 2) return w_.parts[0].rows == w_.parts[1].rows;
        return w_.parts.size() == 1 && w_.parts[0].rows % (2 * lanes) == 0;
    }

    void run() {
        const bool gated = epilogue_ == Epilogue::silu_mul || epilogue_ == Epilogue::gelu_mul;
        units_ = 0;
        if (gated) {
            units_ = w_.parts.size() == 2 ? w_.parts[0].tiles : w_.parts[0].tiles / 2;
        } else {
            for (const PackedPart& p : w_.parts)
                units_ += p.tiles;
        }
        std::size_t row_bytes = 0;
        for (const Input& in : inputs_)
            row_bytes = std::max(row_bytes, in.stride / std::size_t(plan_.size) + 1);
        const Schedule s =
            schedule_linear(units_, plan_.panels(), plan_.size, row_bytes, backend_.pool_.threads());
        const std::int64_t count = units_ * s.bands, chunks = (count + s.grain - 1) / s.grain;
        backend_.shares_.divide(chunks);
        backend_.pool_.parallel_for(chunks, 1, [&](int worker, std::int64_t first, std::int64_t last) {
            for (std::int64_t i = first; i < last; ++i) {
                const Shares::Chunk chunk = backend_.shares_.take(worker);
                run_chunk(worker, chunk, s, gated);
            }
            release_tiles(worker);
        });
    }

  private:
    struct Input {
        std::uint8_t* panels = nullptr;
        std::size_t stride = 0;  // bytes of a full panel
    };

    // Row r into its place, or its two terms into two neighbouring places: every panel size but 1 is even,
    // and two terms never meet a panel of 1.
    void fill_row(int worker, const PackedMatrix::Input& in, const Input& form, const std::int32_t* order,
                  std::int64_t r) {
        const std::int64_t place = r * terms_, p = place / plan_.size;
        const int size = p < plan_.full ? plan_.size : plan_.tail_size;
        const int at = int(place % plan_.size);
        std::uint8_t* panel = form.panels + std::size_t(p) * form.stride;
        const float* row = x_.f32() + r * x_.row_stride;
        if (!in.quantized) {
            fill_float_panel(row, order, x_.cols, size, at, reinterpret_cast<float*>(panel));
            if (terms_ == 2)
                fill_float_panel(nullptr, nullptr, 0, size, at + 1, reinterpret_cast<float*>(panel), x_.cols);
            return;
        }
        kernels_.quantize(row, order, x_.cols, in.chunk, size, at, panel);
        if (terms_ == 1) return;
        float* left = backend_.workers_[std::size_t(worker)].left.get<float>(std::size_t(x_.cols));
        subtract_quantized(row, order, x_.cols, in.chunk, size, at, panel, left);
        kernels_.quantize(left, nullptr, x_.cols, in.chunk, size, at + 1, panel);
    }

    static int panel_rows(const KernelTable& kernels, const PackedMatrix& w) {
        for (const PackedMatrix::Input& in : w.inputs) {
            if (!in.quantized) return kernels.max_rows;
        }
        return kernels.int8_rows;
    }

    // A tile of the work: a unit's only one, or its gate (0) and up (1).
    struct Place {
        std::int64_t unit = 0;
        int which = 0;
    };

    void run_chunk(int worker, const Shares::Chunk& chunk, const Schedule& s, bool gated) {
        const std::int64_t begin = chunk.index * s.grain;
        const std::int64_t end = std::min(begin + s.grain, units_ * s.bands);
        const std::int64_t stop = std::min(chunk.run_end * s.grain, units_);
        if (streams() && chunk.starts_run) ask_for_first(begin, stop);
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t band = i / units_, unit = i % units_;
            const std::int64_t first = band * s.band_panels;
            const std::int64_t last = std::min(first + s.band_panels, plan_.panels());
            if (gated)
                gated_unit(worker, unit, first, last, stop);
            else
                plain_unit(worker, unit, first, last, stop);
        }
    }

    struct Prepared {  // a tile, ready to meet panels
        const PackedPart* part = nullptr;
        GroupedTile tile;
        TileKernel full = nullptr, tail = nullptr;  // of panels of plan_.size and plan_.tail_size rows
        const std::uint8_t* start = nullptr;        // of the packed tile
        float *scale = nullptr, *offset = nullptr;  // scratch of the decoded planes
    };

    // A single panel meets a tile once, and memory is the limit: weights are then asked for in the order in
    // which this worker reads them, and planes decoded piece by piece between products, so that the stream
    // never pauses.
    bool streams() const {
        return plan_.panels() == 1 && plan_.size <= kernels_.max_rows && w_.mode != Activations::floating;
    }

    static std::size_t panel_bytes(const PackedMatrix::Input& in, std::int64_t chunks, int rows) {
        if (in.quantized) return int8_panel_bytes(chunks, in.chunk, rows);
        return std::size_t((chunks * in.chunk + 31) / 32 * 32) * std::size_t(rows) * sizeof(float);
    }

    // `plane`: floats of the larger plane of the unit's tiles; `which`: the first or the second of them.
    Prepared prepare(int worker, const PackedPart& part, std::int64_t t, std::size_t plane, int which) {
        Prepared p;
        p.part = &part;
        const std::uint8_t* tile = part.tile(t);
        p.tile.values = tile + part.values;
        if (!part.form.grouped) return p;
        CpuBackend::Worker& w = backend_.workers_[std::size_t(worker)];
        p.scale = w.scale.get<float>(2 * plane) + (which == 0 ? 0 : plane);
        p.offset = w.offset.get<float>(2 * plane) + (which == 0 ? 0 : plane);
        p.start = tile;
        if (!streams()) kernels_.planes(part, tile, 0, part.groups, p.scale, p.offset);
        p.tile.scale = p.scale;
        p.tile.offset = p.offset;
        p.tile.groups = part.groups;
        p.tile.chunks_per_group = part.chunks_per_group;
        p.tile.chunks = part.chunks;
        p.tile.group_size = part.form.group_size;
        const TileVariant variant = variant_of(part.form, part.chunk, w_.mode);
        if (plan_.full > 0) p.full = kernels_.tile(variant, plan_.size);
        if (plan_.tail_rows > 0) p.tail = kernels_.tile(variant, plan_.tail_size);
        if (uses_tiles()) p.tile.bytes = bytes_of(w, part, p.tile.values, which);
        return p;
    }

    bool uses_tiles() const { return kernels_.configure_tiles != nullptr && plan_.size > kernels_.max_rows; }

    // One byte a value: as packed, or 4-bit ones unpacked into half `which` of the scratch.
    const std::uint8_t* bytes_of(CpuBackend::Worker& w, const PackedPart& part, const std::uint8_t* values,
                                 int which) const {
        if (part.form.integer != QuantInt::u4) return values;
        std::int64_t most = 0;
        for (const PackedPart& p : w_.parts)
            most = std::max(most, p.chunks * p.chunk);
        const std::size_t room = std::size_t(most) * lanes;
        std::uint8_t* out = w.bytes.get<std::uint8_t>(2 * room) + (which == 0 ? 0 : room);
        kernels_.unpack_nibbles(values, std::size_t(part.chunks * part.chunk) * lanes / 2, out);
        return out;
    }

    void multiply(int worker, const Prepared& p, const Place& place, std::int64_t stop, std::int64_t panel,
                  float* sums) {
        const Input& in = inputs_[std::size_t(p.part->input)];
        const std::uint8_t* x = in.panels + std::size_t(panel) * in.stride;
        const int size = panel < plan_.full ? plan_.size : plan_.tail_size;
        if (!p.part->form.grouped) {
            kernels_.dense(p.part->form.dense, size)(p.tile.values, p.part->cols,
                                                     reinterpret_cast<const float*>(x), sums);
        } else if (streams()) {
            stream(p, place, stop, x, size, sums);
        } else {
            if (uses_tiles() && size > kernels_.max_rows) shape_tiles(worker, p.part->chunk);
            (panel < plan_.full ? p.full : p.tail)(p.tile, x, sums);
        }
        if (terms_ == 2) add_terms(sums, size / 2);
    }

    // The part that holds a tile, and its index there.
    std::pair<const PackedPart*, std::int64_t> tile_at(const Place& place) const {
        const bool gated = epilogue_ == Epilogue::silu_mul || epilogue_ == Epilogue::gelu_mul;
        if (gated && w_.parts.size() == 2) return {&w_.parts[std::size_t(place.which)], place.unit};
        if (gated) return {&w_.parts[0], place.which * w_.parts[0].tiles / 2 + place.unit};
        std::size_t i = 0;
        std::int64_t t = place.unit;
        while (t >= w_.parts[i].tiles)
            t -= w_.parts[i++].tiles;
        return {&w_.parts[i], t};
    }

    // A grouped tile is read in pieces of about 512 inputs: 4 KiB of 4-bit values and their share of the
    // planes.
    struct Piece {
        std::int64_t first_group = 0, last_group = 0;
        std::size_t planes = 0, planes_bytes = 0;  // from the tile's start
        std::size_t values = 0, values_bytes = 0;
    };
    static std::int64_t groups_a_piece(const PackedPart& part) {
        const std::int64_t n = std::max<std::int64_t>(1, part.cols / 512);
        return (part.groups + n - 1) / n;
    }
    static std::int64_t pieces(const PackedPart& part) {
        return part.form.grouped ? (part.groups + groups_a_piece(part) - 1) / groups_a_piece(part) : 0;
    }
    static Piece piece_of(const PackedPart& part, std::int64_t index) {
        Piece p;
        p.first_group = index * groups_a_piece(part);
        p.last_group = std::min(p.first_group + groups_a_piece(part), part.groups);
        const auto share = [&](std::size_t bytes, std::int64_t group) {
            return bytes * std::size_t(group) / std::size_t(part.groups);
        };
        p.planes = share(part.values, p.first_group) / 64 * 64;
        p.planes_bytes = share(part.values, p.last_group) / 64 * 64 - p.planes;
        const std::size_t all = part.tile_bytes - part.values;
        p.values = part.values + share(all, p.first_group);
        p.values_bytes = part.values + share(all, p.last_group) - p.values;
        return p;
    }

    // Moves `index`, counted from a tile's first piece, on to the tile that it falls into, before unit
    // `stop`; false: none.
    bool settle(Place& place, std::int64_t stop, std::int64_t& index) const {
        const bool gated = epilogue_ == Epilogue::silu_mul || epilogue_ == Epilogue::gelu_mul;
        while (place.unit < stop) {
            const std::int64_t n = pieces(*tile_at(place).first);
            if (index < n) return true;
            index -= n;
            if (gated && place.which == 0) {
                place.which = 1;
                continue;
            }
            place.which = 0;
            ++place.unit;
        }
        return false;
    }

    // How far ahead weights are asked for, in pieces. 12 KiB is what a core of 40 GB/s misses in 300 ns;
    // small tiles belong to small matrices, where filling a longer pipe costs more than it brings.
    static std::int64_t pieces_ahead(const PackedPart& part) {
        const std::int64_t n = std::max<std::int64_t>(1, pieces(part));
        const std::int64_t bytes = std::int64_t(part.tile_bytes) / n, distance = n == 1 ? 8192 : 12288;
        return (distance + bytes - 1) / bytes;
    }

    void ask_for_first(std::int64_t unit, std::int64_t stop) const {
        const std::int64_t n = pieces_ahead(*tile_at({unit, 0}).first);
        for (std::int64_t i = 0; i < n; ++i) {
            Place place{unit, 0};
            std::int64_t index = i;
            if (!settle(place, stop, index)) return;
            const auto [part, t] = tile_at(place);
            const Piece piece = piece_of(*part, index);
            kernels_.prefetch(part->tile(t) + piece.planes, piece.planes_bytes);
            kernels_.prefetch(part->tile(t) + piece.values, piece.values_bytes);
        }
    }

    void stream(const Prepared& p, const Place& place, std::int64_t stop, const std::uint8_t* x, int size,
                float* sums) const {
        const PackedPart& part = *p.part;
        GroupedTile tile = p.tile;
        const TileKernel kernel = plan_.full > 0 ? p.full : p.tail;
        const std::int64_t n = pieces(part), distance = pieces_ahead(part);
        for (std::int64_t i = 0; i < n; ++i) {
            const Piece piece = piece_of(part, i);
            tile.values = tile.ahead = p.start + piece.values;
            Place later = place;
            std::int64_t index = i + distance;
            if (settle(later, stop, index)) {
                const auto [next_part, t] = tile_at(later);
                const Piece next = piece_of(*next_part, index);
                kernels_.prefetch(next_part->tile(t) + next.planes, next.planes_bytes);
                tile.ahead = next_part->tile(t) + next.values;
            }
            kernels_.planes(part, p.start, piece.first_group, piece.last_group, p.scale, p.offset);
            tile.groups = piece.last_group - piece.first_group;
            tile.continues = i > 0;
            kernel(tile, x + int8_panel_bytes(piece.first_group * part.chunks_per_group, part.chunk, size),
                   sums);
        }
    }

    // [2 rows][16] → [rows][16]
    static void add_terms(float* sums, int rows) {
        for (int r = 0; r < rows; ++r) {
            for (int i = 0; i < lanes; ++i)
                sums[r * lanes + i] = sums[2 * r * lanes + i] + sums[(2 * r + 1) * lanes + i];
        }
    }

    void shape_tiles(int worker, int chunk) {
        int& shaped = backend_.workers_[std::size_t(worker)].tile_chunk;
        if (shaped == chunk) return;
        kernels_.configure_tiles(chunk);
        shaped = chunk;
    }
    void release_tiles(int worker) {
        int& shaped = backend_.workers_[std::size_t(worker)].tile_chunk;
        if (shaped != 0) kernels_.release_tiles();
        shaped = 0;
    }

    int rows_of(std::int64_t panel) const {
        const std::int64_t whole = plan_.size / terms_;
        return int(std::min<std::int64_t>(whole, x_.rows - panel * whole));
    }
    float* output(std::int64_t panel, std::int64_t column) const {
        return out_.f32() + panel * (plan_.size / terms_) * out_.row_stride + column;
    }
    static const float* bias(const PackedPart& p, std::int64_t t) {
        return p.bias.empty() ? nullptr : p.bias.data() + t * lanes;
    }

    void plain_unit(int worker, std::int64_t unit, std::int64_t first, std::int64_t last, std::int64_t stop) {
        const Place place{unit, 0};
        const auto [found, t] = tile_at(place);
        const PackedPart& part = *found;
        const Prepared p = prepare(worker, part, t, std::size_t(part.groups) * lanes, 0);
        alignas(64) float sums[max_panel_rows * lanes];
        const int n = int(std::min<std::int64_t>(lanes, part.rows - t * lanes));
        for (std::int64_t panel = first; panel < last; ++panel) {
            multiply(worker, p, place, stop, panel, sums);
            kernels_.epilogue(epilogue_, sums, nullptr, bias(part, t), nullptr, rows_of(panel),
                              output(panel, part.first_output + t * lanes), out_.row_stride, n);
        }
    }

    void gated_unit(int worker, std::int64_t unit, std::int64_t first, std::int64_t last, std::int64_t stop) {
        const auto [gate_part, gate_tile] = tile_at({unit, 0});
        const auto [up_part, up_tile] = tile_at({unit, 1});
        const PackedPart &gate = *gate_part, &up = *up_part;
        const std::int64_t width = w_.parts.size() == 2 ? gate.rows : gate.rows / 2;
        const auto plane = std::size_t(std::max(gate.groups, up.groups)) * lanes;
        const Prepared g = prepare(worker, gate, unit, plane, 0);
        const Prepared u = prepare(worker, up, up_tile, plane, 1);
        alignas(64) float gate_sums[max_panel_rows * lanes], up_sums[max_panel_rows * lanes];
        const int n = int(std::min<std::int64_t>(lanes, width - unit * lanes));
        for (std::int64_t panel = first; panel < last; ++panel) {
            multiply(worker, g, {unit, 0}, stop, panel, gate_sums);
            multiply(worker, u, {unit, 1}, stop, panel, up_sums);
            kernels_.epilogue(epilogue_, gate_sums, up_sums, bias(gate, unit), bias(up, up_tile),
                              rows_of(panel), output(panel, unit * lanes), out_.row_stride, n);
        }
    }

    CpuBackend& backend_;
    const KernelTable& kernels_;
    Tensor x_;
    const PackedMatrix& w_;
    Epilogue epilogue_;
    Tensor out_;
    int terms_;  // places in a panel that a row takes
    PanelPlan plan_;
    std::int64_t units_ = 0;  // of work: tiles, or pairs of gate and up
    std::vector<Input> inputs_;
};

void CpuBackend::linear(Tensor x, const PackedWeight& weight, Epilogue epilogue, Tensor out) {
    const auto& w = static_cast<const PackedMatrix&>(weight);
    const bool gated = epilogue == Epilogue::silu_mul || epilogue == Epilogue::gelu_mul;
    assert(x.cols == w.cols() && x.rows == out.rows);
    assert(out.cols == (gated ? w.rows() / 2 : w.rows()));
    if (x.rows == 0) return;
    LinearRun direct(*this, x, w, epilogue, out);
    if (!gated || direct.pairable()) {
        direct.prepare_inputs();
        direct.run();
        return;
    }
    // Gate and up do not fall on tiles of their own: all outputs first, then the gate.
    Tensor both{gate_up_.get<float>(std::size_t(x.rows * w.rows())), DType::f32, x.rows, w.rows(), w.rows()};
    LinearRun plain(*this, x, w, Epilogue::store, both);
    plain.prepare_inputs();
    plain.run();
    pool_.parallel_for(x.rows, 4, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            for (std::int64_t c = 0; c < out.cols; c += lanes) {
                const int n = int(std::min<std::int64_t>(lanes, out.cols - c));
                float gate[lanes] = {}, up[lanes] = {};
                std::memcpy(gate, both.f32() + r * both.row_stride + c, std::size_t(n) * 4);
                std::memcpy(up, both.f32() + r * both.row_stride + out.cols + c, std::size_t(n) * 4);
                kernels_.epilogue(epilogue, gate, up, nullptr, nullptr, 1, out.f32() + r * out.row_stride + c,
                                  out.row_stride, n);
            }
        }
    });
}

}  // namespace recto::cpu
