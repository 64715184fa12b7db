// The tokenizer side of a Hugging Face folder.
#pragma once
#include <filesystem>

#include "engine/load/model_source.h"

namespace recto {

bool has_folder_tokenizer(const std::filesystem::path& folder);
// tokenizer.json where there is one, else tokenizer.model; and the chat template by the order in which
// transformers looks for it: chat_template.jinja, tokenizer_config.json,
// additional_chat_templates/default.jinja. Error(input) if the folder has no tokenizer.
TokenizerFiles read_folder_tokenizer(const std::filesystem::path& folder);
// The same with the vocabulary from this file (tokenizer.json or tokenizer.model), the rest from beside it.
TokenizerFiles read_tokenizer_file(const std::filesystem::path& file);

}  // namespace recto
