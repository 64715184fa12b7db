#include "kernels/cuda/lt_matmul.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <cassert>
#include <map>
#include <tuple>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_memory.h"

namespace recto::cuda {
namespace {

constexpr std::size_t workspace_bytes = 64U << 20;  // what NVIDIA advises for Hopper is 32 MiB

void check_lt(cublasStatus_t status, const char* doing) {
    if (status != CUBLAS_STATUS_SUCCESS)
        throw Error(ErrorKind::runtime, std::string("cuBLASLt: ") + doing + " failed with status " +
                                            std::to_string(int(status)));
}

cudaDataType_t type_of(DType d) {
    return d == DType::f16 ? CUDA_R_16F : d == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// The functions used, from the library of the toolkit's major version.
struct Library {
    void* handle = nullptr;
    std::string error;
#define RECTO_LT_FUNCTIONS(X)                                                                          \
    X(cublasLtCreate)                                                                                  \
    X(cublasLtDestroy) X(cublasLtMatmul) X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmulDescCreate) \
        X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate)   \
            X(cublasLtMatrixLayoutDestroy) X(cublasLtMatmulPreferenceCreate)                           \
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
#define X(name)                                                                    \
    name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name));              \
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
    bool add;
    auto operator<=>(const Shape&) const = default;
};

struct Plan {
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t weight = nullptr, x = nullptr, out = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
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

    // Row-major out = x · Wᵀ is column-major outᵀ = (Wᵀ)ᵀ · xᵀ over the same memory.
    const Plan& plan(const Shape& s) {
        if (const auto it = plans.find(s); it != plans.end()) return it->second;
        if (!handle) {
            check_lt(lt.cublasLtCreate(&handle), "starting");
            workspace = DeviceMemory(workspace_bytes);
        }
        Plan p;
        try {
            const cublasOperation_t transpose = CUBLAS_OP_T;
            check_lt(lt.cublasLtMatmulDescCreate(&p.product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a product");
            check_lt(lt.cublasLtMatmulDescSetAttribute(p.product, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                                       sizeof transpose),
                     "describing a product");
            const auto n = [](std::int64_t v) { return std::uint64_t(v); };
            check_lt(lt.cublasLtMatrixLayoutCreate(&p.weight, type_of(s.in), n(s.inputs), n(s.outputs), s.inputs),
                     "describing a matrix");
            check_lt(lt.cublasLtMatrixLayoutCreate(&p.x, type_of(s.in), n(s.inputs), n(s.rows), s.x_stride),
                     "describing a matrix");
            check_lt(lt.cublasLtMatrixLayoutCreate(&p.out, type_of(s.out), n(s.outputs), n(s.rows), s.out_stride),
                     "describing a matrix");
            cublasLtMatmulPreference_t preference = nullptr;
            check_lt(lt.cublasLtMatmulPreferenceCreate(&preference), "choosing an algorithm");
            lt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace_bytes, sizeof workspace_bytes);
            cublasLtMatmulHeuristicResult_t best{};
            int found = 0;
            const cublasStatus_t status = lt.cublasLtMatmulAlgoGetHeuristic(
                handle, p.product, p.weight, p.x, p.out, p.out, preference, 1, &best, &found);
            lt.cublasLtMatmulPreferenceDestroy(preference);
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

const char* LtMatmul::missing() const {
    return impl_->lt.error.empty() ? nullptr : impl_->lt.error.c_str();
}

void LtMatmul::run(cudaStream_t stream, Tensor x, const void* weight, Tensor out, bool add) {
    if (missing()) throw Error(ErrorKind::runtime, missing());
    const Plan& p = impl_->plan({x.rows, out.cols, x.cols, x.row_stride, out.row_stride, x.dtype, out.dtype, add});
    const float one = 1.0F, beta = add ? 1.0F : 0.0F;
    check_lt(impl_->lt.cublasLtMatmul(impl_->handle, p.product, &one, weight, p.weight, x.data, p.x, &beta, out.data,
                                      p.out, out.data, p.out, &p.algorithm, impl_->workspace.data(), workspace_bytes,
                                      stream),
             "a product");
}

}  // namespace recto::cuda
