#include "kernels/cpu/lanes_avx2.h"
#include "kernels/cpu/table_lanes.h"

namespace recto::cpu {

const KernelTable& avx2_kernels() {
    static constexpr KernelTable table = make_table<Avx2Lanes>("avx2");
    return table;
}

}  // namespace recto::cpu
