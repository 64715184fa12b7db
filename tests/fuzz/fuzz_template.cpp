// Any bytes as a chat template, rendered over fixed messages: an error or a text, never a crash or a hang;
// and the person's control-token spelling never lies in a piece of the template's own.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/text/chat_template.h"
#include "kernels/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace recto;
    static const Json messages = Json::parse(R"([
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi \u00e9\u4f60 \ue000\ue001\ue002"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"x": [1, 2.5, null]}}}]},
        {"role": "tool", "content": "42"}])");
    TemplateOptions options;
    options.now_unix_s = 1750000000;
    options.bos_token = "<s>";
    options.variables = Json::parse(R"({"tools": [{"name": "f"}], "n": 3})");
    const std::string source(reinterpret_cast<const char*>(data), size);
    try {
        const ChatTemplate chat_template(source);
        std::string joined;
        for (const TextPiece& piece : chat_template.render(messages, options)) {
            // The marker's characters occur nowhere else unless the template's source writes them.
            const bool from_source =
                source.find("\xEE\x80") != std::string::npos || source.find('\\') != std::string::npos;
            if (!piece.from_user && !from_source && piece.text.find("\xEE\x80\x81") != std::string::npos)
                std::abort();
            joined += piece.text;
        }
        if (joined != chat_template.render_text(messages, options)) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
