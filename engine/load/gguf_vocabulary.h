// The tokenizer side of a GGUF file.
#pragma once
#include "engine/load/gguf.h"
#include "engine/load/model_source.h"

namespace recto {

bool has_gguf_vocabulary(const Gguf& metadata);
// Error(input) if the file has no vocabulary or its arrays do not fit together.
TokenizerFiles read_gguf_vocabulary(const Gguf& metadata);

}  // namespace recto
