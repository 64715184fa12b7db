// Who computes which chunks of an operation: each worker has a run of neighbouring chunks, so that the memory
// it reads is one stream that can be asked for ahead, and one that has finished takes from the end of
// another's.
#pragma once
#include <atomic>
#include <cassert>
#include <cstdint>
#include <vector>

namespace recto::cpu {

class Shares {
  public:
    explicit Shares(int workers) : runs_(std::size_t(workers)) {}

    struct Chunk {
        std::int64_t index = 0;
        std::int64_t run_end = 0;  // what follows it up to here is most likely the same worker's
        bool starts_run = false;   // what came before it was not
    };

    // Between operations only.
    void divide(std::int64_t chunks) {
        const auto n = std::int64_t(runs_.size());
        assert(chunks < std::int64_t(1) << 32);
        for (std::int64_t w = 0; w < n; ++w) {
            Run& run = runs_[std::size_t(w)];
            run.begin = chunks * w / n;
            run.left.store(pack(run.begin, chunks * (w + 1) / n), std::memory_order_relaxed);
        }
    }

    // One chunk that nobody else has; called as often as there are chunks.
    Chunk take(int worker) {
        const std::size_t n = runs_.size();
        for (std::size_t i = 0;; i = (i + 1) % n) {
            Run& run = runs_[(std::size_t(worker) + i) % n];
            std::uint64_t left = run.left.load(std::memory_order_relaxed);
            while (first(left) < last(left)) {
                const bool own = i == 0;
                const std::uint64_t rest =
                    own ? pack(first(left) + 1, last(left)) : pack(first(left), last(left) - 1);
                if (!run.left.compare_exchange_weak(left, rest, std::memory_order_relaxed)) continue;
                if (own) return {first(left), last(left), first(left) == run.begin};
                return {last(left) - 1, last(left), true};
            }
        }
    }

  private:
    static std::uint64_t pack(std::int64_t first, std::int64_t last) {
        return std::uint64_t(first) << 32 | std::uint64_t(last);
    }
    static std::int64_t first(std::uint64_t run) { return std::int64_t(run >> 32); }
    static std::int64_t last(std::uint64_t run) { return std::int64_t(run & 0xFFFFFFFFU); }

    struct alignas(64) Run {
        std::atomic<std::uint64_t> left{0};
        std::int64_t begin = 0;
    };
    std::vector<Run> runs_;
};

}  // namespace recto::cpu
