// The table of filters (tojson as Hugging Face has it).
#include "engine/text/jinja_filters.h"

#include <algorithm>

namespace recto::jinja {
namespace {

using namespace filters;

Value default_filter(const Call& call) {
    const auto bound = call.bind({"default_value", "boolean"});
    const bool replaced = call.input.is(Kind::undefined) || (flag(bound[1], false) && !truth(call.input));
    if (!replaced) return call.input;
    return bound[0] ? *bound[0] : Value::literal("");
}

using Function = Value (*)(const Call&);

struct Entry {
    std::string_view name;
    Function function;
};

Value json_filter(const Call& call) {
    return to_json(call.machine, call.input, call.arguments);
}

Value unsupported(const Call& call) {
    throw Fault(call.callee() + " is not supported");
}

// Sorted by name. Filters that no chat template uses and that are not worth their code are named as
// unsupported.
constexpr Entry entries[] = {
    {"abs", absolute},
    {"attr", unsupported},
    {"batch", batch},
    {"capitalize", change_case},
    {"center", center},
    {"count", length_filter},
    {"d", default_filter},
    {"default", default_filter},
    {"dictsort", dict_sort},
    {"e", unsupported},
    {"escape", unsupported},
    {"filesizeformat", unsupported},
    {"first", first},
    {"float", to_real},
    {"forceescape", unsupported},
    {"format", format_filter},
    {"groupby", group_by},
    {"indent", indent},
    {"int", to_integer},
    {"items", items_filter},
    {"join", join_filter},
    {"last", last},
    {"length", length_filter},
    {"list", list_filter},
    {"lower", change_case},
    {"map", map},
    {"max", least_or_most},
    {"min", least_or_most},
    {"pprint", unsupported},
    {"random", unsupported},
    {"reject", select},
    {"rejectattr", select},
    {"replace", replace_filter},
    {"reverse", reverse},
    {"round", round_filter},
    {"safe", mark_safe},
    {"select", select},
    {"selectattr", select},
    {"slice", slice_filter},
    {"sort", sort},
    {"string", string_filter},
    {"striptags", unsupported},
    {"sum", sum},
    {"title", change_case},
    {"tojson", json_filter},
    {"trim", trim},
    {"truncate", truncate},
    {"unique", unique},
    {"upper", change_case},
    {"urlencode", unsupported},
    {"urlize", unsupported},
    {"wordcount", count_words},
    {"wordwrap", unsupported},
    {"xmlattr", unsupported},
};

const Entry* find_filter(std::string_view name) {
    const auto entry =
        std::lower_bound(std::begin(entries), std::end(entries), name,
                         [](const Entry& row, std::string_view wanted) { return row.name < wanted; });
    return entry != std::end(entries) && entry->name == name ? entry : nullptr;
}

}  // namespace

bool is_filter(std::string_view name) {
    return find_filter(name) != nullptr;
}

Value Machine::filter(const std::string& name, const Value& input, const CallArguments& arguments) {
    const Depth depth(*this);
    charge(2);
    const Entry* entry = find_filter(name);
    if (entry == nullptr) throw Fault("there is no filter '" + name + "'");
    return entry->function(Call{*this, name, input, arguments});
}

}  // namespace recto::jinja
