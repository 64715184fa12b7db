// Scales and zero points of a stage, in the form that unpacking wants.
#pragma once
#include "kernels/cuda/dequantize.cuh"
#include "kernels/cuda/hopper_pipeline.cuh"

namespace recto::cuda {

// Scales of a thread's two rows, of group `index` of the stage at `at`.
template <class T>
__device__ void load_groups(RowGroup<T> (&r)[2], const HopperArgs& a, const StageLayout& layout,
                            const std::uint8_t* at, int group, int thread, int index) {
    const TileWeight& w = a.w;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int row = thread / 32 * 16 + thread % 32 / 4 + 8 * i;
        const int n = (group * a.groups_a_chunk + index) * block_rows + row;
        const auto word = [&](std::uint32_t plane) {
            return std::uint32_t(reinterpret_cast<const std::uint16_t*>(at + plane)[n]);
        };
        r[i].set_scale(word(layout.scale), w.planes_bf16);
        if (w.mode == SecondPlane::zero_u8)
            r[i].set_zero((at + layout.second)[n]);
        else if (w.mode == SecondPlane::offset_16)
            r[i].set_offset(word(layout.second), w.planes_bf16);
        r[i].settle();
    }
}

// Before the first group: what the planes do not say.
template <class T>
__device__ void start_groups(RowGroup<T> (&r)[2], const TileWeight& w) {
    for (RowGroup<T>& one : r) {
        one.set_zero(std::uint32_t(w.zero));
        one.set_offset(0, false);
    }
}

}  // namespace recto::cuda
