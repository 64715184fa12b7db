// What the panel's plots draw: the last minutes of snapshots. Plain data in ring buffers.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "ui/host/host_types.h"

namespace recto::ui {

class TimeSeries {
  public:
    explicit TimeSeries(double span_s = 60.0) : span_s_(span_s) {}

    struct Sample {
        double time = 0;        // engine seconds
        std::vector<int> used;  // blocks, by owners() order; may be shorter than owners()
        int shared = 0, cached = 0, total = 0, all_used = 0;
        double prefill_tok_s = 0;  // since the sample before, from the counters
        double decode_tok_s = 0;
        double step_s = 0;
        int running = 0, waiting = 0;
    };
    void add(const EngineSnapshot& snapshot);  // one with a time that goes back starts anew (another model)
    void clear();
    double span_s() const { return span_s_; }
    const std::deque<Sample>& samples() const { return samples_; }
    const std::vector<OwnerId>& owners() const { return owners_; }  // bottom to top, in order of first sight
    double latest_prefill_tok_s() const;                            // over about the last second
    double latest_decode_tok_s() const;

  private:
    double span_s_;
    std::deque<Sample> samples_;
    std::vector<OwnerId> owners_;
    struct Counters {
        double time = 0;
        std::uint64_t prefilled = 0, decoded = 0;
    };
    double latest(std::uint64_t Counters::*counter) const;
    std::deque<Counters> counters_;  // beside samples_
};

}  // namespace recto::ui
