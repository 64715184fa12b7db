// The stream of weights through a warp's ring in shared memory, across all products of a program.
//
// A product's weight rows are cut into slabs of 16, which its blocks share out whole; a block's slabs are cut
// into bites, of which each warp has a run. Bites are asked for in the order in which they will be read, as
// many ahead as the ring holds, and past the end of a run in the next product's.
#pragma once
#include "kernels/cuda/program.h"
#include "kernels/cuda/tensor_core.cuh"

namespace recto::cuda {

// What an ask costs is paid for every bite, so pointers go on from bite to bite and nothing is worked out
// anew but at the start of a slab. Fields are few: they take registers through the whole kernel.
class WeightAsker {
  public:
    __device__ WeightAsker(const Program& program, const ProgramStep* steps, std::uint32_t ring, int warp,
                           int lane)
        : program_(program), steps_(steps), ring_(ring), warp_(warp), lane_(lane) {}

    // The next bite, if any, into the ring's next place. A group of copies each time, empty at the end.
    __device__ void ask() {
        if (left_ == 0) enter();
        if (left_ > 0) {
            const std::uint32_t to = ring_ + std::uint32_t(place_);
            if (rows4_ > 0) {
                copy_dense(to);
                from_ += 128;
                plane_ += 128;
            } else {
                copy_u4(to);
                from_ += 8192;
                plane_ += plane_advance_;
            }
            --left_;
            if (--slab_left_ == 0) {
                ++slab_;
                if (left_ > 0) begin_slab(steps_[step_].product, 0);
            } else if (plane_advance_ < 0) {
                begin_planes(steps_[step_].product);
            }
        }
        commit_copies();
        place_ += bite_bytes;
        if (place_ == program_.ring_bytes) place_ = 0;
    }
    __device__ int place() const { return place_; }

    // Where a warp is, in shared memory: what else there is follows from it.
    struct Parked {
        int place, step, left, slab_left, slab;
    };
    __device__ void park(Parked& p) const {
        if (lane_ == 0) p = {place_, step_, left_, slab_left_, slab_};
        __syncwarp();
    }
    __device__ void resume(const Parked& p) {
        const volatile Parked& v = p;
        place_ = v.place, step_ = v.step, left_ = v.left, slab_left_ = v.slab_left, slab_ = v.slab;
        from_ = plane_ = nullptr;
        rows4_ = plane_advance_ = 0;
        if (left_ == 0) return;
        const ProgramProduct& product = steps_[step_].product;
        begin_slab(product, product.cut.bites - slab_left_);
    }

  private:
    __device__ void enter() {
        while (left_ == 0 && step_ + 1 < program_.count) {
            const ProgramStep& step = steps_[++step_];
            if (step.kind != ProgramStep::Kind::product) continue;
            const ProgramProduct& p = step.product;
            const ProgramRun run(p.cut, int(blockIdx.x), warp_);
            left_ = run.end - run.begin;
            if (left_ == 0) continue;
            slab_ = run.first_slab + p.cut.slab_of(run.begin);
            begin_slab(p, run.first_span);
        }
    }

    __device__ void begin_slab(const ProgramProduct& p, int span) {
        slab_left_ = p.cut.bites - span;
        if (p.cut.dense) {
            const int row = slab_ * p.cut.unit_outputs() + lane_ / 8;
            from_ =
                static_cast<const char*>(p.data) + ((long long)row * p.cols + span * 64) * 2 + lane_ % 8 * 16;
            rows4_ = 8 * p.cols;
            plane_advance_ = 0;
            plane_ = from_ + (p.cut.gated ? 2LL * p.outputs * p.cols : 2LL * rows4_);
            return;
        }
        int block, quarter;
        place_slab(p, block, quarter);
        from_ = static_cast<const char*>(p.data) +
                ((long long)(block * 2 * p.chunks + 4 * span) * 4 + quarter) * 512 + lane_ * 16;
        rows4_ = p.chunks % 2 ? -1 : 0;
        begin_planes(p);
    }
    __device__ void place_slab(const ProgramProduct& p, int& block, int& quarter) const {
        const bool gated = p.cut.gated;
        const int unit = gated ? slab_ / 2 : slab_;
        block = gated ? unit / 2 : unit / 4;
        quarter = gated ? unit % 2 + 2 * (slab_ % 2) : unit % 4;
    }
    // Lanes 0 to 3: two chunks' scales; 4 and 5: their zero points.
    __device__ bool of_second_chunk() const { return (0x2C >> lane_ & 1) != 0; }
    __device__ void begin_planes(const ProgramProduct& p) {
        plane_advance_ = 0;
        const bool scales = lane_ < 4;
        if (!scales && !(lane_ < 6 && p.mode == SecondPlane::zero_u8)) return;
        int block, quarter;
        place_slab(p, block, quarter);
        int group = 2 * (p.cut.bites - slab_left_) + (of_second_chunk() ? 1 : 0);
        if (p.chunks_a_group != 1) group = min(group, p.chunks - 1) / p.chunks_a_group;
        const long long at = ((long long)block * p.groups + group) * 64 + quarter * 16;
        plane_ = scales ? reinterpret_cast<const char*>(p.scale + at) + lane_ % 2 * 16
                        : static_cast<const char*>(p.second) + at;
        // Where groups are longer than a chunk each bite finds its own.
        plane_advance_ = p.chunks_a_group != 1 ? -1 : scales ? 256 : 128;
    }

    __device__ void copy_u4(std::uint32_t to) const {
        to += std::uint32_t(lane_ * 16);
        if (rows4_ < 0 && slab_left_ == 1) {  // the last bite of a slab has one chunk
            for (int j = 0; j < 4; ++j)
                copy_async(to + std::uint32_t(j * 512), j < 2 ? from_ + j * 2048 : from_, j < 2);
            if (plane_advance_ != 0) copy_async(to + bite_tile_bytes, plane_, !of_second_chunk());
            return;
        }
#pragma unroll
        for (int j = 0; j < 4; ++j)
            copy_async(to + std::uint32_t(j * 512), from_ + j * 2048);
        copy_async_where(to + bite_tile_bytes, plane_, plane_advance_ != 0);
    }

    // Rows of 64 inputs, 128 bytes each, 16-byte units swizzled by the row.
    __device__ void copy_dense(std::uint32_t to) const {
        const std::uint32_t row = std::uint32_t(lane_ / 8);
        const std::uint32_t at = to + row * 128 + ((std::uint32_t(lane_ % 8) ^ row) * 16);
#pragma unroll
        for (int j = 0; j < 4; ++j)  // the swizzle of rows 4 to 7 differs in one bit
            copy_async((j % 2 == 0 ? at : at ^ 64) + std::uint32_t(j * 512),
                       (j < 2 ? from_ : plane_) + (j % 2) * rows4_);
    }

    const Program& program_;
    const ProgramStep* steps_;  // shared
    std::uint32_t ring_;
    int warp_, lane_;
    int place_ = 0;
    int step_ = -1, left_ = 0, slab_left_ = 0, slab_ = 0;  // bites of this warp's run, of its slab
    int rows4_ = 0;  // dense: bytes of 4 rows; 4-bit: -1 where a slab's last bite is half a one
    int plane_advance_ = 0;
    const char* from_ = nullptr;
    const char* plane_ =
        nullptr;  // of this lane's part of a bite's scales or zero points; dense: of rows 8 and on
};

// Until all but the newest `pending` groups of this thread's copies are there.
__device__ inline void wait_for_copies_but(int pending) {
    if (pending >= 5)
        wait_for_copies<5>();
    else if (pending >= 4)
        wait_for_copies<4>();
    else if (pending == 3)
        wait_for_copies<3>();
    else
        wait_for_copies<2>();
}

}  // namespace recto::cuda
