#include "engine/bench/model_files.h"

#include <algorithm>
#include <fstream>
#include <regex>

#include "engine/bench/sha256.h"
#include "kernels/error.h"

namespace recto {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t end_bytes = std::size_t(1) << 20;

void add_range(Sha256& hash, std::ifstream& in, std::uint64_t begin, std::uint64_t bytes) {
    std::vector<char> piece(end_bytes);
    in.seekg(std::streamoff(begin));
    while (bytes > 0 && in) {
        in.read(piece.data(), std::streamsize(std::min<std::uint64_t>(bytes, piece.size())));
        hash.add(piece.data(), std::size_t(in.gcount()));
        bytes -= std::uint64_t(in.gcount());
    }
}

ModelFiles folder_files(const fs::path& folder) {
    ModelFiles files;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (!entry.is_regular_file()) continue;
        const std::string end = entry.path().extension().string();
        if (end == ".safetensors")
            files.weights.push_back(entry.path());
        else if (end == ".json" || end == ".model" || end == ".jinja")
            files.others.push_back(entry.path());
    }
    return files;
}

ModelFiles gguf_files(const fs::path& file) {
    static const std::regex part("(.*)-[0-9]{5}-of-([0-9]{5})\\.gguf");
    std::smatch match;
    const std::string name = file.filename().string();
    ModelFiles files;
    if (!std::regex_match(name, match, part)) {
        files.weights.push_back(file);
        return files;
    }
    for (int i = 1; i <= std::stoi(match[2]); ++i) {
        std::string number = std::to_string(i);
        number.insert(0, 5 - number.size(), '0');
        files.weights.push_back(file.parent_path() /
                                (match[1].str() + "-" + number + "-of-" + match[2].str() + ".gguf"));
    }
    return files;
}

}  // namespace

ModelFiles model_files(const fs::path& model) {
    if (!fs::exists(model))
        throw Error(ErrorKind::input, model.string() + ": expected a model file or folder, found none");
    ModelFiles files = fs::is_directory(model) ? folder_files(model) : gguf_files(model);
    std::sort(files.weights.begin(), files.weights.end());
    std::sort(files.others.begin(), files.others.end());
    return files;
}

FileHash hash_file(const fs::path& file, std::uint64_t whole_limit_bytes) {
    FileHash result;
    result.name = file.filename().string();
    std::ifstream in(file, std::ios::binary);
    if (!in) throw Error(ErrorKind::input, file.string() + ": expected a readable file, found none");
    result.bytes = fs::file_size(file);
    result.whole = result.bytes <= std::max<std::uint64_t>(whole_limit_bytes, 2 * end_bytes);
    Sha256 hash;
    if (result.whole) {
        add_range(hash, in, 0, result.bytes);
    } else {
        add_range(hash, in, 0, end_bytes);
        add_range(hash, in, result.bytes - end_bytes, end_bytes);
    }
    result.sha256 = hash.hex();
    return result;
}

std::string model_label(const fs::path& model) {
    fs::path path = fs::absolute(model).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    const std::string prefix = "models--";
    const std::string repository = path.parent_path().parent_path().filename().string();
    if (path.parent_path().filename() != "snapshots" || repository.rfind(prefix, 0) != 0)
        return path.filename().string();
    std::string name = repository.substr(prefix.size());
    if (const std::size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
    return name;
}

}  // namespace recto
