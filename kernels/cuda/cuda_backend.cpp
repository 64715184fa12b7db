// Backend on one NVIDIA card: memory, the step's packet, graphs. The operations are in the .cu files beside
// it.
#include <cuda_runtime.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "kernels/backend.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/packed_weight.h"
#include "kernels/cuda/step_packet.h"

namespace recto {
namespace {

using cuda::check;

class CudaBuffer final : public Buffer {
  public:
    explicit CudaBuffer(std::size_t bytes) : bytes_(bytes) {
        const cudaError_t status = cudaMalloc(&data_, std::max<std::size_t>(bytes, 1));
        if (status == cudaErrorMemoryAllocation) {
            std::size_t free = 0;
            std::size_t total = 0;
            cudaGetLastError();  // the failed allocation is reported here and must not surface again
            cudaMemGetInfo(&free, &total);
            throw Error(ErrorKind::memory, "not enough memory on the card: needed " +
                                               std::to_string((bytes >> 20) + 1) + " MiB, " +
                                               std::to_string(free >> 20) + " MiB of " +
                                               std::to_string(total >> 20) + " are free");
        }
        check(status, "allocating memory");
    }
    ~CudaBuffer() override { cudaFree(data_); }
    CudaBuffer(const CudaBuffer&) = delete;
    CudaBuffer& operator=(const CudaBuffer&) = delete;
    void* data() const override { return data_; }
    std::size_t bytes() const override { return bytes_; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_;
};

class CudaKv final : public KvCache {
  public:
    explicit CudaKv(const KvShape& shape)
        : shape_(shape), memory_(shape.block_bytes() * std::size_t(shape.blocks)) {}
    const KvShape& shape() const override { return shape_; }
    std::size_t bytes() const override { return memory_.bytes(); }
    char* block(int id) const {
        return static_cast<char*>(memory_.data()) + std::size_t(id) * shape_.block_bytes();
    }

    cuda::KvView view(int layer) const {
        const std::size_t half =
            shape_.block_bytes() / std::size_t(2 * shape_.layers);  // K or V of one layer
        char* base = static_cast<char*>(memory_.data()) + std::size_t(2 * layer) * half;
        const long long stride = (long long)(shape_.block_bytes() / dtype_bytes(shape_.dtype));
        return {base, base + half, stride, shape_.block_size, shape_.head_dim, shape_.dtype};
    }

  private:
    KvShape shape_;
    CudaBuffer memory_;
};

class CudaBackend final : public Backend {
  public:
    CudaBackend(int ordinal, const cudaDeviceProp& properties) : ordinal_(ordinal), properties_(properties) {
        check(cudaSetDevice(ordinal), "choosing the card");
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
    }
    ~CudaBackend() override { cudaStreamDestroy(stream_); }

    DeviceInfo device() const override {
        DeviceInfo info;
        info.kind = "cuda";
        info.name = properties_.name;
        info.kernels = "CUDA sm_" + std::to_string(properties_.major) + std::to_string(properties_.minor) +
                       ", plain kernels";
        cudaMemGetInfo(&info.memory_free, &info.memory_total);
        return info;
    }
    DType activation_dtype() const override { return DType::f32; }

    std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
        return std::make_unique<CudaBuffer>(bytes);
    }
    void upload(void* device, const void* host, std::size_t bytes) override {
        check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_), "copying to the card");
        synchronize();  // the caller's memory may go away
    }
    void download(void* host, const void* device, std::size_t bytes) override {
        check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_), "copying from the card");
        synchronize();
    }
    void synchronize() override { check(cudaStreamSynchronize(stream_), "waiting for the card"); }

    std::unique_ptr<PackedWeight> pack(std::span<const WeightRows* const> parts, Activations) override {
        return std::make_unique<cuda::CudaWeight>(*this, parts);
    }

    std::unique_ptr<KvCache> make_kv(const KvShape& shape) override {
        return std::make_unique<CudaKv>(shape);
    }
    void copy_block(KvCache& kv, int from, int to) override {
        const auto& k = static_cast<const CudaKv&>(kv);
        check(cudaMemcpyAsync(k.block(to), k.block(from), k.shape().block_bytes(), cudaMemcpyDeviceToDevice,
                              stream_),
              "copying a block");
    }
    void swap_out(const KvCache& kv, int block, void* host) override {
        download(host, static_cast<const CudaKv&>(kv).block(block), kv.shape().block_bytes());
    }
    void swap_in(KvCache& kv, int block, const void* host) override {
        upload(static_cast<const CudaKv&>(kv).block(block), host, kv.shape().block_bytes());
    }

    std::unique_ptr<DeviceBatch> make_batch(const BatchLimits& limits) override {
        return std::make_unique<cuda::StepPacket>(*this, limits);
    }
    void upload_batch(DeviceBatch& batch, const StepBatch& step) override {
        current_ = &packet(batch);
        current_->fill(step, stream_);
    }

    void run(const GraphKey& key, const std::function<void()>& enqueue) override {
        if (!key.cacheable) {
            enqueue();
            return;
        }
        assert(current_);
        cudaGraphExec_t exec = current_->find_graph(key);
        if (!exec) exec = capture(key, enqueue);
        check(cudaGraphLaunch(exec, stream_), "replaying the step's graph");
    }

    void embed(const DeviceBatch& batch, const PackedWeight& table, float scale, Tensor out) override {
        cuda::embed(stream_, view(batch), view(table), scale, out);
    }
    void rms_norm(Tensor x, const float* weight, float eps, Tensor out) override {
        cuda::rms_norm(stream_, x, weight, eps, out);
    }
    void linear(Tensor x, const PackedWeight& weight, Epilogue epilogue, Tensor out) override {
        cuda::linear(stream_, x, view(weight), epilogue, out);
    }
    void rope_table(const DeviceBatch& batch, const RopeSpec& rope, Tensor out) override {
        assert(rope.inverse_frequency.size() <= cuda::max_rotary_pairs);
        cuda::Frequencies f{};
        std::copy(rope.inverse_frequency.begin(), rope.inverse_frequency.end(), f.value);
        cuda::rope_table(stream_, view(batch), f, rope.attention_factor, out);
    }
    void rope_store(const DeviceBatch& batch, const RopeStoreArgs& args, Tensor table, Tensor qkv,
                    KvCache& kv) override {
        cuda::rope_store(stream_, view(batch), args, table, qkv,
                         static_cast<const CudaKv&>(kv).view(args.layer));
    }
    void attention(const DeviceBatch& batch, const AttentionArgs& args, Tensor q, const KvCache& kv,
                   Tensor out) override {
        cuda::attention(stream_, view(batch), args, q, static_cast<const CudaKv&>(kv).view(args.layer), out);
    }
    void gather_rows(const DeviceBatch& batch, Tensor x, Tensor out) override {
        cuda::gather_rows(stream_, view(batch), x, out);
    }
    void argmax(Tensor logits, std::int64_t valid_cols, std::int32_t* ids) override {
        cuda::argmax(stream_, logits, int(valid_cols), ids);
    }
    void add(Tensor x, Tensor delta) override { cuda::add(stream_, x, delta); }

    bool asynchronous() const override { return true; }
    void draw(DeviceBatch& batch, const DrawArgs& args, Tensor logits) override {
        const cuda::StepPacket& p = packet(batch);
        cuda::draw(stream_, p.draws(), args, logits, p.parts(), p.view().drawn);
    }
    void fetch_drawn(DeviceBatch& batch) override { packet(batch).fetch(stream_); }
    std::span<const std::int32_t> drawn(DeviceBatch& batch, int fetches_ago) override {
        return packet(batch).drawn(fetches_ago);
    }

    std::unique_ptr<PackedExperts> stack_experts(
        std::vector<std::unique_ptr<PackedWeight>> experts) override {
        return std::make_unique<cuda::CudaExperts>(*this, std::move(experts));
    }
    void route(Tensor logits, bool renormalize, const ExpertChoice& choice) override {
        cuda::route(stream_, logits, renormalize, choice);
    }
    void expert_gate_up(Tensor x, const ExpertChoice& choice, const PackedExperts& weight, Epilogue epilogue,
                        Tensor out) override {
        const auto& experts = static_cast<const cuda::CudaExperts&>(weight);
        cuda::expert_gate_up(stream_, x, choice, experts.views(), experts.shape(), epilogue, out);
    }
    void expert_down(Tensor x, const ExpertChoice& choice, const PackedExperts& weight, Tensor out) override {
        const auto& experts = static_cast<const cuda::CudaExperts&>(weight);
        cuda::expert_down(stream_, x, choice, experts.views(), experts.shape(), out);
    }

  private:
    static cuda::StepPacket& packet(DeviceBatch& batch) { return static_cast<cuda::StepPacket&>(batch); }
    static cuda::BatchView view(const DeviceBatch& batch) {
        return static_cast<const cuda::StepPacket&>(batch).view();
    }
    static const cuda::WeightView& view(const PackedWeight& weight) {
        return static_cast<const cuda::CudaWeight&>(weight).view();
    }

    cudaGraphExec_t capture(const GraphKey& key, const std::function<void()>& enqueue) {
        check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "beginning a graph");
        cudaGraph_t graph = nullptr;
        try {
            enqueue();
        } catch (...) {
            cudaStreamEndCapture(stream_, &graph);
            if (graph) cudaGraphDestroy(graph);
            throw;
        }
        check(cudaStreamEndCapture(stream_, &graph), "ending a graph");
        cudaGraphExec_t exec = nullptr;
        const cudaError_t status = cudaGraphInstantiate(&exec, graph, 0);
        cudaGraphDestroy(graph);
        check(status, "instantiating a graph");
        current_->keep_graph(key, exec);
        return exec;
    }

    int ordinal_;
    cudaDeviceProp properties_;
    cudaStream_t stream_ = nullptr;
    cuda::StepPacket* current_ = nullptr;  // uploaded last: the one whose step is run
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(int ordinal, std::string& why) {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0) {
        why = status == cudaSuccess || status == cudaErrorNoDevice
                  ? "no NVIDIA card was found"
                  : std::string("no usable NVIDIA card: ") + cudaGetErrorString(status);
        cudaGetLastError();
        return nullptr;
    }
    if (ordinal < 0 || ordinal >= count) {
        why = "there are " + std::to_string(count) + " NVIDIA cards, numbered from 0; number " +
              std::to_string(ordinal) + " was asked for";
        return nullptr;
    }
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal), "reading the card's properties");
    return std::make_unique<CudaBackend>(ordinal, properties);
}

}  // namespace recto
