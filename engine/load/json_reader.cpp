#include "engine/load/json_reader.h"

#include <set>

#include "engine/load/refuse.h"

namespace recto {

using Json = nlohmann::ordered_json;

Json parse_json(std::string_view text, const std::string& label) {
    // The parser would take a zero byte for the end.
    if (text.find('\0') != std::string_view::npos)
        refuse(label, "valid JSON was expected, it has a zero byte");
    constexpr int max_depth = 100;
    std::vector<std::set<std::string>> keys;  // of the open objects
    const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (depth > max_depth) refuse(label, "its JSON is nested more than 100 deep");
        if (event == Json::parse_event_t::object_start) {
            keys.emplace_back();
        } else if (event == Json::parse_event_t::object_end) {
            keys.pop_back();
        } else if (event == Json::parse_event_t::key) {
            const auto& key = parsed.get_ref<const std::string&>();
            if (!keys.back().insert(key).second) refuse(label, "the key " + shown(key) + " occurs twice");
        }
        return true;
    };
    try {
        return Json::parse(text.begin(), text.end(), check);
    } catch (const Json::parse_error& error) {
        refuse(label, "valid JSON was expected, reading it fails at byte " + std::to_string(error.byte));
    } catch (const Json::exception& error) {
        refuse(label, std::string("valid JSON was expected: ") + error.what());
    }
}

JsonObject::JsonObject(const Json& value, std::string label) : value_(&value), label_(std::move(label)) {
    if (!value.is_object())
        refuse(label_, std::string("a JSON object was expected, found ") + value.type_name());
}

void JsonObject::wrong_type(const char* key, const char* expected) const {
    refuse(label_,
           shown(key) + " should be " + expected + ", found " + shown(value_->at(key).dump(-1, ' ', true)));
}

const Json* JsonObject::find(const char* key) const {
    const auto it = value_->find(key);
    return it == value_->end() || it->is_null() ? nullptr : &*it;
}

bool JsonObject::holds_null(const char* key) const {
    const auto it = value_->find(key);
    return it != value_->end() && it->is_null();
}

namespace {

std::optional<std::int64_t> as_integer(const Json& value) {
    if (!value.is_number_integer()) return std::nullopt;
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t(INT64_MAX))
        return std::nullopt;
    return value.get<std::int64_t>();
}

}  // namespace

std::optional<std::int64_t> JsonObject::integer(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto result = as_integer(*value);
    if (!result) wrong_type(key, "a whole number");
    return result;
}

std::optional<double> JsonObject::number(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) wrong_type(key, "a number");
    return value->get<double>();
}

std::optional<bool> JsonObject::boolean(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_boolean()) wrong_type(key, "true or false");
    return value->get<bool>();
}

std::optional<std::string> JsonObject::text(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) wrong_type(key, "a string");
    return value->get<std::string>();
}

std::optional<std::vector<double>> JsonObject::numbers(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    std::vector<double> result;
    if (!value->is_array()) wrong_type(key, "a list of numbers");
    for (const auto& element : *value) {
        if (!element.is_number()) wrong_type(key, "a list of numbers");
        result.push_back(element.get<double>());
    }
    return result;
}

std::optional<std::vector<std::string>> JsonObject::texts(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    std::vector<std::string> result;
    if (!value->is_array()) wrong_type(key, "a list of strings");
    for (const auto& element : *value) {
        if (!element.is_string()) wrong_type(key, "a list of strings");
        result.push_back(element.get<std::string>());
    }
    return result;
}

std::vector<std::int64_t> JsonObject::integer_or_list(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    std::vector<std::int64_t> result;
    const auto append = [&](const Json& element) {
        const auto number = as_integer(element);
        if (!number) wrong_type(key, "a whole number or a list of them");
        result.push_back(*number);
    };
    if (value->is_array()) {
        for (const auto& element : *value)
            append(element);
    } else {
        append(*value);
    }
    return result;
}

std::optional<JsonObject> JsonObject::object(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_object()) wrong_type(key, "an object");
    return JsonObject(*value, label_);
}

}  // namespace recto
