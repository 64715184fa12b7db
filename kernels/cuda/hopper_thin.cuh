// The product of quantized weights with few tokens (up to 16), on Hopper cards. Memory is the bound, so
// nothing but reading may take time: no sum leaves its block, and no warp waits for another one's weights.
//
// The weight's rows are cut into slabs of 16, the height of the synchronous tensor-core product. A block of
// threads has some slabs whole (SlabCut). Its 16 warps share them out by slab and by chunk of 128 inputs;
// each streams its own part through a ring of its own, filled by the bulk tensor copy engine: one lane asks,
// and begins before the kernel before has ended (programmatic dependent launch: weights do not depend on it).
// Tokens come into a ring for all warps. At the end the warps' sums meet in shared memory and are added in a
// fixed order.
#pragma once
#include <type_traits>

#include "kernels/cuda/hopper_pipeline.cuh"
#include "kernels/cuda/hopper_thin_products.cuh"
#include "kernels/cuda/row_writer.cuh"

namespace recto::cuda {

constexpr int thin_warps = 16;
constexpr int thin_threads = 32 * thin_warps;
constexpr int warp_slabs = most_warp_slabs(TileKind::u4);
constexpr int sum_stride = 20;  // floats of a token's 16 sums: no two lanes of a warp write one bank

// Pieces of quarters of blocks, of their integers, scales and second plane (tensor_map.h).
struct ThinMaps {
    CUtensorMap x, integers, scales, second;
};

constexpr int most_depth = 8;

// A power of two, and twice as many as warps that take a pass's spans in turns.
constexpr int thin_x_stages = 16;

constexpr int thin_shared = 223 * 1024;  // of a block, the most that there is beside the barriers

template <TileKind Kind, class T, int Tokens>
struct ThinWarp {
    using Products = ThinProducts<Kind, T, Tokens>;
    using ChunkTokens = typename Products::ChunkTokens;
    static constexpr int values = Products::values, slab_tile = Products::slab_tile,
                         integers = Products::integers;
    static constexpr std::uint32_t x_stages = thin_x_stages, x_chunk = Tokens * chunk_k * 2;

    const ThinArgs& a;
    const ThinMaps& maps;
    std::uint32_t shared;       // x ring, then the warps' rings
    std::uint32_t full, empty;  // of the x ring
    std::uint32_t arrived;      // of this warp's slots
    int warp, lane;

    int numbers[warp_slabs];  // of this warp's slabs: block · 4 + quarter
    int slabs = 0;
    int first_span = 0, stride = 1;
    int next_slot = 0;      // to be asked for
    int slot = 0, lap = 0;  // to be read

    __device__ std::uint32_t x_bytes() const { return x_chunk * std::uint32_t(a.span); }
    __device__ std::uint32_t ring_of(int w) const {
        return shared + x_stages * x_bytes() + std::uint32_t(w * a.ring_bytes);
    }
    __device__ int slot_bytes() const { return a.cut.warp_slabs * a.slab_bytes; }

    // Slab j of the pass's: its number, block · 4 + quarter.
    __device__ int slab_number(int first_unit, int j) const {
        if (!a.w.gated) return first_unit + j;
        const int unit = first_unit + j / 2;  // a gate slab, then the up slab that belongs to it
        return unit / 2 * 4 + unit % 2 + 2 * (j % 2);
    }

    __device__ void begin(int first_unit, int units) {
        const int groups = 1 << a.cut.group_shift, mine = warp % groups;
        const int all = units * (a.w.gated ? 2 : 1);
        first_span = warp / groups;
        stride = thin_warps / groups;
        slabs = max(0, (all - mine + groups - 1) / groups);
#pragma unroll
        for (int i = 0; i < warp_slabs; ++i)
            numbers[i] = slab_number(first_unit, mine + i * groups);
    }

    __device__ static void copy(std::uint32_t to, const CUtensorMap& map, int quarter, int row, int block,
                                std::uint32_t bar) {
        asm volatile(
            "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
            "%4, %5}], [%6];" ::"r"(to),
            "l"(&map), "r"(0), "r"(quarter), "r"(row), "r"(block), "r"(bar)
            : "memory");
    }

    // Asks for a span of this warp's slabs. By one lane.
    __device__ void ask(int span) {
        const int chunk = span * a.span;
        const int group = a.chunks_a_group > 1 ? chunk / a.chunks_a_group : chunk * a.groups_a_chunk;
        const std::uint32_t bar = arrived + std::uint32_t(next_slot) * 8;
        std::uint32_t to = ring_of(warp) + std::uint32_t(next_slot * slot_bytes());
        barrier_expect(bar, std::uint32_t(slabs * a.asked_bytes));
#pragma unroll
        for (int i = 0; i < warp_slabs; ++i) {
            if (i >= slabs) break;
            const int block = numbers[i] / 4, quarter = numbers[i] % 4;
            copy(to, maps.integers, quarter, 2 * chunk, block, bar);
            copy(to + std::uint32_t(a.scales_at), maps.scales, quarter, group, block, bar);
            if (a.w.mode != SecondPlane::none)
                copy(to + std::uint32_t(a.second_at), maps.second, quarter, group, block, bar);
            to += std::uint32_t(a.slab_bytes);
        }
        if (++next_slot == a.depth) next_slot = 0;
    }

    __device__ void ask_first() {
        if (lane != 0) return;
        for (int i = 0; i < a.depth; ++i)
            if (const int span = first_span + i * stride; span < a.spans) ask(span);
    }

    // The tokens of a span. `turn` counts spans through all passes.
    __device__ void ask_x(int span, std::uint32_t turn) const {
        const std::uint32_t stage = turn % x_stages, bar = full + stage * 8;
        if (turn >= x_stages) barrier_wait(empty + stage * 8, (turn / x_stages - 1) & 1);
        barrier_expect(bar, x_bytes());
        for (int t = 0; t < 2 * a.span; ++t)
            copy_box(shared + stage * x_bytes() + std::uint32_t(t * Tokens) * 128, &maps.x,
                     (span * a.span * 2 + t) * tile_k, 0, bar);
    }

    // All spans of this warp. Of the warps that take the same spans the first asks for their tokens: for a
    // span whose place was read in the turn before, so that it rarely waits for the others.
    template <class Span>
    __device__ void each_span(float (&d)[warp_slabs][values], int pass, Span&& one) {
        const bool leads = warp % (1 << a.cut.group_shift) == 0 && lane == 0;
        const std::uint32_t before = std::uint32_t(pass * a.spans);  // turns of the passes before
        if (leads)
            for (int span = first_span; span < int(x_stages) && span < a.spans; span += stride)
                ask_x(span, before + std::uint32_t(span));
        for (int span = first_span; span < a.spans; span += stride) {
            const std::uint32_t turn = before + std::uint32_t(span), stage = turn % x_stages;
            barrier_wait(arrived + std::uint32_t(slot) * 8, lap & 1);
            barrier_wait(full + stage * 8, turn / x_stages & 1);
            one(d, ring_of(warp) + std::uint32_t(slot * slot_bytes()), shared + stage * x_bytes());
            __syncwarp();
            if (lane == 0) {
                barrier_arrive(empty + stage * 8);
                const int next = span + a.depth * stride, next_x = span - stride + int(x_stages);
                if (next < a.spans) ask(next);
                if (leads && span >= stride && next_x < a.spans)
                    ask_x(next_x, before + std::uint32_t(next_x));
            }
            if (++slot == a.depth) {
                slot = 0;
                ++lap;
            }
        }
    }

    template <bool Zeros>
    __device__ void span_whole(float (&d)[warp_slabs][values], std::uint32_t at, std::uint32_t x_at) const {
        const Products products{a, lane};
        for (int chunk = 0; chunk < a.span; ++chunk, x_at += x_chunk) {
            ChunkTokens x;
            products.load_chunk(x, x_at);
            float x_sum[values / 2];
            products.sum_x(x_sum, x);
            std::uint32_t q = at + std::uint32_t(chunk * integers + lane * 16);
            std::uint32_t scale = at + std::uint32_t(a.scales_at + chunk * 32 + lane / 4 * 2);
            std::uint32_t zero = at + std::uint32_t(a.second_at + chunk * 16 + lane / 4);
#pragma unroll
            for (int i = 0; i < warp_slabs; ++i) {
                if (i < slabs) products.template whole<Zeros>(d[i], q, scale, zero, x, x_sum);
                q += std::uint32_t(a.slab_bytes);
                scale += std::uint32_t(a.slab_bytes);
                zero += std::uint32_t(a.slab_bytes);
            }
        }
    }
    __device__ void span_any(float (&d)[warp_slabs][values], std::uint32_t at, std::uint32_t x_at) const {
        const Products products{a, lane};
        for (int chunk = 0; chunk < a.span; ++chunk, x_at += x_chunk) {
            ChunkTokens x;
            products.load_chunk(x, x_at);
#pragma unroll
            for (int i = 0; i < warp_slabs; ++i)
                if (i < slabs) products.any(d[i], at + std::uint32_t(i * a.slab_bytes), chunk, x);
        }
    }

    __device__ void multiply(float (&d)[warp_slabs][values], int pass) {
        if constexpr (Kind == TileKind::u4 && std::is_same_v<T, __half>) {
            if (a.group_shift == 3 && a.w.mode == SecondPlane::zero_u8)
                return each_span(d, pass, [&](auto&&... all) { span_whole<true>(all...); });
            if (a.group_shift == 3 && a.w.mode == SecondPlane::none)
                return each_span(d, pass, [&](auto&&... all) { span_whole<false>(all...); });
        }
        each_span(d, pass, [&](auto&&... all) { span_any(all...); });
    }

    __device__ static void sync() {
        asm volatile("bar.sync 1, %0;" ::"n"(32 * thin_warps) : "memory");
    }

    __device__ float* sums_of(int w) const {
        return static_cast<float*>(__cvta_shared_to_generic(ring_of(w)));
    }
    // This warp's sums, [slab][token][sum_stride], where its ring was.
    __device__ void put(const float (&d)[warp_slabs][values]) const {
        float* to = sums_of(warp);
#pragma unroll
        for (int i = 0; i < warp_slabs; ++i) {
            if (i >= slabs) break;
#pragma unroll
            for (int j = 0; j < Tokens / 8; ++j) {
                float* at = to + (i * Tokens + 8 * j + 2 * (lane % 4)) * sum_stride + lane / 4;
                at[0] = d[i][4 * j];
                at[sum_stride] = d[i][4 * j + 1];
                at[8] = d[i][4 * j + 2];
                at[sum_stride + 8] = d[i][4 * j + 3];
            }
        }
    }
    // Row `row` of slab j, of all warps that have it, in the order of their chunks.
    __device__ float total(int j, int token, int row) const {
        const int shift = a.cut.group_shift, groups = 1 << shift;
        const int step = a.ring_bytes / 4 << shift;
        const auto* from = sums_of(j & (groups - 1)) + ((j >> shift) * Tokens + token) * sum_stride + row;
        float sum = 0.0F;
#pragma unroll 4
        for (int w = 0; w < thin_warps; w += groups, from += step)
            sum += *from;
        return sum;
    }

    // This thread's outputs: one row of every so many tokens, so that the code is short: it runs once a
    // launch, and each line of it is fetched anew.
    __device__ int row_of_thread() const {
        return (warp * 32 + lane) & ((1 << a.cut.row_shift) - 1);
    }
    __device__ int first_token() const {
        return (warp * 32 + lane) >> a.cut.row_shift;
    }

    // `before`: what the first output is added to, if it is.
    __device__ void write(const RowWriter& writer, int first_unit, int units, float before) const {
        const int row = row_of_thread(), output = first_unit * slab_rows + row;
        if (row >= units * slab_rows || output >= a.w.outputs) return;
        for (int token = first_token(); token < a.tokens; token += thin_threads >> a.cut.row_shift) {
            float v;
            if (a.w.gated)
                v = writer.gated(output, total(row / 16 * 2, token, row % 16),
                                 total(row / 16 * 2 + 1, token, row % 16));
            else
                v = writer.biased(output, total(row / 16, token, row % 16));
            if (a.epilogue == Epilogue::add)
                v += token == first_token() ? before : writer.before(token, output);
            writer.store_one(token, output, v);
        }
    }
    __device__ float read_before(const RowWriter& writer, int first_unit, int units) const {
        const int row = row_of_thread(), output = first_unit * slab_rows + row;
        if (a.epilogue != Epilogue::add || row >= units * slab_rows || output >= a.w.outputs ||
            first_token() >= a.tokens)
            return 0.0F;
        return writer.before(first_token(), output);
    }
};

template <TileKind Kind, class T, int Tokens>
__global__ void __launch_bounds__(thin_threads, 1)
    thin_kernel(const __grid_constant__ ThinArgs a, const __grid_constant__ ThinMaps maps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // the bulk copy engine
    extern __shared__ __align__(1024) std::uint8_t shared[];
    constexpr int x_stages = thin_x_stages;
    __shared__ __align__(8) std::uint64_t barriers[2 * x_stages + thin_warps * most_depth];
    const std::uint32_t full = shared_address(barriers), empty = full + x_stages * 8;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
    const std::uint32_t arrived = empty + x_stages * 8 + std::uint32_t(warp * most_depth) * 8;
    let_next_start();
    if (lane < a.depth) barrier_init(arrived + std::uint32_t(lane) * 8, 1);
    if (warp == 0 && lane < x_stages) {
        barrier_init(full + std::uint32_t(lane) * 8, 1);
        barrier_init(empty + std::uint32_t(lane) * 8, 1 << a.cut.group_shift);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncwarp();
    const int first = int(blockIdx.x) * a.cut.units, last = min(first + a.cut.units, a.cut.all_units);
    ThinWarp<Kind, T, Tokens> w{a, maps, shared_address(shared), full, empty, arrived, warp, lane};
    const RowWriter writer{a.w, a.out, a.epilogue, a.bias};
    w.begin(first, min(a.cut.units_a_pass, last - first));
    w.ask_first();
    __syncthreads();  // the tokens' barriers are made
    wait_for_previous();
    for (int pass = 0, unit = first; unit < last; ++pass, unit += a.cut.units_a_pass) {
        const int units = min(a.cut.units_a_pass, last - unit);
        if (pass > 0) {
            // The sums that lie in the rings were read; the copy engine may write there again.
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            w.sync();
            w.begin(unit, units);
            w.ask_first();
        }
        const float before = w.read_before(writer, unit, units);
        float d[warp_slabs][ThinWarp<Kind, T, Tokens>::values];
#pragma unroll
        for (auto& slab : d)
#pragma unroll
            for (float& v : slab)
                v = 0.0F;
        w.multiply(d, pass);
        __syncwarp();
        w.put(d);
        w.sync();
        w.write(writer, unit, units, before);
    }
#endif
}

template <TileKind Kind, class T, int Tokens>
void launch_thin(cudaStream_t stream, Tensor x, const TileWeight& w, const TileOutput& output,
                 const SlabCut& cut) {
    using Warp = ThinWarp<Kind, T, Tokens>;
    ThinArgs a{};
    a.w = w;
    a.out = output.out;
    a.epilogue = output.epilogue;
    a.bias = output.bias;
    a.tokens = int(x.rows);
    a.cut = cut;
    a.groups_a_chunk = w.groups_a_chunk();
    a.chunks_a_group = w.chunks_a_group();
    a.group_shift = w.group_shift();
    // Few slabs a warp are few instructions a chunk: two chunks share what every turn costs.
    a.span = cut.warp_slabs == 1 && a.chunks_a_group == 1 ? 2 : 1;
    a.spans = (w.chunks + a.span - 1) / a.span;
    const auto up = [](int n) { return (n + 127) / 128 * 128; };  // what the copy engine wants
    const int groups = a.span * a.groups_a_chunk;
    const int second = w.mode == SecondPlane::none ? 0 : w.mode == SecondPlane::zero_u8 ? 16 : 32;
    a.scales_at = a.span * Warp::integers;
    a.second_at = a.scales_at + up(groups * 32);
    a.slab_bytes = a.second_at + up(groups * second);
    a.asked_bytes = a.scales_at + groups * (32 + second);
    const int x_bytes = int(Warp::x_stages * Warp::x_chunk) * a.span;
    a.ring_bytes = (thin_shared - x_bytes) / thin_warps / 128 * 128;
    a.depth = std::min(most_depth, a.ring_bytes / (cut.warp_slabs * a.slab_bytes));
    assert(2 * (thin_warps >> cut.group_shift) <= thin_x_stages);
    assert(a.depth >= 1 && cut.warp_slabs <= warp_slabs && x.rows <= Tokens);
    assert(a.ring_bytes >= cut.warp_slabs * Tokens * sum_stride * int(sizeof(float)));
    ThinMaps maps{};
    maps.x = tile_map(x.data, w.dtype, x.rows, x.cols, x.row_stride, Tokens);
    maps.integers = slab_map(w.data, Warp::slab_tile, 2 * w.chunks, w.blocks, 2 * a.span);
    maps.scales = slab_map(w.scale, 32, w.groups, w.blocks, groups);
    if (second > 0) maps.second = slab_map(w.second, second, w.groups, w.blocks, groups);
    launch("linear", thin_kernel<Kind, T, Tokens>, dim3(unsigned(cut.grid)), dim3(thin_threads),
           std::size_t(x_bytes + thin_warps * a.ring_bytes), stream, a, maps);
}

}  // namespace recto::cuda
