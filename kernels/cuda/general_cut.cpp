#include "kernels/cuda/general_cut.h"

#include <algorithm>

namespace recto::cuda {
namespace {

// That keep a multiprocessor's memory busy, by the bytes that their stages ask for.
constexpr int blocks_a_multiprocessor = 4;
constexpr int least_run = 4;  // chunks: the stages of a block want filling
constexpr int most_splits = 16;

}  // namespace

GeneralShape choose_general_cut(int blocks, int chunks, std::int64_t rows, int multiprocessors) {
    GeneralShape s;
    while (s.tokens < 64 && s.tokens < rows)
        s.tokens *= 2;
    const std::int64_t tiles = blocks * ((rows + s.tokens - 1) / s.tokens);
    const std::int64_t wanted = std::int64_t(multiprocessors) * blocks_a_multiprocessor / tiles;
    const std::int64_t splits =
        std::clamp<std::int64_t>(std::min<std::int64_t>(wanted, chunks / least_run), 1, most_splits);
    s.run = int((chunks + splits - 1) / splits);
    s.splits = (chunks + s.run - 1) / s.run;
    return s;
}

}  // namespace recto::cuda
