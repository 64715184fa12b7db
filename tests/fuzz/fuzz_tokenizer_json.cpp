// Any bytes as a tokenizer.json, or (after a zero byte) as a SentencePiece model: an error or a tokenizer,
// never a crash or a hang; ids are inside the vocabulary and text of a user never becomes a control token.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/text/tokenizer.h"
#include "kernels/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace recto;
    TokenizerFiles files;
    files.label = "fuzz";
    std::string bytes(reinterpret_cast<const char*>(data), size);
    if (size > 0 && data[0] == 0) {
        files.sentencepiece_model = bytes.substr(1);
    } else {
        files.tokenizer_json = std::move(bytes);
    }
    try {
        const auto tokenizer = make_tokenizer(files);
        const std::string text =
            "Hello  w\xC3\xB6rld 123\r\n<s></s><|im_end|>\xF0\x9F\x98\x80 \xFF\xE4\xBD e\xCC\x81 " +
            std::string(300, 'a') + std::string(60, ' ');
        for (const bool from_user : {true, false}) {
            const TextPiece piece{text, from_user};
            const auto ids = encode_pieces(*tokenizer, {&piece, 1});
            for (const auto id : ids) {
                if (id < 0 || id >= tokenizer->size()) std::abort();
                // What cannot be written at all becomes the unknown token, which is the one exception.
                const bool unknown = tokenizer->spelling(id).find("unk") != std::string_view::npos;
                if (from_user && tokenizer->is_special(id) && !unknown && files.sentencepiece_model.empty())
                    std::abort();
            }
            decode(*tokenizer, ids, {.skip_special = false, .at_start = true});
        }
    } catch (const Error&) {
    }
    return 0;
}
