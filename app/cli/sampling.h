// SamplingParams from the command line and from JSON requests: one table of names for both.
#pragma once
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/sample/sampling_params.h"

namespace recto::cli {

// Adds --temperature, --top-p, … (names of SamplingParams with dashes). `apply` then writes those that were
// given.
class SamplingFlags {
  public:
    void add_to(CLI::App& command);
    void apply(SamplingParams& params) const;  // Error(argument)

  private:
    std::vector<std::pair<std::string, std::vector<std::string>>> given_;  // name with underscores, values
};

// True if `name` is a sampling parameter; the value is then checked for type and written.
bool set_sampling_parameter(SamplingParams& params, const std::string& name,
                            const nlohmann::ordered_json& value);

}  // namespace recto::cli
