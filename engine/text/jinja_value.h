// The values of a template, as Python has them. Immutable except namespaces, loops, cyclers, joiners and
// iterators, which belong to one rendering. Containers know their depth, which is bounded, so recursion over
// them is too.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/text/jinja_text.h"

namespace recto::jinja {

// What a template did wrong, without its line: the interpreter adds that.
struct Fault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What a rendering has done so far, in steps. Comparing and searching happen below the machine, on its
// thread, and add to the count that it has put here.
inline constexpr std::int64_t max_work = 20'000'000;
inline constexpr std::int64_t work_between_asks = 100'000;  // some milliseconds
struct WorkCount {
    std::int64_t done = 0, next_look = 0;
    std::function<bool()> cancelled;  // asked now and then; may be empty
    void add(std::int64_t work) {
        done += work;
        if (done >= next_look) look();
    }
    void look();  // Fault for too much work, Error(cancelled)
};
// Puts a count there while it lives; nullptr: nothing is counted.
class CountedWork {
  public:
    explicit CountedWork(WorkCount& count);
    ~CountedWork();
    CountedWork(const CountedWork&) = delete;
    CountedWork& operator=(const CountedWork&) = delete;

  private:
    WorkCount* outer_;
};

enum class Kind : std::uint8_t {
    undefined,
    none,
    boolean,
    integer,
    real,
    string,
    list,
    tuple,
    dict,
    range,
    view,      // dict.keys(), .values(), .items()
    iterator,  // what Python's generators become: yields its items once
    space,     // namespace()
    loop,
    macro,
    method,    // a method bound to its value
    function,  // a global function
    cycler,
    joiner,
};

struct Value;
struct List;
struct Dict;
struct Range;
struct Iterator;
struct Namespace;
struct Loop;
struct Macro;
struct Method;
struct Cycler;
using Values = std::vector<Value>;

struct Value {
    Kind kind = Kind::undefined;
    bool user = false;    // scalars: came from the person's data (strings carry origin themselves)
    bool markup = false;  // strings: marked by the `safe` filter
    union {
        bool boolean;
        std::int64_t integer = 0;  // also: which view (0 keys, 1 values, 2 items); depth of loops and cyclers
        double real;
        Namespace* space;  // owned by the rendering
        Macro* macro;      // owned by the rendering
    };
    std::shared_ptr<const void> object;  // by kind; undefined: what was looked for; function: its name

    static Value none() { return of(Kind::none); }
    static Value of(Kind kind) {
        Value value;
        value.kind = kind;
        return value;
    }
    static Value from(bool boolean);
    static Value from(std::int64_t integer);
    static Value from(std::size_t size) { return from(static_cast<std::int64_t>(size)); }
    static Value from(double real);
    static Value from(Text text);
    static Value literal(std::string_view text) { return from(Text(text, false)); }
    static Value undefined(std::string what);
    static Value list(Values items) { return sequence(Kind::list, std::move(items)); }
    static Value tuple(Values items) { return sequence(Kind::tuple, std::move(items)); }
    static Value sequence(Kind kind, Values items);  // list, tuple or view
    static Value iterator(Values items);
    static Value dict(Dict dict);
    static Value method(Value self, std::string name);
    static Value function(std::string name);

    bool is(Kind other) const { return kind == other; }
    bool is_number() const { return is(Kind::boolean) || is(Kind::integer) || is(Kind::real); }
    bool is_integral() const { return is(Kind::boolean) || is(Kind::integer); }
    std::int64_t as_integer() const { return is(Kind::boolean) ? boolean : integer; }
    double as_real() const { return is(Kind::real) ? real : static_cast<double>(as_integer()); }
    template <class T>
    const T& as() const {
        return *static_cast<const T*>(object.get());
    }
    const Text& text() const { return as<Text>(); }
    const std::string& bytes() const { return text().bytes(); }
    const std::string& name() const { return as<std::string>(); }  // undefined, function
    const Values& items() const;                                   // list, tuple, view
    const Dict& entries() const { return as<Dict>(); }
};

inline constexpr int max_value_depth = 100;

struct List {
    Values items;
    int depth = 1;
};

// Keeps insertion order. Keys that Python holds equal (1, 1.0, True) are one key.
struct Dict {
    std::vector<std::pair<Value, Value>> entries;
    std::unordered_map<std::string, std::size_t> index;
    int depth = 1;

    void set(const Value& key, Value value);    // Fault for a key that cannot be hashed
    const Value* find(const Value& key) const;  // nullptr if absent
    const Value* find(std::string_view key) const;
};

struct Range {
    std::int64_t start, stop, step, length;
    std::int64_t at(std::int64_t i) const { return start + i * step; }
};

struct Iterator {
    Values items;
    int depth = 1;
    mutable std::size_t next = 0;
};

struct Namespace {
    std::vector<std::pair<std::string, Value>> attributes;
    Value* find(std::string_view name);
    void set(const std::string& name, Value value);
};

struct Method {
    Value self;
    std::string name;
};

struct Cycler {
    Value items;  // a list
    mutable std::size_t next = 0;
};

struct Joiner {
    Text separator;
    mutable bool used = false;
};

const char* type_name(const Value& value);  // as Python calls it
int depth_of(const Value& value);
bool truth(const Value& value);
bool equal(const Value& a, const Value& b);
int compare(const Value& a, const Value& b, const char* op);  // <0, 0, >0; Fault for types without an order
bool less(const Value& a, const Value& b);
bool contains(const Value& container, const Value& item);
std::string hash_key(const Value& value);  // equal values have equal keys; Fault for unhashable ones
Values iterate(const Value& value);        // Fault for what cannot be iterated; uses up an iterator
std::int64_t length(const Value& value);   // Fault for what has none
Text to_text(const Value& value);          // str(): what printing shows
Text repr(const Value& value);
std::string format_real(double value);  // repr() of a float
std::string repr_string(std::string_view bytes);
// Whether any string or scalar in it came from the person's data.
bool any_user(const Value& value);

}  // namespace recto::jinja
