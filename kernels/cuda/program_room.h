// Shared memory of a decode program (program.h): how it is laid out, and whether one more step has room. Pure
// arithmetic, tested without a card.
#pragma once
#include "kernels/cuda/program_cut.h"

namespace recto::cuda {

constexpr int most_program_steps = 180;  // of a launch: parameters have 32,764 bytes
// Fewer products of one or two rows, or of three or four, are no program: what it saves is between them, and
// its own start has a price.
constexpr int least_products = 3, least_products_of_many_rows = 8;

// Bytes of a block's dynamic shared memory: the list of steps, inputs, the warps' rings.
struct ProgramLayout {
    int step_bytes;
    int x_bytes;     // of the step with most inputs, or of what attention needs
    int ring_bytes;  // of a warp
    int depth;       // bites of a ring; 0: there is no room for one
    bool fits() const { return depth >= least_bites; }
};
// Whether a program of so many products is faster than they one by one. Of a Llama-2-7B layer a program saves
// an H200 24 of 70 us at one row and 5 of 72 at four. With Qwen2.5-7B at four rows, whose `down` is too wide,
// 28 programs of a layer each made 1,397 tok/s where one by one makes 1,561; at three rows, with rings of
// three bites for a whole step, 1,060 where 1,150 were to be expected.
bool is_worthwhile(int products, int rows, const ProgramLayout& layout);

// `step_size`: bytes of a step in the list. `inputs`: bytes of the widest step's (InputPlace, SharePlace).
// `shared_bytes`: that a block may have.
ProgramLayout lay_out_program(int steps, int step_size, int inputs, int shared_bytes);

enum class StepPlace {
    here,  // after the steps collected
    next,  // not after them: as the first of a new program
    none,  // in no program, since its inputs leave too little for the rings even where the list has one step
};

// The steps that are collected for a program.
class ProgramRoom {
  public:
    ProgramRoom(int shared_bytes, int step_size) : shared_bytes_(shared_bytes), step_size_(step_size) {}

    StepPlace place(int inputs) const;  // of a step with so many bytes of inputs
    void take(int inputs);              // it is collected
    void clear();
    ProgramLayout layout() const { return lay_out_program(steps_, step_size_, inputs_, shared_bytes_); }

  private:
    int shared_bytes_, step_size_;
    int steps_ = 0, inputs_ = 0;
};

}  // namespace recto::cuda
