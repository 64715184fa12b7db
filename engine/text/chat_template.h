// Chat templates: a Jinja interpreter that renders what Python's jinja2 renders under Hugging Face's settings
// (trim_blocks, lstrip_blocks, loop controls, generation blocks, tojson without HTML escapes). What it lacks is a
// named error, not a wrong prompt. Work, recursion and output are bounded.
#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/text/tokenizer.h"

namespace recto {

using Json = nlohmann::ordered_json;  // key order is kept: tojson prints it

struct TemplateOptions {
    bool add_generation_prompt = true;
    std::string bos_token, eos_token;   // spellings, given to the template by name
    Json variables = Json::object();    // tools, enable_thinking, date_string, other special tokens …
    std::int64_t now_unix_s = 0;        // for strftime_now; 0: the clock
    std::function<bool()> cancelled;    // asked while it renders, often; true: Error(cancelled)
};

class ChatTemplate {
  public:
    // Error(input) with line and what was not understood.
    explicit ChatTemplate(std::string source);
    ~ChatTemplate();
    ChatTemplate(ChatTemplate&&) noexcept;
    ChatTemplate& operator=(ChatTemplate&&) noexcept;

    // messages: [{"role": …, "content": …}, …]. Pieces carry their origin: text that came out of a message's values
    // is from_user. Error(input) for raise_exception (its text) and for anything the interpreter cannot do.
    std::vector<TextPiece> render(const Json& messages, const TemplateOptions& options) const;
    std::string render_text(const Json& messages, const TemplateOptions& options) const;  // pieces joined
    const std::string& source() const;

  private:
    struct Program;
    std::unique_ptr<const Program> program_;
};

}  // namespace recto
