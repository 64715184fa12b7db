// Which instruction sets this processor and kernel offer, and which table serves them.
#pragma once
#include <string>

#include "kernels/cpu/kernel_table.h"

namespace recto::cpu {

struct CpuFeatures {
    bool avx2 = false;  // with FMA and F16C
    bool avx_vnni = false;
    bool avx512 = false;  // F, BW, VL, DQ, VNNI and VBMI
    bool avx512_bf16 = false;
    bool amx_int8 = false;     // tiles granted by the kernel
    std::string name;          // the processor's brand string
    std::string list() const;  // "AVX2 AVX-VNNI AVX-512 …"
};

CpuFeatures detect_cpu();

// max_isa as in CpuOptions. Error(argument) for an unknown name or a set that this machine lacks.
const KernelTable& select_table(const CpuFeatures& features, const std::string& max_isa);

}  // namespace recto::cpu
