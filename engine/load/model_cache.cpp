#include <cstdlib>

#include "engine/load/mapped_file.h"
#include "engine/load/model_source.h"
#include "engine/load/refuse.h"

namespace recto {

namespace {

namespace fs = std::filesystem;

const char* environment(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

// Where huggingface_hub keeps its cache (huggingface_hub constants.py).
fs::path cache_folder() {
    if (const char* folder = environment("HF_HUB_CACHE")) return folder;
    if (const char* folder = environment("HUGGINGFACE_HUB_CACHE")) return folder;
    if (const char* home = environment("HF_HOME")) return fs::path(home) / "hub";
    if (const char* cache = environment("XDG_CACHE_HOME")) return fs::path(cache) / "huggingface" / "hub";
    if (const char* home = environment("HOME")) return fs::path(home) / ".cache" / "huggingface" / "hub";
    return {};
}

// "org/name" with nothing in it that a path could make use of.
bool is_repository_name(const std::string& name) {
    if (name.empty() || name.find("..") != std::string::npos || name.find("--") != std::string::npos)
        return false;
    int slashes = 0;
    for (const char c : name) {
        if (c == '/') {
            ++slashes;
        } else if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                     c == '_' || c == '.')) {
            return false;
        }
    }
    return slashes == 1 && name.front() != '/' && name.back() != '/';
}

std::string trimmed(std::string text) {
    const auto end = text.find_last_not_of(" \t\r\n");
    return end == std::string::npos ? std::string() : text.substr(0, end + 1);
}

// The snapshot that refs/main names; without it the newest snapshot.
fs::path snapshot_folder(const fs::path& repository) {
    std::error_code ignored;
    const fs::path snapshots = repository / "snapshots";
    if (fs::is_regular_file(repository / "refs" / "main", ignored)) {
        const std::string commit = trimmed(read_text_file(repository / "refs" / "main", 256));
        const bool plain = !commit.empty() && commit.find('/') == std::string::npos && commit.front() != '.';
        if (plain && fs::is_directory(snapshots / commit, ignored)) return snapshots / commit;
    }
    fs::path newest;
    fs::file_time_type newest_time;
    for (const auto& entry : fs::directory_iterator(snapshots, ignored)) {
        const auto time = entry.last_write_time(ignored);
        if (entry.is_directory(ignored) && (newest.empty() || time > newest_time)) {
            newest = entry.path();
            newest_time = time;
        }
    }
    return newest;
}

}  // namespace

fs::path resolve_model(const std::string& name) {
    std::error_code ignored;
    if (name.empty()) refuse("model", "a path or a name like org/model was expected, found nothing");
    if (fs::exists(name, ignored)) return name;
    if (!is_repository_name(name))
        refuse(name, "there is no such file or folder, and it is not a name like org/model");
    const fs::path cache = cache_folder();
    std::string folder = "models--" + name;
    folder.replace(folder.find('/'), 1, "--");
    const fs::path snapshot = cache.empty() ? fs::path() : snapshot_folder(cache / folder);
    if (snapshot.empty())
        refuse(
            name,
            "there is no such file or folder, and no snapshot of it in the Hugging Face cache (looked in " +
                (cache / folder).string() + "); fetch it, for instance with: hf download " + name);
    return snapshot;
}

}  // namespace recto
