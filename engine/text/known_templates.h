// Prompt formats that families document, as short templates of our own. They stand in when a model's own
// template is absent or broken; the chat then says which one is in use.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace recto {

// "chatml", "llama3", "llama2", "mistral", "gemma", "phi3", "zephyr", "vicuna".
std::span<const std::string_view> known_template_families();

// Jinja source, or nothing for a family that is not in the list.
std::optional<std::string> known_template(std::string_view family);

}  // namespace recto
