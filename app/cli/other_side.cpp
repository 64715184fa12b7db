#include "app/cli/other_side.h"

#include "kernels/error.h"

namespace recto::cli {

void add_other_side_options(CLI::App& command, OtherSide& other, const std::string& about) {
    command.add_option("--against", other.model, about)->check(named_model());
    command.add_option("--against-dtype", other.dtype, "--dtype of B, if another")
        ->check(CLI::IsMember({"auto", "float16", "bfloat16", "float32"}));
    command.add_option("--against-activations", other.activations, "--activations of B, if another")
        ->check(CLI::IsMember({"auto", "16", "8"}));
}

void add_other_side_kv_option(CLI::App& command, OtherSide& other) {
    command.add_option("--against-kv-cache-dtype", other.kv_cache_dtype, "--kv-cache-dtype of B, if another")
        ->check(CLI::IsMember({"auto", "float32", "float16", "bfloat16", "fp8"}));
}

void check_other_side(const OtherSide& other) {
    if (other.any()) return;
    for (const auto& [option, value] : {std::pair{"--against-dtype", &other.dtype},
                                        {"--against-activations", &other.activations},
                                        {"--against-kv-cache-dtype", &other.kv_cache_dtype}})
        if (!value->empty())
            throw Error(ErrorKind::argument, std::string(option) + " " + *value +
                                                 " says how model B is run, but no --against names one; it "
                                                 "may be the same as --model");
}

CommonOptions options_of_b(const CommonOptions& a, const OtherSide& other) {
    CommonOptions b = a;
    b.quantization = "auto";  // --quantization speaks of --model
    b.model = other.model;
    if (!other.dtype.empty()) {
        b.dtype = other.dtype;
        b.dtype_option = "--against-dtype";
    }
    if (!other.activations.empty()) {
        b.activations = other.activations;
        b.activations_option = "--against-activations";
    }
    if (!other.kv_cache_dtype.empty()) b.kv_cache_dtype = other.kv_cache_dtype;
    return b;
}

}  // namespace recto::cli
