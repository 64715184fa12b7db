// A view of a dense 2-D tensor in a backend's memory. Owns nothing.
#pragma once
#include <cassert>
#include <cstdint>

#include "kernels/dtype.h"

namespace recto {

struct Tensor {
    void* data = nullptr;  // [rows, cols] in the backend's memory, rows `row_stride` elements apart
    DType dtype = DType::f32;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t row_stride = 0;

    std::size_t bytes() const { return std::size_t(rows) * std::size_t(row_stride) * dtype_bytes(dtype); }
    float* f32() const {
        assert(dtype == DType::f32);
        return static_cast<float*>(data);
    }
    // The first `n` rows, or a range of columns, of the same memory.
    Tensor first_rows(std::int64_t n) const {
        assert(n <= rows);
        Tensor t = *this;
        t.rows = n;
        return t;
    }
    Tensor columns(std::int64_t begin, std::int64_t count) const {
        assert(begin + count <= cols);
        Tensor t = *this;
        t.data = static_cast<char*>(data) + std::size_t(begin) * dtype_bytes(dtype);
        t.cols = count;
        return t;
    }
};

}  // namespace recto
