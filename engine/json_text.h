// JSON as text that is always UTF-8: names of files and models need not be, and a report must not be lost to one.
#pragma once
#include <string>

namespace recto {

// Bytes that are no UTF-8 become U+FFFD. `indent`: spaces a level; -1: one line.
template <class Json>
std::string json_text(const Json& value, int indent = -1) {
    return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace recto
