// The parts of a tokenizer.json (Hugging Face's tokenizers library), read into Recto's. What is not supported
// is Error(input) that names the part; nothing is skipped.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/text/bpe_tokenizer.h"

namespace recto {

// Reads fields of one JSON object; errors say file, part and field.
class JsonPart {
  public:
    JsonPart(const nlohmann::json& value, std::string label, std::string where);

    std::string type() const { return text("type"); }
    std::string text(const char* key) const;
    std::string text(const char* key, const std::string& otherwise) const;  // absent or null: otherwise
    bool flag(const char* key, bool otherwise) const;
    std::int64_t number(const char* key, std::int64_t otherwise) const;
    bool has(const char* key) const;  // present and not null
    const nlohmann::json& list(const char* key) const;
    const nlohmann::json& object(const char* key) const;
    JsonPart part(const char* key) const;              // an object inside
    JsonPart part(const nlohmann::json& value) const;  // an element of a list inside
    const std::string& label() const { return label_; }
    [[noreturn]] void fail(const std::string& expected, const std::string& found) const;
    [[noreturn]] void unsupported(const std::string& what) const;

  private:
    const nlohmann::json* field(const char* key) const;
    const nlohmann::json* value_;
    std::string label_, where_;
};

Normalizer json_normalizer(const JsonPart& part);

// The byte map is applied only if a later step looks at the mapped characters; merges work on the bytes
// themselves.
enum class ByteMapUse : std::uint8_t { none, wanted, applied };
void json_pre_tokenizer(const JsonPart& part, PreTokenizerSteps& steps, ByteMapUse& byte_map);

// How tokens are written as text.
struct JsonDecoder {
    bool byte_level = false;     // spellings are in GPT-2's byte map
    bool byte_fallback = false;  // "<0x41>" is a byte
    bool strips_leading_space = false;
    std::vector<std::pair<std::string, std::string>> replacements;  // in order
};
void json_decoder(const JsonPart& part, JsonDecoder& decoder);
// Ids that the post-processor puts before a text.
std::vector<std::int32_t> json_prefix(const JsonPart& part);

// A pattern {"String": …} or {"Regex": …}.
Regex json_pattern(const JsonPart& part, const char* key);

}  // namespace recto
