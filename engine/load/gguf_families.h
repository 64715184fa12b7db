// The architectures that Recto runs from GGUF files, and what is each one's own. A new dense family is a line
// of the table and, at most, one function beside it. What a file leaves out is inferred as llama.cpp infers
// it.
#pragma once
#include <string_view>

#include "engine/load/gguf_files.h"
#include "engine/load/gguf_keys.h"
#include "engine/load/model_config.h"

namespace recto {

struct GgufFamily {
    const char* architecture;  // "llama"
    const char* name;          // for people
    bool paired_qk_rows;       // q and k rows are stored for the neighbouring-pair form of RoPE
    // Norms, windows, scales, layers without RoPE. Runs once the sizes are read. Null: nothing.
    void (*read_own)(const GgufFiles& files, const GgufKeys& keys, ModelConfig& config) = nullptr;
    double local_theta = 0;  // of layers with a window; 0: as the others
};

// Error(input) names an unknown architecture and the supported ones.
const GgufFamily& gguf_family_of(const Gguf& meta);
const GgufFamily* find_gguf_family(std::string_view architecture);  // null if there is none

}  // namespace recto
