// What follows the sums of a tile: the parts that other blocks hold are added, then bias, gate or residual,
// and the results are written row by row of the output through shared memory.
#pragma once
#include "kernels/cuda/hopper_pipeline.cuh"
#include "kernels/cuda/hopper_store.cuh"
#include "kernels/cuda/row_writer.cuh"

namespace recto::cuda {

// Of one warpgroup, which holds 64 rows of the weight and all tokens of the tile:
// d[4 j + 0 … 3] as wgmma.cuh says.
template <class T, int Tokens>
struct TileEpilogue {
    static constexpr int values = Tokens / 2;
    const HopperArgs& a;
    float* slice;  // shared, [slice_tokens][slice_stride]
    int group;     // which 64 rows of the tile
    int thread;    // 0 … 127
    RowWriter writer{a.w, a.out, a.epilogue, a.bias};

    __device__ void sync() const { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }

    __device__ void finish(float (&d)[values], const Piece& p) {
        const int block = p.row_tile * tile_blocks + group, first = p.token_tile * Tokens;
        const bool mine = block < a.w.blocks;
        if (slices > 1 && a.shape.splits > 1) {
            const int tile = tile_of(p), splits = a.shape.splits;
            exchange(d, tile);
            if (mine) write_parts(block, first, {tile * splits, splits, int(blockIdx.x) % splits});
            leave_exchange(tile);
            return;
        }
        if (!gather(d, p) || !mine) return;
        if constexpr (slices == 1) {
            put_slice(d);
            sync();
            write_slice(block, first);
            sync();  // the next tile's sums may come
        } else {
            const TileStore<T, Tokens> store{a, slice, group, thread};
            if (store.suits(block)) return store.run(d, block, first);
            // Any other way goes by memory, so that no code picks sums out of registers by number.
            const int place = int(gridDim.x + blockIdx.x);
            leave(d, place);
            write_parts(block, first, {place, 1, 0});
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
        const Pieces pieces = a.pieces();
        const int tile = tile_of(p), owner = pieces.owner(tile), last = pieces.last_sharer(tile);
        unsigned* counter = counter_of(tile);
        if (p.first != 0) {
            leave(d, int(blockIdx.x));
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

    __device__ int tile_of(const Piece& p) const { return p.token_tile * a.row_tiles + p.row_tile; }
    __device__ unsigned* counter_of(int tile) const {
        return a.scratch.counters + tile * tile_blocks + group;
    }
    __device__ void exchange(const float (&d)[values], int tile) const {
        leave(d, int(blockIdx.x));
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

    // Sums of a block lie as [value / 4][thread][value % 4], so that four go at once. There are places for
    // twice as many blocks as run.
    __device__ float4* part(int place) const {
        return reinterpret_cast<float4*>(a.scratch.partials) +
               (std::size_t(place) * tile_blocks + std::size_t(group)) * values * 32 + thread;
    }
    __device__ void leave(const float (&d)[values], int place) const {
        float4* to = part(place);
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
    static constexpr int each = width / 2;                      // sums of a slice, a thread
    static constexpr int fours = width * block_rows / 4 / 128;  // the same, as fours of neighbouring rows

    // Which slices of a tile a block writes, and whose sums they are: places first … first + count − 1.
    struct Share {
        int first, count, index;
    };

    static constexpr int at_once = 4;  // parts whose loads are under way together
    template <int Count>
    __device__ void add_parts(float (&sum)[each], int place, int s) const {
        float4 v[Count][each / 4];
#pragma unroll
        for (int k = 0; k < Count; ++k)
#pragma unroll
            for (int n = 0; n < each / 4; ++n)
                v[k][n] = __ldcg(part(place + k) + (s * (each / 4) + n) * 128);
#pragma unroll
        for (int k = 0; k < Count; ++k)
#pragma unroll
            for (int n = 0; n < each / 4; ++n) {
                sum[4 * n] += v[k][n].x, sum[4 * n + 1] += v[k][n].y;
                sum[4 * n + 2] += v[k][n].z, sum[4 * n + 3] += v[k][n].w;
            }
    }

    // One copy of the code for all slices, and short: its instructions run few times, and fetching them costs
    // more than what they do.
    __device__ void write_parts(int block, int first, const Share& share) const {
#pragma unroll 1
        for (int s = share.index; s < slices; s += share.count) {
            float sum[each];
#pragma unroll
            for (int n = 0; n < each; ++n)
                sum[n] = 0.0F;
            int i = 0;  // in the order of the inputs, whoever adds
#pragma unroll 1
            for (; i + at_once <= share.count; i += at_once)
                add_parts<at_once>(sum, share.first + i, s);
#pragma unroll 1
            for (; i < share.count; ++i)
                add_parts<1>(sum, share.first + i, s);
            sync();  // the slice before was read
            put_slice(sum);
            sync();
            write_slice(block, first + s * width);
        }
    }

    __device__ void put_slice(const float (&v)[each]) const {
        put_rows<width>(slice, v, thread);
    }

    __device__ void write_slice(int block, int first) const {
        // The usual store: whole blocks of 16-bit values at aligned places, no bias.
        const int outputs = a.w.gated ? block_rows / 2 : block_rows;  // of a block
        const bool whole = (block + 1) * outputs <= a.w.outputs && !a.bias && a.out.row_stride % 4 == 0;
        const bool quick = whole && a.epilogue != Epilogue::add && a.out.dtype != DType::f32 &&
                           reinterpret_cast<std::uintptr_t>(a.out.data) % 8 == 0;
        if (quick && first + width <= a.tokens)
            write_quick(block, first);
        else if (whole && a.epilogue == Epilogue::add && a.out.dtype == DType::f32 &&
                 reinterpret_cast<std::uintptr_t>(a.out.data) % 16 == 0)
            write_added(block, first);
        else if (a.w.gated)
            write_gated(block, first);
        else
            write_plain(block, first);
    }

    // Place i of this thread in a slice: a token and four neighbouring rows.
    __device__ bool place_of(int i, int block, int first, int& token, int& row) const {
        const int n = i * 128 + thread;
        token = n / (block_rows / 4);
        row = n % (block_rows / 4) * 4;
        return first + token < a.tokens && block * block_rows + row < a.w.outputs;
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
    // To the residual stream: with loads of what is there, and a wait for each, the blocks that share a tile
    // spent more time here than in their last chunks.
    __device__ void write_added(int block, int first) const {
        auto* out =
            static_cast<float*>(a.out.data) + (long long)first * a.out.row_stride + block * block_rows;
#pragma unroll 1
        for (int n = thread; n < width * (block_rows / 4); n += 128) {
            const int token = n / (block_rows / 4), row = n % (block_rows / 4) * 4;
            if (first + token >= a.tokens) return;
            add_four(out + (long long)token * a.out.row_stride + row,
                     *reinterpret_cast<const float4*>(slice + token * slice_stride + row));
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
