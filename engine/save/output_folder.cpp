#include "engine/save/output_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "kernels/error.h"

namespace recto {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTemporary = ".partial";

std::string reason(int error) {
    return std::strerror(error);
}

[[noreturn]] void cannot_write(const std::string& file, int error) {
    const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    throw Error(ErrorKind::runtime, file + ": expected to write it, writing failed (" + reason(error) +
                                        (full ? "); free some space, or choose another folder"
                                              : "); choose a folder that can be written"));
}

// Removes what a run that was killed left behind, and says whether nothing else is there.
bool holds_only_leftovers(const fs::path& folder) {
    std::error_code error;
    std::vector<fs::path> leftovers;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        if (it->path().extension() != kTemporary || !it->is_regular_file(error)) return false;
        leftovers.push_back(it->path());
    }
    if (error) cannot_write(folder.string(), error.value());
    for (const fs::path& file : leftovers)
        if (!fs::remove(file, error)) cannot_write(file.string(), error.value());
    return true;
}

fs::path parent_of(const fs::path& path) {
    return path.parent_path().empty() ? fs::path(".") : path.parent_path();
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& folder) : folder_(folder) {
    std::error_code error;
    // "models/x/" names the same folder as "models/x".
    if (folder_.has_relative_path() && folder_.filename().empty()) folder_ = folder_.parent_path();
    if (fs::exists(folder_, error)) {
        if (!fs::is_directory(folder_, error))
            throw Error(ErrorKind::argument,
                        folder_.string() + ": expected a new or empty folder, found a file of this name");
        if (!holds_only_leftovers(folder_))
            throw Error(ErrorKind::argument,
                        folder_.string() +
                            ": expected a new or empty folder, found one that holds files; nothing is "
                            "overwritten, choose another --out");
    }
    make_folder();
}

std::unique_ptr<OutputFolder> OutputFolder::for_file(const fs::path& file) {
    std::error_code error;
    if (fs::exists(file, error))
        throw Error(ErrorKind::argument, file.string() +
                                             ": expected a new file, found one of this name; nothing is "
                                             "overwritten, choose another --out");
    std::unique_ptr<OutputFolder> out(new OutputFolder);
    out->folder_ = parent_of(file);
    out->make_folder();
    return out;
}

void OutputFolder::make_folder() {
    std::error_code error;
    const bool existed = fs::exists(folder_, error);
    fs::create_directories(folder_, error);
    if (error) cannot_write(folder_.string(), error.value());
    made_folder_ = !existed;
    if (access(folder_.c_str(), W_OK | X_OK) != 0) {
        const int why = errno;
        if (made_folder_) fs::remove(folder_, error);
        made_folder_ = false;
        cannot_write(folder_.string(), why);
    }
}

OutputFolder::~OutputFolder() {
    if (committed_) return;
    std::error_code error;
    for (const auto& name : names_)
        fs::remove(folder_ / (name + kTemporary), error);
    if (made_folder_) fs::remove(folder_, error);  // refuses a folder that holds something
}

void OutputFolder::require_free(std::uint64_t bytes) const {
    std::error_code error;
    const auto space = fs::space(folder_, error);
    if (error || space.available >= bytes) return;  // where it cannot be asked, writing tells
    const auto mib = [](std::uint64_t n) { return std::to_string(n >> 20) + " MiB"; };
    throw Error(ErrorKind::runtime, folder_.string() + ": expected " + mib(bytes + (1U << 20) - 1) +
                                        " of free space, found " + mib(space.available) +
                                        "; free some, or choose another folder");
}

fs::path OutputFolder::reserve(const std::string& name) {
    names_.push_back(name);
    return folder_ / (name + kTemporary);
}

void OutputFolder::write(const std::string& name, std::string_view content) {
    OutputFile file(reserve(name), (folder_ / name).string());
    file.write(content);
    file.close();
}

void OutputFolder::commit() {
    for (auto name = names_.begin(); name != names_.end(); ++name) {
        const fs::path to = folder_ / *name;
        if (std::rename((to.string() + kTemporary).c_str(), to.c_str()) == 0) continue;
        const int why = errno;
        std::error_code error;
        for (auto renamed = names_.begin(); renamed != name; ++renamed)
            fs::remove(folder_ / *renamed, error);
        cannot_write(to.string(), why);
    }
    committed_ = true;
}

OutputFile::OutputFile(const fs::path& path, std::string shown, bool fresh) : shown_(std::move(shown)) {
    fd_ = open(path.c_str(), O_WRONLY | O_CREAT | (fresh ? O_EXCL | O_NOFOLLOW : O_TRUNC) | O_CLOEXEC, 0666);
    if (fd_ < 0) fail(errno);
}

OutputFile::~OutputFile() {
    if (fd_ >= 0) ::close(fd_);
}

void OutputFile::fail(int error) const {
    cannot_write(shown_, error);
}

void OutputFile::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        // Linux writes at most 2 GiB at once.
        const ssize_t n = ::write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), 1U << 30));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail(errno);
        bytes = bytes.subspan(std::size_t(n));
        size_ += std::uint64_t(n);
    }
}

void OutputFile::zeros(std::uint64_t count) {
    static constexpr std::array<std::byte, 4096> nothing{};
    while (count > 0) {
        const auto n = std::min<std::uint64_t>(count, nothing.size());
        write(std::span(nothing).first(n));
        count -= n;
    }
}

void OutputFile::close() {
    const int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0) fail(errno);
}

}  // namespace recto
