#include "engine/model/sequence_logits.h"

#include <algorithm>

#include "engine/model/transformer.h"
#include "kernels/error.h"

namespace recto {
namespace {

void check_ids(const Model& model, std::span<const std::int32_t> ids) {
    for (const std::int32_t id : ids)
        if (id < 0 || id >= model.config.vocab)
            throw Error(ErrorKind::argument, "token ids must be in [0, " +
                                                 std::to_string(model.config.vocab - 1) + "], got " +
                                                 std::to_string(id));
    if (model.config.max_position > 0 && std::int64_t(ids.size()) > model.config.max_position)
        throw Error(ErrorKind::argument, "the model's context holds " +
                                             std::to_string(model.config.max_position) + " tokens, got " +
                                             std::to_string(ids.size()));
}

// Rows first … first + n − 1 of the sequence, whose blocks are simply 0, 1, 2, …
StepBatch chunk(std::span<const std::int32_t> ids, std::int32_t first, std::int32_t n,
                std::int32_t block_count) {
    StepBatch step;
    for (std::int32_t i = first; i < first + n; ++i) {
        step.token_ids.push_back(ids[std::size_t(i)]);
        step.positions.push_back(i);
        step.row_sequence.push_back(0);
        step.slots.push_back(i);
        step.logit_rows.push_back(i - first);
    }
    step.query_start = {0, n};
    step.context_tokens = {first + n};
    for (std::int32_t b = 0; b < block_count; ++b)
        step.block_tables.push_back(b);
    step.max_blocks = block_count;
    return step;
}

}  // namespace

void sequence_logits(const std::shared_ptr<const Model>& model, std::span<const std::int32_t> ids,
                     const SequenceLogitsOptions& options,
                     const std::function<void(std::int64_t, std::span<const float>)>& row) {
    check_ids(*model, ids);
    const auto tokens = std::int32_t(ids.size());
    const std::int32_t blocks = (tokens + options.block_size - 1) / options.block_size;
    BatchLimits limits;
    limits.max_rows = std::max(1, std::min(options.chunk_tokens, tokens));
    limits.max_sequences = 1;
    limits.max_outputs = limits.max_rows;
    limits.max_blocks = blocks;
    const auto transformer = make_transformer(
        model, kv_shape_for(model->config, options.kv_dtype, blocks, options.block_size), limits);
    for (std::int32_t first = 0; first < tokens; first += limits.max_rows) {
        const std::int32_t n = std::min(limits.max_rows, tokens - first);
        transformer->forward(chunk(ids, first, n, blocks));
        for (std::int32_t i = 0; i < n; ++i)
            row(first + i, transformer->logits(i));
    }
}

}  // namespace recto
