// A GGUF model as a whole: configuration, tensors by role, row order, tokenizer, refusals.
// tiny_llama.gguf and its expected values come from gguf-py (tests/data/load/make_expected.py).
#include <QTest>
#include <cmath>
#include <cstring>

#include "engine/load/gguf_files.h"
#include "engine/load/gguf_source.h"
#include "engine/load/mapped_file.h"
#include "engine/load/name_map.h"
#include "engine/load/row_range.h"
#include "engine/load/safetensors.h"
#include "engine/load/stored_rows.h"
#include "load/gguf_builder.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

const std::filesystem::path data_folder = std::filesystem::path(RECTO_TEST_DATA) / "load";

std::unique_ptr<ModelSource> open(const std::string& bytes) {
    return make_gguf_source(std::make_shared<const GgufFiles>(bytes_of(bytes), "m.gguf"), "m.gguf");
}

void check_refused(const GgufBuilder& b, const std::string& fragment) {
    const std::string bytes = b.bytes();
    check_refusal([&] { (void)open(bytes); }, "m.gguf: ", fragment);
}

void read_everything(const ModelSource& source) {
    for_each_required_tensor(source.config(), [&](TensorRole role, int layer, int expert) {
        if (is_norm(role)) {
            (void)source.norm(role, layer);
            return;
        }
        const auto weight = source.weight(role, layer, expert);
        std::vector<float> values(std::size_t(weight->rows() * weight->cols()));
        weight->read_f32(0, weight->rows(), values.data());
    });
}

void check_equal(std::span<const float> values, const SafeTensor* expected, const std::string& name) {
    QVERIFY2(expected != nullptr, name.c_str());
    QCOMPARE(values.size() * 4, expected->data.size());
    QVERIFY2(std::memcmp(values.data(), expected->data.data(), expected->data.size()) == 0, name.c_str());
}

}  // namespace

class TestGgufModel : public QObject {
    Q_OBJECT

  private slots:
    void gives_hugging_faces_rows() {
        const auto source = open_model(data_folder / "tiny_llama.gguf");
        const MappedFile file(data_folder / "tiny_llama_expected.safetensors");
        const Safetensors expected(file.bytes(), "expected");
        const ModelConfig& config = source->config();
        std::size_t seen = 0;
        for_each_required_tensor(config, [&](TensorRole role, int layer, int expert) {
            const std::string name = huggingface_place(role, layer, config, expert).name;
            ++seen;
            if (is_norm(role)) {
                check_equal(source->norm(role, layer), expected.find(name + ".weight"), name);
                return;
            }
            const auto weight = source->weight(role, layer, expert);
            std::vector<float> values(std::size_t(weight->rows() * weight->cols()));
            weight->read_f32(0, weight->rows(), values.data());
            check_equal(values, expected.find(name + ".weight"), name);
            if (weight->bias().empty()) return;
            ++seen;
            check_equal(weight->bias(), expected.find(name + ".bias"), name + ".bias");
        });
        QCOMPARE(seen, expected.tensors().size());
        QVERIFY(source->weight(TensorRole::lm_head) == nullptr);
        QVERIFY(source->norm(TensorRole::attn_q_norm, 0).empty());
    }

    void reads_the_configuration() {
        const auto source = open_model(data_folder / "tiny_llama.gguf");
        const ModelConfig& c = source->config();
        QCOMPARE(c.architecture, std::string("llama"));
        QCOMPARE(c.name, std::string("Tiny Llama"));
        QCOMPARE(c.hidden, 32);
        QCOMPARE(c.layers, 2);
        QCOMPARE(c.heads, 4);
        QCOMPARE(c.kv_heads, 2);
        QCOMPARE(c.head_dim, 8);
        QCOMPARE(c.intermediate, 40);
        QCOMPARE(c.vocab, 19);
        QCOMPARE(c.norm_eps, 1e-5F);
        QCOMPARE(c.max_position, 128);
        QVERIFY(c.tied_embedding && c.window.empty());
        QCOMPARE(c.bos_id, 0);
        QVERIFY(c.eos_ids == std::vector<std::int32_t>{1});
        QCOMPARE(c.rope.type, std::string("default"));
        QCOMPARE(c.rope.inverse_frequency.size(), 4U);
        for (std::size_t i = 0; i < 4; ++i)
            QCOMPARE(c.rope.inverse_frequency[i], float(std::pow(10.0, -double(i))));  // 10000^(−2i/8)
        QCOMPARE(source->format(), std::string("GGUF"));
        QCOMPARE(source->quantization(), std::string("none (F16)"));
        QCOMPARE(source->tensor_name(TensorRole::attn_q, 1), std::string("blk.1.attn_q.weight"));
        QCOMPARE(source->file_bytes(), std::filesystem::file_size(data_folder / "tiny_llama.gguf"));
    }

    void reads_the_vocabulary() {
        const TokenizerFiles files = open_tokenizer_files(data_folder / "tiny_llama.gguf");
        QVERIFY(files.tokenizer_json.empty() && files.sentencepiece_model.empty());
        const auto& v = files.gguf.value();
        QCOMPARE(v.model, std::string("gpt2"));
        QCOMPARE(v.pre, std::string("smollm"));
        QCOMPARE(v.tokens.size(), 19U);
        QCOMPARE(v.tokens[18], std::string("token18"));
        QCOMPARE(v.types[0], 3);
        QVERIFY((v.merges == std::vector<std::string>{"a b", "c d"}));
        QCOMPARE(v.bos, 0);
        QCOMPARE(v.eos, 1);
        QVERIFY(!v.add_bos);
        QCOMPARE(files.chat_template, std::string("{{ messages }}"));
        QCOMPARE(files.chat_template_source, std::string("GGUF"));
    }

    void qwen2_rows_stay_where_they_are() {
        auto b = small_model("qwen2");
        b.counted_tensor("blk.0.attn_q.bias", {16});
        const std::string bytes = b.bytes();
        const auto source = open(bytes);
        const auto q = source->weight(TensorRole::attn_q);
        float row[16];
        q->read_f32(1, 1, row);
        QCOMPARE(row[0], 16.0F / 64.0F);
        QCOMPARE(q->bias()[1], 1.0F / 64.0F);
        // The same file as "llama": logical row 1 is file row 2.
        auto llama = small_model("llama");
        llama.counted_tensor("blk.0.attn_q.bias", {16});
        const std::string llama_bytes = llama.bytes();
        const auto permuted = open(llama_bytes)->weight(TensorRole::attn_q);
        permuted->read_f32(1, 1, row);
        QCOMPARE(row[0], 32.0F / 64.0F);
        QCOMPARE(permuted->bias()[1], 2.0F / 64.0F);
    }

    // What no key says follows from the family, as in llama.cpp.
    void infers_what_gemma_files_leave_out() {
        auto b = small_model("gemma2");
        b.f32("gemma2.attn_logit_softcapping", 40.0F);
        b.counted_tensor("blk.0.post_attention_norm.weight", {16});
        b.counted_tensor("blk.0.post_ffw_norm.weight", {16});
        std::string bytes = b.bytes();
        auto c = open(bytes)->config();
        QCOMPARE(c.attention_softcap, 40.0F);
        QCOMPARE(c.logits_softcap, 30.0F);
        QCOMPARE(c.embedding_scale, 4.0F);
        QCOMPARE(c.attention_scale, 0.0F);  // 1 / sqrt(head size)
        QVERIFY(!c.norm_plus_one && c.window == std::vector<int>{4096});
        b = small_model("gemma3");
        for (const char* norm : {"attn_q_norm", "attn_k_norm"})
            b.counted_tensor(std::string("blk.0.") + norm + ".weight", {8});
        for (const char* norm : {"post_attention_norm", "post_ffw_norm"})
            b.counted_tensor(std::string("blk.0.") + norm + ".weight", {16});
        b.u32("gemma3.attention.sliding_window", 32).f32("gemma3.rope.freq_base", 1e6F);
        bytes = b.bytes();
        c = open(bytes)->config();
        QCOMPARE(c.rope.theta, 1e6);
        QCOMPARE(c.rope_local.theta, 1e4);
        QVERIFY(c.window == std::vector<int>{32});
    }

    void a_fused_tensor_shows_each_roles_rows() {
        auto b = small_model("phi3");
        for (const char* name : {"attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up"})
            b.drop_tensor(std::string("blk.0.") + name + ".weight");
        b.counted_tensor("blk.0.attn_qkv.weight", {16, 32}).counted_tensor("blk.0.attn_qkv.bias", {32});
        b.counted_tensor("blk.0.ffn_up.weight", {16, 48});
        const std::string bytes = b.bytes();
        const auto source = open(bytes);
        const std::tuple<TensorRole, int, int> parts[] = {{TensorRole::attn_q, 0, 16},
                                                          {TensorRole::attn_k, 16, 8},
                                                          {TensorRole::attn_v, 24, 8},
                                                          {TensorRole::ffn_gate, 0, 24},
                                                          {TensorRole::ffn_up, 24, 24}};
        for (const auto& [role, first, rows] : parts) {
            const auto weight = source->weight(role);
            QCOMPARE(weight->rows(), rows);
            float row[16];
            weight->read_f32(rows - 1, 1, row);
            QCOMPARE(row[3], float((first + rows - 1) * 16 + 3) / 64.0F);
            if (role == TensorRole::attn_k) {
                QCOMPARE(weight->bias().size(), 8U);
                QCOMPARE(weight->bias()[2], 18.0F / 64.0F);
            }
        }
        QCOMPARE(source->tensor_name(TensorRole::attn_k, 0), std::string("blk.0.attn_qkv.weight"));
        auto short_one = small_model("phi3");
        short_one.counted_tensor("blk.0.attn_qkv.weight", {16, 31});
        check_refused(short_one, "blk.0.attn_qkv.weight should have the shape [32, 16], found [31, 16]");
    }

    // Planes of a range are the whole's planes from its first row on, in a quantized form too.
    void a_range_of_quantized_rows() {
        constexpr int rows = 7, cols = 64, groups = cols / 32;
        std::string bytes(std::size_t(rows * groups * 20), '\0');  // Q4_1: 2 + 2 + 16 bytes a group
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = char(i * 37 % 251);
        const auto make = [&] {
            StoredMatrix matrix;
            matrix.data = std::as_bytes(std::span(bytes));
            matrix.rows = rows;
            matrix.cols = cols;
            for (int r = 0; r < rows; ++r)
                matrix.bias.push_back(float(r));
            return make_gguf_rows(GgufType::q4_1, std::move(matrix));
        };
        const auto whole = make();
        const auto range = make_row_range(make(), 2, 4);
        QCOMPARE(range->rows(), 4);
        QCOMPARE(range->bias()[0], 2.0F);
        QCOMPARE(range->bias().size(), 4U);
        std::vector<std::uint8_t> q(2 * cols), q_whole(2 * cols);
        std::vector<float> scale(2 * groups), scale_whole(2 * groups), values(2 * cols),
            values_whole(2 * cols);
        WeightPlanes planes, planes_whole;
        planes.q = q.data();
        planes.scale = scale.data();
        planes_whole.q = q_whole.data();
        planes_whole.scale = scale_whole.data();
        range->read(1, 2, planes);
        whole->read(3, 2, planes_whole);
        range->read_f32(1, 2, values.data());
        whole->read_f32(3, 2, values_whole.data());
        QVERIFY(q == q_whole);
        QVERIFY(std::memcmp(scale.data(), scale_whole.data(), scale.size() * sizeof(float)) == 0);
        QVERIFY(std::memcmp(values.data(), values_whole.data(), values.size() * sizeof(float)) == 0);
    }

    void weights_outlive_their_source() {
        auto source = open_model(data_folder / "tiny_llama.gguf");
        const auto weight = source->weight(TensorRole::attn_o, 1);
        std::vector<float> before(32), after(32);
        weight->read_f32(3, 1, before.data());
        source.reset();
        weight->read_f32(3, 1, after.data());
        QVERIFY(before == after);
    }

    void scales_rope() {
        auto b = small_model("llama");
        b.f32_tensor("rope_freqs.weight", {4}, {1, 2, 4, 8});
        std::string bytes = b.bytes();
        auto rope = open(bytes)->config().rope;
        QCOMPARE(rope.type, std::string("llama3"));
        for (int i = 0; i < 4; ++i)
            QCOMPARE(rope.inverse_frequency[std::size_t(i)], float(std::pow(10.0, -i) / std::pow(2.0, i)));

        b = small_model("llama");
        b.text("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 4.0F);
        bytes = b.bytes();
        rope = open(bytes)->config().rope;
        QCOMPARE(rope.inverse_frequency[1], 0.025F);

        b = small_model("llama");
        b.text("llama.rope.scaling.type", "yarn").f32("llama.rope.scaling.factor", 4.0F);
        b.u32("llama.rope.scaling.original_context_length", 16).f32("llama.rope.scaling.attn_factor", 0.5F);
        bytes = b.bytes();
        QCOMPARE(open(bytes)->config().rope.attention_factor, float(0.1 * std::log(4.0) + 1.0) * 0.5F);

        b = small_model("llama");
        b.text("llama.rope.scaling.type", "none").f32("llama.rope.scaling.factor", 0.0F);
        bytes = b.bytes();
        QCOMPARE(open(bytes)->config().rope.type, std::string("default"));

        b = small_model("llama");
        b.text("llama.rope.scaling.type", "spiral");
        check_refused(b, "rope scaling of type \"spiral\" is not supported");
        b = small_model("llama");
        b.f32_tensor("rope_freqs.weight", {3}, {1, 2, 4});
        check_refused(b, "rope_freqs.weight should hold 4 F32 numbers, found 3");
        b = small_model("llama");
        b.f32_tensor("rope_freqs.weight", {4}, {1, 2, 0, 8});
        check_refused(b, "rope_freqs.weight should hold numbers greater than 0");
    }

    void refuses_unfit_models_data() {
        QTest::addColumn<QString>("key");
        QTest::addColumn<qint64>("value");
        QTest::addColumn<QString>("fragment");
        const auto row = [](const char* key, qint64 value, const char* fragment) {
            QTest::addRow("%s %lld", key, value) << key << value << fragment;
        };
        row("block_count", 0, "llama.block_count should be 1 to");
        row("block_count", 4000000000LL, "found 4000000000");
        row("block_count", 2, "the tensor blk.1.attn_norm.weight is missing");
        row("embedding_length", 32, "token_embd.weight should have the shape [5, 32], found [5, 16]");
        row("feed_forward_length", 32,
            "blk.0.ffn_gate.weight should have the shape [32, 16], found [24, 16]");
        row("context_length", 0, "llama.context_length should be 1 to");
        row("attention.head_count", 3, "the head size should be a multiple of 8 from 8 to 4096, found 5");
        row("attention.head_count", 0, "llama.attention.head_count should be 1 to");
        row("attention.head_count_kv", 3,
            "should be a multiple of the number of key/value heads, found 2 and 3");
        row("attention.key_length", 16, "keys and values of equal size");
        row("rope.dimension_count", 16, "at most the head size of 8 dimensions can rotate, found 16");
        row("rope.dimension_count", 7, "should be even");
        row("expert_count", 8, "the key llama.expert_used_count is missing");
        row("expert_count", -1, "llama.expert_count should be 0 to");
    }
    void refuses_unfit_models() {
        QFETCH(QString, key);
        QFETCH(qint64, value);
        QFETCH(QString, fragment);
        auto b = small_model("llama");
        const std::string name = "llama." + key.toStdString();
        b.drop_pair(name);
        if (key == "attention.key_length") b.u32("llama.attention.value_length", 8);
        b.u32(name, std::uint32_t(value));
        check_refused(b, fragment.toStdString());
    }

    void refuses_missing_and_unknown_things() {
        for (const char* key : {"block_count", "context_length", "embedding_length", "feed_forward_length",
                                "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
            auto b = small_model("llama");
            b.drop_pair(std::string("llama.") + key);
            check_refused(b, std::string("the key llama.") + key + " is missing");
        }
        for (const char* tensor : {"token_embd.weight", "output_norm.weight", "blk.0.attn_v.weight"}) {
            auto b = small_model("llama");
            b.drop_tensor(tensor);
            check_refused(b, std::string("the tensor ") + tensor + " is missing");
        }
        auto b = small_model("gptneox");
        check_refused(
            b, "the architecture \"gptneox\" is not supported; supported in GGUF files are llama, qwen2");
        b = small_model("llama");
        b.drop_pair("general.architecture");
        check_refused(b, "general.architecture is missing");
        b = GgufBuilder();
        b.text("general.architecture", "llama");
        check_refused(b, "the key llama.block_count is missing");
        b = small_model("llama");
        b.tensors.clear();
        check_refused(b, "a vocabulary only");
        b = small_model("llama");
        b.tensor("token_embd.weight").dims = {16, 5, 2};
        b.tensor("token_embd.weight").data.append(16 * 5 * 4, '\0');
        check_refused(b, "token_embd.weight should have the shape [5, 16], found [2, 5, 16]");
        b = small_model("llama");
        b.counted_tensor("blk.0.attn_q.bias", {8});
        const std::string bytes = b.bytes();
        check_refusal([&] { (void)open(bytes)->weight(TensorRole::attn_q); },
                      "m.gguf: ", "blk.0.attn_q.bias should have the shape [16], found [8]");
    }

    void vocabulary_only_files_open_as_tokenizers() {
        GgufBuilder b;
        b.text("general.architecture", "llama").text("tokenizer.ggml.model", "llama");
        b.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a"});
        b.array<float>("tokenizer.ggml.scores", 6, {0, 0, 0, -1});
        b.array<std::int32_t>("tokenizer.ggml.token_type", 5, {2, 3, 3, 1});
        b.u32("tokenizer.ggml.padding_token_id", 4);  // outside the vocabulary
        const Scratch scratch;
        const auto path = scratch.write("v.gguf", b.bytes());
        const auto v = open_tokenizer_files(path).gguf.value();
        QVERIFY(v.add_bos && v.add_space_prefix && !v.add_eos);  // llama.cpp's defaults for SentencePiece
        QCOMPARE(v.bos, 1);
        QCOMPARE(v.eos, 2);
        QCOMPARE(v.unknown, 0);
        QCOMPARE(v.padding, -1);
        QCOMPARE(v.scores[3], -1.0F);
        check_refusal([&] { (void)open_model(path); }, path.string(), "is missing");
    }

    void refuses_vocabularies_that_do_not_fit() {
        const Scratch scratch;
        const auto check = [&](const GgufBuilder& b, const std::string& fragment) {
            const auto path = scratch.write("v.gguf", b.bytes());
            check_refusal([&] { (void)open_tokenizer_files(path); }, path.string(), fragment);
        };
        GgufBuilder b;
        b.text("tokenizer.ggml.model", "llama");
        check(b, "tokenizer.ggml.tokens is missing");
        b.texts("tokenizer.ggml.tokens", {"a", "b"});
        check(b, "should have tokenizer.ggml.scores");
        b.array<float>("tokenizer.ggml.scores", 6, {0});
        check(b, "tokenizer.ggml.scores should have 2 numbers, as many as tokens, found 1");
        GgufBuilder c;
        c.text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", {"a", "b"});
        c.array<std::int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 1});
        check(c, "tokenizer.ggml.token_type should have 2 numbers, as many as tokens, found 3");
        GgufBuilder d;
        d.text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", {});
        check(d, "a vocabulary was expected");
    }

    void byte_level_files_without_a_flag_get_bos_as_their_family_does() {
        for (const auto& [pre, expected] : {std::pair("llama-bpe", true), std::pair("qwen2", false)}) {
            GgufBuilder b;
            b.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", pre);
            b.texts("tokenizer.ggml.tokens", {"a"});
            const Scratch scratch;
            QCOMPARE(open_tokenizer_files(scratch.write("v.gguf", b.bytes())).gguf->add_bos, expected);
        }
    }

    void reads_sampling_defaults() {
        auto b = small_model("llama");
        b.f32("general.sampling.temp", 0.5F).pair("general.sampling.top_k", 5, Bytes().put<std::int32_t>(20));
        const std::string bytes = b.bytes();
        const auto source = open(bytes);
        QCOMPARE(source->generation_defaults().temperature, 0.5);
        QCOMPARE(source->generation_defaults().top_k, 20);
        QCOMPARE(source->generation_defaults().top_p, -1.0);
        QCOMPARE(source->generation_defaults().source, std::string("GGUF"));
    }

    // Each bit of the header flipped: refused with a sentence, or read without leaving the file.
    void survives_bit_flips() {
        auto b = small_model("llama");
        b.text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e"});
        const std::string good = b.bytes();
        const std::size_t header_bytes = good.size() - b.data_bytes();
        int refused = 0, read = 0;
        for (std::size_t bit = 0; bit < header_bytes * 8; ++bit) {
            std::string bytes = good;
            bytes[bit / 8] = char(bytes[bit / 8] ^ (1 << bit % 8));
            const AllocationProbe probe;
            try {
                const auto source = open(bytes);
                (void)source->tokenizer_files();
                read_everything(*source);
                ++read;
            } catch (const Error& error) {
                QVERIFY(error.kind() == ErrorKind::input);
                ++refused;
            }
            QVERIFY2(probe.largest_bytes() < 8 * good.size(),
                     QByteArray::number(qint64(probe.largest_bytes())) + " bytes at bit " +
                         QByteArray::number(qint64(bit)));
        }
        QVERIFY(refused > 1000 && read > 100);
    }
};

RECTO_TEST_CLASS(TestGgufModel);
#include "test_gguf_model.moc"
