// The few fields of SentencePiece's model file (sentencepiece_model.proto, a protocol buffer) that Recto
// reads, and the file made anew from a GGUF vocabulary, so that the library itself does the encoding.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace recto {

struct SentencePieceProto {
    enum Type : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
    struct Piece {
        std::string text;
        float score = 0.0F;
        Type type = normal;
    };
    std::vector<Piece> pieces;
    std::int32_t model_type = 1;  // 1 unigram, 2 BPE, 3 word, 4 character
    bool byte_fallback = false;
    std::int32_t unknown_id = 0, bos_id = 1, eos_id = 2, padding_id = -1;
    bool whitespace_as_suffix = false;
    bool add_dummy_prefix = true;
    bool remove_extra_whitespaces = true;
};

// Error(input) if the bytes are no such file.
SentencePieceProto read_sentencepiece_proto(std::string_view serialized, const std::string& label);
std::string write_sentencepiece_proto(const SentencePieceProto& proto);
// The same model file with these pieces as control pieces; sorted ids.
std::string sentencepiece_with_controls(std::string_view serialized, const std::vector<std::int32_t>& ids,
                                        const std::string& label);
// Bytes that, appended to a model file, turn the dummy prefix off: the last value of a field counts.
std::string sentencepiece_without_prefix();

}  // namespace recto
