// What a file holds and the configuration does not ask for is told, not dropped in silence. Counts are taken
// from the files' own lists of names.
#include <QTest>
#include <nlohmann/json.hpp>

#include "engine/load/gguf_files.h"
#include "engine/load/gguf_source.h"
#include "engine/load/model_source.h"
#include "load/files.h"
#include "load/gguf_builder.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string read_all(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// A copy of a folder of one safetensors file, to be changed: a length, a JSON header, data.
struct Copy {
    Scratch scratch;
    Json config, header;
    std::string data;

    explicit Copy(const char* model) {
        const fs::path folder = fs::path(RECTO_TEST_DATA) / "model" / model;
        config = Json::parse(read_all(folder / "config.json"));
        const std::string file = read_all(folder / "model.safetensors");
        std::uint64_t length = 0;
        std::memcpy(&length, file.data(), sizeof length);
        header = Json::parse(file.substr(8, length));
        header.erase("__metadata__");
        data = file.substr(8 + length);
    }
    void add(const std::string& name, const std::vector<float>& values) {
        Bytes bytes;
        for (const float value : values)
            bytes.put(value);
        header[name] = {{"dtype", "F32"},
                        {"shape", {values.size()}},
                        {"data_offsets", {data.size(), data.size() + bytes.size()}}};
        data += bytes.text();
    }
    std::vector<std::string> warnings() const {
        scratch.write("config.json", config.dump());
        const std::string text = header.dump();
        scratch.write("model.safetensors",
                      Bytes().put<std::uint64_t>(text.size()).raw(text).raw(data).text());
        return open_model(scratch.path())->warnings();
    }
    std::string label() const { return scratch.path().string() + ": "; }
};

void check_one(const std::vector<std::string>& warnings, const std::string& expected) {
    std::string all;
    for (const std::string& warning : warnings)
        all += warning + "\n";
    QVERIFY2(all == expected + "\n", (all + "expected\n" + expected).c_str());
}

}  // namespace

class TestUnusedTensors : public QObject {
    Q_OBJECT

  private slots:
    void nothing_is_said_where_everything_is_used() {
        for (const char* model : {"tiny/llama-gqa-tied", "tiny/qwen2-biases", "quantized/awq-gemm-llama",
                                  "quantized/gptq-order-head-llama", "quantized/ct-w4a16-llama",
                                  "families/phi3-window", "mixture/mixtral", "mixture/mixtral-stacked"}) {
            const auto said = Copy(model).warnings();
            QVERIFY2(said.empty(), said.empty() ? "" : said.front().c_str());
        }
    }

    void layers_beyond_the_configuration_are_counted() {
        Copy copy("tiny/llama-gqa-tied");
        copy.config["num_hidden_layers"] = 1;
        std::size_t beyond = 0;
        std::string first;
        for (const auto& [name, value] : copy.header.items()) {
            if (!name.starts_with("model.layers.1.")) continue;
            if (beyond++ == 0) first = name;
        }
        QCOMPARE(beyond, 9U);  // four projections, three of the feed-forward part, two norms
        const auto said = copy.warnings();
        QCOMPARE(said.size(), 1U);
        const std::string start = copy.label() + "9 of " + std::to_string(copy.header.size()) +
                                  " tensors are not used, such as model.layers.1.";
        QVERIFY2(said[0].starts_with(start), said[0].c_str());
        QVERIFY2(said[0].ends_with("; the configuration asks for 1 layer, the weights have 2"),
                 said[0].c_str());
    }

    void a_tensor_that_nothing_reads_is_named() {
        Copy copy("tiny/llama-gqa-tied");
        const std::string all = std::to_string(copy.header.size() + 1);
        copy.add("model.layers.0.self_attn.k_scale", {2});
        check_one(copy.warnings(),
                  copy.label() + "1 of " + all + " tensors is not used: model.layers.0.self_attn.k_scale");
    }

    // Biases that the configuration does not ask for change answers, unless they are zeros, which GPTQ's
    // packers write for every linear; tables of RoPE and a tied head say nothing new.
    void what_says_nothing_new_is_not_told() {
        Copy copy("tiny/llama-gqa-tied");
        copy.add("model.layers.0.self_attn.o_proj.bias", std::vector<float>(64, 0));
        copy.add("model.layers.0.self_attn.rotary_emb.inv_freq", {1, 0.5F});
        copy.add("lm_head.weight", {1});
        QVERIFY(copy.warnings().empty());
        copy.add("model.layers.1.self_attn.o_proj.bias", std::vector<float>(64, 0.5F));
        check_one(copy.warnings(), copy.label() + "1 of " + std::to_string(copy.header.size()) +
                                       " tensors is not used: model.layers.1.self_attn.o_proj.bias");
    }

    void gguf_files_tell_the_same() {
        const auto said = [](const GgufBuilder& b) {
            const std::string bytes = b.bytes();
            return make_gguf_source(std::make_shared<const GgufFiles>(bytes_of(bytes), "m.gguf"), "m.gguf")
                ->warnings();
        };
        GgufBuilder b = small_model("llama");
        QVERIFY(said(b).empty());
        b.counted_tensor("blk.0.attn_q.bias", {16});  // is read
        QVERIFY(said(b).empty());
        b.counted_tensor("blk.1.attn_norm.weight", {16});
        check_one(said(b),
                  "m.gguf: 1 of 13 tensors is not used: blk.1.attn_norm.weight; the configuration asks for "
                  "1 layer, the weights have 2");
    }
};

RECTO_TEST_CLASS(TestUnusedTensors);
#include "test_unused_tensors.moc"
