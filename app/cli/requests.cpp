#include "app/cli/requests.h"

#include <limits>
#include <sstream>

#include "app/cli/common.h"
#include "app/cli/sampling.h"
#include "engine/json_text.h"
#include "engine/load/json_reader.h"
#include "kernels/error.h"

namespace recto::cli {
namespace {

const Tokenizer& tokenizer_of(const Model& model) {
    if (!model.tokenizer)
        throw Error(
            ErrorKind::input,
            model.path.string() +
                ": expected a tokenizer for a text prompt, found none; give prompt_token_ids instead");
    return *model.tokenizer;
}

// The rendered conversation, encoded piece by piece: only the template's own text becomes control tokens.
void set_messages(PromptRequest& made, const Json& messages, const Model& model) {
    const Tokenizer& tokenizer = tokenizer_of(model);
    if (!model.chat_template)
        throw Error(ErrorKind::input,
                    model.path.string() + ": expected a chat template for messages, found " +
                        (model.chat_template_error.empty() ? "none" : model.chat_template_error));
    TemplateOptions options;
    options.cancelled = interrupted;
    options.bos_token = tokenizer.spelling(tokenizer.bos());
    if (!tokenizer.eos().empty()) options.eos_token = tokenizer.spelling(tokenizer.eos().front());
    const std::vector<TextPiece> pieces = model.chat_template->render(messages, options);
    for (const TextPiece& piece : pieces)
        made.prompt += piece.text;
    made.request.prompt = encode_pieces(tokenizer, pieces);
}

// Checked by value: the JSON library would cut 4294967297 and 1.5 down to 1.
int whole_number(const Json& value, const std::string& key) {
    constexpr int largest = std::numeric_limits<int>::max();
    if (!value.is_number_integer() || value < -largest || value > largest)
        throw Error(ErrorKind::input, key + " must be a whole number of 32 bits, got " + json_text(value));
    return value.get<int>();
}

PromptRequest json_request(const Json& object, const Model& model, const SamplingParams& defaults) {
    if (!object.is_object())
        throw Error(ErrorKind::input, "expected a JSON object, found " + std::string(object.type_name()));
    PromptRequest made;
    made.request.sampling = defaults;
    const auto sources = object.count("prompt") + object.count("messages") + object.count("prompt_token_ids");
    if (sources != 1)
        throw Error(ErrorKind::input,
                    "expected exactly one of prompt, messages and prompt_token_ids, found " +
                        std::to_string(sources));
    int priority = 0;
    for (const auto& [key, value] : object.items()) {
        if (key == "prompt") {
            made = text_prompt(value.get<std::string>(), model, made.request.sampling);
        } else if (key == "messages") {
            set_messages(made, value, model);
        } else if (key == "prompt_token_ids") {
            made.request.prompt = token_ids(value, key, ErrorKind::input);
        } else if (key == "priority") {
            priority = whole_number(value, key);
        } else if (!set_sampling_parameter(made.request.sampling, key, value)) {
            throw Error(ErrorKind::input, "unknown field \"" + key +
                                              "\"; a request has prompt, messages or prompt_token_ids, "
                                              "sampling parameters and a priority");
        }
    }
    made.request.priority = priority;
    // A beam search allows no other temperature: left out, it is 0 there.
    if (made.request.sampling.use_beam_search && !object.contains("temperature") &&
        (object.contains("use_beam_search") || object.contains("beam_width")))
        made.request.sampling.temperature = 0;
    return made;
}

}  // namespace

PromptRequest text_prompt(const std::string& text, const Model& model, const SamplingParams& sampling) {
    PromptRequest made;
    made.prompt = text;
    made.request.prompt = tokenizer_of(model).encode(text);
    made.request.sampling = sampling;
    return made;
}

std::vector<PromptRequest> read_prompts(const std::string& file, const Model& model,
                                        const SamplingParams& defaults) {
    const bool json = file.ends_with(".jsonl");
    if (!json && !file.ends_with(".txt") && file != "-")
        throw Error(
            ErrorKind::argument,
            file + ": expected a .jsonl file (one request a line) or a .txt file (one prompt a line)");
    std::istringstream lines(read_file(file));
    std::vector<PromptRequest> requests;
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (line.empty()) continue;
        if (!json) {
            requests.push_back(text_prompt(line, model, defaults));
            continue;
        }
        const std::string where = file + ": line " + std::to_string(number);
        const Json object = parse_json(line, where);
        try {
            requests.push_back(json_request(object, model, defaults));
        } catch (const nlohmann::json::exception& e) {
            throw Error(ErrorKind::input, where + ": expected a JSON request, found " + e.what());
        } catch (const Error& e) {
            throw Error(e.kind(), where + ": " + e.what());
        }
    }
    if (requests.empty()) throw Error(ErrorKind::input, file + ": expected at least one prompt, found none");
    return requests;
}

}  // namespace recto::cli
