// Which quantized form the tensors of one module have: found from their names, dtypes and shapes, with the
// configuration as the judge only where those leave a choice.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "engine/load/folder_tensors.h"
#include "engine/load/grouped_rows.h"
#include "engine/load/quantization_config.h"

namespace recto {

struct QuantizedModule {
    quantized::Layout layout = quantized::Layout::awq_gemm;
    QuantizedTensors tensors;
    const SafeTensor* order = nullptr;  // g_idx
    const SafeTensor* shape = nullptr;  // weight_shape
    bool llm_awq = false;               // its names rather than AutoAWQ's
    bool whole_rows = false;            // one group, and not because the row is that short

    QuantMethod method() const;
    std::string describe() const;  // "AWQ gemm, 4 bit, group 128"
};

// Null if the module has no packed weight. Reads headers only; Error(input) with file, tensor, what was
// expected and what was found for tensors that are missing or do not fit a weight of [rows, cols], and for
// layouts that are not supported.
std::optional<QuantizedModule> find_quantized(const FolderTensors& files, const QuantizationConfig& config,
                                              const std::string& module, std::int64_t rows,
                                              std::int64_t cols);

// What the contents say beyond the headers: the permutation, and whether GPTQ zero points are version 1.
// Error(input) for indices out of range, groups of uneven size, zero points that are none.
void read_contents(const FolderTensors& files, const QuantizationConfig& config, QuantizedModule& module);

std::unique_ptr<WeightRows> make_quantized_rows(QuantizedModule module);

}  // namespace recto
