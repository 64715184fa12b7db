// Hopper's warpgroup matrix product (PTX ISA, wgmma.mma_async): D[64, N] += A[64, 16] · B[N, 16]ᵀ with FP32
// sums. A warpgroup is four warps; thread (warp w, lane = 4 g + t) holds of D
//     d[4 j + 0 … 3] = D[16 w + g][8 j + 2 t], [.. + 1], D[16 w + g + 8][8 j + 2 t], [.. + 1]
// and of A, when it comes from registers, four pairs: rows g, g + 8 at k = 2 t, then the same at k = 2 t + 8.
// One instruction of each width.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace recto::cuda {

template <int N>
struct Wgmma;  // N = 8, 16, 32, 64, 128, 160, 192, 224, 256

// The assembler wants every register by name: the sums' names in the instruction's text, sixteen at a time,
// and the same as operands.
// clang-format off
#define RECTO_SUMS_0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define RECTO_SUMS_1 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define RECTO_SUMS_2 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define RECTO_SUMS_3 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define RECTO_SUMS_4 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define RECTO_SUMS_5 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define RECTO_SUMS_6 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define RECTO_SUMS_7 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define RECTO_SUM(i) "+f"(d[i])
#define RECTO_SUMS(i) \
    RECTO_SUM(i), RECTO_SUM(i + 1), RECTO_SUM(i + 2), RECTO_SUM(i + 3), RECTO_SUM(i + 4), RECTO_SUM(i + 5), \
    RECTO_SUM(i + 6), RECTO_SUM(i + 7), RECTO_SUM(i + 8), RECTO_SUM(i + 9), RECTO_SUM(i + 10), \
    RECTO_SUM(i + 11), RECTO_SUM(i + 12), RECTO_SUM(i + 13), RECTO_SUM(i + 14), RECTO_SUM(i + 15)
// R0 … R5: N / 2 and the numbers after it, of the operands after the sums.
#define RECTO_WGMMA_OF(N, T, NAME, TEXT, R0, R1, R2, R3, R4, R5, ...)                                            \
    static __device__ void regs(float (&d)[N / 2], const std::uint32_t (&a)[4], std::uint64_t b, int accumulate, \
                                T) {                                                                             \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #R5 ", 0; "                                              \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." NAME "." NAME " {" TEXT "}, "             \
                     "{%" #R0 ", %" #R1 ", %" #R2 ", %" #R3 "}, %" #R4 ", p, 1, 1, 0; }"                         \
                     : __VA_ARGS__                                                                               \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                     \
    }                                                                                                            \
    static __device__ void shared(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, int accumulate, T) {      \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #R2 ", 0; "                                              \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." NAME "." NAME " {" TEXT "}, "             \
                     "%" #R0 ", %" #R1 ", p, 1, 1, 0, 0; }"                                                      \
                     : __VA_ARGS__                                                                               \
                     : "l"(a), "l"(b), "r"(accumulate));                                                         \
    }
#define RECTO_WGMMA(N, TEXT, R0, R1, R2, R3, R4, R5, ...)                                  \
    template <>                                                                            \
    struct Wgmma<N> {                                                                      \
        RECTO_WGMMA_OF(N, __half, "f16", TEXT, R0, R1, R2, R3, R4, R5, __VA_ARGS__)        \
        RECTO_WGMMA_OF(N, __nv_bfloat16, "bf16", TEXT, R0, R1, R2, R3, R4, R5, __VA_ARGS__) \
    };

RECTO_WGMMA(8, "%0, %1, %2, %3", 4, 5, 6, 7, 8, 9,
            RECTO_SUM(0), RECTO_SUM(1), RECTO_SUM(2), RECTO_SUM(3))
RECTO_WGMMA(16, "%0, %1, %2, %3, %4, %5, %6, %7", 8, 9, 10, 11, 12, 13,
            RECTO_SUM(0), RECTO_SUM(1), RECTO_SUM(2), RECTO_SUM(3), RECTO_SUM(4), RECTO_SUM(5), RECTO_SUM(6), RECTO_SUM(7))
RECTO_WGMMA(32, RECTO_SUMS_0, 16, 17, 18, 19, 20, 21, RECTO_SUMS(0))
RECTO_WGMMA(64, RECTO_SUMS_0 ", " RECTO_SUMS_1, 32, 33, 34, 35, 36, 37, RECTO_SUMS(0), RECTO_SUMS(16))
RECTO_WGMMA(128, RECTO_SUMS_0 ", " RECTO_SUMS_1 ", " RECTO_SUMS_2 ", " RECTO_SUMS_3, 64, 65, 66, 67, 68, 69,
            RECTO_SUMS(0), RECTO_SUMS(16), RECTO_SUMS(32), RECTO_SUMS(48))
RECTO_WGMMA(160, RECTO_SUMS_0 ", " RECTO_SUMS_1 ", " RECTO_SUMS_2 ", " RECTO_SUMS_3 ", " RECTO_SUMS_4, 80,
            81, 82, 83, 84, 85, RECTO_SUMS(0), RECTO_SUMS(16), RECTO_SUMS(32), RECTO_SUMS(48),
            RECTO_SUMS(64))
RECTO_WGMMA(192, RECTO_SUMS_0 ", " RECTO_SUMS_1 ", " RECTO_SUMS_2 ", " RECTO_SUMS_3 ", " RECTO_SUMS_4 ", "
            RECTO_SUMS_5, 96, 97, 98, 99, 100, 101, RECTO_SUMS(0), RECTO_SUMS(16), RECTO_SUMS(32),
            RECTO_SUMS(48), RECTO_SUMS(64), RECTO_SUMS(80))
RECTO_WGMMA(224, RECTO_SUMS_0 ", " RECTO_SUMS_1 ", " RECTO_SUMS_2 ", " RECTO_SUMS_3 ", " RECTO_SUMS_4 ", "
            RECTO_SUMS_5 ", " RECTO_SUMS_6, 112, 113, 114, 115, 116, 117, RECTO_SUMS(0), RECTO_SUMS(16),
            RECTO_SUMS(32), RECTO_SUMS(48), RECTO_SUMS(64), RECTO_SUMS(80), RECTO_SUMS(96))
RECTO_WGMMA(256, RECTO_SUMS_0 ", " RECTO_SUMS_1 ", " RECTO_SUMS_2 ", " RECTO_SUMS_3 ", " RECTO_SUMS_4 ", "
            RECTO_SUMS_5 ", " RECTO_SUMS_6 ", " RECTO_SUMS_7, 128, 129, 130, 131, 132, 133, RECTO_SUMS(0),
            RECTO_SUMS(16), RECTO_SUMS(32), RECTO_SUMS(48), RECTO_SUMS(64), RECTO_SUMS(80), RECTO_SUMS(96),
            RECTO_SUMS(112))
// clang-format on
#undef RECTO_WGMMA
#undef RECTO_WGMMA_OF
#undef RECTO_SUMS
#undef RECTO_SUM
#undef RECTO_SUMS_0
#undef RECTO_SUMS_1
#undef RECTO_SUMS_2
#undef RECTO_SUMS_3
#undef RECTO_SUMS_4
#undef RECTO_SUMS_5
#undef RECTO_SUMS_6
#undef RECTO_SUMS_7

// Before the first product, and after registers that a product reads or adds to were written.
__device__ inline void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int Pending>
__device__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// A tile in shared memory, rows of 64 16-bit elements (128 bytes), swizzled in units of 16 bytes inside
// groups of eight rows, as the bulk tensor copy writes it (PTX ISA, "matrix descriptor", 128-byte swizzle).
// The tile begins at a multiple of 1,024 bytes; `k16` chooses 16 of the 64 elements.
__device__ inline std::uint64_t wgmma_descriptor(std::uint32_t shared_address, int k16) {
    constexpr std::uint64_t stride = std::uint64_t(1024 >> 4) << 32;  // between groups of eight rows
    constexpr std::uint64_t leading = std::uint64_t(1) << 16;         // not used by this swizzle
    constexpr std::uint64_t swizzle_128 = std::uint64_t(1) << 62;
    return swizzle_128 | stride | leading | ((shared_address + std::uint32_t(k16) * 32) >> 4 & 0x3FFF);
}

}  // namespace recto::cuda
