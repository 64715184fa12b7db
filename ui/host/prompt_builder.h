// From a conversation to token ids: renders the chat template, encodes its pieces, and takes over the ids of
// earlier answers as they were generated, so that the next turn finds its own past in the prefix cache.
// (Encoding an answer's text again may give other ids for the same text.)
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "ui/host/host_types.h"

namespace recto::ui {

struct BuiltPrompt {
    std::vector<std::int32_t> ids;
    std::string text;  // as rendered
    int spliced_tokens = 0;
};

// Error(input) from the template. User text never becomes a control token.
BuiltPrompt build_prompt(const AnswerRequest& request, const Tokenizer& tokenizer,
                         const ChatTemplate& chat_template);

}  // namespace recto::ui
