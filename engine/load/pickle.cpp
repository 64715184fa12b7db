#include "engine/load/pickle.h"

#include <fstream>
#include <string>

#include "engine/load/refuse.h"

namespace recto {

namespace {

namespace fs = std::filesystem;

bool has_pickle_name(const fs::path& file) {
    for (const char* extension : {".bin", ".pt", ".pth", ".ckpt", ".pkl"})
        if (file.extension() == extension) return true;
    return false;
}

std::string first_bytes(const fs::path& file) {
    std::string head(4, '\0');
    std::ifstream in(file, std::ios::binary);
    in.read(head.data(), std::streamsize(head.size()));
    return in.gcount() == 4 ? head : std::string();
}

// A zip archive (torch.save since 1.6) or a pickle of protocol 2 to 5.
bool has_pickle_bytes(const std::string& head) {
    return head == "PK\x03\x04" || (head.starts_with('\x80') && head[1] >= 2 && head[1] <= 5);
}

[[noreturn]] void refuse_pickle(const fs::path& file, const fs::path& folder) {
    refuse(file.string(),
           "safetensors or GGUF was expected, this is a pickle, which can run code when it is opened; if you "
           "trust "
           "it, convert it once with: python -c \"from transformers import AutoModelForCausalLM as M; "
           "M.from_pretrained('" +
               folder.string() + "').save_pretrained('" + folder.string() + "-safetensors')\"");
}

}  // namespace

void refuse_pickles(const fs::path& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
        if (!fs::is_regular_file(path, error)) return;
        const std::string head = first_bytes(path);
        // Some GGUF files go by the name of .bin.
        if (head != "GGUF" && (has_pickle_name(path) || has_pickle_bytes(head)))
            refuse_pickle(path, path.parent_path().empty() ? fs::path(".") : path.parent_path());
        return;
    }
    for (const auto& entry : fs::directory_iterator(path, error))
        if (has_pickle_name(entry.path())) refuse_pickle(entry.path(), path);
}

}  // namespace recto
