// The vocabulary of the starter model (RECTO_STARTER_MODEL names the file), and stored expectations.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/text/tokenizer.h"

namespace recto::test {

// Throws std::runtime_error if the variable is unset or the file is no GGUF with a vocabulary.
TokenizerFiles starter_files();
// tests/data/text/NAME, parsed.
nlohmann::json stored(const std::string& name);
std::string stored_text(const std::string& name);
std::string from_hex(const std::string& hex);
// FNV-1a of the ids as "1,2,3", as tests/data/text/make_pre.py stores them.
std::uint32_t hash_of_ids(const std::vector<std::int32_t>& ids);

}  // namespace recto::test
