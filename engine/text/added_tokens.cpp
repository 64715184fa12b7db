#include "engine/text/added_tokens.h"

#include <utf8proc.h>

#include <utility>

#include "engine/text/utf8.h"

namespace recto {

namespace {

// The character that ends right before `at`, or begins at it; 0 at the borders of the text.
char32_t character_before(std::string_view text, std::size_t at) {
    if (at == 0) return 0;
    std::size_t begin = at - 1;
    while (begin > 0 && at - begin < 4 && !is_utf8_start(text[begin]))
        --begin;
    return utf8_step(text.substr(begin, at - begin)).code_point;
}
char32_t character_at(std::string_view text, std::size_t at) {
    return at < text.size() ? utf8_step(text.substr(at)).code_point : 0;
}

// Unicode's White_Space.
bool is_blank(char32_t c) {
    if ((c >= 0x09 && c <= 0x0D) || c == 0x85) return true;
    const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
           category == UTF8PROC_CATEGORY_ZP;
}

// \w of Unicode's regular expressions (UTS 18, annex C).
bool is_word(char32_t c) {
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO:
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_MC:
        case UTF8PROC_CATEGORY_ME:
        case UTF8PROC_CATEGORY_ND:
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_PC:
            return true;
        default:
            return c == 0x200C || c == 0x200D;
    }
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
    roots_.fill(-1);
    std::erase_if(tokens_, [](const AddedToken& t) { return t.text.empty(); });
    for (std::size_t i = 0; i < tokens_.size(); ++i)
        insert(static_cast<std::int32_t>(i));
}

std::int32_t AddedTokenMatcher::step(std::int32_t node, char byte) const {
    std::int32_t child = nodes_[static_cast<std::size_t>(node)].child;
    while (child >= 0 && nodes_[static_cast<std::size_t>(child)].byte != byte)
        child = nodes_[static_cast<std::size_t>(child)].sibling;
    return child;
}

void AddedTokenMatcher::insert(std::int32_t token) {
    const std::string& text = tokens_[static_cast<std::size_t>(token)].text;
    std::int32_t& root = roots_[static_cast<unsigned char>(text[0])];
    if (root < 0) {
        root = static_cast<std::int32_t>(nodes_.size());
        nodes_.push_back({.byte = text[0]});
    }
    std::int32_t node = root;
    for (std::size_t i = 1; i < text.size(); ++i) {
        std::int32_t child = step(node, text[i]);
        if (child < 0) {
            child = static_cast<std::int32_t>(nodes_.size());
            nodes_.push_back({.sibling = nodes_[static_cast<std::size_t>(node)].child, .byte = text[i]});
            nodes_[static_cast<std::size_t>(node)].child = child;
        }
        node = child;
    }
    nodes_[static_cast<std::size_t>(node)].token = token;
}

std::int32_t AddedTokenMatcher::match(std::string_view text, std::size_t at, std::size_t user_begin) const {
    std::int32_t best = -1;
    std::int32_t node = roots_[static_cast<unsigned char>(text[at])];
    for (std::size_t end = at + 1; node >= 0; ++end) {
        const std::int32_t token = nodes_[static_cast<std::size_t>(node)].token;
        if (token >= 0) {
            const AddedToken& t = tokens_[static_cast<std::size_t>(token)];
            const bool allowed =
                (!t.control || end <= user_begin) && (!t.single_word || stands_alone(text, at, end));
            if (allowed) best = token;
        }
        if (end == text.size()) break;
        node = step(node, text[end]);
    }
    return best;
}

bool AddedTokenMatcher::stands_alone(std::string_view text, std::size_t begin, std::size_t end) const {
    return !is_word(character_before(text, begin)) && !is_word(character_at(text, end));
}

std::vector<AddedTokenMatcher::Part> AddedTokenMatcher::cut(std::string_view text,
                                                            const std::vector<UserSpan>& user) const {
    std::vector<Part> parts;
    std::size_t done = 0;
    auto span = user.begin();
    for (std::size_t at = 0; at < text.size();) {
        if (roots_[static_cast<unsigned char>(text[at])] < 0) {
            ++at;
            continue;
        }
        while (span != user.end() && span->end <= at)
            ++span;
        // Control tokens must end before the next byte that a user wrote.
        const std::size_t user_begin = span == user.end() ? text.size() : span->begin;
        const std::int32_t found = match(text, at, user_begin);
        if (found < 0) {
            ++at;
            continue;
        }
        const AddedToken& token = tokens_[static_cast<std::size_t>(found)];
        std::size_t begin = at;
        std::size_t end = at + token.text.size();
        if (token.lstrip) {
            for (char32_t c = 0; begin > done && is_blank(c = character_before(text, begin));) {
                do
                    --begin;
                while (begin > done && !is_utf8_start(text[begin]));
            }
        }
        if (token.rstrip)
            while (end < text.size() && is_blank(character_at(text, end)))
                end += utf8_step(text.substr(end)).bytes;
        if (begin > done) parts.push_back({text.substr(done, begin - done), -1});
        parts.push_back({text.substr(at, token.text.size()), token.id});
        done = at = end;
    }
    if (done < text.size()) parts.push_back({text.substr(done), -1});
    return parts;
}

}  // namespace recto
