// A vocabulary for models without one: byte-level BPE that encodes any text and has exactly the size asked
// for.
#pragma once
#include "engine/load/model_source.h"

namespace recto {

// Ids 0 … 2 end a text, begin and end a turn (ChatML); the 256 bytes follow, then pairs and fours of
// lower-case letters made by merges. With a ChatML template. `size` is 259 … 2^19.
TokenizerFiles random_vocabulary(int size);

}  // namespace recto
