#include "engine/save/rope_settings.h"

#include <cmath>
#include <optional>

namespace recto {

namespace {

constexpr const char* kLabel = "rope settings";

RopeSettings plain_settings(const RopeConfig& rope, int max_position) {
    RopeSettings s;
    s.theta = rope.theta;
    s.rotary_dims = rope.rotary_dims;
    s.max_position = max_position;
    return s;
}

bool gives(const RopeSettings& s, const RopeConfig& rope, int max_position) {
    const RopeConfig made = scale_rope(s, kLabel);
    return made.inverse_frequency == rope.inverse_frequency &&
           made.attention_factor == rope.attention_factor && scaled_max_position(s) == double(max_position);
}

// How many times slower than without scaling the pair i turns.
double divisor(const RopeConfig& rope, std::size_t i) {
    return std::pow(rope.theta, -2.0 * double(i) / rope.rotary_dims) / double(rope.inverse_frequency[i]);
}

// The frequencies are rounded to FP32, so their quotient is a factor up to such a rounding; people choose
// factors with few digits.
double short_factor(double quotient) {
    return std::round(quotient * 1024.0) / 1024.0;
}

std::optional<RopeSettings> linear(const RopeConfig& rope, int max_position, bool lengthens) {
    RopeSettings s = plain_settings(rope, max_position);
    s.type = "linear";
    s.factor = short_factor(divisor(rope, 0));
    if (!(s.factor > 1.0)) return std::nullopt;
    if (lengthens) s.max_position = std::round(max_position / s.factor);
    if (gives(s, rope, lengthens ? max_position : int(max_position * s.factor))) return s;
    return std::nullopt;
}

// The two sets that Meta published: 3.1 and 3.3 with a factor of 8, 3.2 with 32.
std::optional<RopeSettings> llama3(const RopeConfig& rope, int max_position) {
    for (const double factor : {8.0, 32.0}) {
        RopeSettings s = plain_settings(rope, max_position);
        s.type = "llama3";
        s.factor = factor;
        s.original_max_position = 8192;
        if (gives(s, rope, max_position)) return s;
    }
    return std::nullopt;
}

// The slowest pair has the whole factor; the original context is what the factor extended, or the context
// itself.
std::optional<RopeSettings> yarn(const RopeConfig& rope, int max_position) {
    RopeSettings s = plain_settings(rope, max_position);
    s.type = "yarn";
    s.factor = short_factor(divisor(rope, rope.inverse_frequency.size() - 1));
    if (!(s.factor > 1.0)) return std::nullopt;
    for (const bool extended : {true, false}) {
        s.original_max_position = extended ? std::round(max_position / s.factor) : max_position;
        if (!(s.original_max_position > 1)) continue;
        s.attention_factor.reset();
        if (gives(s, rope, max_position)) return s;
        s.attention_factor = rope.attention_factor;
        if (gives(s, rope, max_position)) return s;
    }
    return std::nullopt;
}

RopeSettings divided(const RopeConfig& rope, int max_position) {
    RopeSettings s = plain_settings(rope, max_position);
    s.type = "longrope";
    s.original_max_position = max_position;
    s.attention_factor = rope.attention_factor;
    for (std::size_t i = 0; i < rope.inverse_frequency.size(); ++i)
        s.short_factor.push_back(divisor(rope, i));
    s.long_factor = s.short_factor;
    return s;
}

}  // namespace

RopeSettings rope_settings_of(const RopeConfig& rope, int max_position, bool lengthens) {
    if (const auto s = plain_settings(rope, max_position); gives(s, rope, max_position)) return s;
    if (const auto s = linear(rope, max_position, lengthens)) return *s;
    for (const auto fit : {llama3, yarn})
        if (const auto s = fit(rope, max_position)) return *s;
    return divided(rope, max_position);
}

}  // namespace recto
