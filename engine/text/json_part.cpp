#include "engine/text/json_parts.h"
#include "kernels/error.h"

namespace recto {

JsonPart::JsonPart(const nlohmann::json& value, std::string label, std::string where)
    : value_(&value), label_(std::move(label)), where_(std::move(where)) {
    if (std::count(where_.begin(), where_.end(), '.') > 32) fail("at most 32 nested parts", "more");
    if (!value.is_object()) fail("an object", value.type_name());
}

void JsonPart::fail(const std::string& expected, const std::string& found) const {
    throw Error(ErrorKind::input,
                label_ + ": expected " + expected + " in " + where_ + ", found " + found + ".");
}
void JsonPart::unsupported(const std::string& what) const {
    throw Error(ErrorKind::input,
                label_ + ": " + where_ + " asks for " + what +
                    ", which is not supported: use another conversion of this model's tokenizer.");
}

const nlohmann::json* JsonPart::field(const char* key) const {
    const auto found = value_->find(key);
    return found == value_->end() || found->is_null() ? nullptr : &*found;
}

bool JsonPart::has(const char* key) const {
    return field(key) != nullptr;
}

std::string JsonPart::text(const char* key) const {
    const nlohmann::json* value = field(key);
    if (value == nullptr || !value->is_string())
        fail(std::string("a text \"") + key + "\"", value == nullptr ? "none" : value->type_name());
    return value->get<std::string>();
}
std::string JsonPart::text(const char* key, const std::string& otherwise) const {
    return has(key) ? text(key) : otherwise;
}
bool JsonPart::flag(const char* key, bool otherwise) const {
    const nlohmann::json* value = field(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) fail(std::string("true or false as \"") + key + "\"", value->type_name());
    return value->get<bool>();
}
std::int64_t JsonPart::number(const char* key, std::int64_t otherwise) const {
    const nlohmann::json* value = field(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number_integer()) fail(std::string("an integer \"") + key + "\"", value->type_name());
    return value->get<std::int64_t>();
}
const nlohmann::json& JsonPart::list(const char* key) const {
    const nlohmann::json* value = field(key);
    if (value == nullptr || !value->is_array())
        fail(std::string("a list \"") + key + "\"", value == nullptr ? "none" : value->type_name());
    return *value;
}
const nlohmann::json& JsonPart::object(const char* key) const {
    const nlohmann::json* value = field(key);
    if (value == nullptr || !value->is_object())
        fail(std::string("an object \"") + key + "\"", value == nullptr ? "none" : value->type_name());
    return *value;
}
JsonPart JsonPart::part(const char* key) const {
    return {object(key), label_, where_ + "." + key};
}
JsonPart JsonPart::part(const nlohmann::json& value) const {
    return {value, label_, where_ + ".[]"};
}

}  // namespace recto
