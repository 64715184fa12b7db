#include "engine/load/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/load/refuse.h"

namespace recto {

namespace {

using Frequencies = std::vector<double>;  // [d / 2]

Frequencies plain_frequencies(double theta, int d) {
    Frequencies f(std::size_t(d) / 2);
    for (std::size_t i = 0; i < f.size(); ++i)
        f[i] = std::pow(theta, -2.0 * double(i) / d);
    return f;
}

double original_length(const RopeSettings& s) {
    return s.original_max_position > 0 ? s.original_max_position : s.max_position;
}

void require(bool good, const std::string& label, const std::string& sentence) {
    if (!good) refuse(label, "rope scaling " + sentence);
}

std::string number(double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
}

void check_common(const RopeSettings& s, const std::string& label) {
    if (!(s.theta > 1.0) || !std::isfinite(s.theta))
        refuse(label, "rope theta should be greater than 1, found " + number(s.theta));
    if (s.rotary_dims < 2 || s.rotary_dims % 2 != 0)
        refuse(label, "the number of rotated dimensions should be even and at least 2, found " +
                          std::to_string(s.rotary_dims));
    require(s.factor > 0 && std::isfinite(s.factor), label,
            "should have a factor greater than 0, found " + number(s.factor));
}

Frequencies dynamic(const RopeSettings& s, const std::string& label) {
    require(s.rotary_dims > 2, label, "\"dynamic\" needs more than 2 rotated dimensions");
    // Length L = factor · M, hence f·L/M − (f − 1) = f² − f + 1.
    const double f = std::max(s.factor, 1.0);
    const double d = s.rotary_dims;
    return plain_frequencies(s.theta * std::pow(f * f - f + 1.0, d / (d - 2.0)), s.rotary_dims);
}

Frequencies llama3(const RopeSettings& s, const std::string& label) {
    const double original = original_length(s);
    require(original > 0, label, "\"llama3\" needs original_max_position_embeddings");
    require(s.low_freq_factor > 0 && s.high_freq_factor > s.low_freq_factor, label,
            "\"llama3\" should have 0 < low_freq_factor < high_freq_factor, found " +
                number(s.low_freq_factor) + " and " + number(s.high_freq_factor));
    Frequencies out = plain_frequencies(s.theta, s.rotary_dims);
    for (double& f : out) {
        const double wavelength = 2.0 * std::numbers::pi / f;
        if (wavelength < original / s.high_freq_factor) continue;
        const double t =
            (original / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
        f = wavelength > original / s.low_freq_factor ? f / s.factor : (1.0 - t) * f / s.factor + t * f;
    }
    return out;
}

Frequencies yarn(const RopeSettings& s, const std::string& label) {
    const double original = original_length(s);
    require(original > 0, label, "\"yarn\" needs original_max_position_embeddings");
    require(s.beta_fast > 0 && s.beta_slow > 0, label,
            "\"yarn\" should have beta_fast and beta_slow above 0");
    const double d = s.rotary_dims;
    // The dimension that turns r times within the original length.
    const auto dimension = [&](double r) {
        return d * std::log(original / (2.0 * std::numbers::pi * r)) / (2.0 * std::log(s.theta));
    };
    double low = dimension(s.beta_fast), high = dimension(s.beta_slow);
    if (s.truncate) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, d - 1.0);
    if (low == high) high += 0.001;  // as the original does, against a division by zero
    Frequencies out = plain_frequencies(s.theta, s.rotary_dims);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const double ramp = std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
        out[i] = out[i] * (1.0 - ramp) + out[i] / s.factor * ramp;
    }
    return out;
}

double yarn_attention(const RopeSettings& s) {
    if (s.attention_factor) return *s.attention_factor;
    const auto magnitude = [&](double m) {
        return s.factor <= 1.0 ? 1.0 : 0.1 * m * std::log(s.factor) + 1.0;
    };
    // A zero counts as not given, as in the original.
    if (s.mscale.value_or(0) != 0 && s.mscale_all_dim.value_or(0) != 0)
        return magnitude(*s.mscale) / magnitude(*s.mscale_all_dim);
    return magnitude(1.0);
}

Frequencies longrope(const RopeSettings& s, bool is_long, const std::string& label) {
    const auto& divisor = is_long ? s.long_factor : s.short_factor;
    Frequencies out = plain_frequencies(s.theta, s.rotary_dims);
    require(divisor.size() == out.size(), label,
            std::string("\"longrope\" should have ") + std::to_string(out.size()) + " numbers in " +
                (is_long ? "long_factor" : "short_factor") + ", found " + std::to_string(divisor.size()));
    for (std::size_t i = 0; i < out.size(); ++i) {
        require(divisor[i] > 0, label, "\"longrope\" should have factors greater than 0");
        out[i] /= divisor[i];
    }
    return out;
}

double longrope_attention(const RopeSettings& s, const std::string& label) {
    if (s.attention_factor) return *s.attention_factor;
    const double original = original_length(s);
    const double extension = s.factor != 1.0 ? s.factor : s.max_position / original;
    if (!(extension > 1.0)) return 1.0;
    require(original > 1, label, "\"longrope\" needs original_max_position_embeddings");
    return std::sqrt(1.0 + std::log(extension) / std::log(original));
}

}  // namespace

RopeConfig scale_rope(const RopeSettings& s, const std::string& label) {
    check_common(s, label);
    Frequencies f, short_f;
    double attention = 1.0;
    if (s.type == "default") {
        f = plain_frequencies(s.theta, s.rotary_dims);
    } else if (s.type == "linear") {
        f = plain_frequencies(s.theta, s.rotary_dims);
        for (double& value : f)
            value /= s.factor;
    } else if (s.type == "dynamic") {
        f = dynamic(s, label);
    } else if (s.type == "llama3") {
        f = llama3(s, label);
    } else if (s.type == "yarn") {
        f = yarn(s, label);
        attention = yarn_attention(s);
    } else if (s.type == "longrope") {
        const bool is_long = s.max_position > original_length(s);
        f = longrope(s, is_long, label);
        if (is_long && !s.short_factor.empty()) short_f = longrope(s, false, label);
        attention = longrope_attention(s, label);
    } else {
        refuse(label,
               "rope scaling of type " + shown(s.type) +
                   " is not supported; supported are default, linear, dynamic, llama3, yarn, longrope");
    }
    for (const auto* all : {&f, &short_f})
        for (const double value : *all)
            require(std::isfinite(value) && value > 0 && std::isfinite(attention), label,
                    "gives frequencies that are not positive numbers");

    RopeConfig out;
    out.type = s.type;
    out.theta = s.theta;
    out.rotary_dims = s.rotary_dims;
    out.inverse_frequency.assign(f.begin(), f.end());
    out.short_inverse_frequency.assign(short_f.begin(), short_f.end());
    if (!short_f.empty()) out.short_context = int(original_length(s));
    out.attention_factor = float(attention);
    return out;
}

void settle_rope(ModelConfig& config, int context) {
    RopeConfig& rope = config.rope;
    if (rope.short_inverse_frequency.empty() || context <= 0 || context > rope.short_context) return;
    rope.inverse_frequency = std::move(rope.short_inverse_frequency);
    rope.short_inverse_frequency.clear();
    config.max_position = rope.short_context;
}

double scaled_max_position(const RopeSettings& s) {
    if (s.type == "linear" || s.type == "dynamic") return s.max_position * std::max(s.factor, 1.0);
    if (s.type == "yarn") return std::max(original_length(s) * s.factor, s.max_position);
    return s.max_position;
}

}  // namespace recto
