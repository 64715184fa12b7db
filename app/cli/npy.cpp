#include "app/cli/npy.h"

#include <filesystem>

#include "kernels/error.h"

namespace recto::cli {

NpyWriter::NpyWriter(const std::string& path, std::int64_t rows, std::int64_t cols)
    : path_(path), growing_(path) {
    std::error_code error;
    const auto kind = std::filesystem::status(path, error).type();
    if (kind == std::filesystem::file_type::regular || kind == std::filesystem::file_type::not_found)
        growing_ += ".part";
    out_.open(growing_, std::ios::binary);
    if (!out_)
        throw Error(ErrorKind::runtime,
                    path + ": expected a file that can be written, found none; check the folder");
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                         std::to_string(cols) + "), }";
    // The format wants magic, version, length and header together to be a multiple of 64 bytes, ended by a
    // newline.
    constexpr std::size_t fixed = 10;
    header.append(64 - (fixed + header.size() + 1) % 64, ' ');
    header += '\n';
    out_.write("\x93NUMPY\x01\x00", 8);
    const auto length = std::uint16_t(header.size());
    const char bytes[2] = {char(length & 0xFF), char(length >> 8)};
    out_.write(bytes, 2);
    out_ << header;
}

void NpyWriter::write(std::span<const float> values) {
    out_.write(reinterpret_cast<const char*>(values.data()), std::streamsize(values.size_bytes()));
}

void NpyWriter::close() {
    out_.close();
    std::error_code error;
    if (out_ && growing_ != path_) std::filesystem::rename(growing_, path_, error);
    whole_ = out_ && !error;
    if (!whole_)
        throw Error(ErrorKind::runtime,
                    path_ + ": expected to write the whole array, writing failed; is the disk full?");
}

NpyWriter::~NpyWriter() {
    if (whole_ || growing_ == path_) return;
    out_.close();
    std::error_code error;
    std::filesystem::remove(growing_, error);
}

}  // namespace recto::cli
