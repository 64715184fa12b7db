// Model B of a comparison: it is run as model A is, except for what --against… says.
#pragma once
#include <string>

#include "app/cli/common.h"

namespace recto::cli {

struct OtherSide {
    std::string model, dtype, activations, kv_cache_dtype;  // empty: as A

    bool any() const { return !model.empty(); }
};

// --against, --against-dtype, --against-activations.
void add_other_side_options(CLI::App& command, OtherSide& other, const std::string& about);
void add_other_side_kv_option(CLI::App& command, OtherSide& other);

// Error(argument) where options of B are given and no B is.
void check_other_side(const OtherSide& other);
CommonOptions options_of_b(const CommonOptions& a, const OtherSide& other);

}  // namespace recto::cli
