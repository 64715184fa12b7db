// DeviceMonitor of a card through NVML, NVIDIA's management library. It belongs to the driver and is opened
// at run time: a machine without it benchmarks all the same, and its reports leave these figures out. Names
// and numbers: NVML API Reference Guide.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <array>
#include <cstdio>

#include "kernels/monitor.h"

namespace recto {
namespace {

using NvmlDevice = void*;
constexpr int nvml_success = 0;
constexpr int nvml_clock_sm = 1;
constexpr int nvml_clock_memory = 2;
constexpr int nvml_temperature_gpu = 0;

struct HeldBack {
    unsigned long long bit;
    const char* why;
};
// nvmlClocksEventReasons. A power cap is how a card at full load works and holds nothing back that could be
// repeated better; these do.
constexpr std::array<HeldBack, 4> held_back_reasons = {{{0x20, "thermal (software)"},
                                                        {0x40, "thermal (hardware)"},
                                                        {0x80, "power brake"},
                                                        {0x08, "hardware slowdown"}}};

// The functions used, by their exported names. `ok` is false if one that is always there is missing.
class Nvml {
  public:
    Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
        if (library_ == nullptr) return;
        find(init, "nvmlInit_v2");
        find(shutdown, "nvmlShutdown");
        find(by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
        find(driver_version, "nvmlSystemGetDriverVersion");
        find(clock, "nvmlDeviceGetClockInfo");
        find(max_clock, "nvmlDeviceGetMaxClockInfo");
        find(temperature, "nvmlDeviceGetTemperature");
        find(power, "nvmlDeviceGetPowerUsage");
        find(power_limit, "nvmlDeviceGetEnforcedPowerLimit");
        find(energy, "nvmlDeviceGetTotalEnergyConsumption");
        find(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
        ok = init && shutdown && by_bus_id && init() == nvml_success;
    }
    ~Nvml() {
        if (ok) shutdown();
        if (library_ != nullptr) dlclose(library_);
    }
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    using Number = int (*)(NvmlDevice, unsigned*);
    using Kinded = int (*)(NvmlDevice, int, unsigned*);
    using Large = int (*)(NvmlDevice, unsigned long long*);
    bool ok = false;
    int (*init)() = nullptr;
    int (*shutdown)() = nullptr;
    int (*by_bus_id)(const char*, NvmlDevice*) = nullptr;
    int (*driver_version)(char*, unsigned) = nullptr;
    Kinded clock = nullptr, max_clock = nullptr, temperature = nullptr;
    Number power = nullptr, power_limit = nullptr;  // milliwatts
    Large energy = nullptr;                         // millijoules since the driver was loaded
    Large throttle = nullptr;

  private:
    template <class F>
    void find(F& function, const char* name) {
        function = reinterpret_cast<F>(dlsym(library_, name));
    }
    void* library_;
};

std::string cuda_version(int number) {  // 13000 is 13.0
    return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

class CudaMonitor final : public DeviceMonitor {
  public:
    // CUDA and NVML may number cards differently; the bus tells them apart.
    CudaMonitor(const char* bus_id, int ordinal) : ordinal_(ordinal) {
        usable_ = nvml_.ok && nvml_.by_bus_id(bus_id, &device_) == nvml_success;
    }

    DeviceFacts facts() const override {
        DeviceFacts facts;
        const auto add = [&facts](const char* name, std::optional<double> value) {
            char text[32];
            if (!value) return;
            std::snprintf(text, sizeof text, "%.10g", *value);
            facts.emplace_back(name, text);
        };
        std::array<char, 96> driver{};
        if (usable_ && nvml_.driver_version &&
            nvml_.driver_version(driver.data(), driver.size()) == nvml_success)
            facts.emplace_back("driver", driver.data());
        int version = 0;
        if (cudaDriverGetVersion(&version) == cudaSuccess)
            facts.emplace_back("cuda_of_driver", cuda_version(version));
        if (cudaRuntimeGetVersion(&version) == cudaSuccess)
            facts.emplace_back("cuda_of_build", cuda_version(version));
        cudaDeviceProp properties{};
        if (cudaGetDeviceProperties(&properties, ordinal_) == cudaSuccess) {
            facts.emplace_back("gpu", properties.name);
            add("gpu_memory_bytes", double(properties.totalGlobalMem));
            add("multiprocessors", properties.multiProcessorCount);
        }
        add("power_limit_w", scaled(nvml_.power_limit, 1e-3));
        add("max_sm_clock_mhz", kinded(nvml_.max_clock, nvml_clock_sm));
        add("max_memory_clock_mhz", kinded(nvml_.max_clock, nvml_clock_memory));
        return facts;
    }

    DeviceSample sample() override {
        DeviceSample s;
        s.clock_mhz = kinded(nvml_.clock, nvml_clock_sm);
        s.memory_clock_mhz = kinded(nvml_.clock, nvml_clock_memory);
        s.temperature_c = kinded(nvml_.temperature, nvml_temperature_gpu);
        s.power_w = scaled(nvml_.power, 1e-3);
        unsigned long long value = 0;
        if (usable_ && nvml_.energy && nvml_.energy(device_, &value) == nvml_success)
            s.energy_j = double(value) * 1e-3;
        if (usable_ && nvml_.throttle && nvml_.throttle(device_, &value) == nvml_success)
            for (const HeldBack& reason : held_back_reasons)
                if ((value & reason.bit) != 0 && s.held_back.empty()) s.held_back = reason.why;
        return s;
    }

  private:
    std::optional<double> kinded(Nvml::Kinded function, int kind) const {
        unsigned value = 0;
        if (!usable_ || function == nullptr || function(device_, kind, &value) != nvml_success)
            return std::nullopt;
        return value;
    }
    std::optional<double> scaled(Nvml::Number function, double unit) const {
        unsigned value = 0;
        if (!usable_ || function == nullptr || function(device_, &value) != nvml_success) return std::nullopt;
        return value * unit;
    }

    Nvml nvml_;
    NvmlDevice device_ = nullptr;
    int ordinal_;
    bool usable_ = false;
};

}  // namespace

std::unique_ptr<DeviceMonitor> make_cuda_monitor(int ordinal) {
    std::array<char, 32> bus_id{};
    if (cudaDeviceGetPCIBusId(bus_id.data(), int(bus_id.size()), ordinal) != cudaSuccess) {
        cudaGetLastError();  // the backend's next call must not find it
        return nullptr;
    }
    return std::make_unique<CudaMonitor>(bus_id.data(), ordinal);
}

}  // namespace recto
