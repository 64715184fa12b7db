#include <algorithm>

#include "engine/load/folder_source.h"
#include "engine/load/gguf_source.h"
#include "engine/load/gguf_vocabulary.h"
#include "engine/load/model_source.h"
#include "engine/load/pickle.h"
#include "engine/load/refuse.h"
#include "engine/load/tokenizer_folder.h"

namespace recto {

namespace {

namespace fs = std::filesystem;

// The one GGUF model of a folder, or empty if there is none. Of a split model the first part counts.
fs::path only_gguf(const fs::path& folder) {
    std::vector<fs::path> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        const bool later_part =
            name.find("-of-") != std::string::npos && name.find("-00001-of-") == std::string::npos;
        if (name.ends_with(".gguf") && !later_part) found.push_back(entry.path());
    }
    if (found.size() > 1) {
        std::sort(found.begin(), found.end());
        refuse(folder.string(), "one model was expected, found " + std::to_string(found.size()) +
                                    " GGUF files; choose one of them, for instance " +
                                    found.front().string());
    }
    return found.empty() ? fs::path() : found.front();
}

std::unique_ptr<ModelSource> open_gguf(const fs::path& path) {
    return make_gguf_source(std::make_shared<const GgufFiles>(path), path);
}

void require_existing(const fs::path& path) {
    std::error_code error;
    if (!fs::exists(path, error))
        refuse(path.string(), "a model file or folder was expected, there is none of this name");
}

fs::path folder_of(const fs::path& file) {
    return file.parent_path().empty() ? fs::path(".") : file.parent_path();
}

}  // namespace

std::unique_ptr<ModelSource> open_model(const fs::path& path) {
    require_existing(path);
    std::error_code error;
    if (fs::is_directory(path, error)) {
        if (fs::exists(path / "config.json", error)) return make_folder_source(path);
        if (const fs::path gguf = only_gguf(path); !gguf.empty()) return open_gguf(gguf);
        refuse_pickles(path);
        refuse(path.string(),
               "a model was expected (config.json with safetensors, or a GGUF file), found neither");
    }
    // One file out of a folder stands for the folder.
    if (path.extension() == ".safetensors" || path.extension() == ".json")
        return make_folder_source(folder_of(path));
    refuse_pickles(path);
    return open_gguf(path);
}

bool has_quantized_weights(const ModelSource& source) {
    // A GGUF whose larger part is dense calls itself so, and may still hold block types.
    return source.quantization_method() != "none" ||
           std::ranges::any_of(source.tensors(), [](const TensorInfo& t) { return t.form.has_value(); });
}

TokenizerFiles open_tokenizer_files(const fs::path& path) {
    require_existing(path);
    std::error_code error;
    if (fs::is_directory(path, error)) {
        if (has_folder_tokenizer(path)) return read_folder_tokenizer(path);
        if (const fs::path gguf = only_gguf(path); !gguf.empty()) return open_tokenizer_files(gguf);
        return read_folder_tokenizer(path);  // says that there is none
    }
    if (path.filename() == "config.json") return read_folder_tokenizer(folder_of(path));
    if (path.extension() == ".json" || path.extension() == ".model") return read_tokenizer_file(path);
    if (path.extension() == ".safetensors") return read_folder_tokenizer(folder_of(path));
    refuse_pickles(path);
    return read_gguf_vocabulary(GgufFiles(path).metadata());
}

}  // namespace recto
