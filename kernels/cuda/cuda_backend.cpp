// Backend on one NVIDIA card: memory, the step's packet, graphs. The operations are in the .cu files beside
// it.
#include <cuda_runtime.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "kernels/backend.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/card.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/eight_bit.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/linear_runner.h"
#include "kernels/cuda/packed_weight.h"
#include "kernels/cuda/program_recorder.h"
#include "kernels/cuda/step_packet.h"
#include "kernels/cuda/tiled_experts.h"
#include "kernels/cuda/weight_loader.h"

namespace recto {
namespace {

using cuda::check;

class CudaBuffer final : public Buffer {
  public:
    explicit CudaBuffer(std::size_t bytes) : memory_(bytes) {}
    void* data() const override { return memory_.data(); }
    std::size_t bytes() const override { return memory_.bytes(); }

  private:
    cuda::DeviceMemory memory_;
};

class PinnedBuffer final : public Buffer {
  public:
    explicit PinnedBuffer(std::size_t bytes) : memory_(bytes) {}
    void* data() const override { return memory_.data(); }
    std::size_t bytes() const override { return memory_.bytes(); }

  private:
    cuda::PinnedMemory memory_;
};

// Events among the operations: what was collected before them is enqueued before them.
class FlushingStream final : public WeightStream {
  public:
    FlushingStream(std::unique_ptr<WeightStream> inner, cuda::ProgramRecorder& recorder)
        : inner_(std::move(inner)), recorder_(recorder) {}
    void begin_step() override {
        recorder_.flush();
        inner_->begin_step();
    }
    void enter_layer(int layer) override {
        recorder_.flush();
        inner_->enter_layer(layer);
    }
    void leave_layer(int layer) override {
        recorder_.flush();
        inner_->leave_layer(layer);
    }
    std::size_t host_bytes() const override { return inner_->host_bytes(); }
    std::size_t device_bytes() const override { return inner_->device_bytes(); }

  private:
    std::unique_ptr<WeightStream> inner_;
    cuda::ProgramRecorder& recorder_;
};

// A model on its way in; see cuda::WeightLoader.
class CudaLoad final : public WeightLoad {
  public:
    CudaLoad(cuda::WeightLoader& loader, cuda::ProgramRecorder& recorder, const LoadPlan& plan)
        : loader_(loader), recorder_(recorder) {
        loader_.begin(plan);
    }
    ~CudaLoad() override { loader_.release(); }
    void begin_layer(int layer) override { loader_.begin_layer(layer); }
    std::unique_ptr<WeightStream> finish() override {
        std::unique_ptr<WeightStream> stream = loader_.end();
        if (!stream) return nullptr;
        return std::make_unique<FlushingStream>(std::move(stream), recorder_);
    }
    LoadTimes times() const override { return loader_.times(); }

  private:
    cuda::WeightLoader& loader_;
    cuda::ProgramRecorder& recorder_;
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
    // `capability`: usable_capability.
    CudaBackend(int ordinal, const cudaDeviceProp& properties, int capability)
        : ordinal_(ordinal),
          properties_(properties),
          capability_(capability),
          tiles_(capability >= 80),
          programs_(tiles_ && properties.cooperativeLaunch != 0 && cuda::wide_parameters()),
          path_(properties.major == 9 && capability >= 90 && cuda::built_for_hopper()
                    ? cuda::LinearPath::hopper
                    : cuda::LinearPath::general),
          linears_(properties.multiProcessorCount, path_),
          mixtures_(properties.multiProcessorCount) {
        check(cudaSetDevice(ordinal), "choosing the card");
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
        loader_ = std::make_unique<cuda::WeightLoader>(ordinal, stream_);
        recorder_ = std::make_unique<cuda::ProgramRecorder>(stream_, properties.multiProcessorCount,
                                                            int(properties.sharedMemPerBlockOptin));
    }
    ~CudaBackend() override {
        loader_.reset();
        cudaStreamDestroy(stream_);
    }

    DeviceInfo device() const override {
        DeviceInfo info;
        info.kind = "cuda";
        info.name = properties_.name;
        info.kernels = "CUDA sm_" + std::to_string(properties_.major) + std::to_string(properties_.minor) +
                       (!tiles_                             ? ", plain kernels"
                        : path_ == cuda::LinearPath::hopper ? ", tensor-core products"
                                                            : ", tensor-core products of sm_80") +
                       (!tiles_ || linears_.has_library() ? "" : ", no cuBLASLt: many rows take longer") +
                       (eight_bit_ == Activations::floating ? "" : ", " + activations_name(eight_bit_));
        cudaMemGetInfo(&info.memory_free, &info.memory_total);
        info.activation = DType::f16;
        if (tiles_) info.eight_bit = cuda::card_eight_bit(properties_.major, properties_.minor);
        info.card = traits();
        info.programs = recorder_->programs();
        info.scratch_held = linears_.bytes() + mixtures_.bytes();
        return info;
    }
    DType activation_dtype(DType preferred) const override { return preferred; }

    std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
        return std::make_unique<CudaBuffer>(bytes);
    }
    std::unique_ptr<Buffer> allocate_host(std::size_t bytes) override {
        return std::make_unique<PinnedBuffer>(bytes);
    }
    void upload(void* device, const void* host, std::size_t bytes) override {
        if (loader_->loading()) {  // among the weights: waiting would stop them all
            loader_->put(host, bytes, static_cast<std::byte*>(device));
            return;
        }
        check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_), "copying to the card");
        synchronize();  // the caller's memory may go away
    }
    void download(void* host, const void* device, std::size_t bytes) override {
        check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_), "copying from the card");
        synchronize();
    }
    void synchronize() override {
        if (loader_) loader_->finish();
        check(cudaStreamSynchronize(stream_), "waiting for the card");
    }

    std::unique_ptr<WeightLoad> begin_load(const LoadPlan& plan) override {
        return std::make_unique<CudaLoad>(*loader_, *recorder_, plan);
    }
    std::unique_ptr<PackedWeight> pack(std::span<const WeightRows* const> parts,
                                       const PackOptions& asked) override {
        PackOptions options = asked;
        if (options.expert) options.mode = Activations::floating;  // the grouped products know no other
        std::unique_ptr<PackedWeight> weight;
        if (tiles_ && cuda::TiledWeight::suits(parts, options)) {
            auto tiled = std::make_unique<cuda::TiledWeight>(*loader_, parts, options);
            if (!options.expert) cuda::LinearRunner::expect(needs_, *tiled);
            if (tiled->eight_bit()) eight_bit_ = options.mode;
            weight = std::move(tiled);
        } else {
            weight = std::make_unique<cuda::CudaWeight>(*loader_, parts);
        }
        if (!loader_->loading()) loader_->finish();
        return weight;
    }
    std::string compare_weight(const WeightRows& rows) override {
        return rows.form().grouped ? loader_->compare_planes(rows) : std::string();
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
    // Of pageable memory the runtime waits where it must; of pinned memory these only enqueue.
    void swap_out(const KvCache& kv, int block, void* host) override {
        check(cudaMemcpyAsync(host, static_cast<const CudaKv&>(kv).block(block), kv.shape().block_bytes(),
                              cudaMemcpyDeviceToHost, stream_),
              "copying a block to host memory");
    }
    void swap_in(KvCache& kv, int block, const void* host) override {
        check(cudaMemcpyAsync(static_cast<const CudaKv&>(kv).block(block), host, kv.shape().block_bytes(),
                              cudaMemcpyHostToDevice, stream_),
              "copying a block from host memory");
    }

    std::unique_ptr<DeviceBatch> make_batch(const BatchLimits& limits) override {
        reserve(std::max(limits.max_rows, limits.max_outputs));
        return std::make_unique<cuda::StepPacket>(*this, limits, properties_.multiProcessorCount,
                                                  capability_ / 10);
    }
    std::size_t scratch_bytes(const BatchLimits& limits) const override {
        BatchLimits planned = limits;
        if (!cuda::tiled_head_dim(limits.heads.head_dim)) planned.heads = {};
        const std::int64_t rows =
            std::max<std::int64_t>({limits.max_rows, limits.max_outputs, linears_.reserved_rows()});
        return product_scratch_bytes(traits(), needs_, rows) + step_scratch_bytes(traits(), planned);
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
        cuda::GraphCache& graphs = current_ ? current_->graphs() : graphs_;
        const bool reads_much = current_ && current_->attention().plan().reads_much;
        cudaGraphExec_t exec = graphs.find(key, reads_much, generation_);
        if (!exec) graphs.keep(key, reads_much, exec = capture(key, enqueue));
        check(cudaGraphLaunch(exec, stream_), "replaying the step's graph");
    }

    void embed(const DeviceBatch& batch, const PackedWeight& table, float scale, Tensor out) override {
        recorder_->other([&] {
            if (const auto* tiled = dynamic_cast<const cuda::TiledWeight*>(&table))
                cuda::embed_tiles(stream_, view(batch), *tiled, scale, out);
            else
                cuda::embed(stream_, view(batch), view(table), scale, out);
        });
    }
    void rms_norm(Tensor x, const float* weight, float eps, Tensor out) override {
        recorder_->norm(x, weight, eps, out, [=, this] { cuda::rms_norm(stream_, x, weight, eps, out); });
    }
    void linear(Tensor x, const PackedWeight& weight, Epilogue epilogue, Tensor out) override {
        const auto* tiled = dynamic_cast<const cuda::TiledWeight*>(&weight);
        if (!tiled) {
            recorder_->other([&] { cuda::linear(stream_, x, view(weight), epilogue, out); });
            return;
        }
        reserve(x.rows);  // no more than a check after make_batch
        recorder_->product(x, *tiled, epilogue, out,
                           [=, this] { linears_.run(stream_, x, *tiled, epilogue, out); });
    }
    void rope_table(const DeviceBatch& batch, const RopeSpec& rope, Tensor out) override {
        assert(rope.inverse_frequency.size() <= cuda::max_rotary_pairs);
        cuda::Frequencies f{};
        std::copy(rope.inverse_frequency.begin(), rope.inverse_frequency.end(), f.value);
        recorder_->other([&] { cuda::rope_table(stream_, view(batch), f, rope.attention_factor, out); });
    }
    void rope_store(const DeviceBatch& batch, const RopeStoreArgs& args, Tensor table, Tensor qkv,
                    KvCache& kv) override {
        const cuda::KvView cache = static_cast<const CudaKv&>(kv).view(args.layer);
        const cuda::BatchView v = view(batch);
        recorder_->rope(args, table, qkv, cache,
                        [=, this] { cuda::rope_store(stream_, v, args, table, qkv, cache); });
    }
    void attention(const DeviceBatch& batch, const AttentionArgs& args, Tensor q, const KvCache& kv,
                   Tensor out) override {
        const cuda::KvView cache = static_cast<const CudaKv&>(kv).view(args.layer);
        const auto& p = static_cast<const cuda::StepPacket&>(batch);
        recorder_->attention(args, q, cache, out, [=, this, &p] {
            cuda::attention(stream_, p.view(), p.attention(), args, q, cache, out);
        });
    }
    void gather_rows(const DeviceBatch& batch, Tensor x, Tensor out) override {
        const cuda::BatchView v = view(batch);
        recorder_->gather(x, out, [=, this] { cuda::gather_rows(stream_, v, x, out); });
    }
    void argmax(Tensor logits, std::int64_t valid_cols, std::int32_t* ids) override {
        recorder_->other([&] { cuda::argmax(stream_, logits, int(valid_cols), ids); });
    }
    void add(Tensor x, Tensor delta) override {
        recorder_->other([&] { cuda::add(stream_, x, delta); });
    }

    bool asynchronous() const override { return true; }
    void draw(DeviceBatch& batch, const DrawArgs& args, Tensor logits) override {
        const cuda::StepPacket& p = packet(batch);
        recorder_->other([&] { cuda::draw(stream_, p.draws(), args, logits, p.parts(), p.view().drawn); });
    }
    void fetch_drawn(DeviceBatch& batch) override { packet(batch).fetch(stream_); }
    std::span<const std::int32_t> drawn(DeviceBatch& batch, int fetches_ago) override {
        return packet(batch).drawn(fetches_ago);
    }

    std::unique_ptr<PackedExperts> stack_experts(
        std::vector<std::unique_ptr<PackedWeight>> experts) override {
        const auto plain = [](const auto& e) {
            return dynamic_cast<const cuda::CudaWeight*>(e.get()) != nullptr;
        };
        if (std::ranges::all_of(experts, plain))
            return std::make_unique<cuda::CudaExperts>(*this, std::move(experts));
        if (std::ranges::any_of(experts, plain))
            throw Error(
                ErrorKind::input,
                "expected all experts of a layer in one form, found some with groups that the card's tiles "
                "cannot hold; use a file that quantizes them alike, or --device cpu");
        auto tiled = std::make_unique<cuda::TiledExperts>(*this, std::move(experts));
        cuda::ExpertRunner::expect(needs_, *tiled);
        return tiled;
    }
    void route(Tensor logits, bool renormalize, const ExpertChoice& choice) override {
        recorder_->flush();
        cuda::route(stream_, logits, renormalize, choice);
    }
    void expert_gate_up(Tensor x, const ExpertChoice& choice, const PackedExperts& weight, Epilogue epilogue,
                        Tensor out) override {
        recorder_->flush();
        if (const auto* tiled = dynamic_cast<const cuda::TiledExperts*>(&weight)) {
            reserve(x.rows);
            mixtures_.gate_up(stream_, x, choice, *tiled, epilogue, out);
            return;
        }
        const auto& experts = static_cast<const cuda::CudaExperts&>(weight);
        cuda::expert_gate_up(stream_, x, choice, experts.views(), experts.shape(), epilogue, out);
    }
    void expert_down(Tensor x, const ExpertChoice& choice, const PackedExperts& weight, Tensor out) override {
        recorder_->flush();
        if (const auto* tiled = dynamic_cast<const cuda::TiledExperts*>(&weight)) {
            reserve(out.rows);
            mixtures_.down(stream_, x, choice, *tiled, out);
            return;
        }
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

    CardTraits traits() const {
        return {properties_.multiProcessorCount, tiles_, path_ == cuda::LinearPath::hopper,
                tiles_ && linears_.has_library()};
    }

    void reserve(std::int64_t rows) {
        if (!tiles_) return;
        const bool linears = linears_.reserve(needs_, rows), mixtures = mixtures_.reserve(needs_, rows);
        if (linears || mixtures) ++generation_;
    }

    cudaGraphExec_t capture(const GraphKey& key, const std::function<void()>& enqueue) {
        check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "beginning a graph");
        cudaGraph_t graph = nullptr;
        try {
            if (current_ && programs_) recorder_->begin(current_->view(), current_->attention(), key.rows);
            enqueue();
            recorder_->end();
        } catch (...) {
            recorder_->drop();
            cudaStreamEndCapture(stream_, &graph);
            if (graph) cudaGraphDestroy(graph);
            throw;
        }
        check(cudaStreamEndCapture(stream_, &graph), "ending a graph");
        cudaGraphExec_t exec = nullptr;
        const cudaError_t status = cudaGraphInstantiate(&exec, graph, 0);
        cudaGraphDestroy(graph);
        check(status, "instantiating a graph");
        return exec;
    }

    int ordinal_;
    cudaDeviceProp properties_;
    int capability_;  // whose kernels it runs
    bool tiles_;      // there are tensor-core products for it
    bool programs_;   // steps may become cooperative kernels with parameters of 32 KB
    cuda::LinearPath path_;
    cudaStream_t stream_ = nullptr;
    ProductNeeds needs_;  // of all weights packed so far
    cuda::LinearRunner linears_;
    cuda::ExpertRunner mixtures_;
    std::unique_ptr<cuda::WeightLoader> loader_;
    std::unique_ptr<cuda::ProgramRecorder> recorder_;
    Activations eight_bit_ = Activations::floating;  // of a weight packed so, for people
    unsigned generation_ = 0;                        // of the scratch memory that graphs hold addresses of
    cuda::GraphCache graphs_;                        // of operations without a step
    cuda::StepPacket* current_ = nullptr;            // uploaded last: the one whose step is run
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options, std::string& why) {
    if (!cuda::card_usable(options.ordinal, why)) return nullptr;
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, options.ordinal), "reading the card's properties");
    return std::make_unique<CudaBackend>(
        options.ordinal, properties,
        cuda::usable_capability(properties.major, properties.minor, options.max_arch));
}

}  // namespace recto
