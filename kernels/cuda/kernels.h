// The launches behind Backend's operations, but for the tensor-core products (tile_linear.h,
// general_linear.h) and tiled attention (attention.h): mostly plain kernels, written to be read. Each
// function enqueues on `stream`.
#pragma once
#include <cuda_runtime.h>

#include "kernels/backend.h"
#include "kernels/cuda/packed_weight.h"
#include "kernels/cuda/scratch_sizes.h"
#include "kernels/cuda/tiled_weight.h"

namespace recto::cuda {

struct DecodeItem;  // attention_plan.h
struct PrefillTile;

// The step's attention work (attention_plan.h), in device memory.
struct AttentionWork {
    const int* decode_items;  // how many `decode` holds; the grid is fixed
    const DecodeItem* decode;
    const PrefillTile* prefill;
};

// Where shares of one row's context meet. A unit is a KV head and up to 8 heads of its group.
struct AttentionWorkspace {
    float* out;      // [partials, unit's heads, head_dim] undivided
    float2* states;  // [partials, unit's heads] {max, sum}
    int* arrived;    // [partials] shares written so far; 0 between launches
    int* claims;     // {items claimed, blocks that have left}; 0 between launches
};

// Device pointers of a DeviceBatch; the block tables' rows are `table_stride` apart.
struct BatchView {
    const int* token_ids;
    const int* positions;
    const int* row_sequence;
    const int* slots;
    const int* block_tables;
    const int* logit_rows;
    int table_stride;
    const int* query_start;     // [sequences + 1]
    const int* context_tokens;  // [sequences]
    const int* token_from;      // [rows] -1, or an index into `drawn`
    int* drawn;                 // [max_outputs] ids of the step before until this step draws its own
    AttentionWork work;
};

// What one block saw of a row of logits.
struct RowPart {
    float largest;
    int id;      // the lowest of those that are the largest
    int broken;  // not 0: a NaN or infinity is among them
};
static_assert(sizeof(RowPart) == row_part_bytes);

// One dense packet of a step, and where its sections go.
struct PacketSection {
    const int* from;
    int* to;
    int count;  // ints
};
constexpr int packet_sections = 11;
struct PacketLayout {
    PacketSection sections[packet_sections];
    // Per sequence: its row of `resident`, the blocks it has, and from which one on they are in the packet.
    const int* table_rows;    // [sequences]
    const int* block_counts;  // [sequences]
    const int* first_new;     // [sequences]
    const int* new_start;     // [sequences] index into new_blocks
    const int* new_blocks;
    int sequences;
    int* resident;  // [max_sequences, table_stride]
    int* tables;    // [max_sequences, table_stride] in the step's order
    int table_stride;
};

// K or V of one layer: element (block, kv_head, slot, d) lies at
//     base + block * block_stride + (kv_head * block_size + slot) * head_dim + d        (elements)
struct KvView {
    void* k;
    void* v;
    long long block_stride;
    int block_size, head_dim;
    DType dtype;
};

// The plain layout of packed_weight.h out of a part's planes; `part` holds where.
void keep_plain(cudaStream_t stream, const LogicalPlanes& planes, const PartView& part);

constexpr int max_rotary_pairs = 256;
struct Frequencies {  // by value in the launch: a captured graph keeps its own copy
    float value[max_rotary_pairs];
};

void embed(cudaStream_t stream, const BatchView& batch, const WeightView& table, float scale, Tensor out);
void embed_tiles(cudaStream_t stream, const BatchView& batch, const TiledWeight& table, float scale,
                 Tensor out);
void rms_norm(cudaStream_t stream, Tensor x, const float* weight, float eps, Tensor out);
void linear(cudaStream_t stream, Tensor x, const WeightView& weight, Epilogue epilogue, Tensor out);
void rope_table(cudaStream_t stream, const BatchView& batch, const Frequencies& f, float factor, Tensor out);
void rope_store(cudaStream_t stream, const BatchView& batch, const RopeStoreArgs& args, Tensor table,
                Tensor qkv, const KvView& kv);
// The tiled kernels where tiled_attention_serves says so, else the plain one.
class AttentionState;
bool tiled_attention_serves(bool planned, DType activation, DType cache, int head_dim);
void attention(cudaStream_t stream, const BatchView& batch, const AttentionState& state,
               const AttentionArgs& args, Tensor q, const KvView& kv, Tensor out);
void attention_plain(cudaStream_t stream, const BatchView& batch, const AttentionArgs& args, Tensor q,
                     const KvView& kv, Tensor out);
void gather_rows(cudaStream_t stream, const BatchView& batch, Tensor x, Tensor out);
void argmax(cudaStream_t stream, Tensor logits, int valid_cols, int* ids);
void add(cudaStream_t stream, Tensor x, Tensor delta);
// out = act(gate) · up; `both` [rows, 2 out.cols] holds gate|up
void gate_rows(cudaStream_t stream, Tensor both, Epilogue epilogue, Tensor out);
void add_bias(cudaStream_t stream, Tensor x, const float* bias);  // bias [x.cols]
// out[r, i] = x[r, order[i]], or x[r, i] in another type where order is null
void copy_columns(cudaStream_t stream, Tensor x, const int* order, Tensor out);

void spread_packet(cudaStream_t stream, const PacketLayout& layout);
// Backend::draw. draws [rows], parts [rows, max_row_parts] and drawn [rows] in device memory.
void draw(cudaStream_t stream, const RowDraw* draws, const DrawArgs& args, Tensor logits, RowPart* parts,
          int* drawn);

// Mixtures of experts. `experts` is device memory, one view an expert; `shape` is any one of them (rows,
// cols).
void route(cudaStream_t stream, Tensor logits, bool renormalize, const ExpertChoice& choice);
void expert_gate_up(cudaStream_t stream, Tensor x, const ExpertChoice& choice, const WeightView* experts,
                    const WeightView& shape, Epilogue epilogue, Tensor out);
void expert_down(cudaStream_t stream, Tensor x, const ExpertChoice& choice, const WeightView* experts,
                 const WeightView& shape, Tensor out);

}  // namespace recto::cuda
