// GPT-2's map between bytes and printable characters: byte-level vocabularies are written in it, so that
// every token is readable text ("Ġthe" is a blank and "the"). Source: Radford et al. 2019, encoder.py of the
// GPT-2 release.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace recto {

// Each byte as its character; any bytes are allowed.
std::string bytes_to_map(std::string_view bytes);
// The bytes that a spelling stands for; nothing if it holds a character outside the map.
std::optional<std::string> map_to_bytes(std::string_view spelling);

// SentencePiece's byte tokens: "<0x0A>" and back; -1 for any other spelling.
std::string byte_token(unsigned char byte);
int byte_of_token(std::string_view spelling);

}  // namespace recto
