// Weights that live in pinned host memory and pass through device memory, two layers at a time.
//
// The k-th offloaded layer of a model always passes through slot k mod 2, so every weight has one device
// address for its whole life: kernels, views and captured graphs need not know. Within a step the copies of
// the first two such layers start at once; leaving a layer lets the copy of the next but one begin, on a
// stream of its own. Idea: FlexGen (Sheng et al. 2023), and vLLM's --cpu-offload-gb, which copies without
// looking ahead.
#pragma once
#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/weight_loader.h"

namespace recto::cuda {

// The device memory that offloaded layers share: slot s is a list of pieces, of which a layer's weights take
// one each, in order.
class OffloadSlots {
  public:
    static constexpr int count = 2;

    explicit OffloadSlots(std::vector<int> layers) : layers_(std::move(layers)), copies_(layers_.size()) {}

    bool has(int layer) const;
    // Weights allocated from here on are this layer's, which is one of layers().
    void begin_layer(int layer);
    // Memory of a weight of that layer. Error(memory).
    std::unique_ptr<WeightMemory> allocate(std::size_t bytes);
    // Enqueues the copy of what is at the weight's device address to its home.
    void store(const WeightMemory& memory, cudaStream_t stream) const;

    struct Copy {
        void* device;
        std::shared_ptr<const PinnedMemory> home;  // also the weight's; outlives copies on their way to it
    };
    const std::vector<int>& layers() const { return layers_; }
    const std::vector<Copy>& copies(std::size_t index) const { return copies_[index]; }  // of layers()[index]
    std::size_t device_bytes() const;
    std::size_t host_bytes() const;

  private:
    struct Piece {
        DeviceMemory memory;
        int taken_by = -1;  // index into layers_
    };

    std::vector<int> layers_;
    std::vector<std::vector<Copy>> copies_;
    std::vector<Piece> pieces_[count];
    int current_ = -1;  // index into layers_
};

// `compute` is the backend's stream.
std::unique_ptr<WeightStream> make_weight_stream(std::shared_ptr<const OffloadSlots> slots,
                                                 cudaStream_t compute);

}  // namespace recto::cuda
