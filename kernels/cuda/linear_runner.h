// Runs the products of tiled weights: chooses the kernel, keeps the scratch memory that the choices need.
#pragma once
#include <memory>
#include <string>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/eight_bit.h"
#include "kernels/cuda/lt_matmul.h"
#include "kernels/cuda/scratch_sizes.h"
#include "kernels/cuda/tiled_weight.h"

namespace recto::cuda {

// Which instructions the card's products use.
enum class LinearPath : std::uint8_t {
    hopper,   // wgmma, bulk copies: sm_90a
    general,  // mma.sync, cp.async: sm_80 and newer
};

class LinearRunner {
  public:
    LinearRunner(int multiprocessors, LinearPath path) : multiprocessors_(multiprocessors), path_(path) {}

    // Adds what a weight's products will need, when it is packed.
    static void expect(ProductNeeds& needs, const TiledWeight& weight);
    // Makes room for products of up to `max_rows` rows with weights of such needs. True if memory moved:
    // captured graphs that used it are void.
    bool reserve(const ProductNeeds& needs, std::int64_t max_rows);
    std::int64_t reserved_rows() const { return reserved_rows_; }
    std::size_t bytes() const;  // held
    void run(cudaStream_t stream, Tensor x, const TiledWeight& weight, Epilogue epilogue, Tensor out);
    // Without cuBLASLt the own products take every number of rows.
    bool has_library() const { return !lt_.missing(); }

  private:
    bool hopper() const { return path_ == LinearPath::hopper; }
    void run_segment(cudaStream_t stream, Tensor x, const TiledWeight::Segment& s, Epilogue epilogue,
                     Tensor out);
    void run_own(cudaStream_t stream, Tensor x, const TileWeight& w, const TileOutput& output) const;
    // A quantized weight some blocks at a time as 16-bit rows, and cuBLASLt.
    void run_unpacked(cudaStream_t stream, Tensor x, const TiledWeight::Segment& s, Epilogue epilogue,
                      Tensor out);
    std::size_t pair_offset() const;
    Tensor scratch_rows(std::int64_t rows, std::int64_t cols, DType dtype, std::size_t offset) const;

    int multiprocessors_;
    LinearPath path_;
    LtMatmul lt_;
    EightBit eight_{lt_};
    DeviceMemory partials_, counters_, rows_;
    DeviceMemory unpacked_;  // 16-bit rows of a weight on their way to cuBLASLt
    // Columns of copied inputs and of gate|up results.
    std::int64_t reserved_rows_ = 0, reserved_input_ = 0, reserved_pair_ = 0;
};

}  // namespace recto::cuda
