// Products of a mixture's experts: one launch computes every expert's rows with that expert's weights.
//
// The (row, expert) pairs, called slots, are sorted by expert and cut into tiles of tokens on the device; a
// fixed grid walks the list of tiles, so that a captured graph serves every choice ("grouped GEMM"; the
// sorting is that of Gale et al., "MegaBlocks" (2022), without its padding). Cards of compute capability 8.0
// and newer.
#pragma once
#include "kernels/cuda/general_linear.h"

namespace recto::cuda {

struct ExpertTile {
    int expert, first, count;  // tokens [first, first + count) of the sorted list
};

// A slice's slots sorted by expert; device memory.
struct SortedSlots {
    int* slots;         // [slots] ascending within an expert
    ExpertTile* tiles;  // expert after expert
    int* tile_count;
};

// What differs between experts of one form; the rest is in the TileWeight that they share.
struct ExpertPlanes {
    const void* data;
    const std::uint16_t* scale;
    const void* second;
    const float* bias;          // [rows] or null
    const std::int32_t* order;  // [cols] act-order or null
};

struct GroupedProduct {
    TileWeight weight;           // of any expert; pointers are taken from `planes`
    const ExpertPlanes* planes;  // [experts] device memory
    SortedSlots sorted;
    int per_row = 1;  // as TokenRows
    int tokens = 8;   // of a tile: 8, 32, 64
    int splits = 1;   // of the inputs; > 1: out holds `splits` results, one after another
    int grid = 0;     // blocks launched
    Epilogue epilogue = Epilogue::store;
};

// out[slot] = x[row of the slot] · W_eᵀ + bias_e, or the gated product. out [splits · slots, outputs]
void grouped_linear(cudaStream_t stream, Tensor x, const GroupedProduct& product, Tensor out);

// Sorts `slots` ids and cuts the runs of equal ones into tiles of `tokens`. Deterministic.
void sort_slots(cudaStream_t stream, const int* ids, int slots, int experts, int tokens,
                const SortedSlots& to);
// out[i] = x[sorted slot i / per_row] with its columns in the order that its expert wants them.
void gather_inputs(cudaStream_t stream, Tensor x, const int* ids, const int* sorted, int per_row,
                   const ExpertPlanes* planes, Tensor out);
// out[r] += Σ_s weights[r, s] · Σ_split products[split, r k + s], s ascending. products [splits · rows k,
// out.cols]
void combine_experts(cudaStream_t stream, Tensor products, int splits, const float* weights, int per_row,
                     Tensor out);

}  // namespace recto::cuda
