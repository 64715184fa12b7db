// Runs the products of tiled weights: chooses the kernel, keeps the scratch memory that the choices need.
#pragma once
#include <memory>
#include <string>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/eight_bit.h"
#include "kernels/cuda/lt_matmul.h"
#include "kernels/cuda/tiled_weight.h"

namespace recto::cuda {

// Dense products of more rows than this go through cuBLASLt.
constexpr std::int64_t own_dense_rows = 64;

class LinearRunner {
  public:
    explicit LinearRunner(int multiprocessors) : multiprocessors_(multiprocessors) {}

    // Says what a weight's products will need, when it is packed; nothing is allocated.
    void expect(const TiledWeight& weight);
    // Makes room for products of up to `max_rows` rows. True if memory moved: captured graphs that used it are void.
    bool reserve(std::int64_t max_rows);
    void run(cudaStream_t stream, Tensor x, const TiledWeight& weight, Epilogue epilogue, Tensor out);

  private:
    void run_segment(cudaStream_t stream, Tensor x, const TiledWeight::Segment& s, Epilogue epilogue, Tensor out);
    Tensor scratch_rows(std::int64_t rows, std::int64_t cols, DType dtype, std::size_t offset) const;

    int multiprocessors_;
    LtMatmul lt_;
    EightBit eight_{lt_};
    DeviceMemory partials_, counters_, rows_;
    std::int64_t widest_input_ = 0, widest_pair_ = 0;  // columns of copied inputs and of gate|up results
    std::int64_t reserved_rows_ = 0, reserved_input_ = 0, reserved_pair_ = 0;
};

}  // namespace recto::cuda
