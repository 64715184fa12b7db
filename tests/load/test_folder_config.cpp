// config.json in today's spelling (transformers 5) and the older one, family by family, and what is refused.
// Defaults of missing keys are those of transformers 5.24's configuration classes.
#include <QTest>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/load/folder_config.h"
#include "load/files.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

using Json = nlohmann::ordered_json;

Json base(const char* architecture = "LlamaForCausalLM") {
    return {{"architectures", {architecture}},
            {"hidden_size", 4096},
            {"intermediate_size", 14336},
            {"num_hidden_layers", 32},
            {"num_attention_heads", 32},
            {"num_key_value_heads", 8},
            {"vocab_size", 128256},
            {"rms_norm_eps", 1e-5},
            {"max_position_embeddings", 131072}};
}

FolderConfig read(const Json& config) {
    return read_folder_config(config.dump(), "config.json");
}

void check_refused(const Json& config, const std::string& fragment) {
    check_refusal([&] { (void)read(config); }, "config.json: ", fragment);
}

}  // namespace

class TestFolderConfig : public QObject {
    Q_OBJECT

  private slots:
    void old_and_new_spelling_agree() {
        const Json scaling = {{"factor", 8.0},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0},
                              {"original_max_position_embeddings", 8192},
                              {"rope_type", "llama3"}};
        Json old_one = base();
        old_one.update({{"rope_theta", 500000.0}, {"rope_scaling", scaling}, {"torch_dtype", "bfloat16"}});
        Json new_one = base();
        new_one["rope_parameters"] = scaling;
        new_one["rope_parameters"]["rope_theta"] = 500000.0;
        new_one["dtype"] = "bfloat16";
        Json older = old_one;
        older["rope_scaling"]["type"] = "llama3";
        older["rope_scaling"].erase("rope_type");
        for (const auto& config : {old_one, new_one, older}) {
            const ModelConfig c = read(config).model;
            QCOMPARE(c.rope.type, std::string("llama3"));
            QCOMPARE(c.rope.theta, 500000.0);
            QCOMPARE(c.rope.rotary_dims, 128);
            QVERIFY(std::abs(std::pow(500000.0, -2.0 * 30 / 128) / c.rope.inverse_frequency[30] - 1.5534) <
                    1e-4);
            QCOMPARE(c.max_position, 131072);
        }
    }

    void llama() {
        Json config = base();
        config["eos_token_id"] = {128001, 128008, 128009};
        config["bos_token_id"] = 128000;
        const FolderConfig c = read(config);
        QCOMPARE(c.model.family, std::string("Llama"));
        QCOMPARE(c.model.architecture, std::string("LlamaForCausalLM"));
        QCOMPARE(c.model.head_dim, 128);
        QCOMPARE(c.model.kv_heads, 8);
        QCOMPARE(c.model.rope.type, std::string("default"));
        QCOMPARE(c.model.rope.theta, 10000.0);
        QVERIFY((c.model.eos_ids == std::vector<std::int32_t>{128001, 128008, 128009}));
        QCOMPARE(c.model.bos_id, 128000);
        QVERIFY(!c.qkv_bias && !c.o_bias && !c.mlp_bias && !c.model.tied_embedding && c.model.window.empty());
        QVERIFY(c.model.activation == Activation::silu);
    }

    void defaults_of_missing_keys() {
        Json config = base();
        for (const char* key : {"num_key_value_heads", "rms_norm_eps", "max_position_embeddings"})
            config.erase(key);
        config["head_dim"] = nullptr;
        const ModelConfig c = read(config).model;
        QCOMPARE(c.kv_heads, 32);
        QCOMPARE(c.norm_eps, 1e-6F);
        QCOMPARE(c.max_position, 2048);
        QCOMPARE(c.head_dim, 128);
        QCOMPARE(c.bos_id, 1);
        QVERIFY((c.eos_ids == std::vector<std::int32_t>{2}));
        config["eos_token_id"] = nullptr;
        config["bos_token_id"] = nullptr;
        QVERIFY(read(config).model.eos_ids.empty());
        QCOMPARE(read(config).model.bos_id, -1);
        config.erase("architectures");
        config["model_type"] = "qwen2";
        QCOMPARE(read(config).model.family, std::string("Qwen2"));
    }

    void mistral() {
        Json config = base("MistralForCausalLM");
        config["sliding_window"] = 4096;
        const ModelConfig windowed = read(config).model;
        QCOMPARE(windowed.window.size(), 32U);
        QVERIFY(std::all_of(windowed.window.begin(), windowed.window.end(), [](int w) { return w == 4096; }));
        config["sliding_window"] = nullptr;
        QVERIFY(read(config).model.window.empty());
        config["hidden_size"] = 5120;  // Nemo: heads · head_dim ≠ hidden
        config["head_dim"] = 128;
        QCOMPARE(read(config).model.head_dim, 128);
        config["attention_bias"] = true;  // no such setting in this family
        QVERIFY(!read(config).qkv_bias);
    }

    void qwen2() {
        Json config = base("Qwen2ForCausalLM");
        config.update({{"use_sliding_window", false}, {"sliding_window", 131072}, {"max_window_layers", 28}});
        QVERIFY(read(config).qkv_bias && !read(config).o_bias && !read(config).mlp_bias);
        QVERIFY(read(config).model.window.empty());
        config["use_sliding_window"] = true;
        const auto window = read(config).model.window;
        QCOMPARE(window[27], 0);
        QCOMPARE(window[28], 131072);
        std::vector<std::string> types(32, "full_attention");
        types[3] = "sliding_attention";
        config["layer_types"] = types;
        QCOMPARE(read(config).model.window[3], 131072);
        QCOMPARE(read(config).model.window[28], 0);
        types[3] = "linear_attention";
        config["layer_types"] = types;
        check_refused(config, "the layer type \"linear_attention\" is not supported");
        types.pop_back();
        config["layer_types"] = types;
        check_refused(config, "\"layer_types\" should have 32 entries, found 31");
    }

    void longer_contexts_by_scaling() {
        Json config = base("Qwen2ForCausalLM");
        config["max_position_embeddings"] = 32768;
        config["rope_scaling"] = {
            {"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}};
        QCOMPARE(read(config).model.max_position, 131072);
        config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
        QCOMPARE(read(config).model.max_position, 65536);
        config["rope_scaling"] = {{"rope_type", "default"}};
        QCOMPARE(read(config).model.max_position, 32768);
        config["rope_scaling"] = nullptr;
        config["partial_rotary_factor"] = 0.5;
        QCOMPARE(read(config).model.rope.rotary_dims, 64);
    }

    void refuses_by_name_data() {
        QTest::addColumn<QByteArray>("patch");
        QTest::addColumn<QString>("fragment");
        const auto row = [](const char* name, const char* patch, const char* fragment) {
            QTest::newRow(name) << QByteArray(patch) << fragment;
        };
        row("architecture", R"({"architectures":["MambaForCausalLM"]})",
            "\"MambaForCausalLM\" is not supported; supported are LlamaForCausalLM, MistralForCausalLM, "
            "Qwen2ForCausalLM");
        row("no architecture", R"({"architectures":[]})", "\"architectures\" is missing");
        row("activation", R"({"hidden_act":"relu"})", "the activation \"relu\" is not supported");
        row("rope", R"({"rope_scaling":{"type":"mrope"}})",
            "rope scaling of type \"mrope\" is not supported");
        row("rope per layer type",
            R"({"rope_parameters":{"full_attention":{"rope_type":"spiral"},"rope_type":"x"}})",
            "rope scaling of type \"spiral\" is not supported");
        row("zero", R"({"hidden_size":0})", "\"hidden_size\" should be 1 to");
        row("negative", R"({"num_hidden_layers":-3})", "found -3");
        row("absurd", R"({"vocab_size":99999999999})", "found 99999999999");
        row("beyond 64 bits", R"({"vocab_size":99999999999999999999})",
            "\"vocab_size\" should be a whole number");
        row("fraction", R"({"hidden_size":4096.5})",
            "\"hidden_size\" should be a whole number, found \"4096.5\"");
        row("string", R"({"hidden_size":"4096"})", "\"hidden_size\" should be a whole number");
        row("heads", R"({"num_key_value_heads":5})", "found 32 and 5");
        row("head size", R"({"head_dim":20})", "multiple of 8 from 8 to 4096, found 20");
        row("tie", R"({"tie_word_embeddings":1})", "\"tie_word_embeddings\" should be true or false");
        row("eos", R"({"eos_token_id":["x"]})",
            "\"eos_token_id\" should be a whole number or a list of them");
        row("partial", R"({"partial_rotary_factor":2})", "should be greater than 0 and at most 1");
        row("scaling", R"({"rope_scaling":[1]})", "\"rope_scaling\" should be an object");
        row("epsilon", R"({"rms_norm_eps":-1})", "epsilon");
    }
    void refuses_by_name() {
        QFETCH(QByteArray, patch);
        QFETCH(QString, fragment);
        Json config = base();
        config.update(Json::parse(patch.toStdString()));
        check_refused(config, fragment.toStdString());
    }

    void refuses_missing_sizes() {
        for (const char* key :
             {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}) {
            Json config = base();
            config.erase(key);
            check_refused(config, std::string("\"") + key + "\" is missing");
        }
    }

    void refuses_bad_json() {
        const auto check = [](const std::string& text, const std::string& fragment) {
            check_refusal([&] { (void)read_folder_config(text, "config.json"); }, "config.json: ", fragment);
        };
        check("", "valid JSON was expected");
        check("{\"a\":", "valid JSON was expected");
        check("[]", "a JSON object was expected, found array");
        check("{\"a\":1,\"a\":2}", "the key \"a\" occurs twice");
        check("{\"a\":{\"b\":1,\"b\":2}}", "the key \"b\" occurs twice");
        check("{\"a\":\"\xFF\"}", "valid JSON was expected");
        check("{\"a\":1e999}", "valid JSON was expected");
        check(std::string("{}\0", 3), "zero byte");
        check(std::string(100000, '['), "nested more than 100 deep");
    }

    void generation_config() {
        ModelConfig model;
        model.vocab = 100;
        model.eos_ids = {2};
        const auto d = read_generation_config(
            R"({"eos_token_id":[2,7,500],"temperature":0.6,"top_p":0.9,"top_k":20,"repetition_penalty":1.05})",
            "generation_config.json", model);
        QVERIFY((model.eos_ids == std::vector<std::int32_t>{2, 7}));  // 500 is no token of this model
        QCOMPARE(d.temperature, 0.6);
        QCOMPARE(d.top_p, 0.9);
        QCOMPARE(d.top_k, 20);
        QCOMPARE(d.repetition_penalty, 1.05);
        QCOMPARE(d.min_p, -1.0);
        QCOMPARE(d.source, std::string("generation_config.json"));
        QVERIFY(
            read_generation_config(R"({"eos_token_id":7})", "generation_config.json", model).source.empty());
    }
};

RECTO_TEST_CLASS(TestFolderConfig);
#include "test_folder_config.moc"
