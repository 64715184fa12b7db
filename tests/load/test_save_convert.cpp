// Models written as Hugging Face folders: weights bit for bit, configurations that read back the same.
// Before Qt, whose keyword macros would rewrite StepBatch::slots.
#include "support/model_data.h"

#include <QTest>
#include <cmath>

#include "engine/load/folder_config.h"
#include "engine/load/folder_tensors.h"
#include "engine/load/json_reader.h"
#include "engine/load/mapped_file.h"
#include "engine/load/name_map.h"
#include "engine/load/rope_scaling.h"
#include "engine/load/safetensors.h"
#include "engine/save/config_writer.h"
#include "engine/save/convert.h"
#include "engine/save/dense_tensors.h"
#include "engine/save/rope_settings.h"
#include "kernels/dtype.h"
#include "load/files.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;
namespace fs = std::filesystem;

namespace {

const fs::path tiny_gguf = RECTO_TEST_DATA "/load/tiny_llama.gguf";
const fs::path tiny_models = RECTO_TEST_DATA "/model/tiny", families = RECTO_TEST_DATA "/model/families",
               mixtures = RECTO_TEST_DATA "/model/mixture";

SaveType type_of(const std::string& dtype) {
    return dtype == "F32" ? SaveType::f32 : dtype == "F16" ? SaveType::f16 : SaveType::bf16;
}

std::vector<fs::path> folders_of(const fs::path& parent) {
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(parent))
        if (entry.is_directory()) folders.push_back(entry.path());
    std::sort(folders.begin(), folders.end());
    return folders;
}

float score_scale(const ModelConfig& config) {
    return config.attention_scale > 0 ? config.attention_scale
                                      : float(1.0 / std::sqrt(double(config.head_dim)));
}

// Empty if all that a forward pass depends on is equal.
std::string difference(const ModelConfig& a, const ModelConfig& b) {
    const auto same_rope = [](const RopeConfig& x, const RopeConfig& y) {
        return x.rotary_dims == y.rotary_dims && x.inverse_frequency == y.inverse_frequency &&
               x.attention_factor == y.attention_factor;
    };
    if (a.hidden != b.hidden || a.layers != b.layers || a.intermediate != b.intermediate ||
        a.vocab != b.vocab)
        return "sizes";
    if (a.heads != b.heads || a.kv_heads != b.kv_heads || a.head_dim != b.head_dim) return "heads";
    if (a.norm_eps != b.norm_eps || a.activation != b.activation) return "norm or activation";
    if (a.tied_embedding != b.tied_embedding) return "tied embedding";
    if (a.embedding_scale != b.embedding_scale || score_scale(a) != score_scale(b) ||
        a.residual_scale != b.residual_scale || a.logits_scale != b.logits_scale)
        return "scales";
    if (a.attention_softcap != b.attention_softcap || a.logits_softcap != b.logits_softcap) return "softcaps";
    if (a.window != b.window) return "window";
    if (a.qk_norm != b.qk_norm || a.pre_norms != b.pre_norms || a.post_norms != b.post_norms) return "norms";
    if (a.unrotated != b.unrotated) return "layers without RoPE";
    if (!same_rope(a.rope, b.rope) || !same_rope(a.rope_local, b.rope_local)) return "rope";
    const ExpertConfig &x = a.experts, &y = b.experts;
    if (x.count != y.count || x.per_token != y.per_token || x.layers != y.layers ||
        (x.count > 0 && (x.intermediate != y.intermediate || x.renormalize != y.renormalize)))
        return "experts";
    if (a.max_position != b.max_position) return "context";
    if (a.eos_ids != b.eos_ids || a.bos_id != b.bos_id) return "special ids";
    return {};
}

// As a causal language model's class spells it: files of base models leave "model." out, files that hold an
// image encoder put more before it.
std::string decoder_name(const std::string& name) {
    for (const std::string& prefix :
         {std::string("language_model.model."), std::string("model.language_model.")})
        if (name.starts_with(prefix)) return "model." + name.substr(prefix.size());
    if (name.starts_with("language_model.")) return name.substr(std::string("language_model.").size());
    return name.starts_with("model.") || name.starts_with("lm_head") ? name : "model." + name;
}

std::vector<float> values_of(const WeightRows& weight) {
    std::vector<float> values(std::size_t(weight.rows() * weight.cols()));
    weight.read_f32(0, weight.rows(), values.data());
    return values;
}

RopeSettings settings(const std::string& type, double factor) {
    RopeSettings s;
    s.type = type;
    s.factor = factor;
    s.rotary_dims = 64;
    s.theta = 500000;
    s.max_position = 4096;
    return s;
}

}  // namespace

class TestSaveConvert : public QObject {
    Q_OBJECT

  private slots:
    // Expected: the weights that were put into the GGUF file, under Hugging Face's names and in its row order
    // (tests/data/load/make_expected.py, by the gguf package).
    void a_gguf_file_becomes_a_folder() {
        const std::string path = RECTO_TEST_DATA "/load/tiny_llama_expected.safetensors";
        const MappedFile map(path);
        const Safetensors expected(map.bytes(), path);
        const auto source = open_model(tiny_gguf);
        const Scratch scratch;
        const fs::path out = scratch.path() / "out";
        const ConvertReport report = convert_model(*source, out, SaveType::f32);
        QVERIFY2(report.tokenizer_left_out.find("the merge \"a b\" is of or into what is no token") !=
                     std::string::npos,
                 report.tokenizer_left_out.c_str());
        const FolderTensors found(out);
        for (const auto& tensor : expected.tensors()) {
            const SafeTensor* copy = found.find(tensor.name);
            QVERIFY2(copy != nullptr, tensor.name.c_str());
            QCOMPARE(copy->dtype, std::string("F32"));
            QCOMPARE(copy->shape, tensor.shape);
            QVERIFY2(std::ranges::equal(copy->data, tensor.data), tensor.name.c_str());
        }
        // The file has biases for q and k alone; Llama's configuration gives v and o one too: zeros.
        for (const char* name : {"v_proj", "o_proj"}) {
            const SafeTensor* bias = found.find(std::string("model.layers.1.self_attn.") + name + ".bias");
            QVERIFY(bias != nullptr);
            QVERIFY(std::ranges::all_of(bias->data, [](std::byte b) { return b == std::byte(0); }));
        }
        QCOMPARE(found.tensors().size(), expected.tensors().size() + 4);
        const auto again = open_model(out);
        QCOMPARE(difference(again->config(), source->config()), std::string());
    }

    void rounding_happens_once() {
        const auto source = open_model(tiny_gguf);
        const Scratch scratch;
        convert_model(*source, scratch.path() / "out", SaveType::bf16);
        const FolderTensors found(scratch.path() / "out");
        const auto weight = source->weight(TensorRole::ffn_down, 1);
        std::vector<float> wide(std::size_t(weight->rows() * weight->cols()));
        weight->read_f32(0, weight->rows(), wide.data());
        const SafeTensor* tensor = found.find("model.layers.1.mlp.down_proj.weight");
        QCOMPARE(tensor->data.size(), wide.size() * 2);
        for (std::size_t i = 0; i < wide.size(); ++i) {
            std::uint16_t bits;
            std::memcpy(&bits, tensor->data.data() + 2 * i, 2);
            QCOMPARE(bits, f32_to_bf16(wide[i]));
        }
    }

    void a_folder_keeps_its_weights_and_settings_data() {
        QTest::addColumn<QString>("folder");
        for (const auto& parent : {tiny_models, families, mixtures})
            for (const auto& folder : folders_of(parent))
                if (fs::exists(folder / "config.json"))
                    QTest::newRow(folder.filename().c_str()) << QString::fromStdString(folder.string());
    }
    void a_folder_keeps_its_weights_and_settings() {
        QFETCH(QString, folder);
        const auto source = open_model(folder.toStdString());
        const FolderTensors original(folder.toStdString());
        const SaveType type = type_of(original.tensors().front()->dtype);
        const Scratch scratch;
        const fs::path out = scratch.path() / "out";
        const ConvertReport report = convert_model(*source, out, type);
        QCOMPARE(report.tokenizer_left_out, std::string("the folder has none"));
        const FolderTensors found(out);
        const auto again = open_model(out);
        for_each_required_tensor(source->config(), [&](TensorRole role, int layer, int expert) {
            const std::string name = source->tensor_name(role, layer, expert);
            if (is_norm(role)) {
                QVERIFY2(again->norm(role, layer) == source->norm(role, layer), name.c_str());
                return;
            }
            const auto before = source->weight(role, layer, expert),
                       after = again->weight(role, layer, expert);
            QVERIFY2(values_of(*after) == values_of(*before), name.c_str());
            QVERIFY2(std::ranges::equal(after->bias(), before->bias()), name.c_str());
        });
        if (source->config().experts.stacked) return;  // written one by one
        std::size_t others = 0;
        for (const auto* tensor : original.tensors()) {
            if (tensor->name.find("vision") != std::string::npos) {
                ++others;
                continue;
            }
            // 1 + w was compared above; it has no room for the last digits of w.
            if (source->config().norm_plus_one && tensor->shape.size() == 1) continue;
            const SafeTensor* copy = found.find(decoder_name(tensor->name));
            QVERIFY2(copy != nullptr, tensor->name.c_str());
            QCOMPARE(copy->dtype, tensor->dtype);
            QCOMPARE(copy->shape, tensor->shape);
            QVERIFY2(std::ranges::equal(copy->data, tensor->data), tensor->name.c_str());
        }
        QCOMPARE(found.tensors().size(), original.tensors().size() - others);
        QCOMPARE(difference(open_model(out)->config(), source->config()), std::string());
    }

    // The twins were made by the gguf package out of folders whose logits transformers computed
    // (tests/data/model/make_tiny_families.py).
    void a_gguf_twin_becomes_a_folder_of_the_same_logits_data() {
        QTest::addColumn<QString>("folder");
        for (const auto& parent : {families, mixtures})
            for (const auto& folder : folders_of(parent))
                if (fs::exists(folder / "twin.gguf"))
                    QTest::newRow(folder.filename().c_str()) << QString::fromStdString(folder.string());
    }
    void a_gguf_twin_becomes_a_folder_of_the_same_logits() {
        QFETCH(QString, folder);
        const auto source = open_model((folder + "/twin.gguf").toStdString());
        const Scratch scratch;
        convert_model(*source, scratch.path() / "out", SaveType::f32);
        QCOMPARE(difference(open_model(scratch.path() / "out")->config(), source->config()), std::string());
        LoadOptions exact;
        exact.dtype = ModelDType::f32;
        const auto model = load_model(scratch.path() / "out", cpu_backend(), exact);
        SequenceLogitsOptions options;
        options.kv_dtype = DType::f32;
        const auto found =
            all_logits(model, read_json(folder + "/ids.json").get<std::vector<std::int32_t>>(), options);
        const auto expected = read_floats(folder + "/logits.f32");
        // Some data holds every third position only.
        const auto vocab = std::size_t(model->config.vocab);
        const std::size_t stride = found.size() == expected.size() ? 1 : 3;
        const std::size_t rows = (found.size() / vocab + stride - 1) / stride;
        QCOMPARE(expected.size(), rows * vocab);
        double worst = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const std::size_t at = i / vocab * stride * vocab + i % vocab;
            worst = std::max(worst, double(std::abs(found[at] - expected[i])));
        }
        const double share = worst / standard_deviation(expected);
        QVERIFY2(share < 2e-3, qPrintable(QString::number(share)));
    }

    // From the settings alone, as for a GGUF file.
    void a_configuration_reads_back_the_same_data() { a_folder_keeps_its_weights_and_settings_data(); }
    void a_configuration_reads_back_the_same() {
        QFETCH(QString, folder);
        const auto source = open_model(folder.toStdString());
        const SavedBiases biases = biases_of(*source);
        // Gemma rounds its embedding scale to the type.
        const SaveType type = type_of(FolderTensors(folder.toStdString()).tensors().front()->dtype);
        const std::string text = config_json(source->config(), biases, type, "made").dump();
        const FolderConfig read = read_folder_config(text, "written");
        QCOMPARE(difference(read.model, source->config()), std::string());
        QCOMPARE(read.qkv_bias, biases.qkv);
        QCOMPARE(read.o_bias, biases.o);
        QCOMPARE(read.mlp_bias, biases.mlp);
    }

    void frequencies_find_back_to_settings_data() {
        QTest::addColumn<QString>("type");
        QTest::addColumn<double>("factor");
        QTest::addColumn<double>("original");
        QTest::addColumn<QString>("written");
        QTest::newRow("none") << "default" << 1.0 << 0.0 << "default";
        QTest::newRow("linear") << "linear" << 2.5 << 0.0 << "linear";
        QTest::newRow("llama 3.1") << "llama3" << 8.0 << 8192.0 << "llama3";
        QTest::newRow("llama 3.2") << "llama3" << 32.0 << 8192.0 << "llama3";
        QTest::newRow("yarn") << "yarn" << 4.0 << 1024.0 << "yarn";
        // Nobody's parameters: the divisors themselves.
        QTest::newRow("another llama3") << "llama3" << 5.0 << 1000.0 << "longrope";
        QTest::newRow("dynamic") << "dynamic" << 2.0 << 0.0 << "longrope";
    }
    void frequencies_find_back_to_settings() {
        QFETCH(QString, type);
        QFETCH(double, factor);
        QFETCH(double, original);
        QFETCH(QString, written);
        RopeSettings given = settings(type.toStdString(), factor);
        given.original_max_position = original;
        const RopeConfig rope = scale_rope(given, "test");
        const int context = int(scaled_max_position(given));
        const RopeSettings found = rope_settings_of(rope, context);
        QCOMPARE(QString::fromStdString(found.type), written);
        const RopeConfig again = scale_rope(found, "test");
        QCOMPARE(again.inverse_frequency, rope.inverse_frequency);
        QCOMPARE(again.attention_factor, rope.attention_factor);
        QCOMPARE(int(scaled_max_position(found)), context);
    }

    void values_beyond_float16_are_refused_by_name() {
        // A bfloat16 folder whose first norm weight is 1e30.
        const fs::path original = tiny_models / "llama-untied-bf16";
        const Scratch scratch;
        for (const char* name : {"config.json", "model.safetensors"})
            scratch.write(std::string("in/") + name, read_text_file(original / name));
        std::string bytes = read_text_file(original / "model.safetensors");
        const Safetensors file(bytes_of(bytes), "copy");
        const std::uint16_t huge = f32_to_bf16(1e30F);
        const auto at = file.find("model.norm.weight")->data.data() - bytes_of(bytes).data();
        std::memcpy(bytes.data() + at, &huge, 2);
        scratch.write("in/model.safetensors", bytes);
        const auto source = open_model(scratch.path() / "in");
        const fs::path out = scratch.path() / "out";
        check_refusal([&] { convert_model(*source, out, SaveType::f16); }, (scratch.path() / "in").string(),
                      "the tensor model.norm.weight has values that float16 cannot hold");
        QVERIFY(!fs::exists(out));
        convert_model(*source, out, SaveType::bf16);
    }
};

RECTO_TEST_CLASS(TestSaveConvert);
#include "test_save_convert.moc"
