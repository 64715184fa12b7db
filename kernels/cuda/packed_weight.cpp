#include "kernels/cuda/packed_weight.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/kernels.h"

namespace recto::cuda {

CudaWeight::CudaWeight(WeightLoader& loader, std::span<const WeightRows* const> parts) {
    assert(!parts.empty() && parts.size() <= max_parts);
    view_.parts = int(parts.size());
    view_.cols = int(parts[0]->cols());
    name_ = parts[0]->form().source_name;
    memory_ = loader.allocate(lay_out(parts, nullptr));
    lay_out(parts, memory_->at(0));
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const WeightRows& rows = *parts[i];
        const PartView& part = view_.part[i];
        if (part.dense != nullptr)
            loader.load_dense(rows, static_cast<std::byte*>(const_cast<void*>(part.dense)));
        else
            loader.load_grouped(rows, [part](const LogicalPlanes& planes, cudaStream_t stream) {
                keep_plain(stream, planes, part);
            });
        const auto put = [&](const auto* to, auto values) {
            loader.put(values.data(), values.size_bytes(),
                       const_cast<std::byte*>(reinterpret_cast<const std::byte*>(to)));
        };
        if (part.order != nullptr) put(part.order, rows.input_permutation());
        if (part.bias != nullptr) put(part.bias, rows.bias());
    }
    loader.seal(*memory_);
}

std::size_t CudaWeight::lay_out(std::span<const WeightRows* const> parts, std::byte* base) {
    std::size_t used = 0;
    const auto place = [&](auto& pointer, std::int64_t count, std::size_t width) {
        pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(base + used);
        used += (std::size_t(count) * width + 255) / 256 * 256;
    };
    view_.rows = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const WeightRows& rows = *parts[i];
        const WeightForm& form = rows.form();
        assert(rows.cols() == view_.cols);
        PartView& part = view_.part[i];
        part = {};
        part.rows = int(rows.rows());
        view_.rows += part.rows;
        const std::int64_t cells = rows.rows() * rows.cols();
        if (form.grouped) {
            part.integer = form.integer;
            part.group_size = form.group_size;
            place(part.q, form.integer == QuantInt::u4 ? cells / 2 : cells, 1);
            place(part.scale, cells / form.group_size, sizeof(float));
            if (form.offset != OffsetForm::none) place(part.offset, cells / form.group_size, sizeof(float));
        } else {
            part.dense_dtype = form.dense;
            place(part.dense, cells, dtype_bytes(form.dense));
        }
        if (!rows.input_permutation().empty()) place(part.order, rows.cols(), sizeof(std::int32_t));
        if (!rows.bias().empty()) place(part.bias, rows.rows(), sizeof(float));
    }
    return used;
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
