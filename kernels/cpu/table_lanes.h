// The kernel table of one instruction set.
#pragma once
#include "kernels/cpu/attention_lanes.h"
#include "kernels/cpu/ceiling_lanes.h"
#include "kernels/cpu/linear_lanes.h"
#include "kernels/cpu/rows_lanes.h"

namespace recto::cpu {

template <class L>
constexpr KernelTable make_table(const char* name) {
    KernelTable t;
    t.name = name;
    t.max_rows = L::max_rows;
    t.int8_rows = L::max_rows;
    t.tile = select_tile<L>;
    t.dense = select_dense<L>;
    t.planes = decode_planes<L>;
    t.prefetch = prefetch_run<L>;
    t.quantize = quantize_row<L>;
    t.epilogue = epilogue_rows<L>;
    t.rms_norm = rms_norm_row<L>;
    t.add = add_row<L>;
    t.rotate = rotate_head<L>;
    t.store_k = store_k_head<L>;
    t.store_v = store_v_head<L>;
    t.argmax = argmax_row<L>;
    t.read_memory = read_memory<L>;
    t.int8_rounds = int8_rounds<L>;
    t.fp32_rounds = fp32_rounds<L>;
    t.partition = select_partition<L>;
    t.merge = merge_state<L>;
    t.finish = finish_state<L>;
    return t;
}

}  // namespace recto::cpu
