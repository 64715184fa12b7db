#include "kernels/cuda/attention_prefill.cuh"

namespace recto::cuda {

void prefill_f16(cudaStream_t stream, const PrefillParameters& p, int tiles) {
    launch_prefill<DType::f16>(stream, p, tiles);
}

}  // namespace recto::cuda
