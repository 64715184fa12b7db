#include <algorithm>
#include <chrono>
#include <cstring>

#include "kernels/cpu/backend.h"

namespace recto::cpu {

Ceilings CpuBackend::measure_ceilings() {
    using Clock = std::chrono::steady_clock;
    const auto seconds = [](auto work) {
        double best = 1e30;
        for (int i = 0; i < 5; ++i) {
            const auto start = Clock::now();
            work();
            best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
        }
        return best;
    };
    Ceilings c;
    const int n = pool_.threads();
    pool_.begin_step();
    const std::size_t bytes = std::size_t(192) << 20;  // well past the caches
    const std::size_t piece = std::size_t(64) << 10;
    AlignedBytes memory(bytes);
    std::memset(memory.data(), 1, bytes);
    std::vector<float> sinks(std::size_t(n) * 16, 0.5F);
    c.read_bytes_s =
        double(bytes) / seconds([&] {
            pool_.parallel_for(
                std::int64_t(bytes / piece), 4, [&](int worker, std::int64_t begin, std::int64_t end) {
                    sinks[std::size_t(worker) * 16] += float(kernels_.read_memory(
                        memory.data() + std::size_t(begin) * piece, std::size_t(end - begin) * piece));
                });
        });
    const std::int64_t steps = 400000;
    std::vector<double> ops(std::size_t(n) * 8);
    const auto rounds = [&](auto kernel) {
        const double t = seconds([&] {
            pool_.parallel_for(n, 1, [&](int, std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; ++i) {
                    sinks[std::size_t(i) * 16] = 0.5F;
                    ops[std::size_t(i) * 8] = kernel(steps, &sinks[std::size_t(i) * 16]);
                }
            });
        });
        double total = 0;
        for (int i = 0; i < n; ++i)
            total += ops[std::size_t(i) * 8];
        return total / t;
    };
    c.int8_ops_s = rounds(kernels_.int8_rounds);
    c.fp32_ops_s = rounds(kernels_.fp32_rounds);
    pool_.end_step();
    return c;
}

}  // namespace recto::cpu
