// What each family's configuration class of transformers calls the settings that not all families share.
#pragma once
#include <string>

#include "engine/save/config_writer.h"

namespace recto {

struct SavedFamily {
    const char* name;          // ModelConfig::family
    const char* architecture;  // of "architectures"
    const char* model_type;
    bool optional_bias;  // "attention_bias": of q, k, v and o together
    void (*put_own)(const ModelConfig& config, ConfigJson& json);
};

// Null if the family's configuration cannot be written.
const SavedFamily* find_saved_family(const ModelConfig& config);
std::string saved_family_names();

// The number with the fewest digits that reads back as this float.
double short_number(float value);

}  // namespace recto
