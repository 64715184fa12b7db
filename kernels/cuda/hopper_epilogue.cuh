// What follows the sums of a tile: the parts that other blocks hold are added, then bias, gate or residual,
// and the results are written row by row of the output through shared memory.
#pragma once
#include "kernels/cuda/hopper_pipeline.cuh"
#include "kernels/cuda/row_writer.cuh"

namespace recto::cuda {

constexpr int slice_tokens = 32;  // written at a time
constexpr int slice_stride = 68;  // floats between tokens of a slice: no two lanes of a warp write one bank
__host__ __device__ constexpr int slice_floats(int tokens) {
    return (tokens < slice_tokens ? tokens : slice_tokens) * slice_stride;
}

// Of one warpgroup, which holds 64 rows of the weight and all tokens of the tile:
// d[4 j + 0 … 3] as wgmma.cuh says.
template <int Tokens>
struct TileEpilogue {
    static constexpr int values = Tokens / 2;
    const HopperArgs& a;
    float* slice;  // shared, [slice_tokens][slice_stride]
    int group;     // 0 or 1: which 64 rows
    int thread;    // 0 … 127
    RowWriter writer{a.w, a.out, a.epilogue, a.bias};

    __device__ int warp_of() const { return thread / 32; }
    __device__ int lane() const { return thread % 32; }
    __device__ void sync() const { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }

    __device__ void finish(float (&d)[values], const Piece& p) {
        const bool mine = p.row_tile * 2 + group < a.w.blocks;
        if (slices > 1 && a.shape.splits > 1) {
            const int tile = p.token_tile * a.row_tiles + p.row_tile;
            exchange(d, tile);
            if (mine) write(d, p, {tile * a.shape.splits, a.shape.splits, int(blockIdx.x) % a.shape.splits});
            leave_exchange(tile);
        } else if (gather(d, p) && mine) {
            write(d, p, {0, 1, 0});
        }
    }

  private:
    // A tile that several blocks share. Blocks never wait in vain: they are no more than multiprocessors, so
    // all of them run. False: another block writes the tile.
    //
    // Where runs go on into the next tile, the block with a tile's first inputs owns it and adds what the
    // others leave in `partials`, in the order of the inputs. It rarely waits: a block meets the end of one
    // tile at the beginning of its run and the beginning of another at its end.
    //
    // Where a tile is cut into equal parts, its blocks end together: each adds and writes some slices of it.
    __device__ bool gather(float (&d)[values], const Piece& p) {
        if (p.first == 0 && p.last == a.w.chunks) return true;
        const int tile = p.token_tile * a.row_tiles + p.row_tile;
        const Pieces pieces = a.pieces();
        const int owner = pieces.owner(tile), last = pieces.last_sharer(tile);
        unsigned* counter = counter_of(tile);
        if (p.first != 0) {
            leave(d);
            sync();
            if (thread == 0) add_release(counter);
            return false;
        }
        if (thread == 0) {
            while (load_acquire(counter) != unsigned(last - owner)) {
            }
            *counter = 0;
        }
        sync();
        for (int block = owner + 1; block <= last; ++block)
            add_part(d, block);
        return true;
    }

    __device__ unsigned* counter_of(int tile) const { return a.scratch.counters + tile * 2 + group; }
    __device__ void exchange(const float (&d)[values], int tile) const {
        leave(d);
        sync();
        if (thread == 0) {
            add_release(counter_of(tile));
            while (load_acquire(counter_of(tile)) < unsigned(a.shape.splits)) {
            }
        }
        sync();
    }
    // The counter is cleared by the last that has read.
    __device__ void leave_exchange(int tile) const {
        sync();
        if (thread == 0 && atomicAdd(counter_of(tile), 1U) == 2 * unsigned(a.shape.splits) - 1)
            *counter_of(tile) = 0;
    }

    // Sums of a block lie as [value / 4][thread][value % 4], so that four go at once.
    __device__ float4* part(int block) const {
        return reinterpret_cast<float4*>(a.scratch.partials) +
               (std::size_t(block) * 2 + std::size_t(group)) * values * 32 + thread;
    }
    __device__ void leave(const float (&d)[values]) const {
        float4* to = part(int(blockIdx.x));
#pragma unroll
        for (int i = 0; i < values / 4; ++i)
            __stcg(to + i * 128, make_float4(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]));
    }
    __device__ void add_part(float (&d)[values], int block) const {
        const float4* from = part(block);
#pragma unroll
        for (int i = 0; i < values / 4; ++i) {
            const float4 v = __ldcg(from + i * 128);
            d[4 * i] += v.x, d[4 * i + 1] += v.y, d[4 * i + 2] += v.z, d[4 * i + 3] += v.w;
        }
    }
    // What this thread's block wrote before a sync() is seen by whoever reads the sum and syncs in turn.
    static __device__ void add_release(unsigned* counter) {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
    }
    static __device__ unsigned load_acquire(const unsigned* counter) {
        unsigned v;
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(counter) : "memory");
        return v;
    }

    static constexpr int width = Tokens < slice_tokens ? Tokens : slice_tokens;
    static constexpr int slices = Tokens / width;
    static constexpr int fours = width * block_rows / 4 / 128;  // of a slice, a thread

    // Which slices of a tile a block writes, and whose sums they are: blocks first … first + count − 1.
    struct Share {
        int first, count, index;
    };

    // One copy of the code for all slices: each instruction of an unrolled one would run once a tile, and
    // fetching them took twice as long as the products of 256 tokens.
    __device__ void write(const float (&d)[values], const Piece& p, const Share& share) {
        const int block = p.row_tile * 2 + group;
        // The residual stream's values of the next slice are on their way while this one is written.
        const bool adds = a.epilogue == Epilogue::add && a.out.dtype == DType::f32 && a.w.outputs % 4 == 0 &&
                          a.out.row_stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(a.out.data) % 16 == 0;
        // The usual store: whole blocks of 16-bit values at aligned places, no bias.
        const int outputs = a.w.gated ? block_rows / 2 : block_rows;  // of a block
        const bool quick = !a.bias && a.epilogue != Epilogue::add && a.out.dtype != DType::f32 &&
                           (block + 1) * outputs <= a.w.outputs && a.out.row_stride % 4 == 0 &&
                           reinterpret_cast<std::uintptr_t>(a.out.data) % 8 == 0;
        float4 before[fours];
        if (adds && share.index < slices)
            read_residual(before, block, p.token_tile * Tokens + share.index * width);
#pragma unroll 1
        for (int s = share.index; s < slices; s += share.count) {
            sync();  // the slice before was read
            put_slice(d, s, share);
            sync();
            const int first = p.token_tile * Tokens + s * width;
            if (quick && first + width <= a.tokens) {
                write_quick(block, first);
            } else if (a.w.gated) {
                write_gated(block, first);
            } else if (adds) {
                float4 sum[fours];
#pragma unroll
                for (int i = 0; i < fours; ++i)
                    sum[i] = before[i];
                if (s + share.count < slices) read_residual(before, block, first + share.count * width);
                add_residual(sum, block, first);
            } else {
                write_plain(block, first);
            }
        }
    }

    __device__ void put_slice(const float (&d)[values], int s, const Share& share) const {
        constexpr int each = width / 2;
        float v[each];
        // Sums stay in registers only under constant indices: a branch for each slice.
#pragma unroll
        for (int i = 0; i < slices; ++i) {
            if (i != s) continue;
#pragma unroll
            for (int n = 0; n < each; ++n)
                v[n] = d[i * each + n];
        }
        if (share.count > 1) {  // in the order of the inputs, whoever adds
            float sum[each];
#pragma unroll
            for (int n = 0; n < each; ++n)
                sum[n] = 0.0F;
#pragma unroll 1
            for (int i = 0; i < share.count; ++i) {
                const float4* from = part(share.first + i) + s * (each / 4) * 128;
#pragma unroll
                for (int n = 0; n < each / 4; ++n) {
                    const float4 o = i == share.index
                                         ? make_float4(v[4 * n], v[4 * n + 1], v[4 * n + 2], v[4 * n + 3])
                                         : __ldcg(from + n * 128);
                    sum[4 * n] += o.x, sum[4 * n + 1] += o.y, sum[4 * n + 2] += o.z, sum[4 * n + 3] += o.w;
                }
            }
#pragma unroll
            for (int n = 0; n < each; ++n)
                v[n] = sum[n];
        }
        const int row = warp_of() * 16 + lane() / 4;
#pragma unroll
        for (int j = 0; j < width / 8; ++j) {
            const int token = 8 * j + 2 * (lane() % 4);
            slice[token * slice_stride + row] = v[4 * j];
            slice[(token + 1) * slice_stride + row] = v[4 * j + 1];
            slice[token * slice_stride + row + 8] = v[4 * j + 2];
            slice[(token + 1) * slice_stride + row + 8] = v[4 * j + 3];
        }
    }

    // Place i of this thread in a slice: a token and four neighbouring rows.
    __device__ bool place_of(int i, int block, int first, int& token, int& row) const {
        const int n = i * 128 + thread;
        token = n / (block_rows / 4);
        row = n % (block_rows / 4) * 4;
        return first + token < a.tokens && block * block_rows + row < a.w.outputs;
    }
    __device__ float4* residual_at(int block, int first, int token, int row) const {
        return reinterpret_cast<float4*>(static_cast<float*>(a.out.data) +
                                         (long long)(first + token) * a.out.row_stride + block * block_rows +
                                         row);
    }
    __device__ void read_residual(float4 (&before)[fours], int block, int first) const {
#pragma unroll
        for (int i = 0; i < fours; ++i) {
            int token, row;
            if (place_of(i, block, first, token, row)) before[i] = *residual_at(block, first, token, row);
        }
    }
    __device__ void add_residual(float4 (&sum)[fours], int block, int first) const {
#pragma unroll
        for (int i = 0; i < fours; ++i) {
            int token, row;
            if (!place_of(i, block, first, token, row)) continue;
            const float4 v = *reinterpret_cast<const float4*>(slice + token * slice_stride + row);
            float4 b = make_float4(0, 0, 0, 0);
            if (a.bias) {
                const float* bias = a.bias + block * block_rows + row;
                b = make_float4(bias[0], bias[1], bias[2], bias[3]);
            }
            *residual_at(block, first, token, row) =
                make_float4(sum[i].x + (v.x + b.x), sum[i].y + (v.y + b.y), sum[i].z + (v.z + b.z),
                            sum[i].w + (v.w + b.w));
        }
    }
    // Short, since each of its instructions runs few times: with all cases in one loop, the writing of 256
    // tokens took a quarter of the kernel's time.
    __device__ void write_quick(int block, int first) const {
        const int shift = a.w.gated ? 3 : 4;  // log2 of the fours of a token
        const int outputs = 4 << shift;
        const bool half = a.out.dtype == DType::f16;
        auto* out =
            static_cast<std::uint16_t*>(a.out.data) + (long long)first * a.out.row_stride + block * outputs;
#pragma unroll 1
        for (int n = thread; n < width << shift; n += 128) {
            const int token = n >> shift, row = (n & ((1 << shift) - 1)) * 4;
            const float* from = slice + token * slice_stride + row;
            float4 v = *reinterpret_cast<const float4*>(from);
            if (a.w.gated) {
                const float4 u = *reinterpret_cast<const float4*>(from + block_rows / 2);
                v = make_float4(quick_gate(v.x, a.epilogue) * u.x, quick_gate(v.y, a.epilogue) * u.y,
                                quick_gate(v.z, a.epilogue) * u.z, quick_gate(v.w, a.epilogue) * u.w);
            }
            const uint2 pairs =
                half ? make_uint2(as_bits(__floats2half2_rn(v.x, v.y)), as_bits(__floats2half2_rn(v.z, v.w)))
                     : make_uint2(bf16_pair(v.x, v.y), bf16_pair(v.z, v.w));
            *reinterpret_cast<uint2*>(out + (long long)token * a.out.row_stride + row) = pairs;
        }
    }
    __device__ void write_plain(int block, int first) const {
#pragma unroll 1
        for (int i = 0; i < fours; ++i) {
            int token, row;
            if (!place_of(i, block, first, token, row)) continue;
            const float4 v = *reinterpret_cast<const float4*>(slice + token * slice_stride + row);
            const int output = block * block_rows + row;
            writer.store_four(first + token, output, writer.biased(output, v));
        }
    }
    __device__ void write_gated(int block, int first) const {
        constexpr int half = block_rows / 2;
#pragma unroll 1
        for (int i = thread; i < width * half / 4; i += 128) {
            const int token = i / (half / 4), row = i % (half / 4) * 4;
            const int output = block * half + row;
            if (first + token >= a.tokens || output >= a.w.outputs) continue;
            const float* from = slice + token * slice_stride + row;
            const float4 v = writer.gated(output, *reinterpret_cast<const float4*>(from),
                                          *reinterpret_cast<const float4*>(from + half));
            writer.store_four(first + token, output, v);
        }
    }
};

}  // namespace recto::cuda
