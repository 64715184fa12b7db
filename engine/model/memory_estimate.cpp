#include <algorithm>
#include <cctype>

#include "engine/kv/block_table.h"
#include "engine/model/model.h"
#include "engine/model/transformer.h"
#include "engine/schedule/scheduler.h"

namespace recto {
namespace {

constexpr int worthwhile_context = 2048;  // tokens that an offload that is suggested leaves room for
constexpr int usual_block_size = 16;

// Of "model.layers.3.mlp.up_proj.weight" and "blk.3.ffn_up.weight"; −1 for tensors of no layer.
int layer_of(const std::string& tensor) {
    for (const char* before : {"layers.", "blk."}) {
        const auto at = tensor.find(before);
        if (at == std::string::npos) continue;
        std::size_t digit = at + std::char_traits<char>::length(before);
        int layer = -1;
        for (; digit < tensor.size() && std::isdigit(static_cast<unsigned char>(tensor[digit])) &&
               layer < 10000;
             ++digit)
            layer = std::max(layer, 0) * 10 + (tensor[digit] - '0');
        return layer;
    }
    return -1;
}

struct WeightSizes {
    std::uint64_t other = 0;  // of no layer
    std::vector<std::uint64_t> layers;
};

// Bits of an element that a scale or offset a group takes: as wide as in the file, but that tiles of a card
// hold products of two parts as one number, and its plain kernels read FP32.
double plane_bits(const WeightForm& form, bool composed, bool wide, bool card, bool exact) {
    const double group = form.group_size;
    if (card) return (exact ? 32 : 16) / group;
    return composed ? 16.0 / super_group + 8 / group : (wide ? 32 : 16) / group;
}

// What a tensor takes once packed. Codes have 4 or 8 bits there; where the file's have as many, the tensor's
// bytes are the weight's.
std::uint64_t packed_bytes(const TensorInfo& t, bool card, bool exact) {
    double elements = 1;
    for (const std::int64_t n : t.shape)
        elements *= double(n);
    if (!t.form) {
        const bool narrowed = card && !exact && t.type == "F32" && t.shape.size() >= 2;
        return narrowed ? t.bytes / 2 : t.bytes;
    }
    const WeightForm& f = *t.form;
    double bits = f.integer == QuantInt::u4 ? 4 : 8;
    bits += plane_bits(f, f.scale == ScaleForm::f16_times_u6 || f.scale == ScaleForm::f16_times_i8,
                       f.scale == ScaleForm::f32, card, exact);
    const bool point = f.offset == OffsetForm::zero_point;
    if (point && !card)
        bits += (f.integer == QuantInt::u4 ? 4.0 : 8.0) / f.group_size;
    else if (point ? exact || f.constant_zero < 0 : f.offset != OffsetForm::none)
        bits += plane_bits(f, f.offset == OffsetForm::f16_times_u6, f.offset == OffsetForm::f32, card, exact);
    return std::uint64_t(elements * bits / 8);
}

WeightSizes weight_sizes(const ModelSource& source, bool card, bool exact) {
    WeightSizes sizes;
    sizes.layers.resize(std::size_t(source.config().layers));
    for (const TensorInfo& t : source.tensors()) {
        const int layer = layer_of(t.name);
        if (layer >= 0 && std::size_t(layer) < sizes.layers.size())
            sizes.layers[std::size_t(layer)] += packed_bytes(t, card, exact);
        else
            sizes.other += packed_bytes(t, card, exact);
    }
    return sizes;
}

// What packing will say; of weights whose parts are of unlike types perhaps less.
ProductNeeds product_needs(const ModelSource& source, const DeviceInfo& device, const LoadOptions& options) {
    ProductNeeds needs;
    if (options.dtype == ModelDType::f32) return needs;  // plain kernels
    const ModelConfig& c = source.config();
    const bool grouped = has_quantized_weights(source);
    const bool eight =
        grouped && options.activations == ActivationMode::eight && device.eight_bit.has_value();
    const std::int64_t q = std::int64_t(c.heads) * c.head_dim, kv = std::int64_t(c.kv_heads) * c.head_dim;
    const auto expect = [&](std::int64_t rows, std::int64_t cols, bool gated) {
        expect_product(needs, {rows, cols, gated, grouped, eight});
    };
    expect(q + 2 * kv, c.hidden, false);
    expect(c.hidden, q, false);
    bool dense = false;
    for (int layer = 0; layer < c.layers; ++layer)
        dense = dense || !c.is_mixture(layer);
    if (dense) {
        expect(std::int64_t(2) * c.intermediate, c.hidden, true);
        expect(c.hidden, c.intermediate, false);
    }
    expect_product(needs, {c.vocab, c.hidden, false, grouped && source.quantization_method() == "gguf"});
    needs.experts = c.experts.count;
    if (needs.experts > 0) needs.expert_row_bytes = c.hidden * std::int64_t(sizeof(float));
    return needs;
}

// `count` of the layers, with equal distances: between two copies through the bus resident layers compute.
std::vector<int> spread_layers(std::size_t count, std::size_t layers) {
    std::vector<int> chosen;
    for (std::size_t i = 0; i < count; ++i)
        chosen.push_back(int((2 * i + 1) * layers / (2 * count)));
    return chosen;
}

// What lies where when `count` layers are offloaded.
struct Placement {
    std::vector<int> host_layers;
    std::uint64_t host = 0, device = 0;
};
Placement place(const WeightSizes& sizes, std::size_t count) {
    Placement p;
    p.host_layers = spread_layers(count, sizes.layers.size());
    p.device = sizes.other;
    for (const std::uint64_t bytes : sizes.layers)
        p.device += bytes;
    std::uint64_t slot = 0;
    for (const int layer : p.host_layers) {
        const std::uint64_t bytes = sizes.layers[std::size_t(layer)];
        p.host += bytes;
        slot = std::max(slot, bytes);
    }
    p.device = p.device - p.host + slot * std::min<std::size_t>(count, 2);  // two slots, offload.h
    return p;
}

// The fewest offloaded layers that are enough for `enough`; one more than there are when none is.
template <class Enough>
std::size_t fewest_layers(const WeightSizes& sizes, const Enough& enough) {
    std::size_t count = 0;
    while (count <= sizes.layers.size() && !enough(place(sizes, count)))
        ++count;
    return count;
}

}  // namespace

StepLimits default_step_limits(const DeviceInfo& device) {
    return device.kind == "cuda" ? StepLimits{256, 8192} : StepLimits{16, 512};
}

StepLimits settled_step_limits(const DeviceInfo& device, StepLimits asked) {
    const StepLimits usual = default_step_limits(device);
    if (asked.sequences == 0)
        asked.sequences = asked.tokens > 0 ? std::min(usual.sequences, asked.tokens) : usual.sequences;
    if (asked.tokens == 0) asked.tokens = std::max(usual.tokens, asked.sequences);
    return asked;
}

std::uint64_t memory_budget(const DeviceInfo& device, double gpu_memory_utilization) {
    if (device.kind != "cuda") return device.memory_free;
    return std::uint64_t(double(device.memory_free + device.scratch_held) * gpu_memory_utilization);
}

MemoryEstimate estimate_memory(const ModelSource& source, const DeviceInfo& device,
                               const LoadOptions& options, const MemoryUse& use) {
    const ModelConfig& c = source.config();
    const bool card = device.kind == "cuda";
    const WeightSizes sizes = weight_sizes(source, card, options.dtype == ModelDType::f32);
    const std::size_t offloaded =
        card ? std::min(fewest_layers(
                            sizes, [&](const Placement& p) { return p.host >= options.cpu_offload_bytes; }),
                        sizes.layers.size())
             : 0;
    const Placement placed = place(sizes, offloaded);
    MemoryEstimate e;
    e.weight_bytes = placed.device;
    e.host_weight_bytes = placed.host;
    e.host_layers = placed.host_layers;
    BatchLimits limits;
    const StepLimits step = settled_step_limits(device, use.step);
    const int longest = use.context > 0 ? use.context : std::max(c.max_position, 0);
    limits.max_rows = step.tokens;
    limits.max_sequences = step.sequences;
    limits.max_outputs = step.sequences + prompt_logit_slice;
    limits.max_blocks = blocks_for(longest, usual_block_size);
    limits.heads = {c.heads, c.kv_heads, c.head_dim};
    e.workspace_bytes = transformer_workspace_bytes(c, device.activation, limits);
    if (card)
        e.workspace_bytes += card_scratch_bytes(device.card, product_needs(source, device, options), limits);
    const DType kv = use.kv_dtype.value_or(options.dtype == ModelDType::f32 ? DType::f32 : DType::f16);
    e.kv_bytes_per_token = std::uint64_t(2) * std::uint64_t(c.layers) * std::uint64_t(c.kv_heads) *
                           std::uint64_t(c.head_dim) * dtype_bytes(kv);
    const auto context = std::uint64_t(longest);
    e.full_context_kv_bytes = e.kv_bytes_per_token * context;
    e.free_bytes = device.memory_free;
    e.budget_bytes = memory_budget(device, options.gpu_memory_utilization);
    const std::uint64_t fixed = e.weight_bytes + e.workspace_bytes;
    if (e.budget_bytes > fixed && e.kv_bytes_per_token > 0)
        e.longest_context = int(std::min((e.budget_bytes - fixed) / e.kv_bytes_per_token, context));
    e.fits = e.budget_bytes >= fixed + e.full_context_kv_bytes;
    if (card && e.longest_context == 0) {
        const std::uint64_t kv_bytes =
            e.kv_bytes_per_token * std::min<std::uint64_t>(context, worthwhile_context);
        const std::size_t count = fewest_layers(sizes, [&](const Placement& p) {
            return p.device + e.workspace_bytes + kv_bytes <= e.budget_bytes;
        });
        if (count <= sizes.layers.size()) e.needed_offload_bytes = place(sizes, count).host;
    }
    return e;
}

}  // namespace recto
