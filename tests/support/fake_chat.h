// A model to talk to without weights: characters are tokens, FakeModel makes the answers, ChatML is the
// template.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "engine/fake_model.h"
#include "ui/host/engine_host.h"
#include "ui/host/template_choice.h"

namespace recto::test {

// Ids: 0 <|im_start|>, 1 <|im_end|> (the end of a turn), 2 the pair "ab", 3 line break, 4 … 98 printable
// ASCII. encode() never makes id 2, so a generated "ab" has other ids than the same text encoded again.
class CharacterTokenizer : public Tokenizer {
  public:
    static constexpr int vocab = 99;
    CharacterTokenizer() {
        spellings_ = {"<|im_start|>", "<|im_end|>", "ab", "\n"};
        for (char c = ' '; c <= '~'; ++c)
            spellings_.emplace_back(1, c);
    }
    std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options) const override {
        std::vector<std::int32_t> ids;
        while (!text.empty()) {
            std::int32_t id = character(text.front());
            std::size_t length = 1;
            for (std::int32_t control : {0, 1}) {
                const std::string& spelling = spellings_[std::size_t(control)];
                if (!options.parse_special || !text.starts_with(spelling)) continue;
                id = control;
                length = spelling.size();
            }
            ids.push_back(id);
            text.remove_prefix(length);
        }
        return ids;
    }
    int size() const override { return vocab; }
    std::string_view bytes(std::int32_t id) const override { return spelling(id); }
    std::string_view spelling(std::int32_t id) const override {
        return id >= 0 && id < vocab ? std::string_view(spellings_[std::size_t(id)]) : std::string_view();
    }
    bool is_special(std::int32_t id) const override { return id == 0 || id == 1; }
    std::int32_t find(std::string_view spelling) const override {
        const auto at = std::find(spellings_.begin(), spellings_.end(), spelling);
        return at == spellings_.end() ? -1 : std::int32_t(at - spellings_.begin());
    }
    std::int32_t bos() const override { return -1; }
    std::span<const std::int32_t> eos() const override { return eos_; }
    bool adds_bos() const override { return false; }
    bool strips_leading_space() const override { return false; }
    std::string describe() const override { return "characters"; }

    std::string text(std::span<const std::int32_t> ids) const {  // control tokens left out
        std::string text;
        for (const std::int32_t id : ids)
            if (!is_special(id)) text += spelling(id);
        return text;
    }

  private:
    static std::int32_t character(char c) {
        if (c == '\n') return 3;
        return c >= ' ' && c <= '~' ? 4 + (c - ' ') : 4 + ('?' - ' ');
    }
    std::vector<std::string> spellings_;
    std::array<std::int32_t, 1> eos_{1};
};

inline const char* chatml() {
    return "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
           "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% "
           "endif %}";
}

struct FakeChat {
    EngineOptions options = chat_options(256);
    std::string chat_template = chatml();
    std::string load_error;        // not empty: loading fails with it
    bool wait_for_cancel = false;  // loading goes on until it is cancelled

    static EngineOptions chat_options(int blocks, int max_model_len = 1024) {
        EngineOptions o;
        o.kv_blocks = blocks;
        o.block_size = 8;
        o.max_model_len = max_model_len;
        o.max_num_seqs = 8;
        o.max_num_batched_tokens = 256;
        o.seed = 7;
        return o;
    }
};

inline ui::LoadedEngine load_fake(const FakeChat& fake, const ui::ModelRequest& request,
                                  const std::function<void(const LoadProgress&)>& progress,
                                  const CancelFlag& cancel) {
    progress({"map", 0.25});
    while (fake.wait_for_cancel && !*cancel)
        std::this_thread::yield();
    if (*cancel) throw Error(ErrorKind::cancelled, "cancelled");
    if (!fake.load_error.empty()) throw Error(ErrorKind::input, fake.load_error);
    progress({"read", 0.75});
    ui::LoadedEngine loaded;
    auto tokenizer = std::make_shared<CharacterTokenizer>();
    loaded.tokenizer = tokenizer;
    loaded.find_template = ui::known_template_finder();
    try {
        loaded.chat_template = std::make_shared<const ChatTemplate>(fake.chat_template);
        loaded.info.template_id = "model";
    } catch (const Error& e) {
        loaded.info.template_error = e.what();
    }
    loaded.engine =
        std::make_unique<Engine>(std::make_unique<FakeModel>(CharacterTokenizer::vocab,
                                                             fake.options.kv_blocks, fake.options.block_size),
                                 tokenizer.get(), std::vector<std::int32_t>{1}, fake.options);
    loaded.info.path = request.path;
    loaded.info.name = "Fake";
    loaded.info.fingerprint = "fa6e";
    loaded.info.family_template = ui::template_for_vocabulary(*tokenizer);
    loaded.info.known_templates = ui::known_template_names(loaded.info.family_template);
    loaded.info.kv_blocks = loaded.engine->kv_blocks();
    loaded.info.block_size = loaded.engine->block_size();
    loaded.info.max_model_len = loaded.engine->max_model_len();
    loaded.info.weight_bytes = 1000;
    return loaded;
}

inline ui::EngineFactory fake_factory(FakeChat fake = {}) {
    ui::EngineFactory factory;
    factory.estimate = [fake](const ui::ModelRequest& request) {
        if (!fake.load_error.empty()) throw Error(ErrorKind::input, fake.load_error);
        ui::EstimateReport report;
        report.name = request.path.filename().string();
        report.memory.weight_bytes = 1000;
        report.memory.fits = true;
        return report;
    };
    factory.load = [fake](const ui::ModelRequest& request,
                          const std::function<void(const LoadProgress&)>& progress,
                          const CancelFlag& cancel) { return load_fake(fake, request, progress, cancel); };
    return factory;
}

// What the fake says to a prompt, by FakeModel's own formula: greedy, at most `max_tokens`, the turn's end
// included.
inline std::vector<std::int32_t> fake_answer(std::vector<std::int32_t> prompt, int max_tokens,
                                             bool ignore_eos) {
    std::vector<std::int32_t> answer;
    while (int(answer.size()) < max_tokens) {
        const std::int32_t next = fake_next(prompt, CharacterTokenizer::vocab);
        answer.push_back(next);
        prompt.push_back(next);
        if (next == 1 && !ignore_eos) break;
    }
    return answer;
}

}  // namespace recto::test
