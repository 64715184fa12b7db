// What the tests of the CPU's kernels share: a backend of one instruction set, and the sets of this machine.
#pragma once
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/isa.h"

namespace recto::test {

inline std::unique_ptr<Backend> make_cpu(const std::string& isa, int threads) {
    CpuOptions options;
    options.threads = threads;
    options.max_isa = isa;
    return make_cpu_backend(options);
}

// All that this processor has, but scalar.
inline std::vector<std::string> vector_sets() {
    const cpu::CpuFeatures f = cpu::detect_cpu();
    std::vector<std::string> sets;
    if (f.avx2) sets.emplace_back("avx2");
    if (f.avx_vnni) sets.emplace_back("avxvnni");
    if (f.avx512) sets.emplace_back("avx512");
    if (f.amx_int8) sets.emplace_back("amx");
    return sets;
}

inline std::vector<std::string> all_sets() {
    std::vector<std::string> sets = vector_sets();
    sets.insert(sets.begin(), "scalar");
    return sets;
}

inline bool same_bits(const float* a, const float* b, std::size_t n) {
    return std::memcmp(a, b, n * sizeof(float)) == 0;
}

}  // namespace recto::test
