// The requests of `generate`: from --prompt, from a .txt (one prompt a line) or a .jsonl file (one request a
// line).
#pragma once
#include <string>
#include <vector>

#include "engine/engine.h"

namespace recto::cli {

struct PromptRequest {
    std::string prompt;  // as shown: the text, or the rendered messages
    Request request;
    std::string error;  // not empty: it could not be made; the others run all the same
};

// Error(input) names file and line. `defaults` are the sampling flags; a request's own fields win.
std::vector<PromptRequest> read_prompts(const std::string& file, const Model& model,
                                        const SamplingParams& defaults);
PromptRequest text_prompt(const std::string& text, const Model& model, const SamplingParams& sampling);

}  // namespace recto::cli
