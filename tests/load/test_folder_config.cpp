// config.json in today's spelling (transformers 5) and the older one, family by family, and what is refused.
// Defaults of missing keys are those of transformers 5.24's configuration classes.
#include <QTest>
#include <algorithm>
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

    void qwen3() {
        Json config = base("Qwen3ForCausalLM");
        const FolderConfig c = read(config);
        QVERIFY(c.model.qk_norm == QkNorm::per_head && c.model.window.empty() && !c.qkv_bias);
        config["hidden_size"] = 1024;  // the class has 128 as its head size, whatever hidden / heads is
        config["num_attention_heads"] = 16;
        QCOMPARE(read(config).model.head_dim, 128);
        config["attention_bias"] = true;
        QVERIFY(read(config).qkv_bias && read(config).o_bias && !read(config).mlp_bias);
    }

    // The published configuration of gemma-2-2b, shortened.
    void gemma2() {
        Json config = base("Gemma2ForCausalLM");
        config.update({{"hidden_size", 2304},
                       {"num_hidden_layers", 26},
                       {"num_attention_heads", 8},
                       {"num_key_value_heads", 4},
                       {"head_dim", 256},
                       {"hidden_act", "gelu"},
                       {"torch_dtype", "bfloat16"}});
        const ModelConfig c = read(config).model;
        QVERIFY(c.norm_plus_one && c.post_norms && c.pre_norms && c.tied_embedding);
        QVERIFY(c.activation == Activation::gelu_tanh && c.qk_norm == QkNorm::none);
        QCOMPARE(c.attention_softcap, 50.0F);
        QCOMPARE(c.logits_softcap, 30.0F);
        QCOMPARE(c.attention_scale, 1.0F / 16.0F);
        QCOMPARE(c.embedding_scale, 48.0F);
        QCOMPARE(c.window.size(), 26U);
        for (std::size_t i = 0; i < 26; ++i)
            QCOMPARE(c.window[i], i % 2 == 0 ? 4096 : 0);
        QCOMPARE(c.rope_local.rotary_dims, 0);
        config["query_pre_attn_scalar"] = 144;
        QCOMPARE(read(config).model.attention_scale, 1.0F / 12.0F);
        config["attn_logit_softcapping"] = nullptr;
        QCOMPARE(read(config).model.attention_softcap, 0.0F);
    }

    // The scale of the embedding for bfloat16 models, as the reference lists it.
    void gemma_embedding_scales() {
        const std::pair<int, float> scales[] = {{640, 25.25F}, {1152, 34.0F}, {2048, 45.25F},
                                                {2560, 50.5F}, {3072, 55.5F}, {3584, 59.75F},
                                                {3840, 62.0F}, {4608, 68.0F}, {5376, 73.5F}};
        for (const auto& [hidden, scale] : scales) {
            Json config = base("Gemma3ForCausalLM");
            config.update({{"hidden_size", hidden}, {"head_dim", 256}, {"dtype", "bfloat16"}});
            QCOMPARE(read(config).model.embedding_scale, scale);
            config.erase("dtype");
            QCOMPARE(read(config).model.embedding_scale, std::sqrt(float(hidden)));
        }
    }

    // gemma-3-4b-it names almost nothing of its decoder; the rest are the class's defaults.
    void gemma3_beside_an_image_encoder() {
        const Json config = {{"architectures", {"Gemma3ForConditionalGeneration"}},
                             {"eos_token_id", {1, 106}},
                             {"torch_dtype", "bfloat16"},
                             {"text_config",
                              {{"hidden_size", 2560},
                               {"intermediate_size", 10240},
                               {"num_hidden_layers", 34},
                               {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                               {"sliding_window", 1024}}}};
        const ModelConfig c = read(config).model;
        QCOMPARE(c.vocab, 262208);
        QCOMPARE(c.heads, 8);
        QCOMPARE(c.kv_heads, 4);
        QCOMPARE(c.head_dim, 256);
        QCOMPARE(c.embedding_scale, 50.5F);
        QVERIFY((c.eos_ids == std::vector<std::int32_t>{1, 106}));
        QCOMPARE(c.bos_id, 2);
        QCOMPARE(c.rope.type, std::string("linear"));
        QCOMPARE(c.rope.theta, 1e6);
        QCOMPARE(c.rope.inverse_frequency[0], 0.125F);
        QCOMPARE(c.rope_local.type, std::string("default"));
        QCOMPARE(c.rope_local.theta, 1e4);
        QCOMPARE(c.max_position, 131072);  // as published: not 8 times as long
        QCOMPARE(c.attention_softcap, 0.0F);
        for (std::size_t i = 0; i < 34; ++i)
            QCOMPARE(c.window[i], (i + 1) % 6 == 0 ? 0 : 1024);
        Json without = config;
        without.erase("text_config");
        check_refused(without, "\"text_config\" is missing");
        Json both_ways = config;
        both_ways["text_config"]["use_bidirectional_attention"] = true;
        check_refused(both_ways, "attends to what follows");
    }

    void phi3() {
        Json config = base("Phi3ForCausalLM");
        config.update({{"hidden_size", 3072},
                       {"num_attention_heads", 32},
                       {"num_key_value_heads", 32},
                       {"original_max_position_embeddings", 4096},
                       {"sliding_window", 262144}});
        const std::vector<double> factors(48, 2.0), short_factors(48, 1.0);
        for (const char* type : {"su", "yarn", "longrope"}) {  // its names in the order of time
            config["rope_scaling"] = {
                {"type", type}, {"long_factor", factors}, {"short_factor", short_factors}};
            const ModelConfig c = read(config).model;
            QVERIFY(c.fused_tensors);
            QCOMPARE(c.rope.type, std::string("longrope"));
            QCOMPARE(c.rope.inverse_frequency[0], 0.5F);
            QVERIFY(std::abs(c.rope.attention_factor - 1.19024F) < 1e-5F);  // √(1 + ln 32 ÷ ln 4096)
            QCOMPARE(c.window.front(), 262144);
        }
        // Phi-4-mini: three quarters of each head rotate, and the original length is the class's default.
        config.erase("original_max_position_embeddings");
        config["partial_rotary_factor"] = 0.75;
        config["rope_scaling"]["long_factor"] = std::vector<double>(36, 2.0);
        config["rope_scaling"]["short_factor"] = std::vector<double>(36, 1.0);
        QCOMPARE(read(config).model.rope.rotary_dims, 72);
        QVERIFY(std::abs(read(config).model.rope.attention_factor - 1.19024F) < 1e-5F);
    }

    void olmo2() {
        const ModelConfig c = read(base("Olmo2ForCausalLM")).model;
        QVERIFY(!c.pre_norms && c.post_norms && !c.norm_plus_one && c.qk_norm == QkNorm::all_heads);
    }

    void granite() {
        Json config = base("GraniteForCausalLM");
        config.update({{"embedding_multiplier", 12.0},
                       {"attention_multiplier", 0.015625},
                       {"residual_multiplier", 0.22},
                       {"logits_scaling", 8.0}});
        const ModelConfig c = read(config).model;
        QCOMPARE(c.embedding_scale, 12.0F);
        QCOMPARE(c.attention_scale, 0.015625F);
        QCOMPARE(c.residual_scale, 0.22F);
        QCOMPARE(c.logits_scale, 0.125F);
        config["residual_multiplier"] = 0;
        check_refused(config, "\"residual_multiplier\" should be 0.000001 to 1000000, found 0");
    }

    void smollm3() {
        Json config = base("SmolLM3ForCausalLM");
        const ModelConfig c = read(config).model;
        QCOMPARE(c.unrotated.size(), 32U);
        for (std::size_t i = 0; i < 32; ++i)
            QCOMPARE(int(c.unrotated[i]), i % 4 == 3 ? 1 : 0);
        QCOMPARE(c.rope.theta, 2e6);
        config["no_rope_layers"] = std::vector<int>(32, 1);
        config["no_rope_layers"][5] = 0;
        const auto listed = read(config).model.unrotated;
        QVERIFY(listed[5] == 1 && std::count(listed.begin(), listed.end(), 1) == 1);
        config["no_rope_layers"] = {1, 0};
        check_refused(config, "\"no_rope_layers\" should have 32 entries, found 2");
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
