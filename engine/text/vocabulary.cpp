#include "engine/text/vocabulary.h"

#include <algorithm>
#include <array>

namespace recto {

namespace {

constexpr std::array<std::string_view, 10> kTurnEnds = {
    "<|im_end|>",    "<|eot_id|>", "<|eom_id|>",      "<end_of_turn>", "<|end|>",
    "<|endoftext|>", "</s>",       "<|end_of_text|>", "<EOT>",         "<｜end▁of▁sentence｜>",
};
constexpr std::array<std::string_view, 14> kTurnFrames = {
    "<|im_start|>", "<|start_header_id|>", "<|end_header_id|>", "<start_of_turn>", "<|system|>",
    "<|user|>",     "<|assistant|>",       "<|tool|>",          "[INST]",          "[/INST]",
    "<s>",          "<|begin_of_text|>",   "<｜User｜>",        "<｜Assistant｜>",
};

bool ends_turn(std::string_view spelling) {
    return std::find(kTurnEnds.begin(), kTurnEnds.end(), spelling) != kTurnEnds.end();
}

}  // namespace

bool frames_turns(std::string_view spelling) {
    return ends_turn(spelling) ||
           std::find(kTurnFrames.begin(), kTurnFrames.end(), spelling) != kTurnFrames.end();
}

Vocabulary::Vocabulary(std::vector<VocabularyToken> tokens) : tokens_(std::move(tokens)) {
    ids_.reserve(tokens_.size());
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        VocabularyToken& token = tokens_[i];
        if (token.kind == TokenKind::user_defined && frames_turns(token.spelling))
            token.kind = TokenKind::control;
        if (token.kind != TokenKind::unused) ids_[token.spelling] = static_cast<std::int32_t>(i);
    }
}

std::int32_t Vocabulary::find(std::string_view spelling) const {
    const auto found = ids_.find(spelling);
    return found == ids_.end() ? -1 : found->second;
}

void Vocabulary::make_control(std::int32_t id) {
    tokens_[static_cast<std::size_t>(id)].kind = TokenKind::control;
}

std::vector<std::int32_t> turn_ends(const Vocabulary& vocabulary) {
    std::vector<std::int32_t> ids;
    for (const std::string_view spelling : kTurnEnds) {
        const std::int32_t id = vocabulary.find(spelling);
        if (id >= 0 && vocabulary[id].kind == TokenKind::control) ids.push_back(id);
    }
    return ids;
}

}  // namespace recto
