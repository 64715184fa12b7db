// Whether a card can be used by this build, and if not, what to do about it.
#pragma once
#include <string>

namespace recto::cuda {

// Makes the card's context. False: `why` is one sentence that ends in what to do. Throws nothing.
bool card_usable(int ordinal, std::string& why);

}  // namespace recto::cuda
