#include "app/cli/result_file.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "kernels/error.h"

namespace recto::cli {

namespace fs = std::filesystem;

ResultFile::ResultFile(const std::string& path) : place_(path), growing_(path) {
    std::error_code error;
    const fs::file_type kind = fs::symlink_status(place_, error).type();
    const bool beside = kind == fs::file_type::regular || kind == fs::file_type::not_found;
    // A file or a link of that name is somebody else's.
    for (int n = 1; beside && (n == 1 || (n <= 100 && fs::exists(fs::symlink_status(growing_, error)))); ++n)
        growing_ = place_ + (n == 1 ? ".part" : ".part" + std::to_string(n));
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
