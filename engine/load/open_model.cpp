#include <algorithm>
#include <fstream>

#include "engine/load/gguf_source.h"
#include "engine/load/gguf_vocabulary.h"
#include "engine/load/model_source.h"
#include "engine/load/refuse.h"

namespace recto {

namespace {

namespace fs = std::filesystem;

}  // namespace

std::unique_ptr<ModelSource> open_model(const fs::path& path) {
    return make_gguf_source(std::make_shared<const GgufFiles>(path), path);
}

TokenizerFiles open_tokenizer_files(const fs::path& path) {
    return read_gguf_vocabulary(GgufFiles(path).metadata());
}

}  // namespace recto
