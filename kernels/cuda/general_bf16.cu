// One activation type of the general product a file: they compile side by side.
#include "kernels/cuda/general_launch.cuh"

namespace recto::cuda {
template void launch_general_kinds<__nv_bfloat16>(cudaStream_t, Tensor, const TileWeight&, const TileOutput&,
                                                  const LinearScratch&, const GeneralShape&);
}  // namespace recto::cuda
