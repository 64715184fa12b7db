// Mixtures of experts as the readers see them: settings of config.json and GGUF, and one expert's rows of a
// tensor that holds all. Defaults of missing keys are those of transformers 5.24's configuration classes.
#include <QTest>
#include <nlohmann/json.hpp>

#include "engine/load/folder_config.h"
#include "engine/load/gguf_files.h"
#include "engine/load/gguf_source.h"
#include "engine/load/name_map.h"
#include "load/gguf_builder.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

using Json = nlohmann::ordered_json;

Json base(const char* architecture) {
    return {{"architectures", {architecture}},
            {"hidden_size", 2048},
            {"intermediate_size", 6144},
            {"num_hidden_layers", 6},
            {"num_attention_heads", 32},
            {"num_key_value_heads", 4},
            {"head_dim", 128},
            {"vocab_size", 151936}};
}

ModelConfig read(const Json& config) {
    return read_folder_config(config.dump(), "config.json").model;
}

// 3 experts of 8 in place of small_model's MLP; element i of each tensor is i / 64.
GgufBuilder small_mixture(const std::string& architecture) {
    auto b = small_model(architecture);
    for (const char* dense : {"blk.0.ffn_gate.weight", "blk.0.ffn_up.weight", "blk.0.ffn_down.weight"})
        b.drop_tensor(dense);
    b.counted_tensor("blk.0.ffn_gate_inp.weight", {16, 3})
        .counted_tensor("blk.0.ffn_gate_exps.weight", {16, 8, 3});
    b.counted_tensor("blk.0.ffn_up_exps.weight", {16, 8, 3})
        .counted_tensor("blk.0.ffn_down_exps.weight", {8, 16, 3});
    b.u32(architecture + ".expert_count", 3).u32(architecture + ".expert_used_count", 2);
    b.u32(architecture + ".expert_feed_forward_length", 8);
    return b;
}

std::unique_ptr<ModelSource> open(const std::string& bytes) {
    return make_gguf_source(std::make_shared<const GgufFiles>(bytes_of(bytes), "m.gguf"), "m.gguf");
}

}  // namespace

class TestMixtureSource : public QObject {
    Q_OBJECT

  private slots:
    void mixtral_settings() {
        Json config = base("MixtralForCausalLM");
        ModelConfig c = read(config);
        QCOMPARE(c.family, std::string("Mixtral"));
        QCOMPARE(c.experts.count, 8);
        QCOMPARE(c.experts.per_token, 2);
        QCOMPARE(c.experts.intermediate, 6144);
        QVERIFY(c.experts.renormalize && c.window.empty());
        QVERIFY(c.is_mixture(0) && c.is_mixture(5));
        config.update({{"num_local_experts", 16}, {"num_experts_per_tok", 4}, {"sliding_window", 4096}});
        c = read(config);
        QCOMPARE(c.experts.count, 16);
        QCOMPARE(c.experts.per_token, 4);
        QCOMPARE(c.window[3], 4096);
    }

    void qwen3_settings() {
        Json config = base("Qwen3MoeForCausalLM");
        ModelConfig c = read(config);
        QCOMPARE(c.experts.count, 128);
        QCOMPARE(c.experts.per_token, 8);
        QCOMPARE(c.experts.intermediate, 768);
        QVERIFY(!c.experts.renormalize && c.window.empty() && c.qk_norm == QkNorm::per_head);
        QVERIFY((c.experts.layers == std::vector<bool>(6, true)));
        // The names of transformers 4 ("num_experts") and 5 ("num_local_experts").
        for (const char* key : {"num_experts", "num_local_experts"}) {
            Json named = config;
            named[key] = 64;
            QCOMPARE(read(named).experts.count, 64);
        }
        config.update({{"decoder_sparse_step", 2}, {"mlp_only_layers", {3}}, {"norm_topk_prob", true}});
        c = read(config);
        QVERIFY((c.experts.layers == std::vector<bool>{false, true, false, false, false, true}));
        QVERIFY(c.experts.renormalize);
        config.update({{"use_sliding_window", true}, {"sliding_window", 512}});
        QCOMPARE(read(config).window[0], 512);
    }

    void refuses_by_name() {
        const auto check = [](const char* architecture, const Json& patch, const char* fragment) {
            Json config = base(architecture);
            config.update(patch);
            check_refusal([&] { (void)read(config); }, "config.json: ", fragment);
        };
        check("MixtralForCausalLM", {{"num_experts_per_tok", 9}}, "at most all of the 8 experts, found 9");
        check("MixtralForCausalLM", {{"num_local_experts", 0}}, "\"num_local_experts\" should be 1 to");
        check("Qwen3MoeForCausalLM", {{"moe_intermediate_size", -1}},
              "\"moe_intermediate_size\" should be 1 to");
        check("Qwen3MoeForCausalLM", {{"decoder_sparse_step", 0}}, "\"decoder_sparse_step\" should be 1 to");
    }

    void names_follow_the_family() {
        ModelConfig c = read(base("MixtralForCausalLM"));
        const auto name = [&](TensorRole role) { return huggingface_place(role, 4, c, 7).name; };
        QCOMPARE(name(TensorRole::ffn_router), std::string("model.layers.4.block_sparse_moe.gate"));
        QCOMPARE(name(TensorRole::expert_gate), std::string("model.layers.4.block_sparse_moe.experts.7.w1"));
        QCOMPARE(name(TensorRole::expert_up), std::string("model.layers.4.block_sparse_moe.experts.7.w3"));
        QCOMPARE(name(TensorRole::expert_down), std::string("model.layers.4.block_sparse_moe.experts.7.w2"));
        QVERIFY(name(TensorRole::ffn_gate).empty());
        c.experts.stacked = true;
        const TensorPlace up = huggingface_place(TensorRole::expert_up, 4, c, 7);
        QCOMPARE(up.name, std::string("model.layers.4.mlp.experts.gate_up_proj"));
        QVERIFY((up.shape == std::vector<std::int64_t>{8, 2 * 6144, 2048}));
        QCOMPARE(up.first_row, std::int64_t(15) * 6144);
        c = read(base("Qwen3MoeForCausalLM"));
        QCOMPARE(name(TensorRole::ffn_router), std::string("model.layers.4.mlp.gate"));
        QCOMPARE(name(TensorRole::expert_down), std::string("model.layers.4.mlp.experts.7.down_proj"));
    }

    void gguf_gives_each_expert_its_rows() {
        for (const char* architecture : {"llama", "qwen3moe"}) {
            auto b = small_mixture(architecture);
            if (std::string(architecture) == "qwen3moe")
                b.counted_tensor("blk.0.attn_q_norm.weight", {8})
                    .counted_tensor("blk.0.attn_k_norm.weight", {8});
            const std::string bytes = b.bytes();
            const auto source = open(bytes);
            QVERIFY(source->config().is_mixture(0) && source->config().experts.renormalize);
            for (int e = 0; e < 3; ++e) {
                float row[16];
                const auto up = source->weight(TensorRole::expert_up, 0, e);
                QVERIFY(up->rows() == 8 && up->cols() == 16);
                up->read_f32(5, 1, row);
                QCOMPARE(row[3], float((e * 8 + 5) * 16 + 3) / 64.0F);
                const auto down = source->weight(TensorRole::expert_down, 0, e);
                QVERIFY(down->rows() == 16 && down->cols() == 8);
                down->read_f32(15, 1, row);
                QCOMPARE(row[7], float((e * 16 + 15) * 8 + 7) / 64.0F);
            }
            QCOMPARE(source->tensor_name(TensorRole::expert_up, 0, 2),
                     std::string("blk.0.ffn_up_exps.weight"));
        }
    }

    // Mixtral files of early 2024 hold "blk.0.ffn_gate.E.weight".
    void gguf_may_hold_each_expert_alone() {
        auto b = small_mixture("llama");
        for (const char* stacked : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"})
            b.drop_tensor(std::string("blk.0.") + stacked + ".weight");
        for (int e = 0; e < 3; ++e) {
            const std::string number = std::to_string(e);
            b.counted_tensor("blk.0.ffn_gate." + number + ".weight", {16, 8});
            b.f32_tensor("blk.0.ffn_up." + number + ".weight", {16, 8}, std::vector<float>(128, float(e)));
            b.counted_tensor("blk.0.ffn_down." + number + ".weight", {8, 16});
        }
        std::string bytes = b.bytes();
        const auto source = open(bytes);
        float row[16];
        for (int e = 0; e < 3; ++e) {
            source->weight(TensorRole::expert_up, 0, e)->read_f32(7, 1, row);
            QCOMPARE(row[15], float(e));
        }
        source->weight(TensorRole::expert_down, 0, 1)->read_f32(15, 1, row);
        QCOMPARE(row[7], 127.0F / 64.0F);
        QCOMPARE(source->tensor_name(TensorRole::expert_up, 0, 2), std::string("blk.0.ffn_up.2.weight"));
        b.drop_tensor("blk.0.ffn_up.1.weight");
        bytes = b.bytes();
        check_refusal([&] { (void)open(bytes); }, "m.gguf: ", "the tensor blk.0.ffn_up.1.weight is missing");
    }

    void gguf_refuses_what_it_would_get_wrong() {
        const auto check = [](auto change, const char* fragment) {
            auto b = small_mixture("llama");
            change(b);
            const std::string bytes = b.bytes();
            check_refusal([&] { (void)open(bytes); }, "m.gguf: ", fragment);
        };
        check([](GgufBuilder& b) { b.u32("llama.expert_gating_func", 2); }, "softmax");
        check([](GgufBuilder& b) { b.f32("llama.expert_weights_scale", 2.5F); }, "expert_weights_scale");
        check([](GgufBuilder& b) { b.u32("llama.expert_shared_count", 1); }, "shared experts");
        check([](GgufBuilder& b) { b.drop_tensor("blk.0.ffn_up_exps.weight"); },
              "the tensor blk.0.ffn_up_exps.weight is missing");
        // Without a router the layer is a dense one.
        check([](GgufBuilder& b) { b.drop_tensor("blk.0.ffn_gate_inp.weight"); },
              "the tensor blk.0.ffn_gate.weight is missing");
        check(
            [](GgufBuilder& b) {
                b.drop_pair("llama.expert_count");
                b.u32("llama.expert_count", 4);
            },
            "should have the shape [4, 16], found [3, 16]");
    }

    void gguf_may_leave_the_weights_as_they_are() {
        auto b = small_mixture("llama");
        b.boolean("llama.expert_weights_norm", 0);
        const std::string bytes = b.bytes();
        QVERIFY(!open(bytes)->config().experts.renormalize);
    }
};

RECTO_TEST_CLASS(TestMixtureSource);
#include "test_mixture_source.moc"
