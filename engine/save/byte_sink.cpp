#include "engine/save/byte_sink.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

namespace recto {

void for_parts(std::size_t n, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& body) {
    const std::size_t grains = (n + grain - 1) / grain;
    const std::size_t workers =
        std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, grains + (grains == 0));
    const std::size_t part = (grains + workers - 1) / workers * grain;
    std::vector<std::exception_ptr> errors(workers);
    const auto work = [&](std::size_t worker) {
        try {
            const std::size_t begin = std::min(n, worker * part), end = std::min(n, begin + part);
            if (begin < end) body(begin, end);
        } catch (...) {
            errors[worker] = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> threads;
        for (std::size_t worker = 1; worker < workers; ++worker)
            threads.emplace_back(work, worker);
        work(0);
    }
    for (const auto& error : errors)
        if (error) std::rethrow_exception(error);
}

}  // namespace recto
