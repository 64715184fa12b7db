// A StepModel without weights: forward writes token ids into its own KV store at the slots it is told, and a
// row's logits are a hash of the whole context read back through the block table. Any mistake of bookkeeping
// (a wrong slot, a block given to two sequences, a stale prefix hit, a missing copy) changes the text. To be
// included before any Qt header: StepBatch::slots meets Qt's keyword.
//
// Asynchronous, it computes nothing before somebody asks: steps wait in a queue, as on a device that is as
// late as it can be, and copies and swaps have their turn behind them. It draws by the scalar reference.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "kernels/draw_cases.h"
#include "kernels/error.h"

namespace recto::test {

inline std::uint64_t hash_step(std::uint64_t h, std::uint64_t value) {
    h ^= value + 0x9E3779B97F4A7C15ULL + (h << 6) + (h >> 2);
    h *= 0xFF51AFD7ED558CCDULL;
    return h ^ (h >> 33);
}

// Hash of a context: each token with its position.
inline std::uint64_t context_hash(std::span<const std::int32_t> tokens) {
    std::uint64_t h = 1;
    for (std::size_t i = 0; i < tokens.size(); ++i)
        h = hash_step(h, std::uint64_t(tokens[i]) * 65537 + i);
    return h;
}

inline float fake_logit(std::uint64_t hash, std::int32_t id) {
    return float(hash_step(hash, std::uint64_t(id)) >> 40) * (8.0F / (1 << 24));
}

inline std::vector<float> fake_logits(std::span<const std::int32_t> context, int vocab) {
    const std::uint64_t h = context_hash(context);
    std::vector<float> row;
    for (std::int32_t id = 0; id < vocab; ++id)
        row.push_back(fake_logit(h, id));
    return row;
}

// What greedy decoding must give, without an engine.
inline std::int32_t fake_next(std::span<const std::int32_t> context, int vocab) {
    const auto row = fake_logits(context, vocab);
    return std::int32_t(std::max_element(row.begin(), row.end()) - row.begin());
}

class FakeModel : public StepModel {
  public:
    FakeModel(int vocab, int blocks, int block_size, bool asynchronous = false)
        : vocab_(vocab),
          block_size_(block_size),
          asynchronous_(asynchronous),
          drawable_(vocab),
          store_(std::size_t(blocks) * std::size_t(block_size), -1) {}

    int vocab() const override { return vocab_; }
    bool asynchronous() const override { return asynchronous_; }
    void draw_below(std::int32_t ids) override { drawable_ = ids; }

    void forward(const StepBatch& step) override {
        if (!asynchronous_) return compute(step);
        // A step that everybody left may still be on its way before the one computed and the one behind it.
        check(queue_.size() < 3, "a fourth step is enqueued");
        if (fail_at_enqueue == ++enqueued) throw Error(ErrorKind::runtime, "the queue is closed");
        overlapped += !queue_.empty();
        queue_.push_back(step);
    }

    // As long as nobody waited, no step has run: the one asked for and those before it do now.
    std::span<const std::int32_t> drawn(int steps_ago) override {
        check(asynchronous_, "nothing is drawn here");
        while (queue_.size() > std::size_t(steps_ago))
            run_first();
        if (error_) {  // what was enqueued behind a failed step is lost
            queue_.clear();
            std::rethrow_exception(std::exchange(error_, nullptr));
        }
        return drawn_[std::size_t(steps_ago) - queue_.size()];
    }

    std::span<float> logits(int output) override {
        check(queue_.empty(), "logits of a step that has not run");
        return row_of(output);
    }

    std::int32_t argmax(int output, int valid) override {
        check(queue_.empty(), "the argmax of a step that has not run");
        if (bad_.at(std::size_t(output))) return -1;
        const auto row = row_of(output).first(std::size_t(valid));
        return std::int32_t(std::max_element(row.begin(), row.end()) - row.begin());
    }

    void copy_block(std::int32_t from, std::int32_t to) override {
        run_all();
        check(from != to, "a block is copied onto itself");
        ++copies;
        for (int i = 0; i < block_size_; ++i)
            store_.at(std::size_t(to * block_size_ + i)) = store_.at(std::size_t(from * block_size_ + i));
    }

    std::size_t block_bytes() const override { return std::size_t(block_size_) * sizeof(std::int32_t); }
    void swap_out(std::int32_t block, void* host) override {
        run_all();
        ++swapped_out;
        if (fail_at_swap == swapped_out) throw Error(ErrorKind::runtime, "the bus went away");
        std::memcpy(host, &store_.at(std::size_t(block * block_size_)), block_bytes());
    }
    void swap_in(std::int32_t block, const void* host) override {
        run_all();
        ++swapped_in;
        std::memcpy(&store_.at(std::size_t(block * block_size_)), host, block_bytes());
    }

    int steps = 0;
    int enqueued = 0;
    int overlapped = 0;  // steps enqueued while one before was not waited for
    int copies = 0;
    int swapped_out = 0, swapped_in = 0;
    int fail_at_swap = -1;
    std::int32_t largest_step = 0;
    std::int64_t rows_computed = 0;
    int fail_at_step = -1;
    int fail_at_enqueue = -1;
    std::int32_t poison_token = -1;  // a row that feeds it gives NaN

  private:
    static void check(bool holds, const char* what) {
        if (!holds) throw std::logic_error(what);
    }

    void run_all() {
        while (!queue_.empty())
            run_first();
    }

    void run_first() {
        StepBatch step = std::move(queue_.front());
        queue_.pop_front();
        for (std::size_t r = 0; r < step.token_from.size(); ++r)
            if (step.token_from[r] >= 0)
                step.token_ids[r] = std::max(0, drawn_[0].at(std::size_t(step.token_from[r])));
        std::swap(drawn_[0], drawn_[1]);
        drawn_[0].assign(std::size_t(step.outputs()), -1);
        try {
            compute(step);
        } catch (...) {
            error_ = std::current_exception();
            return;
        }
        for (std::int32_t i = 0; i < step.outputs(); ++i)
            drawn_[0][std::size_t(i)] = reference::draw(row_of(i).data(), drawable_, {drawable_, 1.0F, 0.0F},
                                                        step.draws.at(std::size_t(i)));
    }

    void compute(const StepBatch& step) {
        ++steps;
        if (fail_at_step == steps) throw Error(ErrorKind::runtime, "the device went away");
        check_shape(step);
        largest_step = std::max(largest_step, step.rows());
        std::set<std::int32_t> written;
        for (std::int32_t r = 0; r < step.rows(); ++r) {
            const auto slot = step.slots[std::size_t(r)];
            check(written.insert(slot).second, "two rows write one slot");
            check(slot == slot_of(step, step.row_sequence[std::size_t(r)], step.positions[std::size_t(r)]),
                  "a row writes beside its table");
            store_[std::size_t(slot)] = step.token_ids[std::size_t(r)];
        }
        hashes_.clear();
        for (std::int32_t r : step.logit_rows) {
            std::vector<std::int32_t> context;
            const std::int32_t sequence = step.row_sequence[std::size_t(r)];
            for (std::int32_t p = 0; p <= step.positions[std::size_t(r)]; ++p)
                context.push_back(store_[std::size_t(slot_of(step, sequence, p))]);
            hashes_.push_back(context_hash(context));
            bad_.push_back(false);
        }
        bad_.assign(hashes_.size(), false);
        for (std::size_t i = 0; i < hashes_.size(); ++i)
            bad_[i] = poison_token >= 0 && step.token_ids[std::size_t(step.logit_rows[i])] == poison_token;
        row_.resize(std::size_t(vocab_));
        rows_computed += step.rows();
    }

    std::span<float> row_of(int output) {
        const std::uint64_t h = hashes_.at(std::size_t(output));
        for (std::int32_t id = 0; id < vocab_; ++id)
            row_[std::size_t(id)] = fake_logit(h, id);
        if (bad_[std::size_t(output)]) row_[3] = std::numeric_limits<float>::quiet_NaN();
        return row_;
    }

    std::int32_t slot_of(const StepBatch& step, std::int32_t sequence, std::int32_t position) const {
        const auto block =
            step.block_tables.at(std::size_t(sequence * step.max_blocks + position / block_size_));
        return block * block_size_ + position % block_size_;
    }
    void check_shape(const StepBatch& s) const {
        const auto rows = std::size_t(s.rows());
        check(rows > 0, "an empty step");
        check(s.positions.size() == rows && s.row_sequence.size() == rows && s.slots.size() == rows,
              "row arrays");
        check(s.query_start.size() == std::size_t(s.sequences()) + 1, "query_start");
        check(s.query_start.front() == 0 && s.query_start.back() == s.rows(), "query_start ends");
        check(s.block_tables.size() == std::size_t(s.sequences() * s.max_blocks), "block_tables");
        check(std::ranges::is_sorted(s.logit_rows), "logit_rows ascend");
        for (std::int32_t q = 0; q < s.sequences(); ++q) {
            const auto first = std::size_t(s.query_start[std::size_t(q)]);
            const auto last = std::size_t(s.query_start[std::size_t(q) + 1]);
            check(last > first, "a sequence without rows");
            check(s.positions[last - 1] + 1 == s.context_tokens[std::size_t(q)], "context_tokens");
            for (std::size_t r = first; r < last; ++r) {
                check(s.row_sequence[r] == q, "row_sequence");
                check(r == first || s.positions[r] == s.positions[r - 1] + 1, "positions ascend by one");
            }
        }
    }

    int vocab_;
    int block_size_;
    bool asynchronous_;
    std::int32_t drawable_;
    std::vector<std::int32_t> store_;  // [slots] token id
    std::deque<StepBatch> queue_;
    std::array<std::vector<std::int32_t>, 2> drawn_;  // by the last step that ran, and by the one before
    std::exception_ptr error_;
    std::vector<std::uint64_t> hashes_;
    std::vector<bool> bad_;
    std::vector<float> row_;
};

// An engine over a FakeModel, and everything that its requests said.
struct Harness {
    struct Output {
        std::string text;
        std::vector<std::int32_t> ids;
        std::vector<std::vector<TokenLogprob>> logprobs;
        FinishReason finish = FinishReason::none;
        std::optional<std::int32_t> stop_token;
        std::string stop_string;
        std::string error;
        double cumulative_logprob = 0;
        bool operator==(const Output& o) const {
            return text == o.text && ids == o.ids && finish == o.finish && stop_token == o.stop_token &&
                   stop_string == o.stop_string;
        }
    };
    struct Answer {
        std::map<int, Output> outputs;
        std::vector<std::vector<TokenLogprob>> prompt_logprobs;
        bool finished = false;
        RequestMetrics metrics;
    };

    Harness(int vocab, const EngineOptions& o, const Tokenizer* tokenizer = nullptr,
            std::vector<std::int32_t> eos = {}, bool asynchronous = false) {
        auto made = std::make_unique<FakeModel>(vocab, o.kv_blocks, o.block_size, asynchronous);
        model = made.get();
        engine = std::make_unique<Engine>(std::move(made), tokenizer, std::move(eos), o);
    }

    std::vector<RequestEvent> step() {
        auto events = engine->step();
        for (const RequestEvent& e : events) {
            Answer& a = answers[e.request];
            if (a.finished) throw std::logic_error("an event after the end of its request");
            Output& o = a.outputs[e.output];
            if (o.finish != FinishReason::none)
                throw std::logic_error("an event after the end of its output");
            o.text += e.text;
            o.ids.insert(o.ids.end(), e.token_ids.begin(), e.token_ids.end());
            o.logprobs.insert(o.logprobs.end(), e.logprobs.begin(), e.logprobs.end());
            o.finish = e.finish;
            o.stop_token = e.stop_token;
            o.stop_string = e.stop_string;
            o.error = e.error;
            o.cumulative_logprob = e.cumulative_logprob;
            if (!e.prompt_logprobs.empty()) a.prompt_logprobs = e.prompt_logprobs;
            a.finished = e.request_finished;
            a.metrics = e.metrics;
        }
        return events;
    }
    void run() {
        for (int i = 0; engine->has_work(); ++i) {
            if (i > 200000) throw std::logic_error("the engine does not come to an end");
            step();
        }
    }
    const Output& only(RequestId id) { return answers.at(id).outputs.at(0); }

    FakeModel* model = nullptr;
    std::unique_ptr<Engine> engine;
    std::map<RequestId, Answer> answers;
};

inline EngineOptions small_options(int blocks, int block_size = 4, int max_model_len = 64) {
    EngineOptions o;
    o.kv_blocks = blocks;
    o.block_size = block_size;
    o.max_model_len = max_model_len;
    o.max_num_seqs = 8;
    o.max_num_batched_tokens = 64;
    o.fixed_chunk_tokens = 0;
    o.seed = 1234;
    return o;
}

// n distinct, reproducible tokens below vocab.
inline std::vector<std::int32_t> fake_prompt(std::uint64_t seed, int n, int vocab) {
    std::vector<std::int32_t> p;
    for (int i = 0; i < n; ++i)
        p.push_back(std::int32_t(hash_step(seed, std::uint64_t(i)) % std::uint64_t(vocab)));
    return p;
}

inline Request greedy_request(std::vector<std::int32_t> prompt, int max_tokens) {
    Request r;
    r.prompt = std::move(prompt);
    r.sampling.temperature = 0;
    r.sampling.max_tokens = max_tokens;
    return r;
}

inline std::vector<std::int32_t> expected_greedy(std::vector<std::int32_t> context, int max_tokens,
                                                 int vocab) {
    std::vector<std::int32_t> out;
    for (int i = 0; i < max_tokens; ++i) {
        out.push_back(fake_next(context, vocab));
        context.push_back(out.back());
    }
    return out;
}

}  // namespace recto::test
