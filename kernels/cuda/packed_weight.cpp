#include "kernels/cuda/packed_weight.h"

#include <algorithm>
#include <cassert>

namespace recto::cuda {

CudaWeight::CudaWeight(Backend& backend, std::span<const WeightRows* const> parts) {
    assert(!parts.empty() && parts.size() <= max_parts);
    view_.parts = int(parts.size());
    view_.cols = int(parts[0]->cols());
    name_ = parts[0]->form().source_name;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const WeightRows& rows = *parts[i];
        assert(rows.cols() == view_.cols);
        PartView& part = view_.part[i];
        part.rows = int(rows.rows());
        view_.rows += part.rows;
        if (rows.form().grouped)
            add_grouped(backend, rows, part);
        else
            add_dense(backend, rows, part);
        const auto order = rows.input_permutation();
        if (!order.empty()) part.order = static_cast<int*>(keep(backend, order.data(), order.size_bytes()));
        if (!rows.bias().empty())
            part.bias = static_cast<float*>(keep(backend, rows.bias().data(), rows.bias().size_bytes()));
    }
}

void* CudaWeight::keep(Backend& backend, const void* host, std::size_t bytes) {
    buffers_.push_back(backend.allocate(bytes));
    backend.upload(buffers_.back()->data(), host, bytes);
    bytes_ += bytes;
    return buffers_.back()->data();
}

void CudaWeight::add_dense(Backend& backend, const WeightRows& rows, PartView& part) {
    part.dense_dtype = rows.form().dense;
    std::vector<char> host(std::size_t(rows.rows()) * std::size_t(rows.cols()) *
                           dtype_bytes(part.dense_dtype));
    rows.read_dense(0, rows.rows(), host.data());
    part.dense = keep(backend, host.data(), host.size());
}

void CudaWeight::add_grouped(Backend& backend, const WeightRows& rows, PartView& part) {
    const WeightForm& form = rows.form();
    part.integer = form.integer;
    part.group_size = form.group_size;
    const auto cells = std::size_t(rows.rows()) * std::size_t(rows.cols());
    const std::size_t groups = cells / std::size_t(form.group_size);
    std::vector<std::uint8_t> q(cells);
    std::vector<float> scale(groups);
    std::vector<float> offset(form.offset == OffsetForm::none ? 0 : groups);
    WeightPlanes planes;
    planes.q = q.data();
    planes.scale = scale.data();
    planes.offset = offset.empty() ? nullptr : offset.data();
    rows.read(0, rows.rows(), planes);
    if (form.integer == QuantInt::u4) {
        assert(rows.cols() % 2 == 0);
        for (std::size_t i = 0; i < cells / 2; ++i)
            q[i] = std::uint8_t(q[2 * i] | (q[2 * i + 1] << 4));
        q.resize(cells / 2);
    }
    part.q = static_cast<std::uint8_t*>(keep(backend, q.data(), q.size()));
    part.scale = static_cast<float*>(keep(backend, scale.data(), scale.size() * sizeof(float)));
    if (!offset.empty())
        part.offset = static_cast<float*>(keep(backend, offset.data(), offset.size() * sizeof(float)));
}

std::string CudaWeight::describe() const {
    return name_ + ", row-major, FP32 products, plain CUDA";
}

CudaExperts::CudaExperts(Backend& backend, std::vector<std::unique_ptr<PackedWeight>> experts)
    : experts_(std::move(experts)) {
    assert(!experts_.empty());
    std::vector<WeightView> host;
    for (const auto& e : experts_) {
        assert(e->rows() == experts_[0]->rows() && e->cols() == experts_[0]->cols());
        host.push_back(static_cast<const CudaWeight&>(*e).view());
    }
    views_ = backend.allocate(host.size() * sizeof(WeightView));
    backend.upload(views_->data(), host.data(), host.size() * sizeof(WeightView));
}

std::size_t CudaExperts::bytes() const {
    std::size_t n = views_->bytes();
    for (const auto& e : experts_)
        n += e->bytes();
    return n;
}

}  // namespace recto::cuda
