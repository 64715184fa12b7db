#include "app/cli/npy.h"

namespace recto::cli {

NpyWriter::NpyWriter(const std::string& path, std::int64_t rows, std::int64_t cols) : file_(path) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                         std::to_string(cols) + "), }";
    // The format wants magic, version, length and header together to be a multiple of 64 bytes, ended by a
    // newline.
    constexpr std::size_t fixed = 10;
    header.append(64 - (fixed + header.size() + 1) % 64, ' ');
    header += '\n';
    const auto length = std::uint16_t(header.size());
    const char front[fixed] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, char(length & 0xFF), char(length >> 8)};
    file_.write(std::string_view(front, fixed));
    file_.write(header);
}

}  // namespace recto::cli
