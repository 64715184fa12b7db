// One stored form and activation type of the Hopper product a file: they compile side by side.
#include "kernels/cuda/hopper_launch.cuh"

namespace recto::cuda {
template void launch_widths<TileKind::u4, __half>(cudaStream_t, Tensor, const TileWeight&, const TileOutput&,
                                                  const LinearScratch&, const TileShape&);
}  // namespace recto::cuda
