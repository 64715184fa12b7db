// Whether a card can be used by this build, and if not, what to do about it.
#pragma once
#include <string>

namespace recto::cuda {

// Makes the card's context. False: `why` is one sentence that ends in what to do. Throws nothing.
bool card_usable(int ordinal, std::string& why);

// Whether this build holds code with Hopper's own instructions, which only the target sm_90a has.
bool built_for_hopper();

// The compute capability whose kernels a card of `major`.`minor` runs, 10 major + minor: its own, or less
// where this build's code or CudaOptions::max_arch says so. Error(argument) for a max_arch that is none.
int usable_capability(int major, int minor, const std::string& max_arch);

}  // namespace recto::cuda
