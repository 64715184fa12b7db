// What a build without the CUDA toolkit says when a card is asked for.
#ifndef RECTO_HAVE_CUDA
#include "kernels/backend.h"
#include "kernels/monitor.h"

namespace recto {

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions&, std::string& why) {
    why = "this build has no CUDA backend; install the CUDA toolkit and build again";
    return nullptr;
}

std::unique_ptr<DeviceMonitor> make_cuda_monitor(int) {
    return nullptr;
}

}  // namespace recto
#endif
