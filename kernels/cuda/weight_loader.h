// Brings weights from the file map into device memory while a model is loaded. A packer asks for the memory
// of a whole packed weight, names what belongs where, and seals it:
//
//     auto memory = loader.allocate(bytes);                // one piece, the packer lays it out
//     loader.load_dense(rows, memory->at(0));              // 16- and 32-bit weights: straight into place
//     loader.load_grouped(rows, [to = memory->at(n)](const LogicalPlanes& p, cudaStream_t s) {
//         repack(s, p, to);
//     });
//     loader.put(bias.data(), bias_bytes, memory->at(m));  // small arrays
//     loader.seal(*memory);
//
// All of it may happen later than the call that asks for it, in the order of the calls, and has happened when
// finish() returns: reading, copying and repacking of several weights overlap. Callbacks run on the thread
// that calls the loader, inside a later call; so they hold device addresses by value and nothing of the
// packer.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "kernels/backend.h"
#include "kernels/cuda/logical_planes.h"

namespace recto::cuda {

// Device memory of one packed weight. Offloaded weights live in pinned host memory, and their device
// addresses are those of a slot that the weight is copied to before each use: kernels need not know.
class WeightMemory {
  public:
    virtual ~WeightMemory() = default;
    virtual std::byte* at(std::size_t offset) const = 0;  // device address, the same for the weight's life
    virtual std::size_t bytes() const = 0;
    virtual bool offloaded() const = 0;
};

class WeightLoader {
  public:
    // Enqueues on `stream` the kernels that read `planes`, which lie in memory that the next part is put
    // into.
    using Consume = std::function<void(const LogicalPlanes& planes, cudaStream_t stream)>;

    // `stream` is where the weights will be used.
    WeightLoader(int device, cudaStream_t stream);
    ~WeightLoader();
    WeightLoader(const WeightLoader&) = delete;
    WeightLoader& operator=(const WeightLoader&) = delete;

    std::unique_ptr<WeightMemory> allocate(std::size_t bytes);  // 256-byte aligned; Error(memory)
    // [rows, cols] of form().dense to device memory. `rows` need not outlive the call, here and below.
    void load_dense(const WeightRows& rows, std::byte* to);
    void load_grouped(const WeightRows& rows, Consume consume);
    void put(const void* host, std::size_t bytes, std::byte* to);
    void seal(
        const WeightMemory& memory);  // everything of this weight was asked for; it must outlive finish()
    void finish();                    // Error: of whatever failed since

    // A whole model. Outside of these the packer finishes each weight by itself.
    void begin(const LoadPlan& plan);
    bool loading() const;
    void begin_layer(int layer);          // −1: none
    std::unique_ptr<WeightStream> end();  // finish(), then release()
    void release();           // gives up what is under way, and returns all memory but the weights'
    LoadTimes times() const;  // of the load under way or the last one

    // Where the planes that load_grouped would give differ from WeightRows::read; empty: nowhere.
    std::string compare_planes(const WeightRows& rows);

  private:
    template <class F>
    auto guarded(F&& work);

    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace recto::cuda
