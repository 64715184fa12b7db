// Tokens → syntax tree, with jinja2's grammar and precedence.
#pragma once
#include <string_view>

#include "engine/text/jinja_ast.h"

namespace recto::jinja {

// Error(input) with the line for anything that is not understood.
Body parse(std::string_view source);

}  // namespace recto::jinja
