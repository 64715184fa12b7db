// Models of random weights: they load in every format, their statistics are what was asked for, and the seed
// alone decides their bytes. Before Qt, whose keyword macros would rewrite StepBatch::slots.
#include "support/model_data.h"

#include <QTest>
#include <set>

#include "engine/load/folder_tensors.h"
#include "engine/load/mapped_file.h"
#include "engine/load/name_map.h"
#include "engine/save/convert.h"
#include "engine/save/make_model.h"
#include "engine/save/model_shapes.h"
#include "engine/save/random_model.h"
#include "load/files.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* quantizations[] = {
    "none",      "awq",       "gptq",      "compressed-tensors", "gguf:F32",   "gguf:F16",  "gguf:BF16",
    "gguf:Q4_0", "gguf:Q4_1", "gguf:Q5_0", "gguf:Q5_1",          "gguf:Q8_0",  "gguf:Q2_K", "gguf:Q3_K",
    "gguf:Q4_K", "gguf:Q5_K", "gguf:Q6_K", "gguf:IQ4_NL",        "gguf:IQ4_XS"};

void made(const fs::path& out, const std::string& quantization, std::uint64_t seed = 1,
          const std::function<void(MakeModelOptions&)>& change = {}) {
    MakeModelOptions options;
    options.quantization = quantization;
    options.seed = seed;
    if (change) change(options);
    make_model(options, out);
}

std::vector<float> values_of(const WeightRows& weight) {
    std::vector<float> values(std::size_t(weight.rows() * weight.cols()));
    weight.read_f32(0, weight.rows(), values.data());
    return values;
}

double mean(const std::vector<float>& values) {
    double sum = 0;
    for (const float v : values)
        sum += v;
    return sum / double(values.size());
}

// All files of a folder, one after the other.
std::string content(const fs::path& folder) {
    std::set<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder))
        files.insert(entry.path());
    std::string all;
    for (const auto& file : files)
        all += file.filename().string() + '\n' + read_text_file(file);
    return all;
}

std::string refused_option(const std::function<void()>& act) {
    try {
        act();
    } catch (const Error& error) {
        return error.kind() == ErrorKind::argument ? error.what()
                                                   : std::string("another kind: ") + error.what();
    }
    return "nothing was refused";
}

std::int64_t parameters(const ModelConfig& config) {
    std::int64_t sum = 0;
    const SavedBiases biases = family_biases(config);
    for_each_required_tensor(config, [&](TensorRole role, int, int) {
        const auto shape = expected_shape(role, config);
        sum += shape[0] * (shape.size() > 1 ? shape[1] : 1);
        if (has_bias(role, biases)) sum += shape[0];
    });
    return sum;
}

}  // namespace

class TestMakeModel : public QObject {
    Q_OBJECT

    static void add_quantizations() {
        QTest::addColumn<QString>("quantization");
        for (const char* name : quantizations)
            QTest::newRow(name) << name;
    }

  private slots:
    void every_format_loads_and_generates_data() { add_quantizations(); }
    void every_format_loads_and_generates() {
        QFETCH(QString, quantization);
        const Scratch scratch;
        made(scratch.path() / "m", quantization.toStdString());
        LoadOptions exact;
        exact.dtype = ModelDType::f32;
        const auto model = load_model(scratch.path() / "m", cpu_backend(), exact);
        QVERIFY(model->tokenizer && model->chat_template);
        const auto ids = model->tokenizer->encode("A text of any kind: 12 \xE2\x82\xAC");
        SequenceLogitsOptions options;
        options.kv_dtype = DType::f32;
        const double spread = standard_deviation(all_logits(model, ids, options));
        // The aim is 2, whatever the format (weight_std_dev).
        QVERIFY2(spread > 1.6 && spread < 2.4, qPrintable(QString::number(spread)));
        EngineOptions small;
        small.kv_blocks = 16;
        Engine engine(model, small);
        const RequestId id = engine.submit(greedy_request(ids, 8));
        QCOMPARE(run_to_end(engine).at(id).tokens.size(), std::size_t(8));
    }

    void weights_have_the_deviation_that_is_meant_data() { add_quantizations(); }
    void weights_have_the_deviation_that_is_meant() {
        QFETCH(QString, quantization);
        const Scratch scratch;
        made(scratch.path() / "m", quantization.toStdString());
        const auto source = open_model(scratch.path() / "m");
        const ModelConfig& config = source->config();
        for (const TensorRole role :
             {TensorRole::embedding, TensorRole::lm_head, TensorRole::attn_q, TensorRole::attn_k,
              TensorRole::attn_o, TensorRole::ffn_up, TensorRole::ffn_down}) {
            const auto values = values_of(*source->weight(role, 0));
            const double wanted = double(weight_std_dev(role, config));
            const double found = standard_deviation(values);
            // 32,768 and more values in groups whose scales vary by 14 %: 1 % is three deviations of that;
            // FP16 keeps few bits of the smallest scales.
            QVERIFY2(
                std::abs(found / wanted - 1) < 0.04,
                qPrintable(QStringLiteral("role %1: %2, wanted %3").arg(int(role)).arg(found).arg(wanted)));
            QVERIFY2(std::abs(mean(values)) < 0.04 * wanted,
                     qPrintable(QString::number(mean(values) / wanted)));
        }
        const auto norm = source->norm(TensorRole::ffn_norm, 1);
        QVERIFY(std::abs(mean(norm) - 1) < 0.03);
        QVERIFY(std::abs(standard_deviation(norm) - double(norm_std_dev)) < 0.02);
    }

    void the_seed_decides_the_bytes_data() { add_quantizations(); }
    void the_seed_decides_the_bytes() {
        QFETCH(QString, quantization);
        const Scratch scratch;
        made(scratch.path() / "a", quantization.toStdString(), 7);
        made(scratch.path() / "b", quantization.toStdString(), 7);
        made(scratch.path() / "c", quantization.toStdString(), 8);
        QVERIFY(content(scratch.path() / "a") == content(scratch.path() / "b"));
        QVERIFY(content(scratch.path() / "a") != content(scratch.path() / "c"));
    }

    void awq_packings_and_groups_load_data() {
        QTest::addColumn<int>("version");
        QTest::addColumn<int>("group");
        for (const int group : {32, 64, 128, -1})
            for (const AwqVersion version : {AwqVersion::gemm, AwqVersion::gemv, AwqVersion::gemv_fast})
                QTest::addRow("%d, %d", int(version), group) << int(version) << group;
    }
    void awq_packings_and_groups_load() {
        QFETCH(int, version);
        QFETCH(int, group);
        const Scratch scratch;
        made(scratch.path() / "m", "awq", 3, [&](MakeModelOptions& o) {
            o.awq_version = AwqVersion(version);
            o.group_size = group;
        });
        const auto source = open_model(scratch.path() / "m");
        const auto weight = source->weight(TensorRole::ffn_down, 1);
        QCOMPARE(weight->form().group_size, group < 0 ? int(weight->cols()) : group);
        const double wanted = double(weight_std_dev(TensorRole::ffn_down, source->config()));
        QVERIFY(std::abs(standard_deviation(values_of(*weight)) / wanted - 1) < 0.04);
    }

    // Decoded here by the format's own formula: w[o][i] = s[g_idx[i]][o] · (q − 8).
    void act_order_survives_a_conversion() {
        const Scratch scratch;
        made(scratch.path() / "m", "gptq", 5, [](MakeModelOptions& o) { o.act_order = true; });
        const std::string module = "model.layers.1.self_attn.v_proj.";
        const FolderTensors packed(scratch.path() / "m");
        const auto words = packed.find(module + "qweight"), scales = packed.find(module + "scales"),
                   groups = packed.find(module + "g_idx");
        const std::int64_t rows = words->shape[1], cols = 8 * words->shape[0];
        convert_model(*open_model(scratch.path() / "m"), scratch.path() / "out", SaveType::f32);
        const FolderTensors dense(scratch.path() / "out");
        const auto found = dense.find(module + "weight");
        const auto at = []<class T>(const SafeTensor* tensor, std::int64_t i, T) {
            T value;
            std::memcpy(&value, tensor->data.data() + std::size_t(i) * sizeof value, sizeof value);
            return value;
        };
        bool scattered = false;
        for (std::int64_t i = 0; i < cols; ++i) {
            const std::int32_t group = at(groups, i, std::int32_t());
            scattered = scattered || group != i / 128;
            for (std::int64_t o = 0; o < rows; ++o) {
                const std::uint32_t word = at(words, i / 8 * rows + o, std::uint32_t());
                const int q = int(word >> (4 * (i % 8))) & 15;
                const float scale = f16_to_f32(at(scales, group * rows + o, std::uint16_t()));
                QCOMPARE(at(found, o * cols + i, float()), scale * float(q - 8));
            }
        }
        QVERIFY(scattered);
    }

    // The numbers of parameters that the makers publish.
    void shapes_are_those_of_the_models_data() {
        QTest::addColumn<qint64>("published");
        QTest::newRow("smollm2-135m") << qint64(134'515'008);
        QTest::newRow("smollm2-1.7b") << qint64(1'711'376'384);
        QTest::newRow("tinyllama-1.1b") << qint64(1'100'048'384);
        QTest::newRow("llama-2-7b") << qint64(6'738'415'616);
        QTest::newRow("llama-2-13b") << qint64(13'015'864'320);
        QTest::newRow("llama-3-8b") << qint64(8'030'261'248);
        QTest::newRow("llama-3.1-8b") << qint64(8'030'261'248);
        QTest::newRow("llama-3.2-1b") << qint64(1'235'814'400);
        QTest::newRow("llama-3.2-3b") << qint64(3'212'749'824);
        QTest::newRow("mistral-7b") << qint64(7'241'732'096);
        QTest::newRow("qwen2.5-0.5b") << qint64(494'032'768);
        QTest::newRow("qwen2.5-1.5b") << qint64(1'543'714'304);
        QTest::newRow("mixtral-8x7b") << qint64(46'702'792'704);
        QTest::newRow("qwen3-30b-a3b") << qint64(30'532'122'624);
        QTest::newRow("qwen3-0.6b") << qint64(596'049'920);
        QTest::newRow("qwen3-8b") << qint64(8'190'735'360);
        QTest::newRow("qwen2.5-7b") << qint64(7'615'616'512);
    }
    void shapes_are_those_of_the_models() {
        QFETCH(qint64, published);
        QCOMPARE(qint64(parameters(model_shape(QTest::currentDataTag()))), published);
    }

    void every_shape_is_written_and_read_data() {
        QTest::addColumn<QString>("quantization");
        for (const auto& name : model_shape_names())
            if (name.starts_with("tiny-"))
                for (const char* quantization : {"none", "awq", "gguf:Q8_0"})
                    QTest::addRow("%s %s", name.c_str(), quantization) << quantization;
    }
    void every_shape_is_written_and_read() {
        QFETCH(QString, quantization);
        const std::string name = QString(QTest::currentDataTag()).section(' ', 0, 0).toStdString();
        const Scratch scratch;
        made(scratch.path() / "m", quantization.toStdString(), 1, [&](auto& o) { o.like = name; });
        const auto model = load_model(scratch.path() / "m", cpu_backend());
        QCOMPARE(model->config.family, model_shape(name).family);
        SequenceLogitsOptions options;
        const double spread = standard_deviation(all_logits(model, {1, 50, 300, 2, 77}, options));
        QVERIFY2(spread > 1.5 && spread < 2.5, qPrintable(QString::number(spread)));
    }

    void options_that_do_not_fit_are_refused() {
        const Scratch scratch;
        const fs::path out = scratch.path() / "m";
        const auto refused = [&](const char* quantization,
                                 const std::function<void(MakeModelOptions&)>& change, const char* fragment) {
            const std::string said = refused_option([&] { made(out, quantization, 0, change); });
            QVERIFY2(said.find(fragment) != std::string::npos, said.c_str());
            QVERIFY(!fs::exists(out));
        };
        refused(
            "none", [](auto& o) { o.like = "gpt-9"; }, "--like must be one of tiny, ");
        refused("exl2", {},
                "--quantization must be none, awq, gptq, compressed-tensors or gguf:TYPE, got exl2");
        refused("gguf:Q9_9", {}, "got Q9_9");
        refused(
            "awq", [](auto& o) { o.group_size = 96; }, "a group size that divides its 256 inputs, got 96");
        refused(
            "awq", [](auto& o) { o.group_size = 0; },
            "--group-size must be -1 (whole rows) or a multiple of 8");
        refused(
            "awq", [](auto& o) { o.act_order = true; }, "--act-order is for --quantization gptq");
        refused(
            "gptq", [](auto& o) { o.awq_version = AwqVersion::gemv; }, "--version is for --quantization awq");
        refused(
            "awq", [](auto& o) { o.dtype = SaveType::f32; }, "--dtype float32 does not go with");
    }

    void a_gguf_file_can_be_named() {
        const Scratch scratch;
        made(scratch.path() / "one.gguf", "gguf:Q4_K");
        made(scratch.path() / "folder", "gguf:Q4_K");
        QVERIFY(read_text_file(scratch.path() / "one.gguf") ==
                read_text_file(scratch.path() / "folder/model.gguf"));
        const std::string said = refused_option([&] { made(scratch.path() / "one.gguf", "gguf:Q4_K"); });
        QVERIFY2(said.find("nothing is overwritten") != std::string::npos, said.c_str());
    }
};

RECTO_TEST_CLASS(TestMakeModel);
#include "test_make_model.moc"
