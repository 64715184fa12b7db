#include "engine/load/quantized_module.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "engine/load/module_weights.h"
#include "engine/load/name_map.h"
#include "engine/load/refuse.h"

namespace recto {

namespace {

using quantized::Layout;

struct Choice {
    Layout layout;
    int bits;
    const char* name;
};
constexpr Choice choices[] = {{Layout::awq_gemm, 4, "AWQ gemm"},
                              {Layout::awq_gemv, 4, "AWQ gemv"},
                              {Layout::awq_gemv_fast, 4, "AWQ gemv_fast"},
                              {Layout::gptq, 4, "GPTQ of 4 bits"},
                              {Layout::gptq, 8, "GPTQ of 8 bits"}};

QuantMethod method_of(Layout layout) {
    if (layout == Layout::gptq) return QuantMethod::gptq;
    return layout == Layout::packed ? QuantMethod::compressed_tensors : QuantMethod::awq;
}

// Which groups a row of AWQ gemv or gemv_fast may have is read off padded tensors.
constexpr std::int64_t padded_groups[] = {128, 64, 32};

class Finder {
  public:
    Finder(const FolderTensors& files, const QuantizationConfig& config, const std::string& module,
           std::int64_t rows, std::int64_t cols)
        : files_(files), config_(config), module_(module), rows_(rows), cols_(cols) {}

    std::optional<QuantizedModule> find() {
        if (find("weight_packed") != nullptr) return packed();
        if (find("qweight") != nullptr) return layered();
        return std::nullopt;
    }

  private:
    using Shape = std::vector<std::int64_t>;

    const SafeTensor* find(const char* part) const { return files_.find(module_ + "." + part); }

    [[noreturn]] void bad(const SafeTensor& tensor, const std::string& expected,
                          const std::string& found) const {
        refuse(files_.label_of(tensor.name),
               "the tensor " + tensor.name + " should " + expected + ", found " + found);
    }

    const SafeTensor& required(const char* part, const char* beside) const {
        const SafeTensor* tensor = find(part);
        if (tensor == nullptr)
            refuse(files_.label_of(module_ + "." + beside), "the tensor " + module_ + "." + part +
                                                                " is missing, which belongs beside " +
                                                                module_ + "." + beside);
        return *tensor;
    }

    void expect_shape(const SafeTensor& tensor, const Shape& expected) const {
        if (tensor.shape != expected)
            bad(tensor, "have the shape " + shape_text(expected), shape_text(tensor.shape));
    }
    void expect_dtype(const SafeTensor& tensor, std::initializer_list<const char*> dtypes) const {
        std::string list;
        for (const char* dtype : dtypes) {
            if (tensor.dtype == dtype) return;
            list += (list.empty() ? "" : " or ") + std::string(dtype);
        }
        bad(tensor, "hold " + list + " data", tensor.dtype);
    }

    Shape packed_shape(const Choice& c) const {
        switch (c.layout) {
            case Layout::awq_gemm:
                return {cols_, rows_ / 8};
            case Layout::awq_gemv:
                return {rows_, cols_ / 8};
            case Layout::awq_gemv_fast:
                return {rows_ / 4, cols_};
            case Layout::gptq:
                return {cols_ * c.bits / 32, rows_};
            case Layout::packed:
                break;
        }
        return {rows_, (cols_ * c.bits + 31) / 32};
    }
    // Whether the sizes fill whole words.
    bool divides(const Choice& c) const {
        switch (c.layout) {
            case Layout::awq_gemm:
                return rows_ % 8 == 0;
            case Layout::awq_gemv:
                return cols_ % 8 == 0;
            case Layout::awq_gemv_fast:
                return rows_ % 4 == 0 && cols_ % 64 == 0;
            case Layout::gptq:
                return rows_ * c.bits % 32 == 0 && cols_ * c.bits % 32 == 0;
            case Layout::packed:
                break;
        }
        return true;
    }
    const char* packed_dtype(const Choice& c) const {
        return c.layout == Layout::awq_gemv_fast ? "I16" : "I32";
    }
    bool fits(const Choice& c, const SafeTensor& qweight) const {
        return divides(c) && qweight.dtype == packed_dtype(c) && qweight.shape == packed_shape(c);
    }
    // For layouts whose packed shapes agree (square AWQ layers): scales hold a row or a column an output.
    bool scales_fit(const Choice& c, const SafeTensor& scales) const {
        return scales.shape.size() == 2 && scales.shape[c.layout == Layout::awq_gemv ? 0 : 1] == rows_;
    }
    bool configured(const Choice& c) const {
        if (config_.method && method_of(c.layout) != *config_.method) return false;
        if (config_.awq_layout && c.layout != Layout::gptq && c.layout != *config_.awq_layout) return false;
        return !config_.bits || c.bits == *config_.bits;
    }

    [[noreturn]] void fits_nothing(const SafeTensor& qweight) const {
        const Shape marlin = {cols_ / 16, rows_ * 2};
        if (qweight.dtype == "I32" && qweight.shape == marlin)
            refuse(files_.label_of(qweight.name),
                   "the tensor " + qweight.name +
                       " is Marlin-tiled, which is not supported; choose a copy of the model in AWQ gemm, "
                       "GPTQ or compressed-tensors");
        std::string expected;
        for (const bool only_configured : {true, false}) {
            for (const auto& c : choices)
                if (divides(c) && (!only_configured || configured(c)))
                    expected += (expected.empty() ? "" : " or ") + std::string(packed_dtype(c)) + " " +
                                shape_text(packed_shape(c)) + " (" + c.name + ")";
            if (!expected.empty()) break;
        }
        if (expected.empty())
            refuse(files_.label_of(qweight.name), "the tensor " + qweight.name + " belongs to a weight of " +
                                                      shape_text({rows_, cols_}) +
                                                      ", which no supported packing can hold");
        bad(qweight, "be " + expected, qweight.dtype + " " + shape_text(qweight.shape));
    }

    Choice choose(const SafeTensor& qweight) const {
        std::vector<Choice> fitting;
        for (const auto& c : choices)
            if (fits(c, qweight)) fitting.push_back(c);
        if (fitting.empty()) fits_nothing(qweight);
        const SafeTensor& scales = required("scales", "qweight");
        for (const auto narrow :
             {+[](const Finder&f, const Choice&c, const SafeTensor&s) { return f.scales_fit(c, s); },
              +[](const Finder&f, const Choice&c, const SafeTensor&) { return f.configured(c); }}) {
            if (fitting.size() == 1) break;
            auto kept = fitting;
            std::erase_if(kept, [&](const Choice& c) { return !narrow(*this, c, scales); });
            if (!kept.empty()) fitting = std::move(kept);
        }
        if (fitting.size() > 1)
            refuse(files_.label_of(qweight.name), "the tensor " + qweight.name + " could be " +
                                                      fitting[0].name + " or " + fitting[1].name +
                                                      ", and the configuration does not say which");
        return fitting.front();
    }

    // Inputs in a group, where the file's tensors have `groups` of them.
    std::int64_t group_size(const SafeTensor& scales, std::int64_t groups, bool rows_first) const {
        const std::int64_t said =
            config_.group_size.value_or(0) == -1 ? cols_ : config_.group_size.value_or(0);
        if (said > 0 && (cols_ + said - 1) / said == groups) return said;
        if (groups >= 1 && cols_ % groups == 0) return cols_ / groups;
        const std::int64_t expected = said > 0 ? (cols_ + said - 1) / said : (cols_ + 127) / 128;
        bad(scales,
            "have the shape " + shape_text(rows_first ? Shape{rows_, expected} : Shape{expected, rows_}),
            shape_text(scales.shape));
    }

    std::int64_t padded_group_size(const SafeTensor& scales, std::int64_t width) const {
        const auto fits = [&](std::int64_t g) {
            return cols_ % g == 0 && quantized::awq_zero_words(cols_, g) * 8 == width;
        };
        if (config_.group_size) {
            const std::int64_t said = *config_.group_size == -1 ? cols_ : *config_.group_size;
            if (fits(said)) return said;
        }
        std::vector<std::int64_t> fitting;
        for (const auto g : padded_groups)
            if (fits(g)) fitting.push_back(g);
        if (fits(cols_) && std::find(fitting.begin(), fitting.end(), cols_) == fitting.end())
            fitting.push_back(cols_);
        if (fitting.size() == 1) return fitting.front();
        bad(scales,
            "have the zero padding of " +
                (config_.group_size ? "\"group_size\" " + std::to_string(*config_.group_size)
                                    : std::string("a \"group_size\" that the configuration names")),
            shape_text(scales.shape));
    }

    std::optional<QuantizedModule> layered() {
        const SafeTensor& qweight = *find("qweight");
        const Choice choice = choose(qweight);
        QuantizedModule m;
        m.layout = choice.layout;
        m.tensors.rows = rows_;
        m.tensors.cols = cols_;
        m.tensors.bits = choice.bits;
        m.tensors.packed = &qweight;
        const SafeTensor& scales = required("scales", "qweight");
        m.tensors.scales = &scales;
        m.tensors.zeros = find("qzeros");
        const bool fast = m.layout == Layout::awq_gemv_fast;
        if (fast && m.tensors.zeros == nullptr) {
            m.tensors.zeros = find("scaled_zeros");
            m.llm_awq = m.tensors.zeros != nullptr;
        }
        // Left out where the configuration promises them, they would be taken for the middle, and nobody
        // told.
        if (m.tensors.zeros == nullptr &&
            (fast || m.layout == Layout::gptq || !config_.symmetric.value_or(true)))
            (void)required("qzeros", "qweight");
        expect_dtype(scales, {"F16", "BF16", "F32"});
        if (scales.shape.size() != 2 || !scales_fit(choice, scales)) {
            const std::int64_t groups = std::max<std::int64_t>(1, cols_ / config_.group_size.value_or(128));
            expect_shape(scales, m.layout == Layout::awq_gemv ? Shape{rows_, groups} : Shape{groups, rows_});
        }
        if (m.layout == Layout::awq_gemv || fast) {
            const std::int64_t width = scales.shape[fast ? 0 : 1];
            m.tensors.file_group = padded_group_size(scales, width);
            if (m.tensors.zeros != nullptr) {
                expect_dtype(*m.tensors.zeros, {fast ? scales.dtype.c_str() : "I32"});
                expect_shape(*m.tensors.zeros, fast ? scales.shape : Shape{rows_, width / 8});
            }
        } else {
            m.tensors.file_group = group_size(scales, scales.shape[0], false);
            if (m.tensors.zeros != nullptr) {
                expect_dtype(*m.tensors.zeros, {"I32"});
                expect_shape(*m.tensors.zeros, {scales.shape[0], rows_ * choice.bits / 32});
            }
        }
        if (m.layout == Layout::gptq) {
            if (config_.act_order) (void)required("g_idx", "qweight");
            set_order(m, "g_idx");
        }
        finish(m);
        return m;
    }

    std::optional<QuantizedModule> packed() {
        const SafeTensor& words = *find("weight_packed");
        QuantizedModule m;
        m.layout = Layout::packed;
        m.tensors.rows = rows_;
        m.tensors.cols = cols_;
        m.tensors.packed = &words;
        expect_dtype(words, {"I32"});
        const Shape four = packed_shape({Layout::packed, 4, ""}),
                    eight = packed_shape({Layout::packed, 8, ""});
        // Rows of at most four inputs have one word either way.
        m.tensors.bits = words.shape == eight && (four != eight || config_.bits.value_or(4) == 8) ? 8 : 4;
        if (words.shape != four && words.shape != eight)
            bad(words,
                "have the shape " + shape_text(four) + " (4 bits) or " + shape_text(eight) + " (8 bits)",
                shape_text(words.shape));
        const SafeTensor& scales = required("weight_scale", "weight_packed");
        m.tensors.scales = &scales;
        expect_dtype(scales, {"F16", "BF16", "F32"});
        if (scales.shape.size() != 2 || scales.shape[0] != rows_) {
            const std::int64_t said = config_.group_size.value_or(-1);
            expect_shape(scales, {rows_, said > 0 ? (cols_ + said - 1) / said : 1});
        }
        m.tensors.file_group = group_size(scales, scales.shape[1], true);
        m.tensors.zeros = find("weight_zero_point");
        if (m.tensors.zeros == nullptr && !config_.symmetric.value_or(true))
            (void)required("weight_zero_point", "weight_packed");
        if (m.tensors.zeros != nullptr) {
            expect_dtype(*m.tensors.zeros, {"I32", "I8"});
            const std::int64_t per_word = 32 / m.tensors.bits;
            expect_shape(*m.tensors.zeros,
                         {m.tensors.zeros->dtype == "I8" ? rows_ : (rows_ + per_word - 1) / per_word,
                          scales.shape[1]});
        }
        m.shape = find("weight_shape");
        if (m.shape != nullptr) {
            expect_dtype(*m.shape, {"I64", "I32"});
            expect_shape(*m.shape, {2});
        }
        // Without it the groups would be read as they lie, and nobody told. Embeddings have none: their
        // quantizer knows no order of inputs.
        const bool embedding = module_.find("embed") != std::string::npos;
        if (config_.act_order && !embedding && m.tensors.file_groups() > 1)
            (void)required("weight_g_idx", "weight_packed");
        set_order(m, "weight_g_idx");
        finish(m);
        return m;
    }

    void set_order(QuantizedModule& m, const char* part) const {
        m.order = find(part);
        if (m.order == nullptr) return;
        expect_dtype(*m.order, {"I32"});
        expect_shape(*m.order, {cols_});
    }

    void finish(QuantizedModule& m) const {
        m.whole_rows = m.tensors.file_groups() == 1 && config_.group_size.value_or(-1) == -1;
        if (kernel_group(cols_, m.tensors.file_group) == 0)
            refuse(files_.label_of(m.tensors.scales->name),
                   "the tensor " + m.tensors.scales->name + " makes groups of " +
                       std::to_string(m.tensors.file_group) + " in rows of " + std::to_string(cols_) +
                       ", which is not supported; supported are multiples of 16 and whole rows");
        std::size_t bytes = m.tensors.packed->data.size() + m.tensors.scales->data.size();
        if (m.tensors.zeros != nullptr) bytes += m.tensors.zeros->data.size();
        m.tensors.bits_per_weight = 8.0 * double(bytes) / double(rows_ * cols_);
    }

    const FolderTensors& files_;
    const QuantizationConfig& config_;
    const std::string& module_;
    std::int64_t rows_, cols_;
};

std::int32_t load_i32(const SafeTensor& tensor, std::int64_t i) {
    return std::int32_t(load_u32(tensor.data.data() + i * 4));
}

void check_weight_shape(const FolderTensors& files, const QuantizedModule& m) {
    std::int64_t sizes[2];
    for (int i = 0; i < 2; ++i)
        sizes[i] = m.shape->dtype == "I64" ? std::int64_t(load_u64(m.shape->data.data() + 8 * i))
                                           : std::int64_t(load_i32(*m.shape, i));
    if (sizes[0] != m.tensors.rows || sizes[1] != m.tensors.cols)
        refuse(files.label_of(m.shape->name), "the tensor " + m.shape->name + " should hold " +
                                                  shape_text({m.tensors.rows, m.tensors.cols}) + ", found " +
                                                  shape_text({sizes[0], sizes[1]}));
}

void check_zero_points(const FolderTensors& files, const QuantizedModule& m) {
    const SafeTensor* zeros = m.tensors.zeros;
    if (zeros == nullptr || zeros->dtype != "I8" || m.tensors.bits == 8) return;
    const int middle = quantized::middle(m.tensors.bits);
    for (const std::byte byte : zeros->data)
        if (const int v = std::int8_t(byte); v < -middle || v >= middle)
            refuse(files.label_of(zeros->name),
                   "the tensor " + zeros->name + " should hold values from " + std::to_string(-middle) +
                       " to " + std::to_string(middle - 1) + ", found " + std::to_string(v));
}

// The inputs in the order of their groups, as they come within a group; empty if that is how they lie.
std::vector<std::int32_t> permutation(const FolderTensors& files, const QuantizedModule& m) {
    const SafeTensor& order = *m.order;
    const std::int64_t cols = m.tensors.cols, size = m.tensors.file_group, groups = m.tensors.file_groups();
    std::vector<std::int32_t> index(static_cast<std::size_t>(cols));
    for (std::int64_t i = 0; i < cols; ++i)
        index[std::size_t(i)] = load_i32(order, i);
    // compressed-tensors writes −1 for "not set".
    if (m.layout == Layout::packed && std::all_of(index.begin(), index.end(), [](auto g) { return g == -1; }))
        return {};
    std::vector<std::int64_t> members(static_cast<std::size_t>(groups));
    for (const auto g : index) {
        if (g < 0 || g >= groups)
            refuse(files.label_of(order.name), "the tensor " + order.name + " should hold groups from 0 to " +
                                                   std::to_string(groups - 1) + ", found " +
                                                   std::to_string(g));
        ++members[std::size_t(g)];
    }
    for (std::int64_t g = 0; g < groups; ++g) {
        const std::int64_t expected = std::min(size, cols - g * size);
        if (members[std::size_t(g)] != expected)
            refuse(files.label_of(order.name), "the tensor " + order.name + " should put " +
                                                   std::to_string(expected) + " inputs into group " +
                                                   std::to_string(g) + ", found " +
                                                   std::to_string(members[std::size_t(g)]));
    }
    if (std::is_sorted(index.begin(), index.end())) return {};
    std::vector<std::int32_t> sorted(index.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(), [&](std::int32_t a, std::int32_t b) {
        return index[std::size_t(a)] < index[std::size_t(b)];
    });
    return sorted;
}

bool all_words_are(const SafeTensor& tensor, std::uint32_t word) {
    for (std::int64_t i = 0; i < std::int64_t(tensor.data.size()) / 4; ++i)
        if (load_u32(tensor.data.data() + i * 4) != word) return false;
    return true;
}

// Version 1 stores zero points less 1. Symmetric files show which it is: their zero point is the middle, all
// over.
bool zeros_are_v1(const QuantizationConfig& config, const QuantizedModule& m) {
    if (config.symmetric.value_or(false)) {
        const std::uint32_t ones = quantized::gptq_v1_ones(m.tensors.bits);
        const std::uint32_t v2 = ones * std::uint32_t(quantized::middle(m.tensors.bits));
        if (all_words_are(*m.tensors.zeros, v2)) return false;
        if (all_words_are(*m.tensors.zeros, v2 - ones)) return true;
    }
    return !config.gptq_v2;
}

}  // namespace

QuantMethod QuantizedModule::method() const {
    return method_of(layout);
}

std::string QuantizedModule::describe() const {
    std::string text;
    switch (layout) {
        case Layout::awq_gemm:
            text = "AWQ gemm";
            break;
        case Layout::awq_gemv:
            text = "AWQ gemv";
            break;
        case Layout::awq_gemv_fast:
            text = llm_awq ? "AWQ llm-awq" : "AWQ gemv_fast";
            break;
        case Layout::gptq:
            text = "GPTQ";
            break;
        case Layout::packed:
            text = "compressed-tensors";
            break;
    }
    return text + ", " + std::to_string(tensors.bits) + " bit, " +
           (whole_rows ? "whole rows" : "group " + std::to_string(tensors.file_group));
}

std::optional<QuantizedModule> find_quantized(const FolderTensors& files, const QuantizationConfig& config,
                                              const std::string& module, std::int64_t rows,
                                              std::int64_t cols) {
    return Finder(files, config, module, rows, cols).find();
}

void read_contents(const FolderTensors& files, const QuantizationConfig& config, QuantizedModule& module) {
    if (module.shape != nullptr) check_weight_shape(files, module);
    check_zero_points(files, module);
    if (module.order != nullptr) module.tensors.permutation = permutation(files, module);
    if (module.layout == Layout::gptq) module.tensors.zeros_v1 = zeros_are_v1(config, module);
}

std::unique_ptr<WeightRows> make_quantized_rows(QuantizedModule module) {
    switch (module.layout) {
        case Layout::awq_gemm:
            return make_awq_gemm_rows(std::move(module.tensors));
        case Layout::awq_gemv:
            return make_awq_gemv_rows(std::move(module.tensors));
        case Layout::awq_gemv_fast:
            return make_awq_fast_rows(std::move(module.tensors));
        case Layout::gptq:
            return make_gptq_rows(std::move(module.tensors));
        case Layout::packed:
            return make_compressed_rows(std::move(module.tensors));
    }
    assert(!"every layout has its reader");
    return nullptr;
}

}  // namespace recto
