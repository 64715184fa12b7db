// How long a sequence may be by the options that bound it, for commands that run one without an engine and
// its pool: what would not fit there is refused here too.
#pragma once
#include <string>

#include "app/cli/common.h"

namespace recto::cli {

struct SequenceLimit {
    int tokens = 0;
    std::string option;  // that bounds it, as it was given: "--kv-blocks 4"; empty: none does
};

// The tightest of --max-model-len, --kv-blocks and --kv-cache-gib. Error(argument) for a --max-model-len
// beyond the model's context.
SequenceLimit sequence_limit(const CommonOptions& options, const Model& model);

}  // namespace recto::cli
