#include "app/cli/result_file.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "kernels/error.h"

namespace recto::cli {

namespace fs = std::filesystem;

void refuse_model_file(const std::string& file, const fs::path& model) {
    std::error_code error;
    if (!fs::exists(file, error)) return;
    const fs::path path = fs::absolute(file, error);
    const std::string name = path.filename().string();
    // Results of other runs may lie in the folder, and may be replaced.
    static constexpr std::string_view model_files[] = {".safetensors",    ".index.json",
                                                       "config.json",     "tokenizer.json",
                                                       "tokenizer.model", "quantize_config.json"};
    const bool of_model = std::any_of(std::begin(model_files), std::end(model_files),
                                      [&](std::string_view end) { return name.ends_with(end); });
    if (fs::equivalent(path, model, error) || (of_model && fs::equivalent(path.parent_path(), model, error)))
        throw Error(ErrorKind::argument, file + ": expected a place for results, found a file of the model " +
                                             model.string() + "; choose another name");
}

ResultFile::ResultFile(const std::string& path) : place_(path), growing_(path) {
    std::error_code error;
    const fs::file_type kind = fs::symlink_status(place_, error).type();
    const bool beside = kind == fs::file_type::regular || kind == fs::file_type::not_found;
    if (beside) growing_ += ".part";
    // A file or a link of that name is somebody else's.
    for (int n = 2; beside && n <= 100 && fs::exists(fs::symlink_status(growing_, error)); ++n)
        growing_ = place_ + ".part" + std::to_string(n);
    out_.emplace(growing_, path, beside);
}

void ResultFile::close() {
    out_->close();
    std::error_code error;
    if (growing_ != place_) fs::rename(growing_, place_, error);
    if (error)
        throw Error(ErrorKind::runtime, place_ + ": expected to put the new file at its place, found " +
                                            error.message() + "; choose another name");
    whole_ = true;
}

ResultFile::~ResultFile() {
    if (whole_ || growing_ == place_) return;
    out_.reset();
    std::error_code error;
    fs::remove(growing_, error);
}

}  // namespace recto::cli
