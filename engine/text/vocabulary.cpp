#include "engine/text/vocabulary.h"

#include <array>

namespace recto {

Vocabulary::Vocabulary(std::vector<VocabularyToken> tokens) : tokens_(std::move(tokens)) {
    ids_.reserve(tokens_.size());
    for (std::size_t i = 0; i < tokens_.size(); ++i)
        if (tokens_[i].kind != TokenKind::unused) ids_[tokens_[i].spelling] = static_cast<std::int32_t>(i);
}

std::int32_t Vocabulary::find(std::string_view spelling) const {
    const auto found = ids_.find(spelling);
    return found == ids_.end() ? -1 : found->second;
}

void Vocabulary::make_control(std::int32_t id) {
    tokens_[static_cast<std::size_t>(id)].kind = TokenKind::control;
}

std::vector<std::int32_t> turn_ends(const Vocabulary& vocabulary) {
    static constexpr std::array<std::string_view, 10> kTurnEnds = {
        "<|im_end|>",    "<|eot_id|>", "<|eom_id|>",      "<end_of_turn>", "<|end|>",
        "<|endoftext|>", "</s>",       "<|end_of_text|>", "<EOT>",         "<｜end▁of▁sentence｜>",
    };
    std::vector<std::int32_t> ids;
    for (const std::string_view spelling : kTurnEnds) {
        const std::int32_t id = vocabulary.find(spelling);
        if (id >= 0 && vocabulary[id].kind != TokenKind::normal) ids.push_back(id);
    }
    return ids;
}

}  // namespace recto
