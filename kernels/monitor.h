// What a driver tells about a device while work runs on it: clocks, temperature, power, whether it was held
// back. A figure that the driver does not give is absent, never guessed.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace recto {

// Facts that do not change during a run, as name and text: {"driver", "580.95"}, {"power_limit_w", "700"}.
using DeviceFacts = std::vector<std::pair<std::string, std::string>>;

struct DeviceSample {
    std::optional<double> clock_mhz;  // of the cores: a card's SM clock, the mean over a processor's cores
    std::optional<double> memory_clock_mhz;
    std::optional<double> temperature_c;
    std::optional<double> power_w;
    std::optional<double> energy_j;    // a counter: only differences mean something
    std::optional<double> other_load;  // CPU: share of all cores that other processes used since last asked
    std::string held_back;  // why clocks are low now: "thermal", "power brake"; empty: they are not
};

// Belongs to one thread at a time.
class DeviceMonitor {
  public:
    virtual ~DeviceMonitor() = default;
    virtual DeviceFacts facts() const = 0;
    virtual DeviceSample sample() = 0;
};

// The processor, from /proc and /sys. Never null.
std::unique_ptr<DeviceMonitor> make_cpu_monitor();

// Card `ordinal` as CUDA counts them. Clocks, power and the like come from NVML, which is opened at run time;
// where the machine has no such library only CUDA's own facts are told. Null in a build without CUDA, or
// without the card.
std::unique_ptr<DeviceMonitor> make_cuda_monitor(int ordinal);

}  // namespace recto
