#include "kernels/cpu/lanes_avx512.h"
#include "kernels/cpu/table_lanes.h"

namespace recto::cpu {

const KernelTable& avx512_kernels() {
    static constexpr KernelTable table = make_table<Avx512Lanes>("avx512");
    return table;
}

}  // namespace recto::cpu
