// Cases of Backend::draw: `kernels --check`, `kernels --bench` and the tests of the host's sampler use one
// list.
#pragma once
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace recto {

enum class LogitShape : std::uint8_t {
    natural,  // about normal, a few tokens far above the rest
    tied,     // the same in steps of 1/4: many equal logits
    flat,     // all equal
    falling,  // −i / 16: weights down to nothing
};

struct DrawCase {
    std::string name;
    int vocab = 0;
    int valid = 0;  // ids; the columns beyond hold larger logits than any
    LogitShape shape = LogitShape::natural;
    RowDraw draw;  // of every row but for seed and output_index
    float logits_scale = 1.0F, softcap = 0.0F;
    int rows = 17;
    int broken_row = -1;  // holds a NaN or, where odd, an infinity
};
std::vector<DrawCase> draw_cases();

std::vector<float> draw_logits(const DrawCase& c);  // [rows, vocab]
RowDraw draw_of(const DrawCase& c, int row);
std::vector<std::int32_t> expected_draws(const DrawCase& c);  // by the reference
std::vector<std::int32_t> run_draws(Backend& backend, const DrawCase& c);

namespace reference {

// One row by the rules as they are written down: sorted, filtered, then the argmax over all that is left.
std::int32_t draw(const float* logits, int valid, const DrawArgs& args, const RowDraw& how);

}  // namespace reference

}  // namespace recto
