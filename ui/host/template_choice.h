// The known chat templates that may stand in for a model's own.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

namespace recto::ui {

// Which known template the vocabulary was made for, judged by its control tokens; empty: none is recognised.
std::string template_for_vocabulary(const Tokenizer& tokenizer);

// All names, `first` (if not empty) at the head.
std::vector<std::string> known_template_names(const std::string& first);

// Looks a known template up by name, parsing it at first need; null: no such name. For one thread.
std::function<const ChatTemplate*(const std::string&)> known_template_finder();

}  // namespace recto::ui
