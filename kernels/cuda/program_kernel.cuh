// The kernel that walks a decode program (program.h).
#pragma once
#include "kernels/cuda/check.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/program_attention.cuh"
#include "kernels/cuda/program_products.cuh"

namespace recto::cuda {

// The barrier over the grid, in two halves: what lies between depends on nothing that other blocks do.
struct GridBarrier {
    unsigned* arrivals;

    __device__ void arrive() const {
        __syncthreads();
        if (own_thread() == 0)
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrivals) : "memory");
    }
    // For all blocks' `turn`-th arrival: what they wrote before is there.
    __device__ void wait(int turn) const {
        if (own_thread() == 0) {
            const unsigned awaited = unsigned(turn) * gridDim.x;
            unsigned seen;
            do {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrivals) : "memory");
            } while (seen < awaited);
        }
        __syncthreads();
    }
};

template <DType Activation, DType Kv, int Dim>
__device__ inline void attend(const Program& program, const ProgramAttention& a, const ProgramRows& rows,
                              ShareState& state, char* shared, int* is_last, const GridBarrier& barrier,
                              int step) {
    // How many shares there are is known when the first is made.
    const volatile ShareInfo& info = state.info;
    for (int i = int(blockIdx.x), turn = 0; turn == 0 || i < info.all; i += int(gridDim.x), ++turn) {
        if (turn > 0) __syncthreads();  // the share before is read to its end
        make_share(state, program, a, rows, i, Dim);
        ProgramShare<Activation, Kv, Dim> share(program, a, state);
        share.prepare();
        if (turn == 0 && step > 0) barrier.wait(step);
        share.run(shared, is_last);
    }
}
template <class T>
__device__ inline void stage(const ProgramProducts<T>& products, const GridBarrier& barrier, int step) {
    if (!products.p.norm) {
        if (step > 0) barrier.wait(step);
        products.stage_plain();
        return;
    }
    NormWeights weights;
    weights.load(products.p, products.thread);
    if (step > 0) barrier.wait(step);
    products.stage_normed(weights);
}

template <class T, DType Activation, DType Kv, int Dim>
__global__ void __launch_bounds__(program_threads, 1)
    program_kernel(const __grid_constant__ Program program) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    extern __shared__ __align__(128) char shared[];
    __shared__ float scratch[program_rows * program_warps];
    __shared__ int2 spans[program_warps];
    __shared__ int is_last;
    __shared__ ProgramRows rows;
    __shared__ __align__(16) char share_bytes[sizeof(ShareState)];
    __shared__ WeightAsker::Parked parked[program_warps];
    auto& share = *reinterpret_cast<ShareState*>(share_bytes);
    // Launch parameters that no warp has read yet are far away: all steps lie in shared memory.
    auto* steps = reinterpret_cast<ProgramStep*>(shared);
    char* inputs = shared + program.step_bytes;
    const std::uint32_t x = shared_address(inputs);
    const auto ring_of = [&](int warp) {
        return x + std::uint32_t(program.x_bytes + warp * program.ring_bytes);
    };
    for (int i = own_thread(); i < program.count * int(sizeof(ProgramStep) / 4); i += program_threads)
        reinterpret_cast<std::uint32_t*>(steps)[i] = reinterpret_cast<const std::uint32_t*>(program.steps)[i];
    if (own_thread() == 0) share.info = ShareInfo();
    if (own_thread() < program.rows) {
        const int row = own_thread();
        rows.position[row] = program.batch.positions[row];
        rows.slot[row] = program.batch.slots[row];
        rows.sequence[row] = program.batch.row_sequence[row];
    }
    __syncthreads();
    WeightAsker asker(program, steps, ring_of(own_thread() / 32), own_thread() / 32, own_thread() % 32);
    for (int i = 0; i < program.depth; ++i)
        asker.ask();
    const GridBarrier barrier{program.barrier};
    for (int step = 0; step < program.count; ++step) {
        const int thread = own_thread();
        const ProgramStep& s = steps[step];
        if (s.kind == ProgramStep::Kind::attention) {
            asker.park(parked[thread / 32]);  // attention needs the registers
            attend<Activation, Kv, Dim>(program, s.attention, rows, share, inputs, &is_last, barrier, step);
            asker.resume(parked[thread / 32]);
        } else {
            const ProgramProduct& p = s.product;
            const ProgramRun run(p.cut, int(blockIdx.x), thread / 32);
            const InputPlace place(p.cut, p.cols, program.rows);
            if (step + 1 < program.count && steps[step + 1].kind == ProgramStep::Kind::attention)
                ask_ahead<Kv, Dim>(share, steps[step + 1].attention);
            const ProgramProducts<T> products{p,     run,          place,  x,           scratch,
                                              spans, program.rows, thread, thread / 32, thread % 32};
            stage(products, barrier, step);
            const float before = products.read_before();
            __syncthreads();
            products.multiply(asker, ring_of(thread / 32), program.depth);
            __syncthreads();
            products.finish(before);
        }
        if (step + 1 < program.count) barrier.arrive();
    }
    // The last block to leave clears the counts for the next launch.
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&program.barrier[1], 1U) == gridDim.x - 1)
        program.barrier[0] = program.barrier[1] = 0;
#endif
}

template <class T, DType Activation, DType Kv, int Dim>
void launch_program_as(cudaStream_t stream, const Program& program, int multiprocessors) {
    const auto kernel = program_kernel<T, Activation, Kv, Dim>;
    const int bytes = program.step_bytes + program.x_bytes + program_warps * program.ring_bytes;
    // The same for all programs: graphs that were captured before must not find it lowered.
    cudaFuncAttributes fixed{};
    check(cudaFuncGetAttributes(&fixed, kernel), "decode program");
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               program.shared_bytes - int(fixed.sharedSizeBytes)),
          "decode program");
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeCooperative;  // blocks wait for each other: all are there, or none
    attribute.val.cooperative = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(unsigned(multiprocessors));
    config.blockDim = dim3(program_threads);
    config.dynamicSmemBytes = std::size_t(bytes);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    check(cudaLaunchKernelEx(&config, kernel, program), "decode program");
}

template <class T, DType Activation>
void launch_program_for(cudaStream_t stream, const Program& program, const ProgramShape& shape,
                        int multiprocessors) {
    const auto with = [&](auto cache) {
        constexpr DType kv = decltype(cache)::value;
        if (shape.head_dim == 64)
            launch_program_as<T, Activation, kv, 64>(stream, program, multiprocessors);
        else
            launch_program_as<T, Activation, kv, 128>(stream, program, multiprocessors);
    };
    if (shape.cache == DType::f8_e4m3)
        with(std::integral_constant<DType, DType::f8_e4m3>());
    else
        with(std::integral_constant<DType, Activation>());
}

}  // namespace recto::cuda
