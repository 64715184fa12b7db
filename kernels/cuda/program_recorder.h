// Collects a step's operations while its graph is captured, and enqueues what goes together as one program
// (program.h): norms into the product that reads them, rope and KV write into attention.
//
// Callers offer each operation in its order, with what enqueues it by itself. One that no program has makes
// everything before it be enqueued first, and so does one that has no room in shared memory: it begins a new
// program, or runs by itself where it is too wide for any (ProgramRoom). A norm's result is written as if it
// had run alone; of a rope's the rotated query is not.
#pragma once
#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/attention_state.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/program.h"
#include "kernels/cuda/tiled_weight.h"

namespace recto::cuda {

class ProgramRecorder {
  public:
    using Alone = std::function<void()>;  // enqueues an operation by itself

    ProgramRecorder(cudaStream_t stream, int multiprocessors, int shared_bytes);

    // Between these two operations are collected, for a step of that many rows.
    void begin(const BatchView& batch, const AttentionState& attention, int rows);
    void end();
    void drop();                                // end without enqueueing: what was being captured has failed
    int programs() const { return programs_; }  // enqueued so far
    void flush();                               // enqueues everything collected so far

    // Enqueue or collect. `other`: an operation of any kind.
    void other(const Alone& alone);
    // Rows of a step that is collected are its outputs, in order: a gathered row is the row itself.
    void gather(Tensor x, Tensor out, const Alone& alone);
    void norm(Tensor x, const float* weight, float eps, Tensor out, const Alone& alone);
    void product(Tensor x, const TiledWeight& weight, Epilogue epilogue, Tensor out, const Alone& alone);
    void rope(const RopeStoreArgs& args, Tensor table, Tensor qkv, const KvView& kv, const Alone& alone);
    void attention(const AttentionArgs& args, Tensor q, const KvView& kv, Tensor out, const Alone& alone);

  private:
    struct Gather {
        Tensor x, out;
    };
    struct Norm {
        Tensor x, out;
        const float* weight;
        float eps;
    };
    struct Rope {
        RopeStoreArgs args;
        Tensor table, qkv;
    };

    void take_pending();  // what nothing followed up: by itself, after what is collected
    void enqueue();       // what is collected, not what is pending
    bool make_room(int inputs);
    void add(const ProgramStep& step, int inputs, std::vector<Alone> alone);

    cudaStream_t stream_;
    int multiprocessors_, shared_bytes_;
    int programs_ = 0;
    bool recording_ = false;
    BatchView batch_{};
    AttentionWorkspace workspace_{};
    int rows_ = 0;
    DeviceMemory barrier_;
    std::unique_ptr<Program> program_;
    ProgramRoom room_;                   // of the steps collected
    std::vector<Alone> alone_;           // theirs, in order
    std::optional<ProgramShape> shape_;  // of their attention
    DType activation_ = DType::f32;      // of the products; f32: none yet
    std::optional<Norm> norm_;
    std::optional<Rope> rope_;
    std::optional<Gather> gather_;
    std::vector<Alone> pending_;  // of gather_, norm_ or rope_
};

}  // namespace recto::cuda
