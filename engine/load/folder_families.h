// The families that Recto runs from Hugging Face folders: what each one's configuration class fills in for
// missing keys, and what is its own. A new dense family is a line of the table and, at most, one function
// beside it.
#pragma once
#include <cstdint>

#include "engine/load/folder_config.h"
#include "engine/load/json_reader.h"

namespace recto {

// Values of keys that a file may leave out; 0 where the class has none that a real file could rely on.
struct FamilyDefaults {
    int hidden = 0, intermediate = 0, layers = 0, heads = 0, vocab = 0;
    int kv_heads = 0;  // 0: as many as heads
    int head_dim = 0;  // 0: hidden / heads
    int max_position = 2048;
    float norm_eps = 1e-6F;
    double theta = 10000.0;
    double local_theta = 0;        // of layers with a window; 0: as the others
    double original_position = 0;  // original_max_position_embeddings; 0: max_position
    bool tied = false;
    Activation activation = Activation::silu;
    std::int32_t bos = -1, eos = -1;  // -1: none
};

struct FolderFamily {
    const char* architecture;  // of "architectures": "LlamaForCausalLM"
    const char* model_type;    // where "architectures" is missing
    const char* name;          // for people
    FamilyDefaults defaults;
    // Everything that not all families share: norms, biases, windows, scales, layers without RoPE. Runs once
    // the sizes are read. Null: nothing.
    void (*read_own)(const JsonObject& config, FolderConfig& result) = nullptr;
    bool nested = false;  // the settings are those of the object "text_config"
};

// Error(input) names an unknown architecture and the supported ones.
const FolderFamily& folder_family_of(const JsonObject& config);

// A key that must be there, or may be missing: a number from 1 to `high`, else Error(input).
int required_size(const JsonObject& config, const char* key, std::int64_t high);
int optional_size(const JsonObject& config, const char* key, std::int64_t high, int fallback);

}  // namespace recto
