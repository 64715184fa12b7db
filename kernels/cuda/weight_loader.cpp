#include "kernels/cuda/weight_loader.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_memory.h"

namespace recto::cuda {

namespace {

class ResidentMemory final : public WeightMemory {
  public:
    explicit ResidentMemory(std::size_t bytes) : memory_(bytes) {}
    std::byte* at(std::size_t offset) const override { return memory_.at(offset); }
    std::size_t bytes() const override { return memory_.bytes(); }
    bool offloaded() const override { return false; }

  private:
    DeviceMemory memory_;
};

DType plane_dtype(ScaleForm form) {
    return form == ScaleForm::f16 ? DType::f16 : form == ScaleForm::bf16 ? DType::bf16 : DType::f32;
}
DType plane_dtype(OffsetForm form) {
    return form == OffsetForm::f16 ? DType::f16 : DType::f32;
}

// Exact: the values were widened from `dtype`.
std::vector<std::byte> narrowed(const std::vector<float>& values, DType dtype) {
    std::vector<std::byte> out(values.size() * dtype_bytes(dtype));
    if (dtype == DType::f32) {
        std::copy_n(reinterpret_cast<const std::byte*>(values.data()), out.size(), out.data());
        return out;
    }
    auto* to = reinterpret_cast<std::uint16_t*>(out.data());
    for (std::size_t i = 0; i < values.size(); ++i)
        to[i] = dtype == DType::f16 ? f32_to_f16(values[i]) : f32_to_bf16(values[i]);
    return out;
}

}  // namespace

class WeightLoader::Impl {
  public:
    explicit Impl(cudaStream_t stream) : stream(stream) {}

    void copy(const void* host, std::size_t bytes, void* to) const {
        check(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, stream), "copying to the card");
        check(cudaStreamSynchronize(stream), "waiting for the card");
    }
    void* place(const void* host, std::size_t bytes) {
        arena.emplace_back(bytes);
        copy(host, bytes, arena.back().data());
        return arena.back().data();
    }
    template <class T>
    const T* place(const std::vector<T>& host) {
        return host.empty() ? nullptr : static_cast<const T*>(place(host.data(), host.size() * sizeof(T)));
    }

    cudaStream_t stream;
    std::vector<DeviceMemory> arena;
};

WeightLoader::WeightLoader(cudaStream_t stream) : impl_(std::make_unique<Impl>(stream)) {}
WeightLoader::~WeightLoader() = default;

std::unique_ptr<WeightMemory> WeightLoader::allocate(std::size_t bytes) {
    return std::make_unique<ResidentMemory>(bytes);
}

void WeightLoader::put(const void* host, std::size_t bytes, std::byte* to) {
    impl_->copy(host, bytes, to);
}

void WeightLoader::load_dense(const WeightRows& rows, std::byte* to) {
    std::vector<std::byte> host(std::size_t(rows.rows() * rows.cols()) * dtype_bytes(rows.form().dense));
    rows.read_dense(0, rows.rows(), host.data());
    impl_->copy(host.data(), host.size(), to);
}

void WeightLoader::load_grouped(const WeightRows& rows, Consume consume) {
    const WeightForm& form = rows.form();
    assert(form.grouped);
    const auto cells = std::size_t(rows.rows() * rows.cols());
    const std::size_t groups = cells / std::size_t(form.group_size);
    const bool composed = form.scale == ScaleForm::f16_times_u6 || form.scale == ScaleForm::f16_times_i8;
    const bool composed_offset = form.offset == OffsetForm::f16_times_u6;
    const bool has_zero = form.offset == OffsetForm::zero_point;
    const bool has_offset = form.offset != OffsetForm::none && !has_zero;
    std::vector<std::uint8_t> q(cells), zero(has_zero ? groups : 0), factor(composed_offset ? groups : 0);
    std::vector<std::int8_t> scale_factor(composed ? groups : 0);
    std::vector<std::uint16_t> super(composed ? cells / super_group : 0),
        super_offset(composed_offset ? cells / super_group : 0);
    std::vector<float> scale(groups), offset(has_offset ? groups : 0);
    WeightPlanes planes;
    const auto pointer = [](auto& v) { return v.empty() ? nullptr : v.data(); };
    planes.q = q.data();
    planes.scale = scale.data();
    planes.offset = pointer(offset);
    planes.zero_point = pointer(zero);
    planes.super_scale = pointer(super);
    planes.scale_factor = pointer(scale_factor);
    planes.super_offset = pointer(super_offset);
    planes.offset_factor = pointer(factor);
    rows.read(0, rows.rows(), planes);
    if (form.integer == QuantInt::u4) {
        assert(rows.cols() % 2 == 0);
        for (std::size_t i = 0; i < cells / 2; ++i)
            q[i] = std::uint8_t(q[2 * i] | (q[2 * i + 1] << 4));
        q.resize(cells / 2);
    }
    LogicalPlanes p;
    p.rows = rows.rows();
    p.cols = rows.cols();
    p.integer = form.integer;
    p.group_size = form.group_size;
    p.q = impl_->place(q);
    p.scale_dtype = plane_dtype(form.scale);
    p.scale = impl_->place(narrowed(scale, p.scale_dtype));
    p.zero_point = impl_->place(zero);
    p.offset_dtype = plane_dtype(form.offset);
    p.offset = has_offset ? impl_->place(narrowed(offset, p.offset_dtype)) : nullptr;
    p.super_scale = impl_->place(super);
    p.scale_factor = impl_->place(scale_factor);
    p.super_offset = impl_->place(super_offset);
    p.offset_factor = impl_->place(factor);
    consume(p, impl_->stream);
    check(cudaStreamSynchronize(impl_->stream), "waiting for the card");
    impl_->arena.clear();
}

void WeightLoader::seal(const WeightMemory&) {}

void WeightLoader::finish() {
    check(cudaStreamSynchronize(impl_->stream), "waiting for the card");
}

}  // namespace recto::cuda
