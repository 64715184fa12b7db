#include "kernels/cuda/offload.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/check.h"

namespace recto::cuda {

namespace {

class OffloadedMemory final : public WeightMemory {
  public:
    OffloadedMemory(std::byte* device, std::shared_ptr<const PinnedMemory> home)
        : device_(device), home_(std::move(home)) {}
    std::byte* at(std::size_t offset) const override { return device_ + offset; }
    std::size_t bytes() const override { return home_->bytes(); }
    bool offloaded() const override { return true; }
    void* home() const { return home_->data(); }

  private:
    std::byte* device_;  // in a slot
    std::shared_ptr<const PinnedMemory> home_;
};

class CopyStream final : public WeightStream {
  public:
    CopyStream(std::shared_ptr<const OffloadSlots> slots, cudaStream_t compute)
        : slots_(std::move(slots)), compute_(compute) {
        check(cudaStreamCreateWithFlags(&copy_, cudaStreamNonBlocking), "making a stream");
        arrived_.resize(slots_->layers().size());
        for (cudaEvent_t& event : arrived_)
            check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
        for (cudaEvent_t* event : {&begun_, &free_[0], &free_[1]})
            check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "making an event");
    }
    ~CopyStream() override {
        cudaStreamSynchronize(copy_);
        for (cudaEvent_t event : arrived_)
            cudaEventDestroy(event);
        for (cudaEvent_t event : {begun_, free_[0], free_[1]})
            if (event) cudaEventDestroy(event);
        cudaStreamDestroy(copy_);
    }

    void begin_step() override {
        // Kernels of the step before may still read the slots; inside a capture this is the fork.
        check(cudaEventRecord(begun_, compute_), "recording an event");
        check(cudaStreamWaitEvent(copy_, begun_, 0), "waiting for an event");
        next_ = 0;
        for (std::size_t i = 0; i < OffloadSlots::count && i < slots_->layers().size(); ++i)
            copy(i);
    }

    void enter_layer(int layer) override {
        if (next_ >= slots_->layers().size() || slots_->layers()[next_] != layer) return;
        check(cudaStreamWaitEvent(compute_, arrived_[next_], 0), "waiting for a layer's weights");
    }

    void leave_layer(int layer) override {
        if (next_ >= slots_->layers().size() || slots_->layers()[next_] != layer) return;
        const std::size_t after = next_ + OffloadSlots::count;
        if (after < slots_->layers().size()) {
            cudaEvent_t free = free_[next_ % OffloadSlots::count];
            check(cudaEventRecord(free, compute_), "recording an event");
            check(cudaStreamWaitEvent(copy_, free, 0), "waiting for an event");
            copy(after);
        }
        ++next_;
    }

    std::size_t host_bytes() const override { return slots_->host_bytes(); }
    std::size_t device_bytes() const override { return slots_->device_bytes(); }

  private:
    void copy(std::size_t index) {
        for (const OffloadSlots::Copy& c : slots_->copies(index))
            check(cudaMemcpyAsync(c.device, c.home->data(), c.home->bytes(), cudaMemcpyHostToDevice, copy_),
                  "copying a layer's weights to the card");
        check(cudaEventRecord(arrived_[index], copy_), "recording an event");
    }

    std::shared_ptr<const OffloadSlots> slots_;
    cudaStream_t compute_;
    cudaStream_t copy_ = nullptr;
    std::vector<cudaEvent_t> arrived_;  // one a layer
    cudaEvent_t begun_ = nullptr;
    cudaEvent_t free_[OffloadSlots::count] = {};
    std::size_t next_ = 0;  // index of the layer that comes next in this step
};

}  // namespace

bool OffloadSlots::has(int layer) const {
    return std::find(layers_.begin(), layers_.end(), layer) != layers_.end();
}

void OffloadSlots::begin_layer(int layer) {
    current_ = int(std::find(layers_.begin(), layers_.end(), layer) - layers_.begin());
    assert(std::size_t(current_) < layers_.size());
}

std::unique_ptr<WeightMemory> OffloadSlots::allocate(std::size_t bytes) {
    auto& pieces = pieces_[current_ % count];
    // Layers are mostly alike: the next piece has the size. Else the smallest that is large enough.
    Piece* best = nullptr;
    for (Piece& piece : pieces)
        if (piece.taken_by != current_ && piece.memory.bytes() >= bytes &&
            (best == nullptr || piece.memory.bytes() < best->memory.bytes()))
            best = &piece;
    if (best == nullptr) best = &pieces.emplace_back(Piece{DeviceMemory(bytes), -1});
    auto home = std::make_shared<const PinnedMemory>(bytes);
    best->taken_by = current_;
    copies_[std::size_t(current_)].push_back({best->memory.data(), home});
    return std::make_unique<OffloadedMemory>(best->memory.at(0), std::move(home));
}

void OffloadSlots::store(const WeightMemory& memory, cudaStream_t stream) const {
    const auto& offloaded = static_cast<const OffloadedMemory&>(memory);
    check(
        cudaMemcpyAsync(offloaded.home(), offloaded.at(0), offloaded.bytes(), cudaMemcpyDeviceToHost, stream),
        "copying a weight to host memory");
}

std::size_t OffloadSlots::device_bytes() const {
    std::size_t n = 0;
    for (const auto& slot : pieces_)
        for (const Piece& piece : slot)
            n += piece.memory.bytes();
    return n;
}

std::size_t OffloadSlots::host_bytes() const {
    std::size_t n = 0;
    for (const auto& layer : copies_)
        for (const Copy& c : layer)
            n += c.home->bytes();
    return n;
}

std::unique_ptr<WeightStream> make_weight_stream(std::shared_ptr<const OffloadSlots> slots,
                                                 cudaStream_t compute) {
    return std::make_unique<CopyStream>(std::move(slots), compute);
}

}  // namespace recto::cuda
