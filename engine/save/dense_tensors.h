// The weights of an opened model as the tensors of a Hugging Face folder: its names and row order, exactly
// dequantized, then rounded once to the type that is asked for.
#pragma once
#include <vector>

#include "engine/load/model_source.h"
#include "engine/save/config_writer.h"
#include "engine/save/safetensors_writer.h"

namespace recto {

// Which linears of the source have a bias; the first layer speaks for all.
SavedBiases biases_of(const ModelSource& source);

// `source` must outlive the result; nothing is read before a tensor is written. Modules that Hugging Face
// fuses (several roles of one name) become one tensor, one part above the other. Error(input) while writing
// if a value is too large for float16.
std::vector<SaveTensor> dense_tensors(const ModelSource& source, const SavedBiases& biases, SaveType type);

}  // namespace recto
