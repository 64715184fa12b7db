#include "kernels/cuda/program_recorder.h"

#include <algorithm>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/check.h"

namespace recto::cuda {
namespace {

bool sixteen_aligned(const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
}

}  // namespace

ProgramRecorder::ProgramRecorder(cudaStream_t stream, int multiprocessors, int shared_bytes)
    : stream_(stream),
      multiprocessors_(multiprocessors),
      shared_bytes_(shared_bytes),
      barrier_(2 * sizeof(unsigned)),
      program_(std::make_unique<Program>()),
      room_(shared_bytes, int(sizeof(ProgramStep))) {
    check(cudaMemsetAsync(barrier_.data(), 0, barrier_.bytes(), stream), "clearing a barrier");
}

void ProgramRecorder::begin(const BatchView& batch, const AttentionState& attention, int rows) {
    if (!attention.planned() || rows > program_rows) return;
    recording_ = true;
    batch_ = batch;
    workspace_ = attention.workspace();
    rows_ = rows;
    // Of a capture that failed.
    shape_.reset();
    activation_ = DType::f32;
    program_->count = 0;
    room_.clear();
}

void ProgramRecorder::end() {
    if (!recording_) return;
    flush();
    recording_ = false;
}

void ProgramRecorder::drop() {
    recording_ = false;
    gather_.reset();
    norm_.reset();
    rope_.reset();
    pending_.clear();
    alone_.clear();
    program_->count = 0;
    room_.clear();
}

void ProgramRecorder::take_pending() {
    if (pending_.empty()) return;
    gather_.reset();
    norm_.reset();
    rope_.reset();
    const std::vector<Alone> pending = std::move(pending_);
    pending_.clear();
    enqueue();
    for (const Alone& one : pending)
        one();
}

void ProgramRecorder::flush() {
    if (!pending_.empty())
        take_pending();
    else
        enqueue();
}

void ProgramRecorder::enqueue() {
    if (!recording_ || program_->count == 0) return;
    Program& p = *program_;
    const std::vector<Alone> alone = std::move(alone_);
    alone_.clear();
    int products = 0;
    for (int i = 0; i < p.count; ++i)
        products += p.steps[i].kind == ProgramStep::Kind::product;
    ProgramShape shape = shape_.value_or(ProgramShape{activation_, activation_, 128});
    shape_.reset();
    activation_ = DType::f32;
    p.batch = batch_;
    p.workspace = workspace_;
    p.barrier = static_cast<unsigned*>(barrier_.data());
    p.rows = rows_;
    const ProgramLayout layout = room_.layout();
    room_.clear();
    if (is_worthwhile(products, rows_, layout) && program_serves(shape)) {
        p.shared_bytes = shared_bytes_;
        p.step_bytes = layout.step_bytes;
        p.x_bytes = layout.x_bytes;
        p.ring_bytes = layout.ring_bytes;
        p.depth = layout.depth;
        launch_program(stream_, p, shape, multiprocessors_);
        ++programs_;
    } else {
        for (const Alone& one : alone)
            one();
    }
    p.count = 0;
}

// For a step with so many bytes of inputs; false: no program has any for it.
//
// A step that runs by itself costs what a program saves around it: a kernel's end and a program's start,
// where no weights arrive. The steps between two such ones are a program only if that is worthwhile: of one
// or two rows and a layer whose `down` is too wide qkv, o and gate|up are; where attention has no room either
// (groups of 4 heads or more on cards with 99 KiB), o and gate|up are not, and all of the step runs one by
// one.
bool ProgramRecorder::make_room(int inputs) {
    const StepPlace place = room_.place(inputs);
    if (place == StepPlace::next) enqueue();  // what is pending belongs to the step
    return place != StepPlace::none;
}

void ProgramRecorder::add(const ProgramStep& step, int inputs, std::vector<Alone> alone) {
    room_.take(inputs);
    program_->steps[program_->count++] = step;
    for (Alone& one : alone)
        alone_.push_back(std::move(one));
}

void ProgramRecorder::other(const Alone& alone) {
    flush();
    alone();
}

void ProgramRecorder::gather(Tensor x, Tensor out, const Alone& alone) {
    take_pending();
    if (!recording_ || x.rows != rows_ || out.rows != rows_) return other(alone);
    gather_ = Gather{x, out};
    pending_.push_back(alone);
}

void ProgramRecorder::norm(Tensor x, const float* weight, float eps, Tensor out, const Alone& alone) {
    if (gather_ && gather_->out.data == x.data)
        x = gather_->x;
    else
        take_pending();
    const bool fits = recording_ && x.dtype == DType::f32 && out.dtype != DType::f32 && x.rows == rows_ &&
                      x.cols % 8 == 0 && x.row_stride % 4 == 0 && out.row_stride % 8 == 0 &&
                      sixteen_aligned(x.data) && sixteen_aligned(out.data) && sixteen_aligned(weight);
    if (!fits) {
        take_pending();
        return other(alone);
    }
    gather_.reset();
    norm_ = Norm{x, out, weight, eps};
    pending_.push_back(alone);
}

void ProgramRecorder::product(Tensor x, const TiledWeight& weight, Epilogue epilogue, Tensor out,
                              const Alone& alone) {
    const bool normed = norm_ && norm_->out.data == x.data && norm_->out.cols == x.cols;
    if (!normed) take_pending();
    const bool gated = epilogue == Epilogue::silu_mul || epilogue == Epilogue::gelu_mul;
    const auto fits = [&] {
        if (!recording_ || x.rows != rows_ || weight.segments().size() != 1) return false;
        if (gated && !weight.interleaved()) return false;
        const TiledWeight::Segment& s = weight.segments()[0];
        const TileWeight& t = s.tile;
        if (s.order || s.first_output != 0 || x.dtype != weight.activation() || t.cols % 8 != 0) return false;
        if (x.row_stride % 8 != 0 || !sixteen_aligned(x.data) || !sixteen_aligned(t.data)) return false;
        if (activation_ != DType::f32 && activation_ != x.dtype) return false;
        if (shape_ && shape_->activation != x.dtype) return false;
        if (t.kind == TileKind::dense)
            return t.dtype == x.dtype && t.cols % tile_k == 0 && t.outputs % slab_rows == 0;
        return t.kind == TileKind::u4 && t.group_size % chunk_k == 0 && !t.planes_bf16 &&
               t.mode != SecondPlane::offset_16;
    };
    if (!fits()) {
        take_pending();
        return other(alone);
    }
    const TiledWeight::Segment& s = weight.segments()[0];
    const TileWeight& t = s.tile;
    const ProgramCut cut = cut_product(t.kind == TileKind::dense, gated, t.outputs, t.cols, multiprocessors_);
    const int inputs = InputPlace(cut, t.cols, rows_).bytes;
    if (!make_room(inputs)) {
        take_pending();
        return other(alone);
    }
    ProgramStep step{ProgramStep::Kind::product, {}};
    ProgramProduct& p = step.product;
    p = {};
    p.mode = t.mode;
    p.epilogue = epilogue;
    p.data = t.data;
    p.scale = t.scale;
    p.second = t.second;
    p.bias = s.bias;
    p.x = normed ? norm_->x.data : x.data;
    p.norm = normed ? norm_->weight : nullptr;
    p.normed = normed ? norm_->out.data : nullptr;
    p.out = out.data;
    p.x_stride = int(normed ? norm_->x.row_stride : x.row_stride);
    p.normed_stride = normed ? int(norm_->out.row_stride) : 0;
    p.out_stride = int(out.row_stride);
    p.eps = normed ? norm_->eps : 0.0F;
    p.outputs = t.outputs;
    p.cols = t.cols;
    p.chunks = (t.cols + chunk_k - 1) / chunk_k;
    p.groups = t.groups;
    p.chunks_a_group = t.chunks_a_group();
    p.zero = t.zero;
    p.cut = cut;
    p.out_dtype = out.dtype;
    std::vector<Alone> all;
    if (normed) all = std::move(pending_);
    pending_.clear();
    norm_.reset();
    all.push_back(alone);
    activation_ = x.dtype;
    add(step, inputs, std::move(all));
}

void ProgramRecorder::rope(const RopeStoreArgs& args, Tensor table, Tensor qkv, const KvView& kv,
                           const Alone& alone) {
    take_pending();
    const bool fits = recording_ && !args.q_norm && !args.k_norm && qkv.rows == rows_ &&
                      program_serves({qkv.dtype, kv.dtype, kv.head_dim}) && args.rotary_dims % 2 == 0;
    if (!fits) return other(alone);
    rope_ = Rope{args, table, qkv};
    pending_.push_back(alone);
}

void ProgramRecorder::attention(const AttentionArgs& args, Tensor q, const KvView& kv, Tensor out,
                                const Alone& alone) {
    const ProgramShape shape{q.dtype, kv.dtype, kv.head_dim};
    const bool fits = rope_ && rope_->qkv.data == q.data && rope_->args.layer == args.layer &&
                      (!shape_ || *shape_ == shape) && (activation_ == DType::f32 || activation_ == q.dtype);
    const HeadShape& h = args.shape;
    const int group = h.heads / h.kv_heads;
    const int inputs = SharePlace(std::min(group, decode_heads), shape.head_dim).bytes;
    if (!fits || !make_room(inputs)) {
        take_pending();
        return other(alone);
    }
    ProgramStep step{ProgramStep::Kind::attention, {}};
    ProgramAttention& a = step.attention;
    a = {};
    a.qkv = static_cast<const std::uint16_t*>(q.data);
    a.table = static_cast<const float*>(rope_->table.data);
    a.out = static_cast<std::uint16_t*>(out.data);
    a.k = kv.k;
    a.v = kv.v;
    a.block_stride = kv.block_stride;
    a.qkv_stride = int(q.row_stride);
    a.table_stride = int(rope_->table.row_stride);
    a.out_stride = int(out.row_stride);
    a.rotary = rope_->args.rotary_dims;
    a.kv_heads = h.kv_heads;
    a.group = group;
    a.head_groups = (a.group + decode_heads - 1) / decode_heads;
    a.block_size = kv.block_size;
    a.window = args.window;
    a.scale = args.scale;
    a.softcap = args.softcap;
    std::vector<Alone> all = std::move(pending_);
    pending_.clear();
    all.push_back(alone);
    rope_.reset();
    shape_ = shape;
    add(step, inputs, std::move(all));
}

}  // namespace recto::cuda
