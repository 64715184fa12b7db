// Folders of quantized weights: what the configuration may say, what is refused and how, what is warned of.
#include <QTest>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/load/model_source.h"
#include "engine/load/quantization_config.h"
#include "load/files.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Shape = std::vector<std::int64_t>;

struct Tensor {
    std::string dtype;
    Shape shape;
    std::string bytes;
};

std::size_t width(const std::string& dtype) {
    if (dtype == "I64") return 8;
    if (dtype == "I32" || dtype == "F32") return 4;
    return dtype == "I8" || dtype == "U8" ? 1 : 2;
}

// All bytes the same; `word` for I32.
Tensor filled(const std::string& dtype, const Shape& shape, std::uint32_t word = 0) {
    std::size_t n = width(dtype);
    for (const auto dim : shape)
        n *= std::size_t(dim);
    std::string bytes(n, dtype == "F16" ? '\x2c' : '\x3c');  // small positive floats
    if (dtype == "I32")
        for (std::size_t i = 0; i < n; i += 4)
            std::memcpy(bytes.data() + i, &word, 4);
    return {dtype, shape, bytes};
}

// One layer: 4 heads of 8, hidden 32, feed-forward 64, 10 tokens. The linears of the layer are quantized.
struct Folder {
    Scratch scratch;
    Json config = {{"architectures", {"LlamaForCausalLM"}},
                   {"hidden_size", 32},
                   {"intermediate_size", 64},
                   {"num_hidden_layers", 1},
                   {"num_attention_heads", 4},
                   {"vocab_size", 16},
                   {"max_position_embeddings", 64}};
    std::map<std::string, Tensor> tensors;
    static constexpr const char* q = "model.layers.0.self_attn.q_proj";

    static std::vector<std::pair<std::string, Shape>> linears() {
        std::vector<std::pair<std::string, Shape>> all;
        for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
            all.push_back({std::string("model.layers.0.self_attn.") + name, {32, 32}});
        for (const char* name : {"gate_proj", "up_proj"})
            all.push_back({std::string("model.layers.0.mlp.") + name, {64, 32}});
        all.push_back({"model.layers.0.mlp.down_proj", {32, 64}});
        return all;
    }
    void add_dense() {
        tensors["model.embed_tokens.weight"] = filled("F16", {16, 32});
        tensors["lm_head.weight"] = filled("F16", {16, 32});
        for (const char* norm :
             {"model.norm", "model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm"})
            tensors[std::string(norm) + ".weight"] = filled("F16", {32});
    }
    static Folder awq() {
        Folder f;
        f.config["quantization_config"] = {{"quant_method", "awq"},
                                           {"bits", 4},
                                           {"group_size", 32},
                                           {"zero_point", true},
                                           {"version", "gemm"}};
        f.add_dense();
        for (const auto& [name, s] : linears()) {
            f.tensors[name + ".qweight"] = filled("I32", {s[1], s[0] / 8}, 0x12345678);
            f.tensors[name + ".qzeros"] = filled("I32", {s[1] / 32, s[0] / 8}, 0x88888888);
            f.tensors[name + ".scales"] = filled("F16", {s[1] / 32, s[0]});
        }
        return f;
    }
    static Folder gptq() {
        Folder f;
        f.config["quantization_config"] = {
            {"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"desc_act", false}, {"sym", true}};
        f.add_dense();
        for (const auto& [name, s] : linears()) {
            f.tensors[name + ".qweight"] = filled("I32", {s[1] / 8, s[0]}, 0x12345678);
            f.tensors[name + ".qzeros"] = filled("I32", {s[1] / 32, s[0] / 8}, 0x77777777);
            f.tensors[name + ".scales"] = filled("F16", {s[1] / 32, s[0]});
            f.set_order(name, s[1]);
        }
        return f;
    }
    static Folder compressed() {
        Folder f;
        f.config["quantization_config"] = {{"quant_method", "compressed-tensors"},
                                           {"format", "pack-quantized"},
                                           {"config_groups",
                                            {{"group_0",
                                              {{"targets", {"Linear"}},
                                               {"weights",
                                                {{"num_bits", 4},
                                                 {"type", "int"},
                                                 {"symmetric", true},
                                                 {"strategy", "group"},
                                                 {"group_size", 32}}},
                                               {"input_activations", nullptr}}}}},
                                           {"ignore", {"lm_head"}}};
        f.add_dense();
        for (const auto& [name, s] : linears()) {
            f.tensors[name + ".weight_packed"] = filled("I32", {s[0], s[1] / 8}, 0x12345678);
            f.tensors[name + ".weight_scale"] = filled("BF16", {s[0], s[1] / 32});
            f.tensors[name + ".weight_shape"] = {"I64", {2}, Bytes().put(s[0]).put(s[1]).text()};
        }
        return f;
    }
    void set_order(const std::string& name, std::int64_t cols, std::int32_t first = 0) {
        Bytes order;
        for (std::int64_t i = 0; i < cols; ++i)
            order.put(i == 0 ? first : std::int32_t(i / 32));
        tensors[name + ".g_idx"] = {"I32", {cols}, order.text()};
    }
    Json& settings() { return config["quantization_config"]; }

    fs::path path() const { return scratch.path(); }
    std::unique_ptr<ModelSource> open() const {
        scratch.write("config.json", config.dump());
        Json header;
        std::string data;
        for (const auto& [name, t] : tensors) {
            header[name] = {{"dtype", t.dtype},
                            {"shape", t.shape},
                            {"data_offsets", {data.size(), data.size() + t.bytes.size()}}};
            data += t.bytes;
        }
        const std::string text = header.dump();
        scratch.write("model.safetensors",
                      Bytes().put<std::uint64_t>(text.size()).raw(text).raw(data).text());
        return open_model(path());
    }
    void check_refused(const std::string& file, const std::string& fragment) const {
        check_refusal([&] { (void)open(); }, (file.empty() ? path() : path() / file).string(), fragment);
    }
    // Refused only when the weight is asked for: its headers are good.
    void check_weight_refused(const std::string& fragment) const {
        const auto source = open();
        check_refusal([&] { (void)source->weight(TensorRole::attn_q); },
                      (path() / "model.safetensors").string(), fragment);
    }
    void check_warnings(const std::vector<std::string>& fragments) const {
        const auto warnings = open()->warnings();
        std::string all;
        for (const auto& warning : warnings)
            all += warning + "\n";
        QVERIFY2(warnings.size() == fragments.size(), all.c_str());
        for (std::size_t i = 0; i < fragments.size(); ++i)
            QVERIFY2(warnings[i].find(fragments[i]) != std::string::npos, all.c_str());
    }
};

}  // namespace

class TestQuantizedFolder : public QObject {
    Q_OBJECT

  private slots:
    // The tensors may turn out to be GPTQ's whatever the method says: their version still counts.
    void the_version_of_gptq_is_read_under_any_method() {
        for (const char* method : {"gptq", "awq"}) {
            // No raw string: moc loses the class behind one that holds quotes.
            const std::string text = std::string("{\"quantization_config\": {\"quant_method\": \"") + method +
                                     "\", \"bits\": 4, \"group_size\": 32, \"checkpoint_format\": "
                                     "\"gptq_v2\"}}";
            QVERIFY2(read_quantization_config(text, "config").gptq_v2, method);
        }
    }

    void describes_what_it_found() {
        const auto awq = Folder::awq().open();
        QCOMPARE(awq->quantization(), std::string("AWQ gemm, 4 bit, group 32 (lm_head F16)"));
        QCOMPARE(awq->quantization_method(), std::string("awq"));
        QVERIFY(awq->warnings().empty());
        const auto weight = awq->weight(TensorRole::ffn_down);
        QCOMPARE(weight->form().source_name, "AWQ");
        QCOMPARE(weight->form().bits_per_weight, 4 + 16.0 / 32 + 4.0 / 32);
        QCOMPARE(awq->weight(TensorRole::lm_head)->form().source_name, "F16");

        const auto gptq = Folder::gptq().open();
        QCOMPARE(gptq->quantization(), std::string("GPTQ, 4 bit, group 32 (lm_head F16)"));
        QCOMPARE(gptq->quantization_method(), std::string("gptq"));
        QVERIFY(gptq->warnings().empty());

        const auto compressed = Folder::compressed().open();
        QCOMPARE(compressed->quantization(),
                 std::string("compressed-tensors, 4 bit, group 32 (lm_head F16)"));
        QCOMPARE(compressed->quantization_method(), std::string("compressed-tensors"));
        QVERIFY(compressed->warnings().empty());

        Folder mixed = Folder::awq();
        for (const char* part : {"qweight", "qzeros", "scales"})
            mixed.tensors.erase(std::string(Folder::q) + "." + part);
        mixed.tensors[std::string(Folder::q) + ".weight"] = filled("F16", {32, 32});
        mixed.settings()["modules_to_not_convert"] = {"q_proj"};
        QCOMPARE(mixed.open()->quantization(),
                 std::string("AWQ gemm, 4 bit, group 32 (lm_head F16, 1 linear is not quantized)"));
        QVERIFY(mixed.open()->warnings().empty());

        mixed.config.erase("quantization_config");
        mixed.tensors.clear();
        mixed.add_dense();
        for (const auto& [name, s] : Folder::linears())
            mixed.tensors[name + ".weight"] = filled("BF16", s);
        QCOMPARE(mixed.open()->quantization(), std::string("none (BF16) (mixed)"));
        QCOMPARE(mixed.open()->quantization_method(), std::string("none"));
    }

    void reads_older_and_newer_configurations() {
        Folder folder = Folder::awq();
        const Json settings = folder.settings();
        folder.config.erase("quantization_config");
        folder.scratch.write(
            "quant_config.json",
            Json{{"zero_point", true}, {"q_group_size", 32}, {"w_bit", 4}, {"version", "GEMM"}}.dump());
        QCOMPARE(folder.open()->quantization_method(), std::string("awq"));
        QVERIFY(folder.open()->warnings().empty());
        fs::remove(folder.path() / "quant_config.json");
        QCOMPARE(folder.open()->quantization_method(),
                 std::string("awq"));  // nothing says so but the tensors
        folder.config["quantization_config"] = settings;
        folder.settings()["format"] = "gemm";
        folder.settings()["backend"] = "auto";
        folder.settings()["modules_to_not_convert"] = nullptr;
        folder.settings()["whatever"] = {1, 2};
        QVERIFY(folder.open()->warnings().empty());

        Folder gptq = Folder::gptq();
        gptq.config.erase("quantization_config");
        gptq.scratch.write(
            "quantize_config.json",
            Json{{"bits", 4}, {"group_size", 32}, {"damp_percent", 0.01}, {"desc_act", false}, {"sym", true}}
                .dump());
        QCOMPARE(gptq.open()->quantization_method(), std::string("gptq"));

        Folder compressed = Folder::compressed();
        compressed.settings()["config_groups"] = {{"W4A16", {"Linear"}}};
        compressed.config["compression_config"] = compressed.settings();
        compressed.config.erase("quantization_config");
        compressed.check_warnings({"says \"group_size\" 128, but its tensors have"});
    }

    void refuses_by_name() {
        const auto refused = [](Folder folder, const Json& changes, const std::string& fragment) {
            folder.settings().merge_patch(changes);
            folder.check_refused("config.json", fragment);
        };
        for (const char* method : {"bitsandbytes", "fp8", "exl2", "exl3", "hqq", "aqlm", "quanto", "mxfp4"})
            refused(Folder::awq(), {{"quant_method", method}},
                    std::string("weights quantized with \"") + method +
                        "\" are not supported; supported are AWQ");
        refused(Folder::awq(), {{"version", "marlin"}}, "the AWQ version \"marlin\" is not supported");
        refused(Folder::awq(), {{"bits", 8}}, "AWQ of 8 bits is not supported");
        refused(Folder::awq(), {{"group_size", -5}},
                "\"group_size\" should be -1 (whole rows) or a positive number, found -5");
        refused(Folder::awq(), {{"group_size", 0}}, "found 0");
        refused(Folder::awq(), {{"group_size", 5000000}}, "\"group_size\"");
        refused(Folder::awq(), {{"bits", "four"}}, "\"bits\" should be a whole number");
        refused(Folder::gptq(), {{"bits", 3}}, "GPTQ of 3 bits is not supported");
        for (const char* format : {"marlin", "bitblas", "gptq_p", "exl3"})
            refused(Folder::gptq(), {{"checkpoint_format", format}},
                    std::string("the GPTQ format \"") + format + "\" is not supported");
        refused(Folder::gptq(), {{"is_marlin_format", true}}, "marlin");
        refused(Folder::gptq(), {{"pack_dtype", "int16"}}, "GPTQ packed in \"int16\" words");
        refused(Folder::gptq(), {{"dynamic", {{"+:.*down.*", {{"bits", 2}}}}}},
                "the override \"+:.*down.*\" of \"dynamic\" with 2 bits");
        for (const char* format :
             {"int-quantized", "float-quantized", "mixed-precision", "nvfp4-pack-quantized", "marlin-24"})
            refused(Folder::compressed(), {{"format", format}},
                    std::string("the compressed-tensors format \"") + format + "\" is not supported");
        const auto group = [](const Json& changes) {
            return Json{{"config_groups", {{"group_0", changes}}}};
        };
        refused(Folder::compressed(), group({{"input_activations", {{"num_bits", 8}}}}),
                "quantized activations (\"input_activations\" of the group \"group_0\")");
        refused(Folder::compressed(), group({{"weights", {{"type", "float"}}}}),
                "the compressed-tensors type \"float\"");
        refused(Folder::compressed(), group({{"weights", {{"num_bits", 2}}}}),
                "compressed-tensors of 2 bits");
        refused(Folder::compressed(), group({{"weights", {{"strategy", "block"}}}}),
                "the compressed-tensors strategy \"block\"");
        refused(Folder::compressed(), group({{"format", "float-quantized"}}),
                "the compressed-tensors format \"float-quantized\"");
        refused(Folder::compressed(), {{"config_groups", {{"NVFP4", {"Linear"}}}}},
                "the compressed-tensors preset \"NVFP4\"");
        refused(Folder::compressed(), {{"sparsity_config", {{"format", "sparse-24-bitmask"}}}}, "sparse");
        refused(Folder::compressed(), {{"transform_config", {{"config_groups", {{"u", 1}}}}}},
                "transform_config");
    }

    void refuses_tiles_of_other_kernels() {
        Folder folder = Folder::gptq();
        folder.tensors[std::string(Folder::q) + ".qweight"] = filled("I32", {2, 64});
        folder.check_refused("model.safetensors",
                             "q_proj.qweight is Marlin-tiled, which is not supported; choose");
        folder = Folder::gptq();
        folder.tensors.erase(std::string(Folder::q) + ".qweight");
        folder.tensors[std::string(Folder::q) + ".B"] = filled("I32", {2, 64});
        folder.check_refused("model.safetensors", "packed by Marlin");
    }

    void refuses_tensors_that_do_not_fit_data() {
        QTest::addColumn<QString>("format");
        QTest::addColumn<QString>("part");
        QTest::addColumn<QString>("dtype");
        QTest::addColumn<QList<int>>("shape");
        QTest::addColumn<QString>("said");
        const auto row = [](const char* format, const char* part, const char* dtype, const QList<int>& shape,
                            const char* said) {
            QTest::addRow("%s %s %s %d", format, part, dtype, shape.isEmpty() ? -1 : shape[0])
                << format << part << dtype << shape << said;
        };
        row("awq", "qweight", "I32", {32, 5}, "should be I32 [32, 4] (AWQ gemm), found I32 [32, 5]");
        row("awq", "qweight", "F16", {32, 4}, "should be I32 [32, 4] (AWQ gemm), found F16 [32, 4]");
        row("awq", "qweight", "I32", {128}, "found I32 [128]");
        row("awq", "qweight", "I32", {0, 4}, "found I32 [0, 4]");
        row("awq", "qzeros", "I32", {2, 4}, "q_proj.qzeros should have the shape [1, 4], found [2, 4]");
        row("awq", "qzeros", "F32", {1, 4}, "q_proj.qzeros should hold I32 data, found F32");
        row("awq", "scales", "", {},
            "q_proj.scales is missing, which belongs beside model.layers.0.self_attn.q_proj.qweight");
        row("awq", "qzeros", "", {}, "q_proj.qzeros is missing, which belongs beside");
        row("awq", "scales", "I32", {1, 32}, "q_proj.scales should hold F16 or BF16 or F32 data, found I32");
        row("awq", "scales", "F16", {1, 31}, "q_proj.scales should have the shape [1, 32], found [1, 31]");
        row("awq", "scales", "F16", {0, 32}, "q_proj.scales should have the shape [1, 32], found [0, 32]");
        row("awq", "scales", "F16", {3, 32}, "q_proj.scales should have the shape [1, 32], found [3, 32]");
        row("awq", "scales", "F16", {}, "q_proj.scales should have the shape [1, 32], found []");
        row("gptq", "qweight", "I32", {5, 32}, "should be I32 [4, 32] (GPTQ of 4 bits), found I32 [5, 32]");
        row("gptq", "qzeros", "", {}, "q_proj.qzeros is missing");
        row("gptq", "g_idx", "I64", {32}, "q_proj.g_idx should hold I32 data, found I64");
        row("gptq", "g_idx", "I32", {31}, "q_proj.g_idx should have the shape [32], found [31]");
        row("ct", "weight_packed", "I32", {32, 3},
            "should have the shape [32, 4] (4 bits) or [32, 8] (8 bits), found [32, 3]");
        row("ct", "weight_packed", "U8", {32, 4}, "q_proj.weight_packed should hold I32 data, found U8");
        row("ct", "weight_scale", "", {}, "q_proj.weight_scale is missing");
        row("ct", "weight_scale", "BF16", {31, 1},
            "q_proj.weight_scale should have the shape [32, 1], found [31, 1]");
        row("ct", "weight_scale", "BF16", {32, 16},
            "makes groups of 2 in rows of 32, which is not supported; supported are");
        row("ct", "weight_scale", "BF16", {32, 0},
            "q_proj.weight_scale should have the shape [32, 1], found [32, 0]");
        row("ct", "weight_zero_point", "I32", {32, 1},
            "q_proj.weight_zero_point should have the shape [4, 1], found [32, 1]");
        row("ct", "weight_zero_point", "I8", {4, 1},
            "q_proj.weight_zero_point should have the shape [32, 1], found [4, 1]");
        row("ct", "weight_shape", "I64", {3}, "q_proj.weight_shape should have the shape [2], found [3]");
        row("ct", "weight_g_idx", "F32", {32}, "q_proj.weight_g_idx should hold I32 data, found F32");
    }
    void refuses_tensors_that_do_not_fit() {
        QFETCH(QString, format);
        QFETCH(QString, part);
        QFETCH(QString, dtype);
        QFETCH(QList<int>, shape);
        QFETCH(QString, said);
        Folder folder = format == "awq"    ? Folder::awq()
                        : format == "gptq" ? Folder::gptq()
                                           : Folder::compressed();
        const std::string name = std::string(Folder::q) + "." + part.toStdString();
        folder.tensors.erase(name);
        if (!dtype.isEmpty())
            folder.tensors[name] = filled(dtype.toStdString(), Shape(shape.begin(), shape.end()));
        folder.check_refused("model.safetensors", said.toStdString());
    }

    // compressed-tensors' "actorder": "group" and its older and newer names say that weight_g_idx tells each
    // input's group (quant_args.py, ActivationOrdering). Rows of one group need none.
    void a_promised_order_of_inputs_must_be_there() {
        const std::string down = "model.layers.0.mlp.down_proj";  // the only one of two groups
        for (const Json& order : {Json("group"), Json("dynamic"), Json("Group"), Json(true)}) {
            Folder folder = Folder::compressed();
            folder.settings()["config_groups"]["group_0"]["weights"]["actorder"] = order;
            folder.check_refused("model.safetensors",
                                 "down_proj.weight_g_idx is missing, which belongs beside");
            folder.set_order(down, 64);
            folder.tensors[down + ".weight_g_idx"] = folder.tensors.extract(down + ".g_idx").mapped();
            folder.check_warnings({});
        }
        for (const Json& order : {Json("weight"), Json("static"), Json(false), Json()}) {
            Folder folder = Folder::compressed();
            folder.settings()["config_groups"]["group_0"]["weights"]["actorder"] = order;
            folder.check_warnings({});
        }
        Folder folder = Folder::compressed();
        folder.settings()["config_groups"]["group_0"]["weights"]["actorder"] = "sideways";
        folder.check_refused("config.json", "the compressed-tensors actorder \"sideways\"");
    }

    void refuses_contents_that_lie() {
        Folder folder = Folder::gptq();
        const std::string down = "model.layers.0.mlp.down_proj";
        folder.set_order(Folder::q, 32, 1);
        folder.check_weight_refused("q_proj.g_idx should hold groups from 0 to 0, found 1");
        folder.set_order(Folder::q, 32, -2147483647);
        folder.check_weight_refused("found -2147483647");
        folder = Folder::gptq();
        folder.set_order(down, 64, 1);
        const auto source = folder.open();
        check_refusal([&] { (void)source->weight(TensorRole::ffn_down); },
                      (folder.path() / "model.safetensors").string(),
                      "down_proj.g_idx should put 32 inputs into group 0, found 31");

        folder = Folder::compressed();
        folder.tensors[std::string(Folder::q) + ".weight_shape"] = {
            "I64", {2}, Bytes().put<std::int64_t>(32).put<std::int64_t>(-1).text()};
        folder.check_weight_refused("q_proj.weight_shape should hold [32, 32], found [32, -1]");
        folder = Folder::compressed();
        folder.tensors[std::string(Folder::q) + ".weight_zero_point"] = filled("I8", {32, 1});
        folder.check_weight_refused("q_proj.weight_zero_point should hold values from -8 to 7, found 60");
    }

    void the_tensors_count_where_the_configuration_disagrees() {
        Folder folder = Folder::awq();
        folder.settings()["quant_method"] = "gptq";
        folder.check_warnings(
            {"of model.layers.0.self_attn.q_proj and 6 more it says gptq, but its tensors are those of awq"});
        QCOMPARE(folder.open()->quantization_method(), std::string("awq"));

        folder = Folder::awq();
        folder.settings()["version"] = "gemv";
        folder.check_warnings({"names another AWQ version, but its tensors are AWQ gemm"});
        folder = Folder::awq();
        folder.settings()["group_size"] = 64;
        folder.check_warnings(
            {"of model.layers.0.mlp.down_proj it says \"group_size\" 64, but its tensors have 32"});
        folder = Folder::awq();
        folder.settings()["modules_to_not_convert"] = {"mlp"};
        folder.check_warnings(
            {"it says that model.layers.0.mlp.gate_proj and 2 more are not quantized, but the tensors say "
             "otherwise"});

        folder = Folder::gptq();
        folder.settings()["lm_head"] = true;
        folder.check_warnings({"it says that lm_head is quantized, but the tensors say otherwise"});
        folder = Folder::gptq();
        folder.settings()["bits"] = 8;
        folder.check_warnings({"says 8 bits, but its tensors have 4"});
        folder = Folder::gptq();
        folder.settings()["dynamic"] = {{"-:.*\\.self_attn\\..*", Json::object()}};
        folder.check_warnings({"it says that model.layers.0.self_attn.q_proj and 3 more are not quantized"});
        folder.settings()["dynamic"] = {{"-:(", Json::object()}};
        folder.check_warnings({"the pattern \"(\" is not understood"});

        folder = Folder::compressed();
        folder.settings()["ignore"] = Json::array();
        folder.check_warnings({"it says that lm_head is quantized, but"});
        folder.settings()["ignore"] = {"re:.*head", "re:self_attn"};  // anchored: the second matches nothing
        folder.check_warnings({});
        folder.settings()["kv_cache_scheme"] = {{"num_bits", 8}};
        folder.check_warnings({"\"kv_cache_scheme\" is not followed"});
    }

    void a_dense_weight_beside_a_quantized_one_is_told() {
        for (Folder (*make)() : {&Folder::awq, &Folder::gptq, &Folder::compressed}) {
            Folder folder = make();
            folder.tensors[std::string(Folder::q) + ".weight"] = filled("F16", {32, 32});
            folder.check_warnings(
                {"model.safetensors: model.layers.0.self_attn.q_proj has a dense weight "
                 "beside the quantized one; the quantized one is used"});
            QVERIFY(folder.open()->weight(TensorRole::attn_q)->form().grouped);
            folder.tensors["model.layers.0.mlp.up_proj.weight"] = filled("F16", {64, 32});
            folder.check_warnings({"and 1 more have a dense weight beside the quantized one"});
        }
    }

    void gptq_versions_are_read_off_symmetric_files() {
        Folder folder = Folder::gptq();
        const auto value = [](const Folder& f) {
            float row[32];
            f.open()->weight(TensorRole::attn_q)->read_f32(0, 1, row);
            return row[0];
        };
        const float v1 = value(folder);
        for (auto& [name, tensor] : folder.tensors)
            if (name.ends_with("qzeros")) tensor = filled("I32", tensor.shape, 0x88888888);
        QCOMPARE(value(folder), v1);  // version 2, although nothing says so
        folder.check_warnings({"says GPTQ version 1, but its zero points are those of the other"});
        folder.settings()["checkpoint_format"] = "gptq_v2";
        QCOMPARE(value(folder), v1);
        folder.check_warnings({});
    }

    void warns_of_zero_points_that_a_packer_may_have_spoilt() {
        Folder folder = Folder::gptq();
        folder.settings()["sym"] = false;
        folder.check_warnings({});
        folder.tensors[std::string(Folder::q) + ".qzeros"] = filled("I32", {1, 4}, 0x777f7777);
        folder.check_warnings({"q_proj.qzeros may hold zero points that its packer spoilt"});
        folder.settings()["meta"] = {{"quantizer", {"gptqmodel:0.8.9"}}};
        folder.check_warnings({"spoilt"});
        folder.settings()["meta"] = {{"quantizer", {"other:1.0", "gptqmodel:0.9.1"}}};
        folder.check_warnings({});
    }

    // bits per module: an override to 8 bits shows in the shapes.
    void modules_may_differ_in_bits() {
        Folder folder = Folder::gptq();
        folder.settings()["dynamic"] = {{"+:.*q_proj", {{"bits", 8}}}};
        folder.tensors[std::string(Folder::q) + ".qweight"] = filled("I32", {8, 32}, 0x80818283);
        folder.tensors[std::string(Folder::q) + ".qzeros"] = filled("I32", {1, 8}, 0x7f7f7f7f);
        const auto source = folder.open();
        float row[32];
        const auto weight = source->weight(TensorRole::attn_q);
        weight->read_f32(0, 1, row);
        QVERIFY(weight->form().integer == QuantInt::u8);
        QCOMPARE(row[0] / row[1], 1.5F);  // 0x83 and 0x82 less 0x80
        QCOMPARE(source->quantization(), std::string("GPTQ, 4 bit, group 32 (lm_head F16) (mixed)"));
    }

    void quantized_heads_and_embeddings() {
        Folder folder = Folder::gptq();
        folder.settings()["lm_head"] = true;
        folder.tensors.erase("lm_head.weight");
        folder.tensors["lm_head.qweight"] = filled("I32", {4, 16}, 0x12345678);
        folder.tensors["lm_head.qzeros"] = filled("I32", {1, 2}, 0x77777777);
        folder.tensors["lm_head.scales"] = filled("F16", {1, 16});
        const auto gptq = folder.open();
        QVERIFY(!gptq->config().tied_embedding);
        QVERIFY(gptq->weight(TensorRole::lm_head)->form().grouped);
        QCOMPARE(gptq->quantization(), std::string("GPTQ, 4 bit, group 32"));
        folder.check_warnings({});

        folder = Folder::compressed();
        folder.tensors.erase("model.embed_tokens.weight");
        folder.tensors["model.embed_tokens.weight_packed"] = filled("I32", {16, 8}, 0x01020304);
        folder.tensors["model.embed_tokens.weight_scale"] = filled("BF16", {16, 1});
        const auto weight = folder.open()->weight(TensorRole::embedding);
        QVERIFY(weight->form().grouped && weight->form().integer == QuantInt::i8);
    }
};

RECTO_TEST_CLASS(TestQuantizedFolder);
#include "test_quantized_folder.moc"
