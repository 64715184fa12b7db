// Device memory that a card's backend takes for its operations, beside what the engine asks of it: sums that
// blocks share, weights on their way to a library, a mixture's sorted rows, the step's arrays. Arithmetic on
// shapes, so that it is known before anything is allocated.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/batch.h"

namespace recto {

// What of a card decides it; zeros of the CPU.
struct CardTraits {
    int multiprocessors = 0;
    bool tiles = false;    // tensor-core products; the plain ones need no memory
    bool hopper = false;   // those of wgmma
    bool library = false;  // cuBLASLt was found
};

// The most that any product of the loaded weights asks for.
struct ProductNeeds {
    std::int64_t input = 0;           // columns of inputs, which are copied where a weight has another order
    std::int64_t pair = 0;            // columns of gate|up results that meet after the product
    std::int64_t unpacked_bytes = 0;  // of a quantized weight's 16-bit rows
    std::int64_t eight_input = 0;     // columns of inputs that are rounded to 8 bits, padded
    std::int64_t eight_slice_bytes = 0;  // of a weight so
    std::int64_t experts = 0;            // of a layer
    std::int64_t expert_row_bytes = 0;   // of a slot's results that meet after the product
    std::int64_t expert_input = 0;       // columns of inputs with another order
};

// One segment of a weight; rows of gate and up together where `gated`.
struct ProductShape {
    std::int64_t rows = 0, cols = 0;
    bool gated = false;    // gate and up rows share blocks
    bool grouped = false;  // quantized
    bool eight = false;    // products of many rows round both sides to 8 bits
};
void expect_product(ProductNeeds& needs, const ProductShape& shape);

// Of products of up to `rows` rows, which the backend keeps, and of a step's arrays, which go with their
// batch.
std::size_t product_scratch_bytes(const CardTraits& card, const ProductNeeds& needs, std::int64_t rows);
std::size_t step_scratch_bytes(const CardTraits& card, const BatchLimits& limits);
// Both, as make_batch(limits) leaves them.
std::size_t card_scratch_bytes(const CardTraits& card, const ProductNeeds& needs, const BatchLimits& limits);

}  // namespace recto
