// Every packing of quantized folders against the dequantized weights that numpy computed from the formats'
// formulas, over tensors that the formats' own packages packed (tests/data/load/make_quantized.py), bit for
// bit.
#include <QTest>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "engine/load/json_reader.h"
#include "engine/load/mapped_file.h"
#include "engine/load/module_weights.h"
#include "engine/load/quantized_layout.h"
#include "load/files.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

using Json = nlohmann::ordered_json;

const std::string folder = RECTO_TEST_DATA "/load/quantized";

struct Case {
    std::string name, form;
    std::int64_t rows, cols;
    Json config;
};

std::vector<Case> read_cases() {
    std::vector<Case> cases;
    for (const auto& c : parse_json(read_text_file(folder + "/cases.json"), "cases.json"))
        cases.push_back({c["name"], c["form"], c["rows"], c["cols"], c["config"]});
    return cases;
}

QuantizationConfig config_of(const Json& json) {
    return read_separate_quantization_config(json.dump(), "config.json");
}

// In the order of the inputs, whatever order the file's groups put them in.
std::vector<float> natural(const WeightRows& weight, std::int64_t first, std::int64_t n) {
    const auto cols = weight.cols();
    std::vector<float> read(std::size_t(n * cols)), out(read.size());
    weight.read_f32(first, n, read.data());
    const auto order = weight.input_permutation();
    for (std::int64_t r = 0; r < n; ++r)
        for (std::int64_t k = 0; k < cols; ++k) {
            const std::int64_t input = order.empty() ? k : order[std::size_t(k)];
            out[std::size_t(r * cols + input)] = read[std::size_t(r * cols + k)];
        }
    return out;
}

std::vector<float> stored_f32(const FolderTensors& files, const std::string& name) {
    const SafeTensor* tensor = files.find(name);
    std::vector<float> values(tensor->data.size() / 4);
    std::memcpy(values.data(), tensor->data.data(), tensor->data.size());
    return values;
}

bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
    const auto bits = [](float x, float y) {
        return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), bits);
}

}  // namespace

class TestQuantized : public QObject {
    Q_OBJECT

    std::shared_ptr<const FolderTensors> files_ = std::make_shared<const FolderTensors>(folder);
    std::vector<Case> cases_ = read_cases();

    ModuleWeights module_of(const Case& c) const {
        return ModuleWeights(files_, folder, config_of(c.config));
    }

    void add_cases() const {
        QTest::addColumn<int>("index");
        for (std::size_t i = 0; i < cases_.size(); ++i)
            QTest::newRow(cases_[i].name.c_str()) << int(i);
    }

  private slots:
    void dequantized_weights_are_exact_data() { add_cases(); }
    void dequantized_weights_are_exact() {
        QFETCH(int, index);
        const Case& c = cases_[std::size_t(index)];
        ModuleWeights modules = module_of(c);
        modules.check(c.name, c.rows, c.cols);
        const std::string described = modules.describe();
        QVERIFY2(described.starts_with(c.form), described.c_str());
        QCOMPARE(described.find("act-order") != std::string::npos,
                 c.name.find("order") != std::string::npos && c.name.find("unset") == std::string::npos);
        for (const auto& warning : modules.warnings())
            QFAIL(warning.c_str());

        const auto weight = modules.open(c.name, c.rows, c.cols);
        QCOMPARE(weight->rows(), c.rows);
        QCOMPARE(weight->cols(), c.cols);
        const std::vector<float> expected = stored_f32(*files_, c.name + ".expected");
        QVERIFY(equal_bits(natural(*weight, 0, c.rows), expected));
        // Any run of rows by itself.
        for (const auto& [first, n] :
             {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 5}, {c.rows - 1, 1}, {2, 0}}) {
            const std::vector<float> part(expected.begin() + first * c.cols,
                                          expected.begin() + (first + n) * c.cols);
            QVERIFY(equal_bits(natural(*weight, first, n), part));
        }
    }

    void planes_are_the_logical_form_data() { add_cases(); }
    // scale * q + offset as kernels/weight.h says, from planes that are asked for together and one by one.
    void planes_are_the_logical_form() {
        QFETCH(int, index);
        const Case& c = cases_[std::size_t(index)];
        const auto weight = module_of(c).open(c.name, c.rows, c.cols);
        const WeightForm& form = weight->form();
        QVERIFY(form.grouped && c.cols % form.group_size == 0);
        const auto n = std::size_t(c.rows * c.cols), groups = std::size_t(c.rows * c.cols / form.group_size);
        std::vector<std::uint8_t> q(n), q_alone(n), zero(groups);
        std::vector<float> scale(groups), offset(groups), values(n), offset_alone(groups);
        WeightPlanes planes{q.data(), scale.data(), offset.data()};
        const bool zero_point = form.offset == OffsetForm::zero_point;
        if (zero_point) planes.zero_point = zero.data();
        weight->read(0, c.rows, planes);
        weight->read_f32(0, c.rows, values.data());
        WeightPlanes alone;
        alone.q = q_alone.data();
        weight->read(0, c.rows, alone);
        alone = {};
        alone.offset = offset_alone.data();
        weight->read(0, c.rows, alone);
        QVERIFY(q == q_alone);
        QVERIFY(equal_bits(offset, offset_alone));
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t g = i / std::size_t(form.group_size);
            const int code = form.integer == QuantInt::i8 ? int(std::int8_t(q[i])) : int(q[i]);
            QVERIFY(form.integer != QuantInt::u4 || code < 16);
            const float w = scale[g] * float(code) + offset[g];
            QCOMPARE(w, values[i]);  // zeros of either sign are equal
            if (zero_point) QCOMPARE(offset[g], -scale[g] * float(zero[g]));
        }
    }

    // One W, packed in every way: the very same numbers.
    void all_packings_give_the_same_weights() {
        for (const bool symmetric : {false, true}) {
            std::vector<float> first;
            int compared = 0;
            for (const Case& c : cases_) {
                if (!c.name.starts_with("same_") || c.name.starts_with("same_sym_") != symmetric) continue;
                const auto values = natural(*module_of(c).open(c.name, c.rows, c.cols), 0, c.rows);
                if (first.empty()) first = values;
                for (std::size_t i = 0; i < values.size(); ++i)
                    QCOMPARE(values[i], first[i]);
                ++compared;
            }
            QCOMPARE(compared, symmetric ? 7 : 6);
        }
    }

    // Without a word of configuration, the tensors tell; AWQ gemv's padding alone does not tell all group
    // sizes.
    void formats_are_inferred_from_tensors() {
        for (const Case& c : cases_) {
            // Where the last group is shorter, the number of groups alone does not tell their size.
            const bool untold = c.form.find("gemv") != std::string::npos ||
                                c.form.find("llm-awq") != std::string::npos ||
                                c.name.find("short") != std::string::npos;
            if (untold) continue;
            ModuleWeights modules(files_, folder);
            modules.check(c.name, c.rows, c.cols);
            const std::string described = modules.describe();
            QVERIFY2(described.starts_with(c.form), (c.name + ": " + described).c_str());
        }
    }

    // The words and values of the format's description (reference implementations agree on them).
    void known_words() {
        // AutoAWQ gemm: two inputs of eight outputs, one group, scale 0.5.
        const std::string gemm = Bytes().put(0x86427531U).put(0x8ace9bdfU).put(0x88887777U).text();
        std::string halves;
        for (int i = 0; i < 8; ++i)
            halves += Bytes().put(f32_to_f16(0.5F)).text();
        const auto rows = open_one({{"m.qweight", "I32", {2, 1}, gemm.substr(0, 8)},
                                    {"m.qzeros", "I32", {1, 1}, gemm.substr(8)},
                                    {"m.scales", "F16", {1, 8}, halves}},
                                   "m", 8, 2);
        const float expected[2][8] = {{-3, -3, -2, -2, -1, -1, 0, 0}, {4, 3, 3, 2, 2, 1, 1, 0}};
        for (int r = 0; r < 8; ++r)
            for (int k = 0; k < 2; ++k)
                QCOMPARE(natural(*rows, r, 1)[std::size_t(k)], expected[k][r]);

        // GPTQ: inputs 3 0 15 8 7 1 2 9; version 1 words of zero points 0 5 8 8 8 8 8 8 borrow across
        // nibbles.
        std::string words;
        for (int i = 0; i < 8; ++i)
            words += Bytes().put(0x92178f03U).text();
        const auto gptq = open_one({{"m.qweight", "I32", {1, 8}, words},
                                    {"m.qzeros", "I32", {1, 1}, Bytes().put(0x7777773fU).text()},
                                    {"m.scales", "F16", {1, 8}, halves}},
                                   "m", 8, 8);
        const int inputs[8] = {3, 0, 15, 8, 7, 1, 2, 9};
        for (int r = 0; r < 8; ++r)
            for (int k = 0; k < 8; ++k) {
                const int zero = r == 0 ? 0 : r == 1 ? 5 : 8;
                QCOMPARE(natural(*gptq, r, 1)[std::size_t(k)], 0.5F * float(inputs[k] - zero));
            }

        // compressed-tensors: −8 −7 −1 0 1 2 6 7.
        const auto packed =
            open_one({{"m.weight_packed", "I32", {1, 1}, Bytes().put(0xfea98710U).text()},
                      {"m.weight_scale", "F16", {1, 1}, Bytes().put(f32_to_f16(1.0F)).text()}},
                     "m", 1, 8);
        const std::vector<float> values = {-8, -7, -1, 0, 1, 2, 6, 7};
        QCOMPARE(natural(*packed, 0, 1), values);
    }

    void layout_helpers_agree_with_each_other() {
        for (int i = 0; i < 8; ++i)
            QCOMPARE(quantized::awq_output[quantized::awq_nibble[i]], i);
        // Widths of real layers: 4096, 11008, 14336 and 1536 inputs in groups of 128, 64 and 32.
        const std::int64_t widths[4][4] = {
            {4096, 4, 8, 16}, {11008, 11, 22, 44}, {14336, 14, 28, 56}, {1536, 2, 4, 8}};
        for (const auto& w : widths)
            for (int i = 0; i < 3; ++i)
                QCOMPARE(quantized::awq_zero_words(w[0], 128 >> i), w[i + 1]);
    }

  private:
    struct Raw {
        std::string name, dtype;
        std::vector<std::int64_t> shape;
        std::string bytes;
    };
    static std::unique_ptr<WeightRows> open_one(const std::vector<Raw>& tensors, const std::string& module,
                                                std::int64_t rows, std::int64_t cols) {
        Json header;
        std::string data;
        for (const auto& t : tensors) {
            header[t.name] = {{"dtype", t.dtype},
                              {"shape", t.shape},
                              {"data_offsets", {data.size(), data.size() + t.bytes.size()}}};
            data += t.bytes;
        }
        const Scratch scratch;
        const std::string text = header.dump() + "  ";  // an odd length: nothing may count on alignment
        scratch.write("model.safetensors",
                      Bytes().put<std::uint64_t>(text.size()).raw(text).raw(data).text());
        return ModuleWeights(std::make_shared<const FolderTensors>(scratch.path()), "folder")
            .open(module, rows, cols);
    }
};

RECTO_TEST_CLASS(TestQuantized);
#include "test_quantized.moc"
