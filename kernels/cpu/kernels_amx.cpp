// AMX: 16 rows × 16 outputs × 32 inputs in one tile product. A packed tile of weights already lies as the
// unit wants it (64 bytes = 16 outputs × 4 inputs); 4-bit values are unpacked to bytes once a tile. Sums
// leave the unit as int32 and take the same FP32 steps as in linear_lanes.h, so the bits are those of every
// other set. Fewer than 16 rows, and FP32 activations, use the AVX-512 kernels.
#include <immintrin.h>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/lanes_avx512.h"

namespace recto::cpu {

namespace {

using L = Avx512Lanes;
constexpr int rows = 16;

// Two of each, so that one product runs while the other's sums are scaled. Tile numbers are part of
// instructions.
//   0, 1: sums [16 rows][16 outputs] int32;  2, 3: activations [16 rows][chunk];  4, 5: weights [chunk /
//   4][64]
struct alignas(64) TileConfig {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t tile_rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

void configure_tiles(int chunk) {
    TileConfig c;
    for (const int sums : {0, 1}) {
        c.row_bytes[sums] = 64;
        c.tile_rows[sums] = rows;
        c.row_bytes[2 + sums] = std::uint16_t(chunk);
        c.tile_rows[2 + sums] = rows;
        c.row_bytes[4 + sums] = 64;
        c.tile_rows[4 + sums] = std::uint8_t(chunk / 4);
    }
    // GCC 12's intrinsic says that it reads 8 bytes: without this the other stores may be dropped as dead.
    __asm__ volatile("" : : "m"(c));
    _tile_loadconfig(&c);
}

void release_tiles() {
    _tile_release();
}

void unpack_nibbles(const std::uint8_t* values, std::size_t bytes, std::uint8_t* out) {
    for (std::size_t i = 0; i < bytes; i += 64) {
        const __m512i b = L::load_bytes(values + i);
        _mm512_storeu_si512(out + 2 * i, L::low_nibbles(b));
        _mm512_storeu_si512(out + 2 * i + 64, L::high_nibbles(b));
    }
}

template <int Chunk>
void products_a(const std::uint8_t* x, const std::uint8_t* w, std::int32_t* sums) {
    _tile_zero(0);
    _tile_loadd(2, x, Chunk);
    _tile_loadd(4, w, 64);
    _tile_dpbsud(0, 2, 4);
    _tile_stored(0, sums, 64);
}

template <int Chunk>
void products_b(const std::uint8_t* x, const std::uint8_t* w, std::int32_t* sums) {
    _tile_zero(1);
    _tile_loadd(3, x, Chunk);
    _tile_loadd(5, w, 64);
    _tile_dpbsud(1, 3, 5);
    _tile_stored(1, sums, 64);
}

template <bool Signed, bool Offset, int Chunk>
void amx_tile(const GroupedTile& tile, const void* panel_memory, float* out) {
    constexpr std::int64_t panel_step = rows * (Chunk + 12), weight_step = 16 * Chunk;
    const auto* panel = static_cast<const std::uint8_t*>(panel_memory);
    alignas(64) std::int32_t sums[2][rows * lanes];
    L::F acc[rows];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
        acc[r] = L::zero();
    auto scale_sums = [&](const std::int32_t* dots, std::int64_t c) __attribute__((always_inline)) {
        const std::int64_t g = c / tile.chunks_per_group;
        const L::F scale = L::load(tile.scale + g * lanes);
        const L::F offset = Offset ? L::load(tile.offset + g * lanes) : L::zero();
        const auto* scale_x = reinterpret_cast<const float*>(panel + c * panel_step + rows * Chunk);
        const float* sum_x = scale_x + rows;
        const auto* shift_x = reinterpret_cast<const std::int32_t*>(sum_x + rows);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
            L::I dot = L::load_i(dots + r * lanes);
            if constexpr (Signed) dot = L::add_i(dot, L::set1_i(shift_x[r]));
            acc[r] = L::fma(L::to_float(dot), L::mul(scale, L::set1(scale_x[r])), acc[r]);
            if constexpr (Offset) acc[r] = L::fma(offset, L::set1(sum_x[r]), acc[r]);
        }
    };
    std::int64_t c = 0;
    for (; c + 2 <= tile.chunks; c += 2) {
        products_a<Chunk>(panel + c * panel_step, tile.bytes + c * weight_step, sums[0]);
        products_b<Chunk>(panel + (c + 1) * panel_step, tile.bytes + (c + 1) * weight_step, sums[1]);
        scale_sums(sums[0], c);
        scale_sums(sums[1], c + 1);
    }
    if (c < tile.chunks) {
        products_a<Chunk>(panel + c * panel_step, tile.bytes + c * weight_step, sums[0]);
        scale_sums(sums[0], c);
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
        L::store(out + r * lanes, acc[r]);
}

template <int Chunk>
TileKernel amx_tile_of(const TileVariant& v) {
    if (v.is_signed) return v.offset ? amx_tile<true, true, Chunk> : amx_tile<true, false, Chunk>;
    return v.offset ? amx_tile<false, true, Chunk> : amx_tile<false, false, Chunk>;
}

TileKernel select_amx_tile(const TileVariant& v, int panel_rows) {
    if (v.floating || panel_rows != rows) return avx512_kernels().tile(v, panel_rows);
    return v.chunk == 16 ? amx_tile_of<16>(v) : amx_tile_of<32>(v);
}

KernelTable amx_table() {
    KernelTable t = avx512_kernels();
    t.name = "amx";
    t.int8_rows = rows;
    t.tile = select_amx_tile;
    t.configure_tiles = configure_tiles;
    t.release_tiles = release_tiles;
    t.unpack_nibbles = unpack_nibbles;
    return t;
}

}  // namespace

const KernelTable& amx_kernels() {
    static const KernelTable table = amx_table();
    return table;
}

}  // namespace recto::cpu
