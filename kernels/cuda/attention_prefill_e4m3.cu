#include "kernels/cuda/attention_prefill.cuh"

namespace recto::cuda {

void prefill_e4m3(cudaStream_t stream, const PrefillParameters& p, int tiles) {
    launch_prefill<DType::f8_e4m3>(stream, p, tiles);
}

}  // namespace recto::cuda
