#include "kernels/cuda/attention_decode.cuh"

namespace recto::cuda {

void decode_e4m3(cudaStream_t stream, const DecodeParameters& p, int blocks) {
    launch_decode<DType::f8_e4m3>(stream, p, blocks);
}

}  // namespace recto::cuda
