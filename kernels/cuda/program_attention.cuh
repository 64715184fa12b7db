// Attention of a decode program: rope of the row's query and key, the key's and value's way into the cache,
// and the walk over the context (attention_share.cuh) by all warps of a block.
#pragma once
#include "kernels/cuda/attention_share.cuh"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/program.h"

namespace recto::cuda {

__device__ inline float load_fresh_16(const std::uint16_t* from, DType type) {
    std::uint16_t v;
    asm volatile("ld.global.cg.u16 %0, [%1];" : "=h"(v) : "l"(from) : "memory");
    return type == DType::f16 ? __half2float(__ushort_as_half(v)) : __uint_as_float(std::uint32_t(v) << 16);
}

// The step's arrays, read once a launch.
struct ProgramRows {
    int position[program_rows], slot[program_rows], sequence[program_rows];
};

// What all threads of a block share of its work. In shared memory: registers are few.
struct ShareInfo {
    int number = -1, window = 0;  // of the share and layer that this was made for
    int all = 0;                  // shares of the layer
    int exists = 0, row = 0, unit = 0, split = 0, parts = 0, first_partial = 0;
    int first = 0, last = 0;  // visible tokens
    int kv_head = 0, head = 0, heads = 0;
    int begin = 0, end = 0;  // chunks
    long long newest = -1;   // element of the cache where the row's own token goes; -1: not in this share
    OctetWalk octets{};

    static __device__ int first_visible(int last, int window) {
        return window > 0 ? max(0, last - window + 1) : 0;
    }
    static __device__ int chunks_of(int last, int window) {
        return last / decode_chunk + 1 - first_visible(last, window) / decode_chunk;
    }
    ShareInfo() = default;
    // Share i of the step. All layers with one window have the same, so that a block makes it once if it has
    // one.
    __device__ ShareInfo(const Program& program, const ProgramAttention& a, const ProgramRows& rows, int i,
                         int dim)
        : number(i), window(a.window) {
        const int units = a.kv_heads * a.head_groups;
        int of_row[program_rows] = {};
        for (int r = 0; r < program.rows; ++r)
            of_row[r] = chunks_of(rows.position[r], a.window);
        const RowShares shares(of_row, program.rows, units, int(gridDim.x));
        all = shares.all * units;
        exists = i < all;
        if (!exists) return;
        split = i / units;
        unit = i - split * units;
        for (; split >= shares.parts[row]; ++row) {
            split -= shares.parts[row];
            first_partial += shares.parts[row];
        }
        parts = shares.parts[row];
        last = rows.position[row];
        first = first_visible(last, a.window);
        const int first_chunk = first / decode_chunk, chunks = of_row[row];
        const int share = (chunks + parts - 1) / parts;
        begin = first_chunk + split * share;
        end = min(begin + share, first_chunk + chunks);
        kv_head = a.head_groups == 1 ? unit : unit / a.head_groups;
        const int first_head = (unit - kv_head * a.head_groups) * decode_heads;
        heads = min(decode_heads, a.group - first_head);
        head = kv_head * a.group + first_head;
        if (begin < end && last / decode_chunk < end) {
            const int slot = rows.slot[row], block = slot / a.block_size;
            newest = block * a.block_stride +
                     ((long long)kv_head * a.block_size + slot - block * a.block_size) * dim;
        }
        octets.blocks =
            program.batch.block_tables + (long long)rows.sequence[row] * program.batch.table_stride;
        octets.octets_per_block = a.block_size / 8;
        octets.block_stride_octets = int(a.block_stride / (8 * dim));
        octets.head_octet = kv_head * octets.octets_per_block;
        octets.first_octet = first / 8;
        octets.last_octet = last / 8;
    }
};

// A block's share: what threads have in common, and the first octets that each lane found.
struct ShareState {
    ShareInfo info;
    int found[program_threads];
};

struct SharedOctets {
    const volatile ShareInfo* info;
    __device__ int find(int octet) const {
        OctetWalk o;
        o.blocks = info->octets.blocks;
        o.block_stride_octets = info->octets.block_stride_octets;
        o.head_octet = info->octets.head_octet;
        o.octets_per_block = info->octets.octets_per_block;
        o.first_octet = info->octets.first_octet;
        o.last_octet = info->octets.last_octet;
        return o.find(octet);
    }
};

// Makes the block's share i if it is not there. The whole block takes part.
__device__ inline void make_share(ShareState& state, const Program& program, const ProgramAttention& a,
                                  const ProgramRows& rows, int i, int dim) {
    const int thread = own_thread();
    const volatile ShareInfo& info = state.info;
    if (info.number == i && info.window == a.window) return;  // the same for all threads
    __syncthreads();
    if (thread == 0) state.info = ShareInfo(program, a, rows, i, dim);
    __syncthreads();
    if (!info.exists) return;
    const int chunk = info.begin + thread / 32, lane = thread % 32;
    state.found[thread] = SharedOctets{&info}.find(2 * (chunk + program_warps * (lane / 2)) + lane % 2);
}

// Brings a warp's first chunk of the next attention's keys and values near, when weights have yet to be asked
// for: a load from memory waits for all that were asked for before it.
template <DType Kv, int Dim>
__device__ inline void ask_ahead(const ShareState& state, const ProgramAttention& a) {
    const volatile ShareInfo& info = state.info;
    const int thread = own_thread();
    if (info.number != int(blockIdx.x) || info.window != a.window || !info.exists) return;
    if (info.begin + thread / 32 >= info.end) return;
    constexpr int octet_bytes = 8 * Dim * int(dtype_bytes(Kv)), lines = 2 * octet_bytes / 128;
    for (int line = thread % 32; line < 2 * lines; line += 32) {
        const char* base = static_cast<const char*>(line < lines ? a.k : a.v);
        const int in = line % lines, octet = state.found[thread / 32 * 32 + in / (lines / 2)];
        asm volatile(
            "prefetch.global.L2 [%0];" ::"l"(base + (long long)octet * octet_bytes + in % (lines / 2) * 128));
    }
}

// A share of a row's context for one unit of heads. `prepare` asks for what this step's tokens do not change,
// before the wait for them: angles, and a warp's first chunk of keys and values unless the row's own token is
// in it.
template <DType Activation, DType Kv, int Dim>
struct ProgramShare {
    using Walk = ChunkWalk<Kv, Dim, program_warps, SharedOctets>;
    static constexpr int pairs = Dim / 2;
    static_assert(program_threads % pairs == 0);  // a thread turns the same pair of every head

    const Program& program;
    const ProgramAttention& a;
    const volatile ShareInfo& info;
    const int* found;    // this lane's
    bool asked = false;  // for this warp's first chunk
    float cosine = 1.0F, sine = 0.0F;
    Walk walk;

    __device__ ProgramShare(const Program& all, const ProgramAttention& attention, const ShareState& state)
        : program(all),
          a(attention),
          info(state.info),
          found(state.found + own_thread()),
          walk{static_cast<const char*>(a.k), static_cast<const char*>(a.v), {&state.info}, 0, 0} {}

    __device__ void prepare() {
        if (!info.exists) return;
        const int thread = own_thread();
        walk.chunk = info.begin + thread / 32;
        walk.end = info.end;
        walk.found = *found;
        asked = walk.chunk != info.last / decode_chunk;
        if (asked) walk.begin(false);
        const int j = thread % pairs, half = a.rotary / 2;
        if (j < half) {
            const float* angles = a.table + (long long)info.row * a.table_stride;
            cosine = angles[j];
            sine = angles[half + j];
        }
    }

    // Queries to shared memory; of the share with the row's own token, its key and value to the cache.
    __device__ void turn(std::uint16_t* queries) const {
        const int thread = own_thread(), j = thread % pairs, half = a.rotary / 2, heads = info.heads;
        const std::uint16_t* qkv = a.qkv + (long long)info.row * a.qkv_stride;
        // A thread's pair of a head: elements that rotate together, or two neighbours past the rotary ones.
        const int at0 = j < half ? j : a.rotary + 2 * (j - half), at1 = j < half ? j + half : at0 + 1;
        constexpr int together = program_threads / pairs;    // heads
        const int all = heads + (info.newest >= 0 ? 2 : 0);  // then the key, then the value
        for (int h = thread / pairs; h < all; h += together) {
            const int from = h < heads ? info.head + h
                                       : a.kv_heads * a.group + (h == heads ? 0 : a.kv_heads) + info.kv_head;
            float v0 = load_fresh_16(qkv + from * Dim + at0, Activation);
            float v1 = load_fresh_16(qkv + from * Dim + at1, Activation);
            if (h <= heads && j < half) {
                const float turned = v0 * cosine - v1 * sine;
                v1 = v1 * cosine + v0 * sine;
                v0 = turned;
            }
            if (h < heads) {
                store(queries, h * Dim + at0, Activation, v0);
                store(queries, h * Dim + at1, Activation, v1);
                continue;
            }
            void* to = h == heads ? a.k : a.v;
            const long long newest = info.newest;
            store(to, newest + at0, Kv, v0);
            store(to, newest + at1, Kv, v1);
        }
    }

    __device__ void run(char* shared, int* is_last) {
        if (!info.exists) return;
        turn(reinterpret_cast<std::uint16_t*>(shared));
        __syncthreads();
        if (!asked) walk.begin(false);
        DecodeState<Dim> state;
        {
            const int lane = own_thread() % 32;
            // From shared memory at each step. Columns past the last head repeat it and count nothing.
            const std::uint16_t* query =
                reinterpret_cast<const std::uint16_t*>(shared) + min(lane / 4, info.heads - 1) * Dim;
            walk.walk(
                {a.kv_heads, a.group, a.head_groups, a.scale, a.softcap, a.window}, info.first, info.last,
                [&](auto k) {
                    constexpr RowSegments key = Walk::Shape::key;
                    constexpr int base = key_element(key, k, 0), step = key_element(key, k, 1) - base;
                    const uint2 v = *reinterpret_cast<const uint2*>(query + base + lane % 4 * step);
                    constexpr DType math = math_dtype(Kv);
                    return uint2{convert_pair(Activation, math, v.x), convert_pair(Activation, math, v.y)};
                },
                state);
        }
        const int most_heads = min(a.group, decode_heads), units = a.kv_heads * a.head_groups;
        const SharePlace place(most_heads, Dim);
        const ShareMemory<Dim> memory{reinterpret_cast<float*>(shared + place.out),
                                      reinterpret_cast<float*>(shared + place.top),
                                      reinterpret_cast<float*>(shared + place.sum),
                                      reinterpret_cast<float*>(shared + place.weight),
                                      is_last,
                                      most_heads};
        DecodeParameters p;
        p.workspace = program.workspace;
        p.heads = {a.kv_heads, a.group, a.head_groups, a.scale, a.softcap, a.window};
        p.activation = Activation;
        const int row = info.row, unit = info.unit;
        finish_item<Kv, Dim, program_warps>(
            p, memory, state, {row, info.split, info.parts, info.first_partial}, unit, units, info.heads,
            a.out + (long long)row * a.out_stride + (long long)info.head * Dim);
    }
};

}  // namespace recto::cuda
