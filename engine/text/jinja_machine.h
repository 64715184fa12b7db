// One rendering: scopes, the work budget, and the calls between statements, expressions, filters and
// functions.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/text/jinja_ast.h"
#include "engine/text/jinja_value.h"

namespace recto::jinja {

// Bounds of one rendering. A unit of work is about one node, one list item or 16 bytes copied.
inline constexpr std::size_t max_text_bytes = std::size_t{64} << 20;
inline constexpr std::int64_t max_range = 100'000;  // as jinja2's sandbox
inline constexpr int max_call_depth = 1000;         // nested nodes, as Python's recursion limit

struct CallArguments {
    Values positional;
    std::vector<std::pair<std::string, Value>> named;
};

// Arguments by parameter name; absent ones are empty. Fault for too many, unknown or repeated ones.
std::vector<std::optional<Value>> bind(const CallArguments& arguments,
                                       std::initializer_list<std::string_view> names, std::string_view callee,
                                       std::size_t required = 0);

struct Scope {
    std::shared_ptr<Scope> parent;
    std::vector<std::pair<std::string, Value>> variables;

    const Value* find(std::string_view name) const;  // here and outwards
    void set(const std::string& name, Value value);  // here
};

struct Macro {
    const MacroDefinition* definition;
    std::shared_ptr<Scope> scope;
};

struct Loop {
    Value items;            // a list
    std::size_t index = 0;  // of the current item
    int depth = 0;          // of recursion
    const Stmt* statement = nullptr;
    std::weak_ptr<Scope> outer;                  // a recursive call runs in the loop's surroundings
    mutable std::optional<Values> last_changed;  // scalars only, so that a loop never holds itself
};

class Machine {
  public:
    // `cancelled` is asked while it works; may be empty.
    Machine(std::int64_t now_unix_s, std::function<bool()> cancelled) : now_unix_s_(now_unix_s) {
        work_.cancelled = std::move(cancelled);
    }

    // Error(input) with the line, or Error(cancelled); `globals` are the variables the template sees.
    Text render(const Body& body, std::vector<std::pair<std::string, Value>> globals);

    void charge(std::int64_t work) {
        work_.add(work);
    }
    void charge_text(std::size_t bytes);  // also refuses texts that are too long
    Value make_text(Text text) {
        charge_text(text.size());
        return Value::from(std::move(text));
    }
    Values items_of(const Value& value);  // iterate(), charged

    Value attribute(const Value& object, const std::string& name);  // object.name
    Value item(const Value& object, const Value& index);            // object[index]
    Value call(const Value& callee, CallArguments arguments);
    Value filter(const std::string& name, const Value& input, const CallArguments& arguments);
    bool test(const std::string& name, const Value& input, const CallArguments& arguments);
    Namespace* make_namespace();
    std::int64_t now_unix_s() const { return now_unix_s_; }

  private:
    enum class Flow : std::uint8_t { normal, break_loop, continue_loop };
    using ScopePtr = std::shared_ptr<Scope>;

    class Depth {
      public:
        explicit Depth(Machine& machine) : depth_(machine.depth_) {
            if (depth_ >= max_call_depth) throw Fault("calls are nested too deep");
            ++depth_;
        }
        ~Depth() { --depth_; }
        Depth(const Depth&) = delete;
        Depth& operator=(const Depth&) = delete;

      private:
        int& depth_;
    };

    Flow run_body(const Body& body, const ScopePtr& scope);
    Flow run(const Stmt& stmt, const ScopePtr& scope);
    Flow run_branch(const Stmt& stmt, const ScopePtr& scope);
    void run_set_block(const Stmt& stmt, const ScopePtr& scope);
    void run_filter_block(const Stmt& stmt, const ScopePtr& scope);
    void run_call_block(const Stmt& stmt, const ScopePtr& scope);
    Flow run_with(const Stmt& stmt, const ScopePtr& scope);
    void run_loop(const Stmt& stmt, const Value& iterable, const ScopePtr& scope, int depth);
    Values filtered_items(const Stmt& stmt, const Value& iterable, const ScopePtr& scope);
    Text capture(const Body& body, const ScopePtr& scope);
    void write(const Text& text);
    void assign(const Expr& target, const Value& value, const ScopePtr& scope);
    Value make_macro(const MacroDefinition& definition, const ScopePtr& scope);

    Value eval(const Expr& expr, const ScopePtr& scope);
    Value eval_compare(const Expr& expr, const ScopePtr& scope);
    Value eval_slice(const Expr& expr, const ScopePtr& scope);
    Value eval_concat(const Expr& expr, const ScopePtr& scope);
    Value eval_name(const Expr& expr, const ScopePtr& scope);
    Value eval_container(const Expr& expr, const ScopePtr& scope);
    Value eval_filter(const Expr& expr, const Value& input, const ScopePtr& scope);
    Value apply_filters(const Expr& expr, const Value& input, const ScopePtr& scope);
    CallArguments eval_arguments(const Arguments& arguments, const ScopePtr& scope);
    Value call_macro(const Macro& macro, CallArguments& arguments);
    Value call_loop(const Value& callee, const CallArguments& arguments);

    std::int64_t now_unix_s_;
    WorkCount work_;
    int depth_ = 0;
    int line_ = 1;
    Text* out_ = nullptr;
    std::vector<std::unique_ptr<Namespace>> namespaces_;
    std::vector<std::unique_ptr<Macro>> macros_;
};

// Operators (jinja_operators.cpp). Fault for operands that Python refuses.
Value binary(Machine& machine, std::string_view op, const Value& a, const Value& b);
Value negate(const Value& value);
bool compare_as(std::string_view op, const Value& a, const Value& b);  // < <= > >=
Value slice(Machine& machine, const Value& object, const Value& start, const Value& stop, const Value& step);
// str % values, and str.format (jinja_format.cpp).
Value percent_format(Machine& machine, const Text& format, const Value& values);
Value brace_format(Machine& machine, const Text& format, const CallArguments& arguments);
// Methods (jinja_methods.cpp). Whether the value's type has one of that name; and its call.
bool has_method(const Value& object, std::string_view name);
Value call_method(Machine& machine, const Method& method, const CallArguments& arguments);
Value loop_attribute(const Value& loop, std::string_view name);
// Global functions (jinja_functions.cpp).
bool is_function(std::string_view name);
Value call_function(Machine& machine, const std::string& name, const CallArguments& arguments);
bool is_filter(std::string_view name);
bool is_test(std::string_view name);
// json.dumps as Hugging Face's tojson filter calls it (jinja_json.cpp).
Value to_json(Machine& machine, const Value& value, const CallArguments& arguments);

// Helpers for arguments. Fault with the callee's name when the type is wrong.
std::int64_t integer_argument(const Value& value, std::string_view callee);
const Text& text_argument(const Value& value, std::string_view callee);
// Character-wise helpers on text, shared by methods and filters.
Text strip(const Text& text, const std::string* characters, bool left, bool right);
Text upper(const Text& text);
Text lower(const Text& text);
Text capitalize(const Text& text);
Text title(const Text& text);  // str.title; the filter differs
Text swap_case(const Text& text);
Text replace(Machine& machine, const Text& text, const std::string& from, const Text& to, std::int64_t count);
Values split_lines(const Text& text, bool keep_ends);
Text repeat(Machine& machine, const Text& text, std::int64_t count);
Text join(Machine& machine, const Text& separator, const std::vector<Text>& parts);

}  // namespace recto::jinja
