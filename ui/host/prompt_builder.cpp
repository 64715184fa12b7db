#include "ui/host/prompt_builder.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace recto::ui {

namespace {

// A generated answer ends with the token that ended the turn; the template writes that one itself.
std::span<const std::int32_t> without_turn_end(const Tokenizer& tokenizer,
                                               std::span<const std::int32_t> ids) {
    const auto ends = tokenizer.eos();
    while (!ids.empty() && std::find(ends.begin(), ends.end(), ids.back()) != ends.end())
        ids = ids.first(ids.size() - 1);
    return ids;
}

std::string_view trimmed(std::string_view text) {
    const auto blank = [](char c) {
        return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\v' || c == '\f';
    };
    while (!text.empty() && blank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && blank(text.back()))
        text.remove_suffix(1);
    return text;
}

TemplateOptions template_options(const AnswerRequest& request, const Tokenizer& tokenizer) {
    TemplateOptions options;
    options.add_generation_prompt = true;
    options.variables = request.variables;
    if (tokenizer.bos() >= 0) options.bos_token = std::string(tokenizer.spelling(tokenizer.bos()));
    if (!tokenizer.eos().empty())
        options.eos_token = std::string(tokenizer.spelling(tokenizer.eos().front()));
    return options;
}

Json messages_json(std::span<const PromptMessage> messages) {
    Json json = Json::array();
    for (const PromptMessage& message : messages)
        json.push_back({{"role", message.role}, {"content", message.content}});
    return json;
}

// Encodes runs of pieces between spliced answers.
class Encoder {
  public:
    Encoder(const Tokenizer& tokenizer, BuiltPrompt& out) : tokenizer_(tokenizer), out_(out) {}

    void add(TextPiece piece) {
        if (!piece.text.empty()) run_.push_back(std::move(piece));
    }

    // True: `ids` now stand for `text`, which follows what was added so far.
    bool splice(std::string_view text, std::span<const std::int32_t> ids) {
        ids = without_turn_end(tokenizer_, ids);
        if (ids.empty()) return false;
        const std::string decoded = decode(tokenizer_, ids, {.skip_special = false});
        if (decoded != text) {
            // Some templates write the blank that the model itself generates before its first word.
            const bool blank_from_template = !run_.empty() && !run_.back().from_user &&
                                             run_.back().text.back() == ' ' &&
                                             decoded.size() == text.size() + 1 && decoded.front() == ' ' &&
                                             std::string_view(decoded).substr(1) == text;
            if (!blank_from_template) return false;
            run_.back().text.pop_back();
            if (run_.back().text.empty()) run_.pop_back();
        }
        flush();
        out_.ids.insert(out_.ids.end(), ids.begin(), ids.end());
        out_.spliced_tokens += int(ids.size());
        return true;
    }

    void flush() {
        if (run_.empty()) return;
        // After the prompt's start a run is an inner one: encoded behind a control token, which is then taken
        // off, it gets neither a BOS nor a SentencePiece prefix blank.
        const bool inner = !out_.ids.empty() && !tokenizer_.eos().empty();
        const std::int32_t marker = inner ? tokenizer_.eos().front() : -1;
        if (inner) run_.insert(run_.begin(), TextPiece{std::string(tokenizer_.spelling(marker)), false});
        std::vector<std::int32_t> ids = encode_pieces(tokenizer_, run_);
        auto first = ids.begin();
        if (inner) first = std::find(ids.begin(), ids.end(), marker) + 1;
        out_.ids.insert(out_.ids.end(), first, ids.end());
        run_.clear();
    }

  private:
    const Tokenizer& tokenizer_;
    BuiltPrompt& out_;
    std::vector<TextPiece> run_;
};

}  // namespace

BuiltPrompt build_prompt(const AnswerRequest& request, const Tokenizer& tokenizer,
                         const ChatTemplate& chat_template) {
    std::span<const PromptMessage> messages = request.messages;
    const bool continues = request.continue_last && !messages.empty() && messages.back().role == "assistant";
    const PromptMessage* unfinished = continues ? &messages.back() : nullptr;
    if (continues) messages = messages.first(messages.size() - 1);

    BuiltPrompt built;
    std::vector<TextPiece> pieces =
        chat_template.render(messages_json(messages), template_options(request, tokenizer));
    for (const TextPiece& piece : pieces)
        built.text += piece.text;

    Encoder encoder(tokenizer, built);
    std::size_t next = 0;
    for (const PromptMessage& message : messages) {
        if (message.content.empty()) continue;
        // Where the template shows this message's content; templates may trim it. Role names are pieces of
        // the user's data too, hence the search.
        const std::string_view content = message.content, short_content = trimmed(content);
        const auto at =
            std::find_if(pieces.begin() + std::ptrdiff_t(next), pieces.end(), [&](const TextPiece& piece) {
                return piece.from_user && (piece.text == content || piece.text == short_content);
            });
        if (at == pieces.end()) continue;
        const auto index = std::size_t(at - pieces.begin());
        for (; next < index; ++next)
            encoder.add(std::move(pieces[next]));
        ++next;
        if (message.role != "assistant" || !encoder.splice(at->text, message.token_ids))
            encoder.add(std::move(*at));
    }
    for (; next < pieces.size(); ++next)
        encoder.add(std::move(pieces[next]));
    if (unfinished && !encoder.splice(unfinished->content, unfinished->token_ids))
        encoder.add(TextPiece{unfinished->content, true});
    if (unfinished) built.text += unfinished->content;
    encoder.flush();
    return built;
}

}  // namespace recto::ui
