#include "engine/text/tokenizer_base.h"

#include <algorithm>

#include "engine/text/utf8.h"
#include "kernels/error.h"

namespace recto {

namespace {

constexpr std::size_t kLongestText_bytes = std::size_t{1}
                                           << 30U;  // word positions are 32-bit in the merge lists

void check_length(std::size_t bytes) {
    if (bytes > kLongestText_bytes)
        throw Error(ErrorKind::argument, "A text to tokenize may have at most 1 GiB, this one has " +
                                             std::to_string(bytes) + " bytes: shorten it.");
}

}  // namespace

TokenizerBase::TokenizerBase(std::vector<VocabularyToken> tokens, SpecialIds ids, const std::string& label)
    : vocabulary_(std::move(tokens)), ids_(std::move(ids)) {
    const auto check = [&](std::int32_t id, const char* what) {
        if (!vocabulary_.contains(id))
            throw Error(ErrorKind::input, label + ": expected a token id below " + std::to_string(size()) +
                                              " as " + what + ", found " + std::to_string(id) + ".");
    };
    if (ids_.bos >= 0) check(ids_.bos, "the beginning of text");
    for (const std::int32_t id : ids_.eos)
        check(id, "an end of text");
    for (const std::int32_t id : ids_.prefix)
        check(id, "a token before each text");
    std::vector<std::int32_t> eos;
    const auto add = [&eos](std::int32_t id) {
        if (std::find(eos.begin(), eos.end(), id) == eos.end()) eos.push_back(id);
    };
    for (const std::int32_t id : ids_.eos)
        add(id);
    for (const std::int32_t id : turn_ends(vocabulary_))
        add(id);
    ids_.eos = std::move(eos);
    for (const std::int32_t id : ids_.eos)
        vocabulary_.make_control(id);
    if (ids_.bos >= 0) vocabulary_.make_control(ids_.bos);
}

std::string_view TokenizerBase::bytes(std::int32_t id) const {
    return vocabulary_.contains(id) ? std::string_view(vocabulary_[id].bytes) : std::string_view();
}
std::string_view TokenizerBase::spelling(std::int32_t id) const {
    return vocabulary_.contains(id) ? std::string_view(vocabulary_[id].spelling) : std::string_view();
}
bool TokenizerBase::is_special(std::int32_t id) const {
    return vocabulary_.contains(id) && vocabulary_[id].kind == TokenKind::control;
}

std::vector<std::int32_t> TokenizerBase::encode(std::string_view text, const EncodeOptions& options) const {
    check_length(text.size());
    std::string repaired;
    if (wants_valid_utf8() && !is_valid_utf8(text)) text = repaired = replace_invalid_utf8(text);
    std::vector<std::int32_t> out;
    if (options.add_bos) out = ids_.prefix;
    std::vector<UserSpan> user;
    if (!options.parse_special) user.push_back({0, text.size()});
    encode_parts(text, user, options.at_start, out);
    return out;
}

std::vector<std::int32_t> TokenizerBase::encode_pieces(std::span<const TextPiece> pieces) const {
    std::string text;
    std::vector<UserSpan> user;
    for (const TextPiece& piece : pieces) {
        const std::size_t begin = text.size();
        text +=
            wants_valid_utf8() && !is_valid_utf8(piece.text) ? replace_invalid_utf8(piece.text) : piece.text;
        check_length(text.size());
        if (piece.from_user && text.size() > begin) user.push_back({begin, text.size()});
    }
    std::vector<std::int32_t> out;
    encode_parts(text, user, true, out);
    return out;
}

void TokenizerBase::encode_parts(std::string_view text, const std::vector<UserSpan>& user, bool at_start,
                                 std::vector<std::int32_t>& out) const {
    const std::unique_ptr<RunScratch> scratch = make_scratch();
    Run run{.at_start = at_start};
    for (const AddedTokenMatcher::Part& part : added_.cut(text, user)) {
        if (part.token >= 0) {
            out.push_back(part.token);
            run.after_token = true;
        } else {
            run.text = part.text;
            encode_run(run, scratch.get(), out);
            run.after_token = false;
        }
        run.at_start = false;
    }
}

std::vector<AddedToken> added_tokens_of(const std::vector<VocabularyToken>& tokens) {
    std::vector<AddedToken> added;
    for (std::size_t id = 0; id < tokens.size(); ++id) {
        const VocabularyToken& token = tokens[id];
        const bool control = token.kind == TokenKind::control;
        if (control || token.kind == TokenKind::user_defined)
            added.push_back({.text = token.bytes, .id = static_cast<std::int32_t>(id), .control = control});
    }
    return added;
}

}  // namespace recto
