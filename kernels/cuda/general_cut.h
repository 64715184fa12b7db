// How a product of the general path (general_linear.h) is cut into blocks of threads: pure arithmetic on the
// shape.
#pragma once
#include <cstdint>

namespace recto::cuda {

struct GeneralShape {
    int tokens = 8;  // columns of D a block of threads holds: 8, 16, 32, 64
    int splits = 1;  // blocks that share a tile
    int run = 0;     // chunks of 128 inputs a block takes
};
// blocks of 64 weight rows, chunks of 128 inputs
GeneralShape choose_general_cut(int blocks, int chunks, std::int64_t rows, int multiprocessors);

}  // namespace recto::cuda
