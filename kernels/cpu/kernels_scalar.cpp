#include "kernels/cpu/lanes_scalar.h"
#include "kernels/cpu/table_lanes.h"

namespace recto::cpu {

const KernelTable& scalar_kernels() {
    static constexpr KernelTable table = make_table<ScalarLanes>("scalar");
    return table;
}

}  // namespace recto::cpu
