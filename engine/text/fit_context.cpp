#include "engine/text/fit_context.h"

#include <algorithm>
#include <numeric>

#include "kernels/error.h"

namespace recto {
namespace {

[[noreturn]] void refuse(const std::string& what, std::size_t tokens, const ContextLimit& limit,
                         const char* advice) {
    throw Error(ErrorKind::argument, what + " " + std::to_string(tokens) + " tokens, but the context holds " +
                                         std::to_string(limit.tokens) + ", of which " +
                                         std::to_string(limit.reserve) +
                                         " are kept for the answer: " + advice);
}

// Where what is kept may begin: at every user's message after the leading system messages.
std::vector<std::size_t> beginnings(std::span<const std::string> roles, std::size_t first) {
    std::vector<std::size_t> result;
    for (std::size_t i = first; i < roles.size(); ++i)
        if (roles[i] == "user") result.push_back(i);
    return result;
}

std::vector<std::size_t> indexes(std::size_t first, std::size_t last) {
    std::vector<std::size_t> result(last - first);
    std::iota(result.begin(), result.end(), first);
    return result;
}

}  // namespace

FittedContext fit_context(std::span<const std::string> roles, const EncodeConversation& encode,
                          const ContextLimit& limit) {
    FittedContext fitted;
    fitted.ids = encode({});
    const std::size_t whole = fitted.ids.size();
    const auto room = std::size_t(std::max(1, limit.tokens - std::max(1, limit.reserve)));
    if (whole <= room) return fitted;
    switch (limit.end) {
        case ContextEnd::stop:
            refuse("the conversation has", whole, limit, "shorten it, or let the oldest turns be left out");
        case ContextEnd::truncate:
            fitted.left_out_tokens = int(whole - room);
            fitted.ids.erase(fitted.ids.begin(), fitted.ids.end() - std::ptrdiff_t(room));
            return fitted;
        case ContextEnd::drop_oldest:
            break;
    }
    std::size_t first = 0;
    while (first < roles.size() && roles[first] == "system")
        ++first;
    const std::vector<std::size_t> starts = beginnings(roles, first);
    const auto try_start = [&](std::size_t start) {
        fitted.left_out = indexes(first, start);
        fitted.ids = encode(fitted.left_out);
        return fitted.ids.size();
    };
    // Fewer messages are fewer tokens, so the first beginning that leaves half of the room is found by
    // halves.
    std::size_t low = 0, high = starts.empty() ? 0 : starts.size() - 1;
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (try_start(starts[middle]) <= room / 2)
            high = middle;
        else
            low = middle + 1;
    }
    const std::size_t tokens = starts.empty() ? whole : try_start(starts[low]);
    if (tokens > room)
        refuse("the newest message, with the system prompt, has", tokens, limit,
               "shorten it, or load the model with a longer context");
    fitted.left_out_tokens = int(whole - tokens);
    return fitted;
}

FittedContext fit_context(const Json& messages, const ChatTemplate& chat_template,
                          const TemplateOptions& options, const Tokenizer& tokenizer,
                          const ContextLimit& limit) {
    std::vector<std::string> roles;
    for (const Json& m : messages)
        roles.push_back(m.at("role").get<std::string>());
    const auto encode = [&](std::span<const std::size_t> left_out) {
        Json kept = Json::array();
        for (std::size_t i = 0; i < messages.size(); ++i)
            if (!std::ranges::binary_search(left_out, i)) kept.push_back(messages[i]);
        return encode_pieces(tokenizer, chat_template.render(kept, options));
    };
    return fit_context(roles, encode, limit);
}

}  // namespace recto
