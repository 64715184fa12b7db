#include "ui/host/template_choice.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "engine/text/known_templates.h"

namespace recto::ui {

std::string template_for_vocabulary(const Tokenizer& tokenizer) {
    // A token that only this format writes. Order matters: Phi-3 has Zephyr's role tokens too.
    constexpr std::array<std::pair<const char*, const char*>, 6> marks{{{"<|im_start|>", "chatml"},
                                                                        {"<|start_header_id|>", "llama3"},
                                                                        {"<start_of_turn>", "gemma"},
                                                                        {"<|end|>", "phi3"},
                                                                        {"[INST]", "mistral"},
                                                                        {"<|assistant|>", "zephyr"}}};
    for (const auto& [token, name] : marks)
        if (tokenizer.find(token) >= 0) return name;
    return {};
}

std::vector<std::string> known_template_names(const std::string& first) {
    std::vector<std::string> names;
    for (const std::string_view name : known_template_families())
        names.emplace_back(name);
    const auto at = std::find(names.begin(), names.end(), first);
    if (at != names.end()) std::rotate(names.begin(), at, at + 1);
    return names;
}

std::function<const ChatTemplate*(const std::string&)> known_template_finder() {
    auto parsed = std::make_shared<std::map<std::string, ChatTemplate>>();
    return [parsed](const std::string& name) -> const ChatTemplate* {
        auto at = parsed->find(name);
        if (at == parsed->end()) {
            std::optional<std::string> source = known_template(name);
            if (!source) return nullptr;
            at = parsed->emplace(name, ChatTemplate(std::move(*source))).first;
        }
        return &at->second;
    };
}

}  // namespace recto::ui
