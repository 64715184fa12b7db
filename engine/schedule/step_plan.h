// One planned step: the arrays for the device, and what the scheduler must remember until it is committed.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/kv/block_pool.h"
#include "engine/schedule/sequence.h"
#include "kernels/batch.h"

namespace recto {

struct ScheduledSequence {
    Sequence* sequence = nullptr;  // null: ended after this was planned, and what it draws is dropped
    std::uint64_t request = 0;
    std::int32_t start = 0;  // position of its first row
    std::int32_t rows = 0;
    bool decode = false;
    bool samples = false;           // its last row's logits give the next token
    std::int32_t draws = 0;         // tokens to draw from that row: 1, or n when outputs fork here
    std::int32_t first_output = 0;  // index into StepBatch::logit_rows
    std::int32_t outputs = 0;
    std::int32_t first_output_position = 0;  // of the token whose row is first_output
};

enum class TransferKind : std::uint8_t { copy, swap_out, swap_in };

struct BlockTransfer {
    TransferKind kind{};
    std::int32_t from = -1;  // a block; swap_in: a place in host memory
    std::int32_t to = -1;    // a block; swap_out: a place in host memory
};

struct StepPlan {
    std::uint64_t step = 0;
    StepBatch batch;
    std::vector<ScheduledSequence> scheduled;  // in the order of the batch
    std::vector<BlockTransfer> transfers;      // to be done in this order before the forward
    std::vector<BlockId> named;                // blocks that got their prefix key at plan
    std::vector<Sequence*> preempted;
    bool host_reads_logits = false;  // of the engine: not every token of it is drawn on the device

    // The sequence is going away.
    void forget(const Sequence& s) {
        for (ScheduledSequence& item : scheduled)
            if (item.sequence == &s) item.sequence = nullptr;
    }
    bool forgotten() const {  // nobody waits for it
        return std::ranges::none_of(scheduled, [](const auto& item) { return item.sequence != nullptr; });
    }
    void clear() {
        scheduled.clear();
        transfers.clear();
        named.clear();
        preempted.clear();
    }
};

}  // namespace recto
