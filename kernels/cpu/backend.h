// The CPU implementation of Backend: cuts each operation into tiles, row panels and work items, hands them to
// the workers, and lets the chosen instruction set's kernels compute them.
#pragma once
#include <atomic>
#include <vector>

#include "kernels/backend.h"
#include "kernels/bench.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/memory.h"
#include "kernels/cpu/shares.h"
#include "kernels/cpu/threads.h"

namespace recto::cpu {

class CpuBatch final : public DeviceBatch {
  public:
    const StepBatch& host() const override { return step; }
    StepBatch step;
};

class CpuKv final : public KvCache {
  public:
    explicit CpuKv(const KvShape& shape)
        : shape_(shape), data_(std::size_t(shape.blocks) * shape.block_bytes()) {}
    const KvShape& shape() const override { return shape_; }
    std::size_t bytes() const override { return data_.size(); }
    std::uint8_t* block(int index) const { return data_.data() + std::size_t(index) * shape_.block_bytes(); }
    // K (which = 0) or V (1) of one head in one block.
    std::uint8_t* head(int index, int layer, int which, int kv_head) const {
        const std::size_t one =
            std::size_t(shape_.block_size) * std::size_t(shape_.head_dim) * dtype_bytes(shape_.dtype);
        return block(index) + ((std::size_t(layer) * 2 + std::size_t(which)) * std::size_t(shape_.kv_heads) +
                               std::size_t(kv_head)) *
                                  one;
    }

  private:
    KvShape shape_;
    AlignedBytes data_;
};

class CpuBackend final : public Backend {
  public:
    explicit CpuBackend(const CpuOptions& options);

    DeviceInfo device() const override;
    DType activation_dtype(DType) const override { return DType::f32; }
    std::unique_ptr<Buffer> allocate(std::size_t bytes) override;
    std::unique_ptr<Buffer> allocate_host(std::size_t bytes) override { return allocate(bytes); }
    void upload(void* device, const void* host, std::size_t bytes) override;
    void download(void* host, const void* device, std::size_t bytes) override;
    void synchronize() override {}
    std::unique_ptr<PackedWeight> pack(std::span<const WeightRows* const> parts,
                                       const PackOptions& options) override;
    std::unique_ptr<KvCache> make_kv(const KvShape& shape) override;
    void copy_block(KvCache& kv, int from, int to) override;
    void swap_out(const KvCache& kv, int block, void* host) override;
    void swap_in(KvCache& kv, int block, const void* host) override;
    std::unique_ptr<DeviceBatch> make_batch(const BatchLimits& limits) override;
    void upload_batch(DeviceBatch& batch, const StepBatch& step) override;
    void run(const GraphKey& key, const std::function<void()>& enqueue) override;

    void embed(const DeviceBatch& batch, const PackedWeight& table, float scale, Tensor out) override;
    void rms_norm(Tensor x, const float* weight, float eps, Tensor out) override;
    void linear(Tensor x, const PackedWeight& weight, Epilogue epilogue, Tensor out) override;
    void rope_table(const DeviceBatch& batch, const RopeSpec& rope, Tensor out) override;
    void rope_store(const DeviceBatch& batch, const RopeStoreArgs& args, Tensor rope_table, Tensor qkv,
                    KvCache& kv) override;
    void attention(const DeviceBatch& batch, const AttentionArgs& args, Tensor q, const KvCache& kv,
                   Tensor out) override;
    void gather_rows(const DeviceBatch& batch, Tensor x, Tensor out) override;
    void argmax(Tensor logits, std::int64_t valid_cols, std::int32_t* ids) override;
    void add(Tensor x, Tensor delta) override;

    std::unique_ptr<PackedExperts> stack_experts(std::vector<std::unique_ptr<PackedWeight>> experts) override;
    void route(Tensor logits, bool renormalize, const ExpertChoice& choice) override;
    void expert_gate_up(Tensor x, const ExpertChoice& choice, const PackedExperts& weight, Epilogue epilogue,
                        Tensor out) override;
    void expert_down(Tensor x, const ExpertChoice& choice, const PackedExperts& weight, Tensor out) override;

    Ceilings measure_ceilings();

  private:
    friend class LinearRun;
    friend class AttentionRun;
    struct Worker {  // scratch of one thread
        Scratch scale, offset, bytes, left, scores, state, partial, lists;
        int tile_chunk = 0;  // AMX: what the tiles are shaped for now; 0: released
    };

    CpuFeatures features_;
    const KernelTable& kernels_;
    ThreadPool pool_;
    std::vector<Worker> workers_;
    Shares shares_;
    WeightMemory weight_memory_;
    std::vector<Scratch> panels_;  // one an input form
    Scratch gate_up_, splits_;
    Scratch expert_in_, expert_out_;
};

}  // namespace recto::cpu
