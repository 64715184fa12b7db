// Checks of a device with a whole model: `kernels --check-weights` and `kernels --check-memory`.
#pragma once
#include "app/cli/common.h"

namespace recto::cli {

// Error(runtime) when the device unpacks any weight to something else than its reader says.
int check_weights(const CommonOptions& options);

// Loads the model `rounds` times, of every three once to the end with a step, once cancelled and once failing
// half way. Error(runtime) when the driver's count of free memory after a round is less than after the first
// three.
int check_memory(const CommonOptions& options, int rounds);

}  // namespace recto::cli
