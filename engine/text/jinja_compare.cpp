// Equality, order and membership of values, and what they cost.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "engine/text/jinja_value.h"
#include "kernels/error.h"

namespace recto::jinja {
namespace {

thread_local WorkCount* current_work = nullptr;

void count_work(std::int64_t work) {
    if (current_work != nullptr) current_work->add(work);
}

// In time that grows with the lengths' sum, unlike std::string::find.
bool has_text(std::string_view text, std::string_view part) {
    count_work(static_cast<std::int64_t>((text.size() + part.size()) / 16));
    return part.empty() || memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

bool equal_items(const Values& a, const Values& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
    if (a.entries.size() != b.entries.size()) return false;
    return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
        const Value* other = b.find(entry.first);
        return other != nullptr && equal(entry.second, *other);
    });
}

bool equal_ranges(const Range& a, const Range& b) {
    if (a.length != b.length) return false;
    if (a.length == 0) return true;
    return a.start == b.start && (a.length == 1 || a.step == b.step);
}

bool equal_numbers(const Value& a, const Value& b) {
    if (a.is_integral() && b.is_integral()) return a.as_integer() == b.as_integer();
    if (a.is(Kind::real) && b.is(Kind::real)) return a.real == b.real;
    const double real = a.is(Kind::real) ? a.real : b.real;
    const std::int64_t integer = a.is(Kind::real) ? b.as_integer() : a.as_integer();
    return static_cast<long double>(real) == static_cast<long double>(integer);
}

// A long double holds every int64 and every double of this machine family exactly.
int compare_numbers(const Value& a, const Value& b) {
    if (a.is_integral() && b.is_integral())
        return a.as_integer() < b.as_integer() ? -1 : a.as_integer() > b.as_integer() ? 1 : 0;
    const auto exact = [](const Value& v) {
        return v.is(Kind::real) ? static_cast<long double>(v.real) : static_cast<long double>(v.as_integer());
    };
    const long double x = exact(a), y = exact(b);
    return x < y ? -1 : x > y ? 1 : 0;
}

}  // namespace

void WorkCount::look() {
    if (done > max_work) throw Fault("the template does too much work (an endless loop?)");
    if (cancelled && cancelled())
        throw Error(ErrorKind::cancelled, "rendering the chat template was interrupted");
    next_look = std::min(done + work_between_asks, max_work + 1);
}

CountedWork::CountedWork(WorkCount& count) : outer_(std::exchange(current_work, &count)) {}
CountedWork::~CountedWork() {
    current_work = outer_;
}

bool equal(const Value& a, const Value& b) {
    count_work(1);
    if (a.is_number() && b.is_number()) return equal_numbers(a, b);
    if (a.kind != b.kind) return false;
    switch (a.kind) {
        case Kind::undefined:
        case Kind::none:
            return true;
        case Kind::string:
            count_work(static_cast<std::int64_t>(std::min(a.bytes().size(), b.bytes().size()) / 16));
            return a.bytes() == b.bytes();
        case Kind::list:
        case Kind::tuple:
            return equal_items(a.items(), b.items());
        case Kind::dict:
            return equal_dicts(a.entries(), b.entries());
        case Kind::range:
            return equal_ranges(a.as<Range>(), b.as<Range>());
        case Kind::view:
            throw Fault("comparing dictionary views is not supported");
        case Kind::space:
            return a.space == b.space;
        case Kind::macro:
            return a.macro == b.macro;
        case Kind::function:
            return a.name() == b.name();
        case Kind::method:
            throw Fault("comparing methods is not supported");
        default:
            return a.object == b.object;
    }
}

int compare(const Value& a, const Value& b, const char* op) {
    count_work(1);
    if (a.is_number() && b.is_number()) return compare_numbers(a, b);
    if (a.is(Kind::string) && b.is(Kind::string)) {
        count_work(static_cast<std::int64_t>(std::min(a.bytes().size(), b.bytes().size()) / 16));
        // UTF-8 sorts as its code points do.
        const int order = a.bytes().compare(b.bytes());
        return order < 0 ? -1 : order > 0 ? 1 : 0;
    }
    if (a.kind == b.kind && (a.is(Kind::list) || a.is(Kind::tuple))) {
        const Values &x = a.items(), &y = b.items();
        for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
            if (!equal(x[i], y[i])) return compare(x[i], y[i], op);
        return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
    }
    if (a.is(Kind::undefined)) throw Fault(a.name() + " is undefined");
    if (b.is(Kind::undefined)) throw Fault(b.name() + " is undefined");
    throw Fault(std::string("'") + op + "' cannot compare " + type_name(a) + " and " + type_name(b));
}

bool less(const Value& a, const Value& b) {
    return compare(a, b, "<") < 0;
}

bool contains(const Value& container, const Value& item) {
    switch (container.kind) {
        case Kind::string:
            if (item.is(Kind::undefined)) throw Fault(item.name() + " is undefined");
            if (!item.is(Kind::string))
                throw Fault(std::string("'in' a string needs a string, not ") + type_name(item));
            return has_text(container.bytes(), item.bytes());
        case Kind::dict:
            return container.entries().find(item) != nullptr;
        case Kind::range: {
            const Range& range = container.as<Range>();
            for (std::int64_t i = 0; i < range.length; ++i)
                if (equal(Value::from(range.at(i)), item)) return true;
            return false;
        }
        case Kind::iterator: {
            const Iterator& iterator = container.as<Iterator>();
            while (iterator.next < iterator.items.size())
                if (equal(iterator.items[iterator.next++], item)) return true;
            return false;
        }
        case Kind::list:
        case Kind::tuple:
        case Kind::view:
            return std::any_of(container.items().begin(), container.items().end(),
                               [&](const Value& other) { return equal(other, item); });
        case Kind::undefined:
            return false;
        default:
            throw Fault(std::string("'in' does not work on ") + type_name(container));
    }
}

}  // namespace recto::jinja
