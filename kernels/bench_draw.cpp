// Timings of drawing tokens, and of what the host does to send a step.
#include <chrono>

#include "kernels/bench_print.h"
#include "kernels/draw_cases.h"

namespace recto {
namespace {

constexpr int repeats = 20;  // calls between two waits, so that the wait is not what is timed

StepBatch decode_step(int sequences, int context, int block_size) {
    StepBatch s;
    s.max_blocks = context / block_size + 1;
    for (int i = 0; i < sequences; ++i) {
        s.token_ids.push_back(1);
        s.positions.push_back(context - 1);
        s.row_sequence.push_back(i);
        s.slots.push_back((i * s.max_blocks + (context - 1) / block_size) * block_size +
                          (context - 1) % block_size);
        s.query_start.push_back(i);
        s.context_tokens.push_back(context);
        s.logit_rows.push_back(i);
        s.token_from.push_back(i);
        s.sequence_ids.push_back(std::uint64_t(i) + 1);
        for (int b = 0; b < s.max_blocks; ++b)
            s.block_tables.push_back(b * block_size < context ? i * s.max_blocks + b : -1);
    }
    s.query_start.push_back(sequences);
    return s;
}

void bench_draws(Backend& backend, const std::string& filter, const Printer& print) {
    std::vector<DrawCase> cases;
    for (const DrawCase& c : draw_cases())
        for (const char* name :
             {"greedy 32000", "random 32000", "top_p 0.9", "top_k 40", "top_k 100, top_p 0.8, min_p 0.01",
              "top_p 0.95 of 151936 at temperature 0.7"})
            if (c.name == name) cases.push_back(c);
    for (DrawCase c : cases) {
        for (const int rows : {1, 32, 256}) {
            const std::string name = "sample " + c.name + ", rows " + std::to_string(rows);
            if (name.find(filter) == std::string::npos) continue;
            c.rows = std::min(rows, 32);
            const std::vector<float> part = draw_logits(c);
            const std::size_t row_bytes = std::size_t(c.vocab) * sizeof(float);
            const auto memory = backend.allocate(std::size_t(rows) * row_bytes);
            for (int r = 0; r < rows; r += c.rows)
                backend.upload(static_cast<char*>(memory->data()) + std::size_t(r) * row_bytes, part.data(),
                               part.size() * sizeof(float));
            BatchLimits limits;
            limits.max_rows = limits.max_sequences = limits.max_outputs = rows;
            limits.max_blocks = 2;
            const auto batch = backend.make_batch(limits);
            StepBatch step = decode_step(rows, 16, 16);
            for (int r = 0; r < rows; ++r)
                step.draws.push_back(draw_of(c, r));
            backend.upload_batch(*batch, step);
            const Tensor logits{memory->data(), DType::f32, rows, c.vocab, c.vocab};
            const double seconds = time_of(backend, [&] {
                for (int i = 0; i < repeats; ++i)
                    backend.draw(*batch, {c.valid, 1.0F, 0.0F}, logits);
            });
            const double cells = double(rows) * c.valid;
            print.line(name, seconds / repeats, cells * sizeof(float), cells, false);
        }
    }
}

// Host time of sending a step in which every sequence has grown by a token.
void bench_packet(Backend& backend, const std::string& filter, const Printer& print) {
    for (const int sequences : {1, 64, 256}) {
        const int context = 4096, block_size = 16, steps = 64;
        const std::string name = "host packet, " + std::to_string(sequences) + " sequences of 4096 tokens";
        if (name.find(filter) == std::string::npos) continue;
        BatchLimits limits;
        limits.max_rows = 8192;
        limits.max_sequences = limits.max_outputs = sequences;
        limits.max_blocks = context / block_size + steps / block_size + 1;
        const auto batch = backend.make_batch(limits);
        double seconds = 0;
        std::size_t bytes = 0;
        for (int i = 0; i < steps; ++i) {
            StepBatch step = decode_step(sequences, context + i, block_size);
            step.draws.resize(std::size_t(sequences));
            // Tables as long as they will get, so that a block keeps its number from step to step.
            const StepBatch last = decode_step(sequences, context + steps, block_size);
            step.block_tables = last.block_tables;
            step.max_blocks = last.max_blocks;
            backend.synchronize();
            const auto start = std::chrono::steady_clock::now();
            backend.upload_batch(*batch, step);
            if (i > 0)
                seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            bytes = step.block_tables.size() * sizeof(std::int32_t);
        }
        print.line(name, seconds / (steps - 1), double(bytes), 0, false, "GB/s of block tables compared");
    }
}

}  // namespace

void bench_draw(Backend& backend, const std::string& filter, const Printer& print) {
    if (!backend.asynchronous()) return;
    bench_draws(backend, filter, print);
    bench_packet(backend, filter, print);
}

}  // namespace recto
