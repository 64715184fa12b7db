#include "kernels/cuda/attention_decode.cuh"

namespace recto::cuda {

void decode_f16(cudaStream_t stream, const DecodeParameters& p, int blocks) {
    launch_decode<DType::f16>(stream, p, blocks);
}

}  // namespace recto::cuda
