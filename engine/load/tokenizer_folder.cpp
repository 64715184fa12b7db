#include "engine/load/tokenizer_folder.h"

#include "engine/load/json_reader.h"
#include "engine/load/mapped_file.h"
#include "engine/load/refuse.h"

namespace recto {

namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
}

// special_tokens_map.json, written beside older tokenizer_config.json files, names tokens that those leave
// out.
std::string with_special_tokens(const std::string& config, const fs::path& config_file,
                                const fs::path& map_file) {
    auto merged =
        config.empty() ? nlohmann::ordered_json::object() : parse_json(config, config_file.string());
    const auto map = parse_json(read_text_file(map_file), map_file.string());
    (void)JsonObject(merged, config_file.string());
    (void)JsonObject(map, map_file.string());
    bool changed = false;
    for (const auto& [key, value] : map.items())
        if (!merged.contains(key)) {
            merged[key] = value;
            changed = true;
        }
    return changed ? merged.dump() : config;
}

// tokenizer_config.json's "chat_template": a string, or a list of {name, template} of which "default" counts.
std::string template_in(const std::string& config_json, const std::string& label) {
    if (config_json.empty()) return {};
    const auto json = parse_json(config_json, label);
    const auto* value = JsonObject(json, label).find("chat_template");
    if (value == nullptr) return {};
    if (value->is_string()) return value->get<std::string>();
    if (!value->is_array())
        refuse(label, "\"chat_template\" should be a string or a list of named templates");
    for (const auto& element : *value) {
        const JsonObject named(element, label);
        if (named.text("name") == "default") return named.text("template").value_or("");
    }
    return {};
}

void read_template(const fs::path& folder, TokenizerFiles& files) {
    const auto from_file = [&](const char* name) {
        if (!files.chat_template_source.empty() || !is_file(folder / name)) return;
        files.chat_template = read_text_file(folder / name);
        files.chat_template_source = name;
    };
    from_file("chat_template.jinja");
    if (files.chat_template_source.empty()) {
        files.chat_template =
            template_in(files.tokenizer_config_json, (folder / "tokenizer_config.json").string());
        if (!files.chat_template.empty()) files.chat_template_source = "tokenizer_config.json";
    }
    from_file("additional_chat_templates/default.jinja");
}

void read_companions(const fs::path& folder, TokenizerFiles& files) {
    const fs::path config = folder / "tokenizer_config.json", map = folder / "special_tokens_map.json";
    if (is_file(config)) files.tokenizer_config_json = read_text_file(config);
    if (is_file(map))
        files.tokenizer_config_json = with_special_tokens(files.tokenizer_config_json, config, map);
    read_template(folder, files);
}

}  // namespace

bool has_folder_tokenizer(const fs::path& folder) {
    return is_file(folder / "tokenizer.json") || is_file(folder / "tokenizer.model");
}

TokenizerFiles read_folder_tokenizer(const fs::path& folder) {
    for (const char* name : {"tokenizer.json", "tokenizer.model"})
        if (is_file(folder / name)) return read_tokenizer_file(folder / name);
    refuse(folder.string(), "a tokenizer was expected (tokenizer.json or tokenizer.model), found none");
}

TokenizerFiles read_tokenizer_file(const fs::path& file) {
    TokenizerFiles files;
    files.label = file.string();
    if (file.extension() == ".json") {
        files.tokenizer_json = read_text_file(file);
    } else {
        files.sentencepiece_model = read_text_file(file);
    }
    read_companions(file.parent_path(), files);
    return files;
}

}  // namespace recto
