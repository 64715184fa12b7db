// One activation type of the experts' products a file: they compile side by side.
#include "kernels/cuda/grouped_launch.cuh"

namespace recto::cuda {
template void launch_grouped_kinds<__half>(cudaStream_t, Tensor, const GroupedProduct&, Tensor);
}  // namespace recto::cuda
