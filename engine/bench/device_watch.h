// Asks a device's monitor each second while a run is timed, from a thread of its own, and sums up.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/monitor.h"

namespace recto {

class DeviceWatch {
  public:
    // `monitor` may be null: then nothing is ever known.
    explicit DeviceWatch(std::unique_ptr<DeviceMonitor> monitor, double period_s = 1.0);
    ~DeviceWatch();
    DeviceWatch(const DeviceWatch&) = delete;
    DeviceWatch& operator=(const DeviceWatch&) = delete;

    struct Seen {  // medians; temperature: the highest; energy: the difference
        std::optional<double> clock_mhz, memory_clock_mhz, temperature_c, power_w, energy_j, other_load;
        std::string held_back;  // empty: never
    };
    void begin();  // a sample now, then one each period
    Seen end();    // and one now

    DeviceFacts facts();

  private:
    void sample_locked();
    void run();

    std::unique_ptr<DeviceMonitor> monitor_;
    double period_s_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<DeviceSample> samples_;
    bool watching_ = false;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace recto
