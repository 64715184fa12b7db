#include "engine/save/quantized_tensors.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "engine/load/quantized_layout.h"
#include "engine/save/random_tensor.h"
#include "kernels/dtype.h"
#include "kernels/error.h"

namespace recto {

namespace {

using Json = nlohmann::ordered_json;

// Integers 0 … 15 with a zero point of 7 or 8: (16² − 1)/12 + 0.5².
constexpr double zero_point_variance = 21.5;
constexpr double symmetric_variance = 17.5;  // random_symmetric_nibbles

class LinearMaker {
  public:
    LinearMaker(const RandomLinear& linear, const MakeModelOptions& options)
        : linear_(linear),
          options_(options),
          group_(options.group_size < 0 ? linear.cols : options.group_size),
          groups_(linear.cols / group_) {
        require(linear.cols % group_ == 0,
                "a group size that divides its " + std::to_string(linear.cols) + " inputs",
                std::to_string(group_));
        require(linear.rows % 8 == 0 && linear.cols % 8 == 0, "rows and columns in eights",
                std::to_string(linear.rows) + " × " + std::to_string(linear.cols));
    }

    std::vector<SaveTensor> awq_gemm() const {
        return {{name("qweight"),
                 SaveType::i32,
                 {linear_.cols, linear_.rows / 8},
                 random_bits(key("qweight"), packed_bytes())},
                {name("qzeros"),
                 SaveType::i32,
                 {groups_, linear_.rows / 8},
                 zero_words(groups_ * linear_.rows / 8)},
                {name("scales"), SaveType::f16, {groups_, linear_.rows}, scales(zero_point_variance)}};
    }

    std::vector<SaveTensor> awq_gemv() const {
        const std::int64_t words = quantized::awq_zero_words(linear_.cols, group_), wide = 8 * words;
        const auto zeros = [=, k = key("qzeros"), groups = groups_](std::uint64_t i) {
            const std::int64_t first = std::int64_t(i) % words * 8;  // group of the word's lowest nibble
            std::uint32_t word = zero_word(k, i);
            for (int nibble = 0; nibble < 8; ++nibble)
                if (first + nibble >= groups) word &= ~(0xFU << (4 * nibble));
            return word;
        };
        const auto scale = [=, table = scale_bits(zero_point_variance, SaveType::f16), k = key("scales"),
                            groups = groups_](std::uint64_t i) {
            return std::int64_t(i) % wide < groups ? table[random_nibble(k, i)] : std::uint16_t(0);
        };
        return {{name("qweight"),
                 SaveType::i32,
                 {linear_.rows, linear_.cols / 8},
                 random_bits(key("qweight"), packed_bytes())},
                {name("qzeros"),
                 SaveType::i32,
                 {linear_.rows, words},
                 elements<std::uint32_t>(std::uint64_t(linear_.rows * words), zeros)},
                {name("scales"),
                 SaveType::f16,
                 {linear_.rows, wide},
                 elements<std::uint16_t>(std::uint64_t(linear_.rows * wide), scale)}};
    }

    std::vector<SaveTensor> awq_gemv_fast() const {
        require(linear_.cols % 64 == 0, "inputs in 64s for gemv_fast", std::to_string(linear_.cols));
        const std::int64_t lines = 8 * quantized::awq_zero_words(linear_.cols, group_), rows = linear_.rows;
        const auto table = scale_bits(zero_point_variance, SaveType::f16);
        const auto scale = [=, k = key("scales"), groups = groups_](std::uint64_t i) {
            return std::int64_t(i) / rows < groups ? table[random_nibble(k, i)] : std::uint16_t(0);
        };
        const auto zero = [=, k = key("qzeros")](std::uint64_t i) {
            const float point = 7.0F + float(random_nibble(k, i) & 1);
            const float minimum = -f16_to_f32(scale(i)) * point;
            return f32_to_f16(minimum);
        };
        const auto n = std::uint64_t(lines * rows);
        return {{name("qweight"),
                 SaveType::i16,
                 {rows / 4, linear_.cols},
                 random_bits(key("qweight"), packed_bytes())},
                {name("qzeros"), SaveType::f16, {lines, rows}, elements<std::uint16_t>(n, zero)},
                {name("scales"), SaveType::f16, {lines, rows}, elements<std::uint16_t>(n, scale)}};
    }

    std::vector<SaveTensor> gptq() const {
        const auto stored = [](std::uint64_t) { return 0x88888888U - quantized::gptq_v1_ones(4); };
        return {{name("qweight"),
                 SaveType::i32,
                 {linear_.cols / 8, linear_.rows},
                 random_symmetric_nibbles(key("qweight"), packed_bytes())},
                {name("qzeros"),
                 SaveType::i32,
                 {groups_, linear_.rows / 8},
                 elements<std::uint32_t>(std::uint64_t(groups_ * linear_.rows / 8), stored)},
                {name("scales"), SaveType::f16, {groups_, linear_.rows}, scales(symmetric_variance)},
                {name("g_idx"), SaveType::i32, {linear_.cols}, group_index()}};
    }

    std::vector<SaveTensor> compressed() const {
        const auto shape = [rows = linear_.rows, cols = linear_.cols](std::uint64_t i) {
            return i == 0 ? rows : cols;
        };
        return {{name("weight_packed"),
                 SaveType::i32,
                 {linear_.rows, linear_.cols / 8},
                 random_symmetric_nibbles(key("weight_packed"), packed_bytes())},
                {name("weight_scale"),
                 options_.dtype,
                 {linear_.rows, groups_},
                 scales(symmetric_variance, options_.dtype)},
                {name("weight_shape"), SaveType::i64, {2}, elements<std::int64_t>(2, shape)}};
    }

  private:
    void require(bool good, const std::string& expected, const std::string& found) const {
        if (!good)
            throw Error(ErrorKind::argument, options_.quantization + " of " + linear_.module + ": expected " +
                                                 expected + ", got " + found +
                                                 "; choose another --group-size or --like");
    }

    std::string name(const char* part) const { return linear_.module + "." + part; }
    std::uint64_t key(const char* part) const { return random_key(options_.seed, name(part)); }
    std::uint64_t packed_bytes() const {
        return std::uint64_t(linear_.rows) * std::uint64_t(linear_.cols) / 2;
    }

    // Eight zero points, each 7 or 8.
    static std::uint32_t zero_word(std::uint64_t key, std::uint64_t i) {
        return 0x77777777U + (std::uint32_t(random_word(key, i)) & 0x11111111U);
    }
    ByteSource zero_words(std::int64_t n) const {
        return elements<std::uint32_t>(std::uint64_t(n),
                                       [k = key("qzeros")](std::uint64_t i) { return zero_word(k, i); });
    }

    std::vector<std::uint16_t> scale_bits(double variance, SaveType type) const {
        const ScaleChoice choice(double(linear_.std_dev) / std::sqrt(variance));
        std::vector<std::uint16_t> bits;
        for (unsigned i = 0; i < 16; ++i)
            bits.push_back(narrow_16(float(choice[i]), type));
        return bits;
    }
    ByteSource scales(double variance, SaveType type = SaveType::f16) const {
        return elements<std::uint16_t>(std::uint64_t(groups_ * linear_.rows),
                                       [table = scale_bits(variance, type), k = key("scales")](
                                           std::uint64_t i) { return table[random_nibble(k, i)]; });
    }

    // Each group has exactly its number of members; with act-order they are scattered (Fisher-Yates).
    ByteSource group_index() const {
        auto index = std::make_shared<std::vector<std::int32_t>>(std::size_t(linear_.cols));
        for (std::size_t i = 0; i < index->size(); ++i)
            (*index)[i] = std::int32_t(std::int64_t(i) / group_);
        if (options_.act_order)
            for (std::size_t i = index->size() - 1; i > 0; --i)
                std::swap((*index)[i], (*index)[random_word(key("g_idx"), i) % (i + 1)]);
        return elements<std::int32_t>(index->size(), [index](std::uint64_t i) { return (*index)[i]; });
    }

    RandomLinear linear_;
    MakeModelOptions options_;
    std::int64_t group_, groups_;
};

const char* version_name(AwqVersion version) {
    switch (version) {
        case AwqVersion::gemm:
            return "gemm";
        case AwqVersion::gemv:
            return "gemv";
        case AwqVersion::gemv_fast:
            return "gemv_fast";
    }
    return "";
}

}  // namespace

std::vector<SaveTensor> quantized_tensors(const RandomLinear& linear, const MakeModelOptions& options) {
    const LinearMaker maker(linear, options);
    if (options.quantization == "gptq") return maker.gptq();
    if (options.quantization == "compressed-tensors") return maker.compressed();
    switch (options.awq_version) {
        case AwqVersion::gemm:
            return maker.awq_gemm();
        case AwqVersion::gemv:
            return maker.awq_gemv();
        case AwqVersion::gemv_fast:
            return maker.awq_gemv_fast();
    }
    return {};
}

Json quantization_config(const MakeModelOptions& o, bool mixture) {
    if (o.quantization == "awq")
        return {{"quant_method", "awq"},
                {"bits", 4},
                {"group_size", o.group_size},
                {"zero_point", true},
                {"version", version_name(o.awq_version)},
                {"modules_to_not_convert", mixture ? Json::array({"gate"}) : Json(nullptr)}};
    if (o.quantization == "gptq")
        return {{"quant_method", "gptq"},
                {"bits", 4},
                {"group_size", o.group_size},
                {"desc_act", o.act_order},
                {"sym", true},
                {"checkpoint_format", "gptq"},
                {"static_groups", false},
                {"true_sequential", true},
                {"damp_percent", 0.01},
                {"lm_head", false}};
    const bool rows = o.group_size < 0;
    const nlohmann::ordered_json weights = {
        {"num_bits", 4},
        {"type", "int"},
        {"symmetric", true},
        {"strategy", rows ? "channel" : "group"},
        {"group_size", rows ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(o.group_size)},
        {"dynamic", false}};
    return {{"quant_method", "compressed-tensors"},
            {"format", "pack-quantized"},
            {"quantization_status", "compressed"},
            {"config_groups",
             {{"group_0",
               {{"targets", nlohmann::ordered_json::array({"Linear"})},
                {"weights", weights},
                {"input_activations", nullptr},
                {"output_activations", nullptr}}}}},
            {"ignore", mixture ? Json::array({"lm_head", "re:.*gate$"}) : Json::array({"lm_head"})},
            {"kv_cache_scheme", nullptr}};
}

}  // namespace recto
