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

SequenceRunner::SequenceRunner(std::shared_ptr<const Model> model, const SequenceLogitsOptions& options,
                               std::int32_t max_tokens)
    : model_(std::move(model)),
      max_tokens_(max_tokens),
      chunk_(std::max(1, std::min(options.chunk_tokens, max_tokens))),
      blocks_((max_tokens + options.block_size - 1) / options.block_size) {
    BatchLimits limits;
    limits.max_rows = chunk_;
    limits.max_sequences = 1;
    limits.max_outputs = chunk_;
    limits.max_blocks = blocks_;
    const DType kv_dtype = options.kv_dtype.value_or(model_->kv_dtype);
    transformer_ =
        make_transformer(model_, kv_shape_for(model_->config, kv_dtype, blocks_, options.block_size), limits);
}

void SequenceRunner::begin(std::span<const std::int32_t> ids) {
    check_ids(*model_, ids);
    if (std::int64_t(ids.size()) > max_tokens_)
        throw Error(ErrorKind::argument, "at most " + std::to_string(max_tokens_) +
                                             " tokens were expected, got " + std::to_string(ids.size()));
    ids_.assign(ids.begin(), ids.end());
    next_ = 0;
}

std::int32_t SequenceRunner::forward() {
    const std::int32_t n = std::min(chunk_, std::int32_t(ids_.size()) - next_);
    if (n <= 0) return 0;
    transformer_->forward(chunk(ids_, next_, n, blocks_));
    next_ += n;
    return n;
}

void sequence_logits(const std::shared_ptr<const Model>& model, std::span<const std::int32_t> ids,
                     const SequenceLogitsOptions& options,
                     const std::function<void(std::int64_t, std::span<const float>)>& row) {
    check_ids(*model, ids);
    SequenceRunner runner(model, options, std::int32_t(ids.size()));
    runner.begin(ids);
    std::int64_t position = 0;
    while (const std::int32_t n = runner.forward())
        for (std::int32_t i = 0; i < n; ++i)
            row(position++, runner.logits(i));
}

}  // namespace recto
