#include "engine/load/safetensors_index.h"

#include "engine/load/json_reader.h"
#include "engine/load/refuse.h"

namespace recto {

namespace {

bool is_plain_name(const std::string& file) {
    return !file.empty() && file != "." && file != ".." && file.find_first_of("/\\") == std::string::npos &&
           file.find('\0') == std::string::npos;
}

}  // namespace

std::map<std::string, std::string> read_safetensors_index(std::string_view text, const std::string& label) {
    const auto json = parse_json(text, label);
    const auto map = JsonObject(json, label).find("weight_map");
    if (map == nullptr || !map->is_object())
        refuse(label, "\"weight_map\", an object of tensor names and files, was expected");
    std::map<std::string, std::string> files;
    for (const auto& [name, file] : map->items()) {
        if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>()))
            refuse(label, "tensor " + shown(name) + " should lie in a file of the same folder, found " +
                              shown(file.dump(-1, ' ', true)));
        files.emplace(name, file.get<std::string>());
    }
    return files;
}

}  // namespace recto
