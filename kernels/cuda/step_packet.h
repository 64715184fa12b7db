// A step's arrays on the card: one pinned packet up, one copy of the drawn ids down.
//
// What a step needs is written densely into pinned memory and copied in one go; one kernel then spreads it to
// fixed places, where captured graphs read it. Block tables stay on the card from step to step, one row for
// each sequence that the packet knows by its id: a decode step brings the blocks that are new and nothing
// else. There are two pinned packets and two places for drawn ids, so that the next step can be written and
// enqueued while one runs.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/attention_state.h"
#include "kernels/cuda/graph_cache.h"
#include "kernels/cuda/kernels.h"

namespace recto::cuda {

class StepPacket final : public DeviceBatch {
  public:
    // Error(memory)
    StepPacket(Backend& backend, const BatchLimits& limits, int multiprocessors, int compute_major);
    ~StepPacket() override;
    StepPacket(const StepPacket&) = delete;
    StepPacket& operator=(const StepPacket&) = delete;

    const StepBatch& host() const override { return host_; }
    void fill(const StepBatch& step, cudaStream_t stream);
    const BatchView& view() const { return view_; }
    const AttentionState& attention() const { return attention_; }
    const RowDraw* draws() const { return draws_; }
    RowPart* parts() const { return parts_; }

    GraphCache& graphs() { return graphs_; }  // captured over this packet's arrays

    void fetch(cudaStream_t stream);
    std::span<const std::int32_t> drawn(int fetches_ago);

  private:
    struct Table {                         // a row of resident_
        std::uint64_t id = 0;              // of the sequence it was made for; 0: nobody's
        std::uint64_t step = 0;            // when it was last used
        std::vector<std::int32_t> blocks;  // what the row holds
    };
    struct Upload {
        void* pinned = nullptr;
        cudaEvent_t copied = nullptr;  // the packet has left the pinned memory
    };
    struct Fetch {
        std::int32_t* pinned = nullptr;  // [max_outputs]
        std::int32_t outputs = 0;
        cudaEvent_t arrived = nullptr;
    };

    void place_tables(const StepBatch& step);  // fills table_rows_, and makes room for what is new
    void release();

    BatchLimits limits_;
    AttentionState attention_;
    StepBatch host_;
    std::unique_ptr<Buffer> fixed_;    // the arrays of view_, draws_, parts_, resident_
    std::unique_ptr<Buffer> landing_;  // where the packet arrives
    std::size_t packet_bytes_ = 0;
    BatchView view_{};
    int* plan_ = nullptr;      // of attention_
    int* tables_ = nullptr;    // [max_sequences, max_blocks] in the step's order
    int* resident_ = nullptr;  // [max_sequences, max_blocks] a row a known sequence
    RowDraw* draws_ = nullptr;
    RowPart* parts_ = nullptr;
    std::array<Upload, 2> uploads_;
    std::array<Fetch, 2> fetches_;
    std::uint64_t steps_ = 0, fetched_ = 0;
    GraphCache graphs_;
    std::vector<Table> known_;                                // [max_sequences]
    std::unordered_map<std::uint64_t, std::int32_t> row_of_;  // sequence id → index into known_
    std::vector<std::int32_t> table_rows_;                    // [sequences] index into known_
    std::vector<RowDraw> none_;                               // [outputs] of a step without draws
};

}  // namespace recto::cuda
