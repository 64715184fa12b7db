// Hugging Face folders: weights by role, index and path rules, pickles, quantized folders, the cache.
#include <QTest>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/load/model_source.h"
#include "engine/load/safetensors_index.h"
#include "load/files.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Writes safetensors files. Element i of every tensor is i / 4, which all three dtypes hold exactly.
struct Weights {
    struct Tensor {
        std::vector<std::int64_t> shape;
        std::string dtype = "F32";
    };
    std::map<std::string, Tensor> tensors;

    std::string bytes() const {
        Json header;
        Bytes data;
        for (const auto& [name, tensor] : tensors) {
            const auto begin = data.size();
            std::int64_t n = 1;
            for (const auto dim : tensor.shape)
                n *= dim;
            for (std::int64_t i = 0; i < n; ++i)
                put(data, tensor.dtype, float(i) / 4.0F);
            header[name] = {
                {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
        }
        const std::string text = header.dump() + " ";
        return Bytes().put<std::uint64_t>(text.size()).raw(text).raw(data.text()).text();
    }
    static void put(Bytes& data, const std::string& dtype, float value) {
        if (dtype == "F32")
            data.put(value);
        else if (dtype == "F16")
            data.put(f32_to_f16(value));
        else if (dtype == "BF16")
            data.put(f32_to_bf16(value));
        else
            data.put(std::int32_t(value));
    }
};

// One layer: 2 heads of 8, 1 key/value head, hidden 16, feed-forward 24, 10 tokens.
struct Folder {
    Scratch scratch;
    Json config = {{"architectures", {"LlamaForCausalLM"}},
                   {"model_type", "llama"},
                   {"hidden_size", 16},
                   {"intermediate_size", 24},
                   {"num_hidden_layers", 1},
                   {"num_attention_heads", 2},
                   {"num_key_value_heads", 1},
                   {"vocab_size", 10},
                   {"rms_norm_eps", 1e-5},
                   {"max_position_embeddings", 64},
                   {"rope_theta", 10000.0},
                   {"tie_word_embeddings", false},
                   {"eos_token_id", 2}};
    Weights weights;

    Folder() {
        const std::string l = "model.layers.0.";
        weights.tensors = {{"model.embed_tokens.weight", {{10, 16}}},
                           {"model.norm.weight", {{16}}},
                           {"lm_head.weight", {{10, 16}}},
                           {l + "input_layernorm.weight", {{16}}},
                           {l + "post_attention_layernorm.weight", {{16}}},
                           {l + "self_attn.q_proj.weight", {{16, 16}}},
                           {l + "self_attn.k_proj.weight", {{8, 16}}},
                           {l + "self_attn.v_proj.weight", {{8, 16}}},
                           {l + "self_attn.o_proj.weight", {{16, 16}}},
                           {l + "mlp.gate_proj.weight", {{24, 16}}},
                           {l + "mlp.up_proj.weight", {{24, 16}}},
                           {l + "mlp.down_proj.weight", {{16, 24}}}};
    }
    fs::path path() const { return scratch.path(); }
    void write_config() const { scratch.write("config.json", config.dump()); }
    std::unique_ptr<ModelSource> open() const {
        write_config();
        if (!weights.tensors.empty()) scratch.write("model.safetensors", weights.bytes());
        return open_model(path());
    }
    void check_refused(const std::string& file, const std::string& fragment) const {
        check_refusal([&] { (void)open(); }, (file.empty() ? path() : path() / file).string(), fragment);
    }
};

std::vector<float> row(const WeightRows& weight, std::int64_t index) {
    std::vector<float> out(std::size_t(weight.cols()));
    weight.read_f32(index, 1, out.data());
    return out;
}

class Environment {  // set for one test, then put back
  public:
    Environment(const char* name, const std::string& value) : name_(name), old_(qgetenv(name)) {
        qputenv(name, QByteArray::fromStdString(value));
    }
    ~Environment() { old_.isNull() ? qunsetenv(name_) : qputenv(name_, old_); }

  private:
    const char* name_;
    QByteArray old_;
};

}  // namespace

class TestFolder : public QObject {
    Q_OBJECT

  private slots:
    void reads_weights_of_every_dtype() {
        for (const auto& [dtype, bits] :
             {std::pair("F32", 32.0), std::pair("F16", 16.0), std::pair("BF16", 16.0)}) {
            Folder folder;
            for (auto& [name, tensor] : folder.weights.tensors)
                tensor.dtype = dtype;
            const auto source = folder.open();
            const auto q = source->weight(TensorRole::attn_q);
            QCOMPARE(q->rows(), 16);
            QVERIFY(!q->form().grouped && q->bias().empty());
            QCOMPARE(q->form().bits_per_weight, bits);
            QCOMPARE(q->form().source_name, dtype);
            QCOMPARE(row(*q, 3)[2], 12.5F);  // element 50, rows as they are in the file
            QCOMPARE(source->norm(TensorRole::ffn_norm)[5], 1.25F);
            QCOMPARE(source->quantization(), std::string("none (") + dtype + ")");
            QCOMPARE(source->format(), std::string("safetensors"));
            QCOMPARE(source->tensors().size(), 12U);
            QVERIFY(!source->config().tied_embedding && source->weight(TensorRole::lm_head) != nullptr);
            std::vector<char> dense(16 * dtype_bytes(q->form().dense));
            q->read_dense(3, 1, dense.data());
            Bytes expected;
            for (int i = 48; i < 64; ++i)
                Weights::put(expected, dtype, float(i) / 4.0F);
            QVERIFY(std::memcmp(dense.data(), expected.text().data(), dense.size()) == 0);
        }
    }

    // Without a head the embedding serves as one, but not against what the configuration says.
    void a_missing_head_is_told() {
        Folder folder;
        folder.weights.tensors.erase("lm_head.weight");
        folder.check_refused("",
                             "the tensor lm_head.weight was expected, as \"tie_word_embeddings\" is "
                             "false, but it is missing");
        folder.config.erase("tie_word_embeddings");
        const auto unstated = folder.open();
        QVERIFY(unstated->config().tied_embedding);
        QCOMPARE(unstated->warnings().size(), 1U);
        QVERIFY(unstated->warnings()[0].starts_with(folder.path().string() +
                                                    ": the tensor lm_head.weight is missing and "
                                                    "config.json has no \"tie_word_embeddings\"; the "
                                                    "embedding is used in its place"));
        folder.config["tie_word_embeddings"] = true;
        QVERIFY(folder.open()->config().tied_embedding && folder.open()->warnings().empty());
    }

    void attaches_biases() {
        Folder folder;
        const std::string attention = "model.layers.0.self_attn.";
        folder.config["architectures"] = {"Qwen2ForCausalLM"};
        folder.check_refused("", "the tensor model.layers.0.self_attn.q_proj.bias is missing");
        folder.weights.tensors[attention + "q_proj.bias"] = {{16}};
        folder.weights.tensors[attention + "k_proj.bias"] = {{8}};
        folder.weights.tensors[attention + "v_proj.bias"] = {{8}};
        const auto qwen = folder.open();
        QCOMPARE(qwen->weight(TensorRole::attn_k)->bias()[3], 0.75F);
        QVERIFY(qwen->weight(TensorRole::attn_o)->bias().empty());

        folder.config["architectures"] = {"LlamaForCausalLM"};
        QVERIFY(folder.open()->weight(TensorRole::attn_q)->bias().empty());  // not this family's
        folder.config["attention_bias"] = true;
        folder.check_refused("", "o_proj.bias is missing");
        folder.weights.tensors[attention + "o_proj.bias"] = {{16}};
        folder.config["mlp_bias"] = true;
        folder.check_refused("", "gate_proj.bias is missing");
        for (const char* name : {"gate_proj", "up_proj"})
            folder.weights.tensors[std::string("model.layers.0.mlp.") + name + ".bias"] = {{24}};
        folder.weights.tensors["model.layers.0.mlp.down_proj.bias"] = {{16}};
        const auto llama = folder.open();
        QCOMPARE(llama->weight(TensorRole::attn_o)->bias().size(), 16U);
        QCOMPARE(llama->weight(TensorRole::ffn_up)->bias().size(), 24U);
        QCOMPARE(llama->weight(TensorRole::ffn_down)->bias()[4], 1.0F);
        folder.weights.tensors[attention + "o_proj.bias"] = {{15}};
        folder.check_refused("model.safetensors", "o_proj.bias should have the shape [16], found [15]");
    }

    void refuses_tensors_that_do_not_fit() {
        Folder folder;
        folder.weights.tensors["model.norm.weight"].shape = {15};
        folder.check_refused("model.safetensors", "model.norm.weight should have the shape [16], found [15]");
        folder = Folder();
        folder.weights.tensors["model.layers.0.mlp.up_proj.weight"].dtype = "I32";
        folder.check_refused("model.safetensors",
                             "holds I32 data, which is not supported; supported are F32, F16");
        folder = Folder();
        folder.weights.tensors.erase("model.layers.0.mlp.up_proj.weight");
        folder.check_refused("", "the tensor model.layers.0.mlp.up_proj.weight is missing");
        folder = Folder();
        folder.config["num_hidden_layers"] = 2;
        folder.check_refused("", "the tensor model.layers.1.input_layernorm.weight is missing");
    }

    void reads_shards() {
        Folder folder;
        folder.write_config();
        Weights first, second;
        Json map;
        for (const auto& [name, tensor] : folder.weights.tensors) {
            const bool in_first = name.find("mlp") == std::string::npos;
            (in_first ? first : second).tensors[name] = tensor;
            map[name] = in_first ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
        }
        second.tensors["unlisted"] = {{4}};
        folder.scratch.write("model-00001-of-00002.safetensors", first.bytes());
        const auto second_file = folder.scratch.write("model-00002-of-00002.safetensors", second.bytes());
        folder.scratch.write("consolidated.safetensors", "not even one");  // not listed: not read
        const auto write_index = [&](const Json& weight_map) {
            folder.scratch.write("model.safetensors.index.json",
                                 Json{{"metadata", {{"total_size", 1}}}, {"weight_map", weight_map}}.dump());
        };
        write_index(map);
        const auto source = open_model(folder.path());
        QCOMPARE(source->tensors().size(), 12U);
        QCOMPARE(row(*source->weight(TensorRole::ffn_down), 0)[3], 0.75F);
        QCOMPARE(source->file_bytes(), first.bytes().size() + second.bytes().size());

        const auto open = [&] { (void)open_model(folder.path()); };
        const auto index = (folder.path() / "model.safetensors.index.json").string();
        Json wrong = map;
        wrong["lm_head.weight"] = "model-00002-of-00002.safetensors";
        write_index(wrong);
        check_refusal(open, index, "tensor \"lm_head.weight\" lies in model-00002-of-00002.safetensors, but");
        for (const char* trick :
             {"../other.safetensors", "/etc/passwd", "..", ".", "", "a/b.safetensors", "a\\b"}) {
            wrong["lm_head.weight"] = trick;
            write_index(wrong);
            check_refusal(open, index, "should lie in a file of the same folder");
        }
        wrong["lm_head.weight"] = 3;
        write_index(wrong);
        check_refusal(open, index, "should lie in a file of the same folder");
        folder.scratch.write("model.safetensors.index.json", "{}");
        check_refusal(open, index, "\"weight_map\", an object");
        folder.scratch.write("model.safetensors.index.json", R"({"weight_map":{"a":"x","a":"y"}})");
        check_refusal(open, index, "\"a\" occurs twice");
        write_index(map);
        fs::remove(second_file);
        check_refusal(open, second_file.string(), "the model needs this file, but it is missing");
    }

    void follows_no_link_out_of_the_folder() {
        Folder folder;
        folder.write_config();
        const Scratch elsewhere;
        const auto target = elsewhere.write("weights", folder.weights.bytes());
        fs::create_symlink(target, folder.path() / "model.safetensors");
        check_refusal([&] { (void)open_model(folder.path()); },
                      (folder.path() / "model.safetensors").string(), "this is a link to ");
        fs::remove(folder.path() / "model.safetensors");
        folder.scratch.write("real", folder.weights.bytes());
        fs::create_symlink("real", folder.path() / "model.safetensors");
        QCOMPARE(open_model(folder.path())->config().hidden, 16);
    }

    void refuses_pickles() {
        Folder folder;
        folder.weights.tensors.clear();
        const auto pickle = folder.scratch.write("pytorch_model.bin", "PK\x03\x04 and so on");
        folder.check_refused("pytorch_model.bin", "this is a pickle, which can run code when it is opened");
        folder.check_refused("pytorch_model.bin", "save_pretrained(");
        check_refusal([&] { (void)open_model(pickle); }, pickle.string(), "this is a pickle");
        for (const char* name : {"m.pt", "m.pth", "m.ckpt", "m.pkl"}) {
            const auto file = folder.scratch.write(name, "anything");
            check_refusal([&] { (void)open_model(file); }, file.string(), "this is a pickle");
        }
        const auto renamed =
            folder.scratch.write("m.gguf", "\x80\x02}q\x01.");  // pickle.dumps({}, 2), and more
        check_refusal([&] { (void)open_model(renamed); }, renamed.string(), "this is a pickle");
    }

    void says_what_is_not_a_model() {
        const Scratch scratch;
        check_refusal([&] { (void)open_model(scratch.path() / "none"); }, (scratch.path() / "none").string(),
                      "there is none of this name");
        check_refusal([&] { (void)open_model(scratch.path()); }, scratch.path().string(),
                      "a model was expected");
        scratch.write("a.gguf", "x");
        scratch.write("b.gguf", "x");
        check_refusal([&] { (void)open_model(scratch.path()); }, scratch.path().string(),
                      "found 2 GGUF files");
        fs::remove(scratch.path() / "b.gguf");
        check_refusal([&] { (void)open_model(scratch.path()); }, (scratch.path() / "a.gguf").string(), "");
        const Folder folder;
        folder.write_config();
        check_refusal([&] { (void)open_model(folder.path()); }, folder.path().string(),
                      "weights were expected");
        folder.scratch.write("a.safetensors", "");
        folder.scratch.write("b.safetensors", "");
        check_refusal([&] { (void)open_model(folder.path()); }, folder.path().string(),
                      "has 2 safetensors files but");
    }

    void one_file_stands_for_its_folder() {
        const Folder folder;
        (void)folder.open();
        QCOMPARE(open_model(folder.path() / "model.safetensors")->config().hidden, 16);
        QCOMPARE(open_model(folder.path() / "config.json")->config().hidden, 16);
    }

    void resolves_names_in_the_cache() {
        const Scratch cache;
        const Environment hub("HF_HUB_CACHE", cache.path().string());
        const auto looked_in = (cache.path() / "models--org--small").string();
        check_refusal([] { (void)resolve_model("org/small"); }, "org/small", "looked in " + looked_in);
        for (const char* bad : {"", "../x", "a/b/c", "plain", "org/na me", "/org/x"})
            check_refusal([&] { (void)resolve_model(bad); }, "", "");
        const Folder folder;
        (void)folder.open();
        // As huggingface_hub lays it out: blobs, and a snapshot of links.
        const fs::path repository = cache.path() / "models--org--small";
        for (const char* file : {"config.json", "model.safetensors"}) {
            fs::create_directories(repository / "blobs");
            fs::create_directories(repository / "snapshots" / "abc123");
            fs::copy(folder.path() / file, repository / "blobs" / file);
            fs::create_symlink(fs::path("../../blobs") / file, repository / "snapshots" / "abc123" / file);
        }
        fs::create_directories(repository / "snapshots" / "other");
        cache.write("models--org--small/refs/main", "abc123\n");
        QVERIFY(resolve_model("org/small") == repository / "snapshots" / "abc123");
        const auto source = open_model(resolve_model("org/small"));
        QCOMPARE(source->config().name, std::string("small"));
        QVERIFY(resolve_model(folder.path().string()) == folder.path());

        const Environment no_hub("HF_HUB_CACHE", "");
        const Environment home("HF_HOME", (cache.path() / "home").string());
        check_refusal([] { (void)resolve_model("org/small"); }, "org/small",
                      (cache.path() / "home/hub").string());
    }

    void reads_tokenizer_files() {
        const Folder folder;
        (void)folder.open();
        const auto& s = folder.scratch;
        const auto files = [&] { return open_tokenizer_files(folder.path()); };
        QVERIFY(!open_model(folder.path())->has_tokenizer());
        check_refusal([&] { (void)files(); }, folder.path().string(), "a tokenizer was expected");
        s.write("tokenizer.model", "sp");
        QCOMPARE(files().sentencepiece_model, std::string("sp"));
        s.write("tokenizer.json", "{\"a\":1}");
        QCOMPARE(files().tokenizer_json, std::string("{\"a\":1}"));
        QVERIFY(files().sentencepiece_model.empty());  // exactly one vocabulary
        QVERIFY(files().chat_template.empty() && files().chat_template_source.empty());
        QVERIFY(open_model(folder.path())->has_tokenizer());
        QCOMPARE(open_tokenizer_files(folder.path() / "tokenizer.model").sentencepiece_model,
                 std::string("sp"));

        s.write("additional_chat_templates/default.jinja", "last");
        QCOMPARE(files().chat_template, std::string("last"));
        s.write(
            "tokenizer_config.json",
            R"({"chat_template":[{"name":"tool_use","template":"t"},{"name":"default","template":"d"}]})");
        QCOMPARE(files().chat_template, std::string("d"));
        s.write("tokenizer_config.json", R"({"chat_template":"plain","bos_token":"<s>"})");
        QCOMPARE(files().chat_template, std::string("plain"));
        QCOMPARE(files().chat_template_source, std::string("tokenizer_config.json"));
        QCOMPARE(files().tokenizer_config_json,
                 std::string(R"({"chat_template":"plain","bos_token":"<s>"})"));
        s.write("chat_template.jinja", "wins");
        QCOMPARE(files().chat_template, std::string("wins"));
        QCOMPARE(files().chat_template_source, std::string("chat_template.jinja"));

        s.write("special_tokens_map.json", R"({"bos_token":"<other>","eos_token":"</s>"})");
        const auto merged = Json::parse(files().tokenizer_config_json);
        QCOMPARE(merged.at("bos_token").get<std::string>(), std::string("<s>"));
        QCOMPARE(merged.at("eos_token").get<std::string>(), std::string("</s>"));
        s.write("tokenizer_config.json", R"({"chat_template":3})");
        fs::remove(folder.path() / "chat_template.jinja");
        check_refusal([&] { (void)files(); }, (folder.path() / "tokenizer_config.json").string(),
                      "should be a string or a list of named templates");
        s.write("tokenizer_config.json", "{");
        check_refusal([&] { (void)files(); }, (folder.path() / "tokenizer_config.json").string(),
                      "valid JSON");
    }
};

RECTO_TEST_CLASS(TestFolder);
#include "test_folder.moc"
