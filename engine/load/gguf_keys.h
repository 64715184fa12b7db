// The metadata of one architecture: keys "ARCHITECTURE.key", with checks.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/load/config_checks.h"
#include "engine/load/gguf.h"
#include "engine/load/refuse.h"

namespace recto {

class GgufKeys {
  public:
    // `meta` must outlive the object.
    GgufKeys(const Gguf& meta, std::string architecture)
        : meta_(meta), architecture_(std::move(architecture)) {}

    const std::string& label() const { return meta_.label(); }
    std::string name(const char* key) const { return architecture_ + "." + key; }
    int required(const char* key, std::int64_t low, std::int64_t high) const {
        const auto value = meta_.integer(name(key));
        if (!value) refuse(label(), "the key " + name(key) + " is missing");
        return checked_int(*value, low, high, name(key), label());
    }
    int optional(const char* key, std::int64_t low, std::int64_t high, int fallback) const {
        return meta_.has(name(key)) ? required(key, low, high) : fallback;
    }
    double number(const char* key, double fallback) const { return number(key).value_or(fallback); }
    std::optional<double> number(const char* key) const { return meta_.number(name(key)); }
    std::optional<bool> boolean(const char* key) const { return meta_.boolean(name(key)); }
    std::optional<std::string_view> text(const char* key) const { return meta_.text(name(key)); }

  private:
    const Gguf& meta_;
    std::string architecture_;
};

}  // namespace recto
