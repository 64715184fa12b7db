#include "engine/text/tokenizer.h"

#include "engine/text/make_tokenizer.h"
#include "kernels/error.h"

namespace recto {

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerFiles& files) {
    if (files.gguf) {
        if (files.gguf->model == "gpt2") return make_gguf_bpe_tokenizer(files);
        if (files.gguf->model == "llama") return make_gguf_sentencepiece_tokenizer(files);
        throw Error(ErrorKind::input,
                    files.label +
                        ": expected tokenizer.ggml.model \"gpt2\" (byte-level BPE) or \"llama\" "
                        "(SentencePiece), found \"" +
                        files.gguf->model + "\".");
    }
    if (!files.tokenizer_json.empty()) return make_json_tokenizer(files);
    if (!files.sentencepiece_model.empty()) return make_sentencepiece_tokenizer(files);
    throw Error(ErrorKind::input, files.label +
                                      ": expected a tokenizer (tokenizer.json, tokenizer.model or a GGUF "
                                      "vocabulary), found none.");
}

std::vector<std::int32_t> Tokenizer::encode_pieces(std::span<const TextPiece> pieces) const {
    std::vector<std::int32_t> out;
    for (std::size_t i = 0; i < pieces.size();) {
        const bool from_user = pieces[i].from_user;
        const bool at_start = i == 0;
        std::string text;
        for (; i < pieces.size() && pieces[i].from_user == from_user; ++i)
            text += pieces[i].text;
        const auto ids = encode(text, {.add_bos = false, .parse_special = !from_user, .at_start = at_start});
        out.insert(out.end(), ids.begin(), ids.end());
    }
    return out;
}

std::vector<std::int32_t> encode_pieces(const Tokenizer& tokenizer, std::span<const TextPiece> pieces) {
    std::vector<std::int32_t> ids = tokenizer.encode_pieces(pieces);
    const std::int32_t bos = tokenizer.bos();
    if (bos >= 0 && ids.size() >= 2 && ids[0] == bos && ids[1] == bos) ids.erase(ids.begin());
    return ids;
}

std::string decode(const Tokenizer& tokenizer, std::span<const std::int32_t> ids,
                   const DecodeOptions& options) {
    Detokenizer detokenizer(tokenizer, options);
    std::string text;
    for (const std::int32_t id : ids)
        text += detokenizer.append(id);
    return text += detokenizer.flush();
}

}  // namespace recto
