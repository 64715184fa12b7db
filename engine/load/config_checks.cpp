#include "engine/load/config_checks.h"

#include <cmath>

#include "engine/load/refuse.h"

namespace recto {

int checked_int(std::int64_t value, std::int64_t low, std::int64_t high, const std::string& setting,
                const std::string& label) {
    if (value < low || value > high)
        refuse(label, setting + " should be " + std::to_string(low) + " to " + std::to_string(high) +
                          ", found " + std::to_string(value));
    return int(value);
}

float checked_factor(double value, const std::string& setting, const std::string& label) {
    if (!(value >= 1e-6 && value <= 1e6))
        refuse(label, setting + " should be 0.000001 to 1000000, found " + std::to_string(value));
    return float(value);
}

void check_sizes(const ModelConfig& c, const std::string& label) {
    if (c.heads % c.kv_heads != 0)
        refuse(label,
               "the number of attention heads should be a multiple of the number of key/value heads, found " +
                   std::to_string(c.heads) + " and " + std::to_string(c.kv_heads));
    if (c.head_dim % 8 != 0 || c.head_dim < 8 || c.head_dim > max_head_dim)
        refuse(label, "the head size should be a multiple of 8 from 8 to " + std::to_string(max_head_dim) +
                          ", found " + std::to_string(c.head_dim));
    if (!std::isfinite(c.norm_eps) || c.norm_eps < 0)
        refuse(label, "the norm's epsilon should be 0 or a small positive number, found " +
                          std::to_string(c.norm_eps));
}

void check_rope(const ModelConfig& c, const std::string& label) {
    if (c.rope.rotary_dims > c.head_dim)
        refuse(label, "at most the head size of " + std::to_string(c.head_dim) +
                          " dimensions can rotate, found " + std::to_string(c.rope.rotary_dims));
}

}  // namespace recto
