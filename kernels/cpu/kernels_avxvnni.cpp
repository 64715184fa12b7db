#include "kernels/cpu/lanes_avxvnni.h"
#include "kernels/cpu/table_lanes.h"

namespace recto::cpu {

const KernelTable& avxvnni_kernels() {
    static constexpr KernelTable table = make_table<AvxVnniLanes>("avxvnni");
    return table;
}

}  // namespace recto::cpu
