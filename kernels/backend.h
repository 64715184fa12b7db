// The one interface between the engine and a device. kernels/cpu and kernels/cuda implement it.
//
// Threading: a Backend and everything made by it belong to one thread at a time (the engine's). Operations are
// enqueued in order on the backend's stream; `download` and `synchronize` wait for them. The CPU runs each at once.
//
// Shapes: activations are row-major [rows, features] in the dtype that activation_dtype() settles; the residual
// stream, router scores and logits are FP32. Operations take the number of rows from their tensors. Errors: recto::Error (memory, runtime); a wrong shape is a broken invariant and asserts.
//
// Batch invariance (CPU): a row's result depends on that row alone. For one weight form and activation mode every
// variant of `linear` quantizes the row alike, sums int32 inside a group, then FP32 over groups in ascending order;
// attention uses fixed tiles counted from position 0. So a row's bits do not change with its neighbours, with the
// number of threads, or with how a prompt is cut into chunks.
#pragma once
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/batch.h"
#include "kernels/card_scratch.h"
#include "kernels/tensor.h"
#include "kernels/weight.h"

namespace recto {

class Buffer {  // memory; freed by its destructor
  public:
    virtual ~Buffer() = default;
    virtual void* data() const = 0;
    virtual std::size_t bytes() const = 0;
};

// A weight matrix in a backend's own order. Several matrices that share their input are packed as one
// (q|k|v, gate|up): `linear` then makes all their outputs, side by side, in one pass over the input.
class PackedWeight {
  public:
    virtual ~PackedWeight() = default;
    virtual std::int64_t rows() const = 0;  // outputs, of all parts together
    virtual std::int64_t cols() const = 0;  // inputs
    virtual std::size_t bytes() const = 0;  // device memory it holds
    virtual std::string describe() const = 0;  // e.g. "u4 g32 f16 scale+min, int8 activations, avx512-vnni"
};

// How activations meet quantized weights. Dense weights ignore it.
enum class Activations : std::uint8_t {
    int8,        // rows are quantized to int8 in groups of 32, integer dot products
    int8_twice,  // the row so, then what its rounding left so, and both products added: about 15 bits.
                 // For the few products whose rounding a model's answers feel most, at twice the arithmetic
    floating,    // weights are dequantized in registers, FP32 (CPU) or 16-bit (CUDA) products
    // CUDA: in products of more than `eight_bit_rows` rows both sides are rounded to 8 bits, with one FP32 scale a row
    // of x and one an output; fewer rows are as `floating`.
    token_fp8,   // FP8 (e4m3)
    token_int8,
};
constexpr std::int64_t eight_bit_rows = 256;
// For people and reports: "int8", "floating", "fp8_e4m3 above 256 rows", ….
std::string activations_name(Activations mode);

// What a packer needs to know of the products a weight will be used for.
struct PackOptions {
    PackOptions(Activations m) : mode(m) {}  // NOLINT: most callers have nothing else to say
    PackOptions(Activations m, DType a, bool g = false) : mode(m), activation(a), gated(g) {}

    Activations mode;
    DType activation = DType::f32;  // of the inputs (Backend::activation_dtype); the CPU knows FP32 only
    bool expert = false;            // stack_experts takes the result
    bool gated = false;             // the parts are gate|up, or one part holds both: silu_mul or gelu_mul follow
};

// The weights of a mixture's experts, one PackedWeight an expert, all of one shape.
class PackedExperts {
  public:
    virtual ~PackedExperts() = default;
    virtual int experts() const = 0;
    virtual std::int64_t rows() const = 0;  // outputs of one expert, of all its parts together
    virtual std::int64_t cols() const = 0;
    virtual std::size_t bytes() const = 0;  // of all experts
    virtual std::string describe() const = 0;
};

// The experts that each row goes through and what each counts, in device memory. A row's experts ascend by
// number: sums over them have one order, whatever the scores were.
struct ExpertChoice {
    std::int32_t* ids = nullptr;  // [rows, per_row] 0 ≤ id < experts, all of a row's different
    float* weights = nullptr;     // [rows, per_row]
    std::int64_t rows = 0;
    int per_row = 0;  // k
};

struct KvShape {
    int blocks = 0;
    int layers = 0;
    int kv_heads = 0;
    int block_size = 16;  // token slots; a multiple of 8
    int head_dim = 0;     // a multiple of 8
    DType dtype = DType::f16;
    std::size_t block_bytes() const {  // K and V of one block over all layers
        return std::size_t(2) * layers * kv_heads * block_size * head_dim * dtype_bytes(dtype);
    }
};

// Which layers' weights are kept in host memory, where the device reads them through a bus.
struct LoadPlan {
    std::vector<int> host_layers;  // ascending; empty: all weights are in device memory
};

// Where the wall time of a load went, as seen by the threads that read: they wait for bytes from the file map
// (read), for the device to take what they read (upload), or for its kernels to rearrange it (repack).
struct LoadTimes {
    double read_s = 0, upload_s = 0, repack_s = 0;
};

// Brings the weights of layers that live in host memory through device memory, ahead of their use, while other
// layers compute. All calls are enqueued, and may be inside `Backend::run`. Layers ascend within a step; those
// that are in device memory are passed over.
class WeightStream {
  public:
    virtual ~WeightStream() = default;
    virtual void begin_step() = 0;
    virtual void enter_layer(int layer) = 0;  // what is enqueued from here on may read the layer's weights
    virtual void leave_layer(int layer) = 0;  // what is enqueued from here on does not
    virtual std::size_t host_bytes() const = 0;    // of the weights
    virtual std::size_t device_bytes() const = 0;  // that they pass through
};

// A model's weights on their way in: until finish() a packed weight may still be without its bytes.
class WeightLoad {
  public:
    virtual ~WeightLoad() = default;  // before finish(): gives up what is under way, and no weight is touched after
    virtual void begin_layer(int layer) = 0;  // weights packed from here on are this layer's; −1: no layer's
    // Waits until all have arrived, and returns the memory that only loading needs. Null when every weight is in
    // device memory. Error: of whatever failed on the way.
    virtual std::unique_ptr<WeightStream> finish() = 0;
    virtual LoadTimes times() const = 0;
};

// KV storage: block-major, so that copying or swapping a block moves one contiguous range.
// Within a block the order is [layer][K|V][kv_head] and then the backend's own tile order of
// [slot][head_dim] (the CPU keeps K as [head_dim][slot]: scores of 16 slots need no horizontal sum).
class KvCache {
  public:
    virtual ~KvCache() = default;
    virtual const KvShape& shape() const = 0;
    virtual std::size_t bytes() const = 0;
};

// The step's arrays in device memory, in fixed places (a captured graph reads them as data).
class DeviceBatch {
  public:
    virtual ~DeviceBatch() = default;
    virtual const StepBatch& host() const = 0;  // the batch last uploaded
};

enum class Epilogue : std::uint8_t {
    store,       // out = x·Wᵀ + bias
    add,         // out += x·Wᵀ + bias (the residual stream)
    silu_mul,    // parts are gate|up with equal rows: out = silu(gate) * up, [rows, W.rows / 2]
    gelu_mul,    // the same with gelu (tanh form)
};

struct RopeSpec {
    int rotary_dims = 0;                   // d: dimensions 0 … d−1 of each head rotate, pairing i with i + d/2
    std::span<const float> inverse_frequency;  // [d / 2] host memory
    float attention_factor = 1.0F;         // multiplies cos and sin
};

// Q, K, V of one layer, side by side in `qkv` [rows, (heads + 2 kv_heads) * head_dim]. Q and K are normalized per
// head when norm weights are given, rotated, and K and V are written to their slots; Q stays in place.
struct RopeStoreArgs {
    HeadShape shape;
    const float* q_norm = nullptr;  // [head_dim] device memory, or null
    const float* k_norm = nullptr;
    float norm_eps = 1e-6F;
    int rotary_dims = 0;
    int layer = 0;
};

struct AttentionArgs {
    HeadShape shape;
    float scale = 1.0F;     // of the scores
    int window = 0;         // 0: none; else a query at p sees keys k with p − window < k ≤ p
    float softcap = 0.0F;   // 0: none; else cap · tanh(score / cap), before the mask
    int layer = 0;
};

// Names a graph: steps with equal keys enqueue the same operations with the same shapes on the same buffers.
struct GraphKey {
    std::int32_t rows = 0;
    std::int32_t sequences = 0;
    std::int32_t outputs = 0;
    bool cacheable = false;  // decode-only steps
    bool operator==(const GraphKey&) const = default;
};

struct DrawArgs {
    std::int64_t valid_cols = 0;  // only ids below it can be drawn
    float logits_scale = 1.0F;    // > 0; logits are scaled, then capped, before any rule
    float softcap = 0.0F;         // 0: none; else cap · tanh(logit / cap)
};

struct DeviceInfo {
    std::string kind;      // "cpu", "cuda"
    std::string name;      // processor or card
    std::string kernels;   // instruction sets or architecture in use, shown to the person
    int threads = 0;       // CPU workers
    std::size_t memory_total = 0;
    std::size_t memory_free = 0;  // measured now
    DType activation = DType::f32;
    std::optional<Activations> eight_bit;  // what 8-bit activations are here; none: there are none
    CardTraits card;
    int programs = 0;         // kernels that hold many operations of a captured step, so far
    std::size_t scratch_held = 0;  // of what is not free: kept for operations, and used again by the next model
};

class Backend {
  public:
    virtual ~Backend() = default;

    // --- the device and its memory
    virtual DeviceInfo device() const = 0;
    // The host goes on while operations run. Such a backend draws tokens itself: `draw` and what follows it.
    virtual bool asynchronous() const { return false; }
    // What the activations of a model are held in, for a model that wants `preferred`: FP32 on the CPU (its kernels
    // make int8 or nothing narrower of them), `preferred` on a card.
    virtual DType activation_dtype(DType preferred) const = 0;
    virtual std::unique_ptr<Buffer> allocate(std::size_t bytes) = 0;  // Error(memory)
    // Host memory that the device copies to and from at the full speed of the bus; Error(memory).
    virtual std::unique_ptr<Buffer> allocate_host(std::size_t bytes) = 0;
    virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
    virtual void download(void* host, const void* device, std::size_t bytes) = 0;
    virtual void synchronize() = 0;

    // --- weights, once at load. Between begin_load() and its end `pack` may return before the bytes have arrived;
    // the memory of `parts` need not outlive the call all the same. Null: this backend packs at once.
    virtual std::unique_ptr<WeightLoad> begin_load(const LoadPlan&) { return nullptr; }
    // `parts` share their input width and are concatenated along their outputs.
    virtual std::unique_ptr<PackedWeight> pack(std::span<const WeightRows* const> parts,
                                               const PackOptions& options) = 0;
    // Where what `pack` takes a weight's bytes for differs from what WeightRows::read says they are: a check of
    // backends that unpack on the device. Empty: nowhere.
    virtual std::string compare_weight(const WeightRows&) { return {}; }
    // Takes the experts of one layer, each packed by this backend, as one thing that the operations below index.
    virtual std::unique_ptr<PackedExperts> stack_experts(
        std::vector<std::unique_ptr<PackedWeight>> experts) = 0;

    // --- KV storage
    virtual std::unique_ptr<KvCache> make_kv(const KvShape& shape) = 0;
    virtual void copy_block(KvCache& kv, int from, int to) = 0;
    // block_bytes() bytes, in order with everything else that is enqueued. Of memory that allocate_host gave the
    // copy is asynchronous: what swap_out wrote may be read after synchronize(), or by a swap_in at any time.
    virtual void swap_out(const KvCache& kv, int block, void* host) = 0;
    virtual void swap_in(KvCache& kv, int block, const void* host) = 0;

    // --- a step
    virtual std::unique_ptr<DeviceBatch> make_batch(const BatchLimits& limits) = 0;
    // Device memory that the backend will hold for its operations after make_batch(limits), the batch among it and
    // DeviceInfo::scratch_held too, with the weights that are packed now.
    virtual std::size_t scratch_bytes(const BatchLimits&) const { return 0; }
    virtual void upload_batch(DeviceBatch& batch, const StepBatch& step) = 0;
    // Runs `enqueue`, or replays what it enqueued the last time under an equal cacheable key. Of a cacheable step a
    // backend may run several operations as one; a value that only the next of them reads (a gathered row that is
    // normalized, the query that rope_store turns for `attention`) need not be left in its buffer then.
    virtual void run(const GraphKey& key, const std::function<void()>& enqueue) = 0;

    // out[r] = table[token_ids[r]] * scale                                       out [rows, hidden]
    virtual void embed(const DeviceBatch& batch, const PackedWeight& table, float scale, Tensor out) = 0;
    // out = x / rms(x) * weight; weight [hidden] FP32 device memory (Gemma's 1 + w is folded in at load)
    virtual void rms_norm(Tensor x, const float* weight, float eps, Tensor out) = 0;
    // See Epilogue.                                                              x [rows, W.cols]
    virtual void linear(Tensor x, const PackedWeight& weight, Epilogue epilogue, Tensor out) = 0;
    // out[r] = cos(p·f_i) … , sin(p·f_i) … for the row's position p              out [rows, rotary_dims] FP32
    virtual void rope_table(const DeviceBatch& batch, const RopeSpec& rope, Tensor out) = 0;
    virtual void rope_store(const DeviceBatch& batch, const RopeStoreArgs& args, Tensor rope_table, Tensor qkv,
                            KvCache& kv) = 0;
    // Causal attention of each row over its sequence's cached tokens up to its own position.
    // q is the first heads * head_dim columns of qkv;                            out [rows, heads * head_dim]
    virtual void attention(const DeviceBatch& batch, const AttentionArgs& args, Tensor q, const KvCache& kv,
                           Tensor out) = 0;
    // out[i] = x[logit_rows[i]]                                                  out [outputs, hidden]
    virtual void gather_rows(const DeviceBatch& batch, Tensor x, Tensor out) = 0;
    // ids[r] = index of the row's largest element, the lowest such index; -1 if the row holds a NaN or infinity.
    // `ids` is device memory. Only the first `valid_cols` columns count.
    virtual void argmax(Tensor logits, std::int64_t valid_cols, std::int32_t* ids) = 0;
    // x += delta (Gemma's post-norms need the branch before the add)
    virtual void add(Tensor x, Tensor delta) = 0;

    // --- drawing tokens, where asynchronous(). The ids stay with the batch, for `embed` of the next step's
    // rows that name them by StepBatch::token_from. One token for each output by the batch's `draws`; -1 for
    // DrawKind::none and for a row that holds a NaN or infinity. logits [outputs, vocab] FP32, unchanged
    virtual void draw(DeviceBatch& batch, const DrawArgs& args, Tensor logits);
    // Begins the ids' way to the host; once a step, after run().
    virtual void fetch_drawn(DeviceBatch& batch);
    // The ids [outputs] that were fetched last (0) or before that (1), and with them the end of that step:
    // waits. Valid until the next fetch but one.
    virtual std::span<const std::int32_t> drawn(DeviceBatch& batch, int fetches_ago);

    // --- mixtures of experts (Shazeer et al. 2017; softmax over all experts as in Mixtral, Jiang et al. 2024).
    // With p = softmax(logits[r]), the k experts of largest p, ties to the lower number, weighted by p, or by
    // p / Σ of the k when `renormalize`. A row that is not finite gets experts too, and NaN for their weights.
    //                                                                    logits [rows, experts] FP32
    virtual void route(Tensor logits, bool renormalize, const ExpertChoice& choice) = 0;
    // Slot s of row r, with expert e = ids[r, s]:
    //     out[r k + s] = x[r] through e's gate|up and `epilogue` (a gated one)  x [rows, cols], out [rows k, ·]
    virtual void expert_gate_up(Tensor x, const ExpertChoice& choice, const PackedExperts& weight,
                                Epilogue epilogue, Tensor out) = 0;
    //     out[r] += Σ_s weights[r, s] · (x[r k + s]·W_eᵀ + bias_e), s ascending  x [rows k, cols], out [rows, ·]
    virtual void expert_down(Tensor x, const ExpertChoice& choice, const PackedExperts& weight,
                             Tensor out) = 0;
};

inline void Backend::draw(DeviceBatch&, const DrawArgs&, Tensor) {
    assert(asynchronous());
}
inline void Backend::fetch_drawn(DeviceBatch&) {
    assert(asynchronous());
}
inline std::span<const std::int32_t> Backend::drawn(DeviceBatch&, int) {
    assert(asynchronous());
    return {};
}

struct CpuOptions {
    int threads = 0;             // 0: all cores that this process may use
    bool share_with_window = false;  // workers run at nice 5 and yield after 50 µs of spinning
    // Caps the instruction set for tests and comparisons: "", "scalar", "avx2", "avxvnni", "avx512", "amx".
    std::string max_isa;
};
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options);

struct CudaOptions {
    int ordinal = 0;
    // Caps the instructions for tests and comparisons: "", or a compute capability such as "sm_80", whose kernels the
    // card then runs. Error(argument) for another text.
    std::string max_arch;
};
// Null and a sentence in `why` when this build or machine has no usable card.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options, std::string& why);

}  // namespace recto
