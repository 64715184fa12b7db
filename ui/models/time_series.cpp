#include "ui/models/time_series.h"

#include <algorithm>

namespace recto::ui {

void TimeSeries::clear() {
    samples_.clear();
    counters_.clear();
    owners_.clear();
}

void TimeSeries::add(const EngineSnapshot& snapshot) {
    if (!samples_.empty() && snapshot.time < samples_.back().time) clear();  // another engine
    if (!samples_.empty() && snapshot.time == samples_.back().time) return;
    Sample sample;
    sample.time = snapshot.time;
    sample.total = snapshot.counts.total;
    sample.all_used = snapshot.counts.used;
    sample.shared = snapshot.counts.shared;
    sample.cached = snapshot.counts.cached;
    sample.step_s = snapshot.last_step_s;
    sample.running = snapshot.running;
    sample.waiting = snapshot.waiting;
    sample.used.resize(owners_.size());
    for (const BlockSnapshot& block : snapshot.blocks) {
        if (block.state != BlockState::used) continue;
        auto at = std::find(owners_.begin(), owners_.end(), block.owner);
        if (at == owners_.end()) {
            owners_.push_back(block.owner);
            sample.used.push_back(0);
            at = owners_.end() - 1;
        }
        ++sample.used[std::size_t(at - owners_.begin())];
    }
    const Counters now{snapshot.time, snapshot.tokens_prefilled, snapshot.tokens_decoded};
    if (!counters_.empty()) {
        const double span = now.time - counters_.back().time;
        sample.prefill_tok_s = double(now.prefilled - counters_.back().prefilled) / span;
        sample.decode_tok_s = double(now.decoded - counters_.back().decoded) / span;
    }
    samples_.push_back(std::move(sample));
    counters_.push_back(now);
    while (samples_.size() > 2 && samples_.back().time - samples_[1].time > span_s_) {
        samples_.pop_front();
        counters_.pop_front();
    }
}

double TimeSeries::latest(std::uint64_t Counters::*counter) const {
    if (counters_.size() < 2) return 0;
    const Counters& now = counters_.back();
    auto from = counters_.rbegin() + 1;
    while (from + 1 != counters_.rend() && now.time - from->time < 1.0)
        ++from;
    return double(now.*counter - (*from).*counter) / (now.time - from->time);
}

double TimeSeries::latest_prefill_tok_s() const {
    return latest(&Counters::prefilled);
}
double TimeSeries::latest_decode_tok_s() const {
    return latest(&Counters::decoded);
}

}  // namespace recto::ui
