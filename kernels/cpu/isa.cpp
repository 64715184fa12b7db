#include "kernels/cpu/isa.h"

#include <cstring>

#include "kernels/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace recto::cpu {

#if defined(__x86_64__)
namespace {

struct Registers {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
    Registers r;
    if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
    return r;
}

// Which register states the operating system saves (XCR0).
std::uint64_t saved_states() {
    unsigned lo = 0, hi = 0;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (std::uint64_t(hi) << 32) | lo;
}

bool bit(unsigned value, int n) {
    return ((value >> n) & 1U) != 0;
}

// Linux grants the 8 KiB of tile data per process, on request.
bool ask_for_tiles() {
    constexpr long request_permission = 0x1023, tile_data = 18;
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

std::string brand() {
    if (cpuid(0x80000000U).eax < 0x80000004U) return "x86-64 processor";
    char text[49] = {};
    for (unsigned i = 0; i < 3; ++i) {
        const Registers r = cpuid(0x80000002U + i);
        std::memcpy(text + 16 * i, &r, 16);
    }
    const std::string padded = text;
    const std::size_t first = padded.find_first_not_of(' '), last = padded.find_last_not_of(' ');
    return first == std::string::npos ? "x86-64 processor" : padded.substr(first, last - first + 1);
}

}  // namespace

CpuFeatures detect_cpu() {
    CpuFeatures f;
    f.name = brand();
    const Registers one = cpuid(1);
    if (!bit(one.ecx, 27) || !bit(one.ecx, 28)) return f;  // OSXSAVE, AVX
    const std::uint64_t states = saved_states();
    if ((states & 0x6U) != 0x6U) return f;  // XMM, YMM
    const Registers seven = cpuid(7), seven1 = cpuid(7, 1);
    f.avx2 =
        bit(seven.ebx, 5) && bit(one.ecx, 12) && bit(one.ecx, 29) && bit(seven.ebx, 8);  // FMA, F16C, BMI2
    if (!f.avx2) return f;
    f.avx_vnni = bit(seven1.eax, 4);
    if ((states & 0xE0U) != 0xE0U) return f;  // opmask, ZMM
    f.avx512 = bit(seven.ebx, 16) && bit(seven.ebx, 17) && bit(seven.ebx, 30) && bit(seven.ebx, 31) &&
               bit(seven.ecx, 11) && bit(seven.ecx, 1);
    f.avx512_bf16 = f.avx512 && bit(seven1.eax, 5);
    f.amx_int8 = f.avx512 && bit(seven.edx, 24) && bit(seven.edx, 25) && (states & 0x60000U) == 0x60000U &&
                 ask_for_tiles();
    return f;
}
#else
CpuFeatures detect_cpu() {
    CpuFeatures f;
    f.name = "processor";
    return f;
}
#endif

std::string CpuFeatures::list() const {
    std::string s;
    auto add = [&](bool has, const char* text) {
        if (!has) return;
        if (!s.empty()) s += ' ';
        s += text;
    };
    add(avx2, "AVX2");
    add(avx_vnni, "AVX-VNNI");
    add(avx512, "AVX-512-VNNI");
    add(avx512_bf16, "AVX-512-BF16");
    add(amx_int8, "AMX-INT8");
    return s.empty() ? "scalar" : s;
}

const KernelTable& select_table(const CpuFeatures& f, const std::string& max_isa) {
    auto missing = [&](const char* set) {
        return Error(ErrorKind::argument,
                     "max_isa: this processor (" + f.name + ") has no " + set + "; it offers " + f.list());
    };
    if (max_isa == "scalar") return scalar_kernels();
    if (max_isa == "avx2") {
        if (!f.avx2) throw missing("AVX2");
        return avx2_kernels();
    }
    if (max_isa == "avxvnni") {
        if (!f.avx_vnni) throw missing("AVX-VNNI");
        return avxvnni_kernels();
    }
    if (max_isa == "avx512") {
        if (!f.avx512) throw missing("AVX-512 VNNI");
        return avx512_kernels();
    }
    if (max_isa == "amx") {
        if (!f.amx_int8) throw missing("AMX");
        return amx_kernels();
    }
    if (!max_isa.empty()) {
        throw Error(ErrorKind::argument,
                    "max_isa: expected scalar, avx2, avxvnni, avx512 or amx, found \"" + max_isa + "\"");
    }
    if (f.amx_int8) return amx_kernels();
    if (f.avx512) return avx512_kernels();
    if (f.avx_vnni) return avxvnni_kernels();
    if (f.avx2) return avx2_kernels();
    return scalar_kernels();
}

}  // namespace recto::cpu
