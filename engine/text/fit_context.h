// A conversation that has outgrown the context: what of it goes to the model, and what was left out.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

namespace recto {

enum class ContextEnd : std::uint8_t {
    stop,      // nothing is left out: what does not fit is refused, and an answer ends where the context ends
    truncate,  // the prompt loses its beginning, token by token (truncate_prompt_tokens)
    drop_oldest,  // whole turns are left out, the oldest first
};

struct ContextLimit {
    ContextEnd end = ContextEnd::stop;
    int tokens = 0;   // of the whole context
    int reserve = 0;  // of them, for the answer
};

struct FittedContext {
    std::vector<std::int32_t> ids;      // the prompt
    std::vector<std::size_t> left_out;  // indexes of the messages that are not in it, ascending
    int left_out_tokens = 0;            // of the whole prompt that are not in this one
};

// Encodes the conversation without the messages of these indexes.
using EncodeConversation = std::function<std::vector<std::int32_t>(std::span<const std::size_t> left_out)>;

// `roles`: of the messages, in order. Dropping leaves out one large piece, so that the next turns fit too and
// find their past in the prefix cache: as few of the oldest turns as leave half of the room free. System
// messages at the beginning stay, what is kept begins with a user's message, and the newest user's message is
// never left out. Error(argument) with the numbers when the prompt does not fit all the same, and for `stop`.
FittedContext fit_context(std::span<const std::string> roles, const EncodeConversation& encode,
                          const ContextLimit& limit);

// The same for messages as a chat template takes them.
FittedContext fit_context(const Json& messages, const ChatTemplate& chat_template,
                          const TemplateOptions& options, const Tokenizer& tokenizer,
                          const ContextLimit& limit);

}  // namespace recto
