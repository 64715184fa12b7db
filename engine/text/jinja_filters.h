// One call of a filter, and the filters, as jinja2 defines them, by what they work on. The table of their
// names is jinja_filters.cpp's.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja_machine.h"

namespace recto::jinja::filters {

struct Call {
    Machine& machine;
    const std::string& name;
    const Value& input;
    const CallArguments& arguments;

    std::vector<std::optional<Value>> bind(std::initializer_list<std::string_view> names,
                                           std::size_t required = 0) const {
        return jinja::bind(arguments, names, "the filter '" + name + "'", required);
    }
    std::string callee() const { return "the filter '" + name + "'"; }
    std::int64_t integer(const std::optional<Value>& value, std::int64_t otherwise) const {
        return value ? integer_argument(*value, callee()) : otherwise;
    }
    Text text() const { return to_text(input); }
    Values items() const { return machine.items_of(input); }
    Value result(Text text) const { return machine.make_text(std::move(text)); }
};

inline bool flag(const std::optional<Value>& value, bool otherwise) {
    return value ? truth(*value) : otherwise;
}

// Text (jinja_text_filters.cpp)
Value trim(const Call& call);
Value change_case(const Call& call);
Value replace_filter(const Call& call);
Value indent(const Call& call);
Value center(const Call& call);
Value truncate(const Call& call);
Value count_words(const Call& call);
Value format_filter(const Call& call);
Value mark_safe(const Call& call);
Value string_filter(const Call& call);

// Numbers (jinja_number_filters.cpp)
Value to_integer(const Call& call);
Value to_real(const Call& call);
Value absolute(const Call& call);
Value round_filter(const Call& call);

// Sequences and dictionaries (jinja_sequence_filters.cpp)
Value first(const Call& call);
Value last(const Call& call);
Value reverse(const Call& call);
Value dict_sort(const Call& call);
Value sort(const Call& call);
Value unique(const Call& call);
Value least_or_most(const Call& call);
Value items_filter(const Call& call);
Value batch(const Call& call);
Value slice_filter(const Call& call);
Value group_by(const Call& call);
Value map(const Call& call);
Value select(const Call& call);
Value list_filter(const Call& call);
Value length_filter(const Call& call);
Value join_filter(const Call& call);
Value sum(const Call& call);

}  // namespace recto::jinja::filters
