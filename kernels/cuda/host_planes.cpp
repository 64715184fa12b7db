#include "kernels/cuda/host_planes.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/check.h"

namespace recto::cuda {

namespace {

// Exact: the values were widened from `dtype`.
void narrow(const std::vector<float>& values, DType dtype, std::byte* to) {
    if (dtype == DType::f32) {
        std::memcpy(to, values.data(), values.size() * sizeof(float));
        return;
    }
    auto* halves = reinterpret_cast<std::uint16_t*>(to);
    for (std::size_t i = 0; i < values.size(); ++i)
        halves[i] = narrow_16(values[i], dtype);
}

// One plane: its place on the device, its bytes a row, and its name.
struct PlanePart {
    const void* device;
    std::size_t row_bytes;
    const char* name;
};
constexpr int plane_count = 8;
struct PlaneParts {
    PlanePart part[plane_count];
};
PlaneParts parts_of(const LogicalPlanes& p) {
    const auto groups = std::size_t(p.groups()), supers = std::size_t(p.cols / super_group);
    const auto cols = std::size_t(p.cols);
    return {{{p.q, p.integer == QuantInt::u4 ? cols / 2 : cols, "q"},
             {p.scale, groups * dtype_bytes(p.scale_dtype), "scale"},
             {p.zero_point, groups, "zero point"},
             {p.offset, groups * dtype_bytes(p.offset_dtype), "offset"},
             {p.super_scale, supers * 2, "super scale"},
             {p.scale_factor, groups, "scale factor"},
             {p.super_offset, supers * 2, "super offset"},
             {p.offset_factor, groups, "offset factor"}}};
}

std::size_t aligned(std::size_t bytes) {
    return (bytes + 15) / 16 * 16;
}

}  // namespace

std::size_t host_plane_bytes(const WeightForm& form, std::int64_t cols) {
    // At most: every plane, floats of 4 bytes, and each plane's alignment.
    const auto groups = std::size_t(cols / form.group_size);
    return std::size_t(cols) + groups * (4 + 4 + 3) + std::size_t(cols / super_group) * 4 + 16 * plane_count;
}

void read_planes(const WeightRows& rows, std::int64_t first, std::int64_t n, const LogicalPlanes& planes,
                 std::byte* slot, std::vector<StagedPiece>& pieces) {
    const PlaneParts parts = parts_of(planes);
    std::byte* place[plane_count] = {};
    std::size_t used = 0;
    for (int i = 0; i < plane_count; ++i) {
        const PlanePart& part = parts.part[i];
        if (part.device == nullptr) continue;
        place[i] = slot + used;
        const std::size_t bytes = part.row_bytes * std::size_t(n);
        const auto* device = static_cast<const std::byte*>(part.device) + part.row_bytes * std::size_t(first);
        pieces.push_back({const_cast<std::byte*>(device), used, bytes});
        used += aligned(bytes);
    }
    const auto cells = std::size_t(n * planes.cols), groups = std::size_t(n * planes.groups());
    const bool nibbles = planes.integer == QuantInt::u4;
    std::vector<std::uint8_t> q(nibbles ? cells : 0);
    std::vector<float> scale(groups), offset(planes.offset ? groups : 0);
    WeightPlanes out;
    out.q = nibbles ? q.data() : reinterpret_cast<std::uint8_t*>(place[0]);
    out.scale = scale.data();
    out.offset = planes.offset ? offset.data() : nullptr;
    out.zero_point = reinterpret_cast<std::uint8_t*>(place[2]);
    out.super_scale = reinterpret_cast<std::uint16_t*>(place[4]);
    out.scale_factor = reinterpret_cast<std::int8_t*>(place[5]);
    out.super_offset = reinterpret_cast<std::uint16_t*>(place[6]);
    out.offset_factor = reinterpret_cast<std::uint8_t*>(place[7]);
    rows.read(first, n, out);
    if (nibbles) {
        auto* to = reinterpret_cast<std::uint8_t*>(place[0]);
        for (std::size_t i = 0; i < cells / 2; ++i)
            to[i] = std::uint8_t(q[2 * i] | (q[2 * i + 1] << 4));
    }
    narrow(scale, planes.scale_dtype, place[1]);
    if (planes.offset) narrow(offset, planes.offset_dtype, place[3]);
}

std::string compare_with_read(const WeightRows& rows, const LogicalPlanes& planes, cudaStream_t stream) {
    const PlaneParts parts = parts_of(planes);
    std::vector<std::byte> found[plane_count];
    for (int i = 0; i < plane_count; ++i) {
        if (parts.part[i].device == nullptr) continue;
        found[i].resize(parts.part[i].row_bytes * std::size_t(rows.rows()));
        check(cudaMemcpyAsync(found[i].data(), parts.part[i].device, found[i].size(), cudaMemcpyDeviceToHost,
                              stream),
              "copying from the card");
    }
    check(cudaStreamSynchronize(stream), "waiting for the card");
    std::vector<std::byte> expected(host_plane_bytes(rows.form(), rows.cols()));
    std::vector<StagedPiece> pieces;
    for (std::int64_t r = 0; r < rows.rows(); ++r) {
        pieces.clear();
        read_planes(rows, r, 1, planes, expected.data(), pieces);
        std::size_t next = 0;  // pieces come in the order of the planes
        for (int i = 0; i < plane_count; ++i) {
            if (parts.part[i].device == nullptr) continue;
            const StagedPiece& piece = pieces[next++];
            const std::byte* row = found[i].data() + parts.part[i].row_bytes * std::size_t(r);
            const std::byte* wanted = expected.data() + piece.at;
            const auto at = std::size_t(std::mismatch(row, row + piece.bytes, wanted).first - row);
            if (at < piece.bytes)
                return std::string(parts.part[i].name) + " of row " + std::to_string(r) + ", byte " +
                       std::to_string(at) + ": expected " + std::to_string(int(wanted[at])) + ", found " +
                       std::to_string(int(row[at]));
        }
    }
    return {};
}

}  // namespace recto::cuda
