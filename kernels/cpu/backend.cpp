#include "kernels/cpu/backend.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "kernels/cpu/packed.h"
#include "kernels/error.h"

namespace recto {

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
    if (options.threads < 0) {
        throw Error(ErrorKind::argument, "threads: expected 0 (all usable cores) or more, found " +
                                             std::to_string(options.threads));
    }
    return std::make_unique<cpu::CpuBackend>(options);
}

namespace cpu {

namespace {

class CpuBuffer final : public Buffer {
  public:
    explicit CpuBuffer(std::size_t bytes) : memory_(bytes) {}
    void* data() const override { return memory_.data(); }
    std::size_t bytes() const override { return memory_.size(); }

  private:
    AlignedBytes memory_;
};

struct Awake {
    ThreadPool& pool;
    explicit Awake(ThreadPool& p) : pool(p) { pool.begin_step(); }
    ~Awake() { pool.end_step(); }
};

float* row(const Tensor& t, std::int64_t r) {
    return t.f32() + r * t.row_stride;
}

}  // namespace

CpuBackend::CpuBackend(const CpuOptions& options)
    : features_(detect_cpu()),
      kernels_(select_table(features_, options.max_isa)),
      pool_(options.threads > 0 ? options.threads : usable_cores(), options.share_with_window),
      workers_(std::size_t(pool_.threads())),
      shares_(pool_.threads()) {}

DeviceInfo CpuBackend::device() const {
    DeviceInfo d;
    d.kind = "cpu";
    d.name = features_.name;
    d.kernels = std::string(kernels_.name) + " (processor: " + features_.list() + ")";
    d.threads = pool_.threads();
    d.memory_total = memory_total_bytes();
    d.memory_free = memory_free_bytes();
    d.eight_bit = Activations::int8;
    return d;
}

std::unique_ptr<Buffer> CpuBackend::allocate(std::size_t bytes) {
    return std::make_unique<CpuBuffer>(bytes);
}

void CpuBackend::upload(void* device, const void* host, std::size_t bytes) {
    std::memcpy(device, host, bytes);
}

void CpuBackend::download(void* host, const void* device, std::size_t bytes) {
    std::memcpy(host, device, bytes);
}

std::unique_ptr<PackedWeight> CpuBackend::pack(std::span<const WeightRows* const> parts,
                                               const PackOptions& options) {
    assert(options.mode != Activations::token_fp8 && options.mode != Activations::token_int8);  // a card's
    const Awake awake(pool_);
    return pack_matrix(parts, options.mode, pool_, kernels_.name, weight_memory_);
}

std::unique_ptr<KvCache> CpuBackend::make_kv(const KvShape& shape) {
    assert(shape.block_size % kv_unit == 0 && shape.head_dim % 8 == 0);
    if (shape.dtype != DType::f32 && shape.dtype != DType::f16 && shape.dtype != DType::bf16)
        throw Error(ErrorKind::argument,
                    std::string("on the CPU the KV cache holds float32, float16 or bfloat16, not ") +
                        dtype_name(shape.dtype) + "; choose one of these");
    return std::make_unique<CpuKv>(shape);
}

void CpuBackend::copy_block(KvCache& kv, int from, int to) {
    auto& cache = static_cast<CpuKv&>(kv);
    std::memcpy(cache.block(to), cache.block(from), cache.shape().block_bytes());
}

void CpuBackend::swap_out(const KvCache& kv, int block, void* host) {
    const auto& cache = static_cast<const CpuKv&>(kv);
    std::memcpy(host, cache.block(block), cache.shape().block_bytes());
}

void CpuBackend::swap_in(KvCache& kv, int block, const void* host) {
    auto& cache = static_cast<CpuKv&>(kv);
    std::memcpy(cache.block(block), host, cache.shape().block_bytes());
}

std::unique_ptr<DeviceBatch> CpuBackend::make_batch(const BatchLimits&) {
    return std::make_unique<CpuBatch>();
}

void CpuBackend::upload_batch(DeviceBatch& batch, const StepBatch& step) {
    static_cast<CpuBatch&>(batch).step = step;
}

void CpuBackend::run(const GraphKey&, const std::function<void()>& enqueue) {
    const Awake awake(pool_);
    enqueue();
}

void CpuBackend::embed(const DeviceBatch& batch, const PackedWeight& table, float scale, Tensor out) {
    const auto& matrix = static_cast<const PackedMatrix&>(table);
    const StepBatch& step = batch.host();
    assert(out.rows == step.rows() && out.cols == matrix.cols());
    pool_.parallel_for(out.rows, 4, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
            unpack_row(matrix, step.token_ids[std::size_t(r)], scale, row(out, r));
    });
}

void CpuBackend::rms_norm(Tensor x, const float* weight, float eps, Tensor out) {
    assert(x.rows == out.rows && x.cols == out.cols);
    pool_.parallel_for(x.rows, 8, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
            kernels_.rms_norm(row(x, r), weight, eps, x.cols, row(out, r));
    });
}

void CpuBackend::rope_table(const DeviceBatch& batch, const RopeSpec& rope, Tensor out) {
    const StepBatch& step = batch.host();
    const std::int64_t half = rope.rotary_dims / 2;
    assert(out.rows == step.rows() && out.cols == rope.rotary_dims);
    assert(std::int64_t(rope.inverse_frequency.size()) == half);
    pool_.parallel_for(out.rows, 16, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            float* to = row(out, r);
            for (std::int64_t i = 0; i < half; ++i) {
                const double angle =
                    double(step.positions[std::size_t(r)]) * double(rope.inverse_frequency[std::size_t(i)]);
                to[i] = float(std::cos(angle) * double(rope.attention_factor));
                to[half + i] = float(std::sin(angle) * double(rope.attention_factor));
            }
        }
    });
}

void CpuBackend::rope_store(const DeviceBatch& batch, const RopeStoreArgs& args, Tensor table, Tensor qkv,
                            KvCache& cache) {
    const StepBatch& step = batch.host();
    auto& kv = static_cast<CpuKv&>(cache);
    const KvShape& shape = kv.shape();
    const int dim = args.shape.head_dim, heads = args.shape.heads, kv_heads = args.shape.kv_heads;
    assert(qkv.rows == step.rows() && qkv.cols == std::int64_t(heads + 2 * kv_heads) * dim);
    assert(dim == shape.head_dim && kv_heads == shape.kv_heads);
    pool_.parallel_for(qkv.rows, 8, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            const float* cos_sin = row(table, r);
            float* x = row(qkv, r);
            for (int h = 0; h < heads + kv_heads; ++h) {
                float* head = x + std::int64_t(h) * dim;
                const float* norm = h < heads ? args.q_norm : args.k_norm;
                if (norm != nullptr) kernels_.rms_norm(head, norm, args.norm_eps, dim, head);
                kernels_.rotate(head, cos_sin, args.rotary_dims);
            }
            const int slot = step.slots[std::size_t(r)];
            const int block = slot / shape.block_size, offset = slot % shape.block_size;
            for (int h = 0; h < kv_heads; ++h) {
                const float* k = x + std::int64_t(heads + h) * dim;
                kernels_.store_k(shape.dtype, k, dim, shape.block_size, offset,
                                 kv.head(block, args.layer, 0, h));
                kernels_.store_v(shape.dtype, k + std::int64_t(kv_heads) * dim, dim, offset,
                                 kv.head(block, args.layer, 1, h));
            }
        }
    });
}

void CpuBackend::gather_rows(const DeviceBatch& batch, Tensor x, Tensor out) {
    const StepBatch& step = batch.host();
    assert(out.rows == step.outputs() && out.cols == x.cols);
    for (std::int64_t i = 0; i < out.rows; ++i) {
        std::memcpy(row(out, i), row(x, step.logit_rows[std::size_t(i)]),
                    std::size_t(x.cols) * sizeof(float));
    }
}

void CpuBackend::argmax(Tensor logits, std::int64_t valid_cols, std::int32_t* ids) {
    assert(valid_cols > 0 && valid_cols <= logits.cols);
    pool_.parallel_for(logits.rows, 1, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
            ids[r] = kernels_.argmax(row(logits, r), valid_cols);
    });
}

void CpuBackend::add(Tensor x, Tensor delta) {
    assert(x.rows == delta.rows && x.cols == delta.cols);
    pool_.parallel_for(x.rows, 16, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
            kernels_.add(row(x, r), row(delta, r), x.cols);
    });
}

}  // namespace cpu
}  // namespace recto
