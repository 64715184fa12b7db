// A session over an engine that the test steps: real Engine, pool and scheduler, a stand-in for the weights
// that reads its context back through the block tables, and a tokenizer of words.
#pragma once
#include <QCoreApplication>
#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "engine/fake_model.h"
#include "engine/text/chat_template.h"
#include "ui/models/session.h"

namespace recto::test {

constexpr std::int32_t first_word = 256, end_token = 255;  // ids below 255 are bytes

// Bytes and a few words. Only words are generated.
class WordTokenizer : public Tokenizer {
  public:
    WordTokenizer() {
        for (int i = 0; i < 255; ++i)
            pieces_.push_back(std::string(1, char(i)));
        pieces_.push_back("<end>");
        for (const char* word : {" the",   " block", " pool",  " table", " page",  " memory", " of",
                                 " a",     " and",   " one",   " token", " keeps", " shares", " moves",
                                 " small", " long",  " cache", " chat",  " is",    " every",  " then",
                                 " step",  " free",  " while", ".",      ",",      " answer", " model"})
            pieces_.push_back(word);
    }
    std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& = {}) const override {
        std::vector<std::int32_t> ids;
        for (std::size_t at = 0; at < text.size();) {
            std::size_t length = 1;
            std::int32_t id = std::int32_t(std::uint8_t(text[at]));
            for (std::size_t i = end_token; i < pieces_.size(); ++i)
                if (pieces_[i].size() > length && text.substr(at).starts_with(pieces_[i])) {
                    length = pieces_[i].size();
                    id = std::int32_t(i);
                }
            ids.push_back(std::min<std::int32_t>(id, size() - 1));
            at += length;
        }
        return ids;
    }
    int size() const override { return int(pieces_.size()); }
    std::string_view bytes(std::int32_t id) const override { return spelling(id); }
    std::string_view spelling(std::int32_t id) const override {
        return id < 0 || id >= size() ? std::string_view() : std::string_view(pieces_[std::size_t(id)]);
    }
    bool is_special(std::int32_t id) const override { return id == end_token; }
    std::int32_t find(std::string_view text) const override {
        for (std::size_t i = 0; i < pieces_.size(); ++i)
            if (pieces_[i] == text) return std::int32_t(i);
        return -1;
    }
    std::int32_t bos() const override { return -1; }
    std::span<const std::int32_t> eos() const override { return eos_; }
    bool adds_bos() const override { return false; }
    bool strips_leading_space() const override { return false; }
    std::string describe() const override { return "words"; }

  private:
    std::vector<std::string> pieces_;
    std::vector<std::int32_t> eos_{end_token};
};

class WordModel : public FakeModel {
  public:
    using FakeModel::FakeModel;
    std::span<float> logits(int output) override {
        const auto row = FakeModel::logits(output);
        std::fill_n(row.begin(), first_word, -50.0F);
        return row;
    }
    std::int32_t argmax(int output, int valid) override {
        const auto row = logits(output).first(std::size_t(valid));
        return std::int32_t(std::max_element(row.begin(), row.end()) - row.begin());
    }
};

inline ui::EngineFactory word_factory(int default_blocks = 64) {
    const auto blocks_of = [default_blocks](const ui::ModelRequest& r) {
        return r.engine.kv_blocks > 0 ? r.engine.kv_blocks : default_blocks;
    };
    ui::EngineFactory factory;
    factory.estimate = [](const ui::ModelRequest& request) {
        if (request.path.extension() == ".bad")
            throw Error(ErrorKind::input, request.path.string() + ": expected a GGUF header, found text");
        ui::EstimateReport report;
        report.name = "Words";
        report.architecture = "words";
        report.format = "GGUF";
        report.quantization = "Q4_1";
        report.file_bytes = 90ULL << 20;
        report.trained_context = 2048;
        report.memory.weight_bytes = 100ULL << 20;
        report.memory.workspace_bytes = 50ULL << 20;
        report.memory.kv_bytes_per_token = 20480;
        report.memory.full_context_kv_bytes = 2048 * 20480;
        report.memory.free_bytes = report.memory.budget_bytes = 8ULL << 30;
        report.memory.longest_context = 2048;
        report.memory.fits = true;
        return report;
    };
    factory.load = [blocks_of](const ui::ModelRequest& request,
                               const std::function<void(const LoadProgress&)>& progress,
                               const CancelFlag& cancel) {
        if (request.path.extension() == ".bad")
            throw Error(ErrorKind::input, request.path.string() + ": expected a GGUF header, found text");
        progress({"read", 0.5});
        while (request.path.extension() == ".slow" && !*cancel)  // a load that only a cancel ends
            std::this_thread::yield();
        if (*cancel) throw Error(ErrorKind::cancelled, "Loading was cancelled.");
        ui::LoadedEngine loaded;
        auto tokenizer = std::make_shared<WordTokenizer>();
        EngineOptions options =
            small_options(blocks_of(request), 16, std::min(2048, 16 * blocks_of(request)));
        options.max_num_batched_tokens = 256;
        options.fixed_chunk_tokens = 64;
        loaded.engine = std::make_unique<Engine>(
            std::make_unique<WordModel>(tokenizer->size(), options.kv_blocks, options.block_size),
            tokenizer.get(), std::vector<std::int32_t>{end_token}, options);
        loaded.tokenizer = tokenizer;
        loaded.chat_template = std::make_shared<ChatTemplate>(
            "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:");
        ui::LoadedModelInfo& info = loaded.info;
        info.path = request.path;
        info.name = "Smollm2 training run";
        info.family = "Llama";
        info.architecture = "llama";
        info.format = "GGUF";
        info.quantization = "Q4_1";
        info.template_id = "model";
        info.device = {"cpu", "Test processor", "AVX-512 VNNI", 2, 16ULL << 30, 8ULL << 30};
        info.weight_bytes = 98ULL << 20;
        info.kv_blocks = options.kv_blocks;
        info.block_size = options.block_size;
        info.max_model_len = options.max_model_len;
        info.trained_context = 2048;
        info.load_stages = {
            {"map", 0.002}, {"tokenizer", 0.06}, {"read", 0.11}, {"repack", 0.08}, {"warm-up", 0.03}};
        info.load_seconds = 0.282;
        return loaded;
    };
    return factory;
}

// Waits for a condition while events run. The limit is for a broken program only.
template <class Condition>
bool wait_for(Condition condition) {
    return QTest::qWaitFor(condition, 30'000);
}

struct WordSession {
    explicit WordSession(int blocks = 64)
        : session(std::make_unique<ui::Session>(ui::ProfilePaths::in(folder.path()), word_factory(blocks))) {
        session->start();
        wait_for([this] { return session->is_ready(); });
    }
    void load(const char* path = "/models/SmolLM2-135M-Instruct.Q4_1.gguf") {
        ui::ModelRequest request;
        request.path = path;
        session->host()->load(request);
        wait_for([this] { return session->host()->ready(); });
    }
    QTemporaryDir folder;
    std::unique_ptr<ui::Session> session;
};

}  // namespace recto::test
