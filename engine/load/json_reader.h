// JSON out of model folders, with checks: one sentence for a syntax error, a wrong type or a key that occurs
// twice.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recto {

// Key order is kept. Error(input) "LABEL: …", also for duplicate keys and for nesting deeper than 100.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& label);

// An object whose members are asked for by type. A member that is null counts as absent.
class JsonObject {
  public:
    // `value` must outlive the object. Error(input) if it is no object.
    JsonObject(const nlohmann::ordered_json& value, std::string label);

    const std::string& label() const { return label_; }
    bool has(const char* key) const { return find(key) != nullptr; }
    bool holds_null(const char* key) const;  // present, and null
    std::optional<std::int64_t> integer(const char* key) const;
    std::optional<double> number(const char* key) const;
    std::optional<bool> boolean(const char* key) const;
    std::optional<std::string> text(const char* key) const;
    std::optional<std::vector<double>> numbers(const char* key) const;
    std::optional<std::vector<std::string>> texts(const char* key) const;
    std::vector<std::int64_t> integer_or_list(const char* key) const;  // 2 or [2, 7]; empty if absent
    std::optional<JsonObject> object(const char* key) const;
    const nlohmann::ordered_json* find(const char* key) const;  // null if absent

  private:
    [[noreturn]] void wrong_type(const char* key, const char* expected) const;

    const nlohmann::ordered_json* value_;
    std::string label_;
};

}  // namespace recto
