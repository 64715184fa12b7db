#include "engine/text/tokenizer.h"
#include "engine/text/utf8.h"

namespace recto {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, const DecodeOptions& options)
    : tokenizer_(&tokenizer), options_(options) {}

std::string Detokenizer::append(std::int32_t id) {
    const bool special = tokenizer_->is_special(id);
    if (special && options_.skip_special) return {};
    std::string_view bytes = tokenizer_->bytes(id);
    if (bytes.empty()) return {};
    std::string out;
    if (special) {
        out = flush();  // a control token never completes a character that bytes before it began
        if (last_was_special_ && options_.spaces_between_special) out += ' ';
    }
    last_was_special_ = special;
    if (first_ && !special) {
        first_ = false;
        if (options_.at_start && tokenizer_->strips_leading_space() && bytes.front() == ' ')
            bytes.remove_prefix(1);
    }
    pending_ += bytes;
    std::string_view rest = pending_;
    while (!rest.empty()) {
        const Utf8Step step = utf8_step(rest);
        if (step.kind == Utf8Step::Kind::incomplete) break;
        out += step.kind == Utf8Step::Kind::valid ? rest.substr(0, step.bytes) : kReplacementCharacter;
        rest.remove_prefix(step.bytes);
    }
    pending_.erase(0, pending_.size() - rest.size());
    return out;
}

std::string Detokenizer::flush() {
    if (pending_.empty()) return {};
    pending_.clear();
    return std::string(kReplacementCharacter);  // at most three bytes of one unfinished character
}

}  // namespace recto
