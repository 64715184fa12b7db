#include "kernels/cuda/lt_matmul.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <cassert>
#include <map>
#include <tuple>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/scratch_sizes.h"

namespace recto::cuda {
namespace {

constexpr std::size_t workspace_bytes = library_workspace_bytes;

void check_lt(cublasStatus_t status, const char* doing) {
    if (status != CUBLAS_STATUS_SUCCESS)
        throw Error(ErrorKind::runtime,
                    std::string("cuBLASLt: ") + doing + " failed with status " + std::to_string(int(status)));
}

// FP8 sums stay in the tensor cores, which keep about 14 bits of them, instead of being moved to FP32
// registers every 128 inputs: NVIDIA's "fast accumulation".
constexpr std::int8_t fast_fp8_sums = 1;

cudaDataType_t type_of(DType d) {
    switch (d) {
        case DType::f16:
            return CUDA_R_16F;
        case DType::bf16:
            return CUDA_R_16BF;
        case DType::f8_e4m3:
            return CUDA_R_8F_E4M3;
        case DType::i8:
            return CUDA_R_8I;
        case DType::i32:
            return CUDA_R_32I;
        case DType::f32:
            break;
    }
    return CUDA_R_32F;
}

// What the pointer is surely a multiple of, up to what the library asks for at most.
std::uint32_t alignment_of(const void* p) {
    const auto bits = reinterpret_cast<std::uintptr_t>(p) | 256U;
    return std::uint32_t(bits & -bits);
}

// The functions used, from the library of the toolkit's major version.
struct Library {
    void* handle = nullptr;
    std::string error;
#define RECTO_LT_FUNCTIONS(X)                                                                        \
    X(cublasLtCreate)                                                                                \
    X(cublasLtDestroy)                                                                               \
    X(cublasLtMatmul) X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmulDescCreate)                  \
        X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate) \
            X(cublasLtMatrixLayoutDestroy) X(cublasLtMatmulPreferenceCreate)                         \
                X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulPreferenceSetAttribute)
#define X(name) decltype(&::name) name = nullptr;
    RECTO_LT_FUNCTIONS(X)
#undef X

    Library() {
        const std::string file = "libcublasLt.so." + std::to_string(CUDART_VERSION / 1000);
        handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) handle = dlopen(("/usr/local/cuda/lib64/" + file).c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            error = "NVIDIA's " + file + " was not found: install cuBLAS of CUDA " +
                    std::to_string(CUDART_VERSION / 1000) + " or add its folder to LD_LIBRARY_PATH";
            return;
        }
#define X(name)                                                       \
    name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name)); \
    if (!name) error = file + " has no function " #name ": another version was expected";
        RECTO_LT_FUNCTIONS(X)
#undef X
    }
    static const Library& get() {
        static const Library library;  // stays open: unloading it while a card works is not safe
        return library;
    }
};

struct Shape {
    std::int64_t rows, outputs, inputs, x_stride, out_stride;
    DType in, out;
    bool add, scaled;
    std::uint32_t out_alignment;
    auto operator<=>(const Shape&) const = default;
};

Shape shape_of(const Tensor& x, const Tensor& out, bool add, bool scaled) {
    return {x.rows,  out.cols,  x.cols, x.row_stride, out.row_stride,
            x.dtype, out.dtype, add,    scaled,       alignment_of(out.data)};
}

struct Plan {
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t weight = nullptr, x = nullptr, out = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    bool refused = false;  // of scaled ones: the library has no such product
};

}  // namespace

struct LtMatmul::Impl {
    const Library& lt = Library::get();
    cublasLtHandle_t handle = nullptr;
    DeviceMemory workspace;
    std::map<Shape, Plan> plans;

    ~Impl() {
        for (auto& [shape, p] : plans)
            destroy(p);
        if (handle) lt.cublasLtDestroy(handle);
    }
    void destroy(Plan& p) const {
        if (p.product) lt.cublasLtMatmulDescDestroy(p.product);
        for (cublasLtMatrixLayout_t l : {p.weight, p.x, p.out})
            if (l) lt.cublasLtMatrixLayoutDestroy(l);
    }

    const Plan& refuse(const Shape& s, Plan& p) {
        destroy(p);
        p = {};
        p.refused = true;
        return plans.emplace(s, p).first->second;
    }

    cublasLtMatmulDesc_t describe_product(const Shape& s) const {
        const bool integers = s.in == DType::i8;
        cublasLtMatmulDesc_t d = nullptr;
        check_lt(lt.cublasLtMatmulDescCreate(&d, integers ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F,
                                             integers ? CUDA_R_32I : CUDA_R_32F),
                 "describing a product");
        const cublasOperation_t transpose = CUBLAS_OP_T;
        cublasStatus_t status =
            lt.cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose);
        if (status == CUBLAS_STATUS_SUCCESS && s.in == DType::f8_e4m3)
            status = lt.cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast_fp8_sums,
                                                       sizeof fast_fp8_sums);
        if (status != CUBLAS_STATUS_SUCCESS) lt.cublasLtMatmulDescDestroy(d);
        check_lt(status, "describing a product");
        return d;
    }

    // Scales are vectors along the outer sides. False where headers or library are of before CUDA 12.9.
    bool set_outer_scales(cublasLtMatmulDesc_t product) const {
#if CUDART_VERSION >= 12090
        const std::int32_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
        for (const auto side : {CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE})
            if (lt.cublasLtMatmulDescSetAttribute(product, side, &mode, sizeof mode) != CUBLAS_STATUS_SUCCESS)
                return false;
        return true;
#else
        (void)product;
        return false;
#endif
    }

    void set_scales(const Plan& p, const Scales& scales) const {
        check_lt(lt.cublasLtMatmulDescSetAttribute(p.product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                                                   &scales.weight, sizeof scales.weight),
                 "giving a product its scales");
        check_lt(lt.cublasLtMatmulDescSetAttribute(p.product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &scales.x,
                                                   sizeof scales.x),
                 "giving a product its scales");
    }

    void enqueue(cudaStream_t stream, const Plan& p, Tensor x, const void* weight, Tensor out,
                 bool add) const {
        const float one = 1.0F, beta = add ? 1.0F : 0.0F;
        const std::int32_t whole_one = 1, whole_zero = 0;
        const bool integers = x.dtype == DType::i8;
        const void* alpha = integers ? static_cast<const void*>(&whole_one) : &one;
        check_lt(lt.cublasLtMatmul(handle, p.product, alpha, weight, p.weight, x.data, p.x,
                                   integers ? static_cast<const void*>(&whole_zero) : &beta, out.data, p.out,
                                   out.data, p.out, &p.algorithm, workspace.data(), workspace_bytes, stream),
                 "a product");
    }

    void start() {
        if (handle) return;
        check_lt(lt.cublasLtCreate(&handle), "starting");
        workspace = DeviceMemory(workspace_bytes);
    }

    // Row-major out = x · Wᵀ is column-major outᵀ = (Wᵀ)ᵀ · xᵀ over the same memory.
    // `scales` of a scaled one: the library looks at them when it chooses.
    const Plan& plan(const Shape& s, const Scales& scales) {
        if (const auto it = plans.find(s); it != plans.end()) return it->second;
        start();
        Plan p;
        try {
            p.product = describe_product(s);
            if (s.scaled) {
                if (!set_outer_scales(p.product)) return refuse(s, p);
                set_scales(p, scales);
            }
            const auto n = [](std::int64_t v) { return std::uint64_t(v); };
            check_lt(
                lt.cublasLtMatrixLayoutCreate(&p.weight, type_of(s.in), n(s.inputs), n(s.outputs), s.inputs),
                "describing a matrix");
            check_lt(lt.cublasLtMatrixLayoutCreate(&p.x, type_of(s.in), n(s.inputs), n(s.rows), s.x_stride),
                     "describing a matrix");
            check_lt(
                lt.cublasLtMatrixLayoutCreate(&p.out, type_of(s.out), n(s.outputs), n(s.rows), s.out_stride),
                "describing a matrix");
            cublasLtMatmulPreference_t preference = nullptr;
            check_lt(lt.cublasLtMatmulPreferenceCreate(&preference), "choosing an algorithm");
            lt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace_bytes, sizeof workspace_bytes);
            for (const auto side :
                 {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
                lt.cublasLtMatmulPreferenceSetAttribute(preference, side, &s.out_alignment,
                                                        sizeof s.out_alignment);
            cublasLtMatmulHeuristicResult_t best{};
            int found = 0;
            const cublasStatus_t status = lt.cublasLtMatmulAlgoGetHeuristic(
                handle, p.product, p.weight, p.x, p.out, p.out, preference, 1, &best, &found);
            lt.cublasLtMatmulPreferenceDestroy(preference);
            if (s.scaled && (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
                             (status == CUBLAS_STATUS_SUCCESS && found == 0)))
                return refuse(s, p);
            check_lt(status, "choosing an algorithm");
            if (found == 0) check_lt(CUBLAS_STATUS_NOT_SUPPORTED, "choosing an algorithm");
            p.algorithm = best.algo;
        } catch (...) {
            destroy(p);
            throw;
        }
        return plans.emplace(s, p).first->second;
    }
};

LtMatmul::LtMatmul() : impl_(std::make_unique<Impl>()) {}
LtMatmul::~LtMatmul() = default;

void LtMatmul::prepare() {
    if (!missing()) impl_->start();
}

std::size_t LtMatmul::bytes() const {
    return impl_->workspace.bytes();
}

const char* LtMatmul::missing() const {
    return impl_->lt.error.empty() ? nullptr : impl_->lt.error.c_str();
}

void LtMatmul::run(cudaStream_t stream, Tensor x, const void* weight, Tensor out, bool add) {
    if (missing()) throw Error(ErrorKind::runtime, missing());
    assert(!(add && x.dtype == DType::i8));
    const Plan& p = impl_->plan(shape_of(x, out, add, false), {});
    impl_->enqueue(stream, p, x, weight, out, add);
}

bool LtMatmul::run_scaled(cudaStream_t stream, Tensor x, const void* weight, Tensor out, bool add,
                          const Scales& scales) {
    assert(x.dtype == DType::f8_e4m3);
    if (missing()) throw Error(ErrorKind::runtime, missing());
    const Plan& p = impl_->plan(shape_of(x, out, add, true), scales);
    if (p.refused) return false;
    impl_->set_scales(p, scales);
    impl_->enqueue(stream, p, x, weight, out, add);
    return true;
}

}  // namespace recto::cuda
