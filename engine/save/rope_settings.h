// From the fixed frequencies that a loaded model has back to settings that a config.json can hold.
#pragma once
#include "engine/load/model_config.h"
#include "engine/load/rope_scaling.h"

namespace recto {

// Settings that scale_rope() turns into exactly `rope` (frequencies and attention factor, bit for bit) and
// scaled_max_position() into `max_position`: the scaling's own form where its usual parameters fit (linear,
// yarn, Llama 3's), else "longrope", whose list of divisors can say any frequencies. `lengthens` false: a
// linear factor does not multiply the context that the file names (Gemma 3).
RopeSettings rope_settings_of(const RopeConfig& rope, int max_position, bool lengthens = true);

}  // namespace recto
