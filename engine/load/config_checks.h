// Checks that every configuration passes, whatever file it came from.
#pragma once
#include <cstdint>
#include <string>

#include "engine/load/model_config.h"

namespace recto {

// `value` as an int if low ≤ value ≤ high, else Error(input) naming the setting.
int checked_int(std::int64_t value, std::int64_t low, std::int64_t high, const std::string& setting,
                const std::string& label);

// A factor that numbers are multiplied by or divided by: a positive number of no absurd size, else Error(input).
float checked_factor(double value, const std::string& setting, const std::string& label);

// Largest values that a setting may have: far above any real model, low enough that products fit int64.
constexpr std::int64_t max_width = 1 << 20;       // hidden, intermediate
constexpr std::int64_t max_layers = 4096;
constexpr std::int64_t max_heads = 1 << 14;
constexpr std::int64_t max_experts = 1 << 14;
constexpr std::int64_t max_head_dim = 1 << 12;
constexpr std::int64_t max_vocab = 1 << 24;
constexpr std::int64_t max_context = 1 << 30;

// What the settings must fulfil together: heads a multiple of kv_heads, head_dim a multiple of 8, …
void check_sizes(const ModelConfig& config, const std::string& label);
void check_rope(const ModelConfig& config, const std::string& label);  // once config.rope is filled

}  // namespace recto
