// DeviceMonitor of the processor, from /proc and /sys.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "kernels/monitor.h"

namespace recto {
namespace {

namespace fs = std::filesystem;

template <class T>
std::optional<T> read_value(const fs::path& file) {
    std::ifstream in(file);
    T value;
    if (in >> value) return value;
    return std::nullopt;
}

// All jiffies of all cores, and those of them that were idle. proc(5), "cpu user nice system idle iowait …".
struct Jiffies {
    double all = 0, idle = 0;
};

std::optional<Jiffies> machine_jiffies() {
    std::ifstream in("/proc/stat");
    std::string name;
    if (!(in >> name) || name != "cpu") return std::nullopt;
    std::string line;
    std::getline(in, line);
    std::istringstream fields(line);
    Jiffies j;
    double value = 0;
    for (int i = 0; i < 8 && fields >> value; ++i) {  // guest times are in user times already
        j.all += value;
        if (i == 3 || i == 4) j.idle += value;
    }
    return j;
}

// utime + stime of this process: fields 14 and 15, counted from behind the name in parentheses.
std::optional<double> own_jiffies() {
    std::ifstream in("/proc/self/stat");
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) return std::nullopt;
    std::istringstream fields(text.substr(name_end + 1));
    std::string skipped;
    for (int i = 3; i < 14; ++i)
        fields >> skipped;
    double user = 0;
    double system = 0;
    if (!(fields >> user >> system)) return std::nullopt;
    return user + system;
}

class CpuMonitor final : public DeviceMonitor {
  public:
    CpuMonitor() {
        std::error_code ignored;
        for (const auto& entry : fs::directory_iterator("/sys/devices/system/cpu", ignored)) {
            const std::string name = entry.path().filename().string();
            if (name.size() < 4 || name.rfind("cpu", 0) != 0 || name[3] < '0' || name[3] > '9') continue;
            const fs::path clock = entry.path() / "cpufreq/scaling_cur_freq";
            if (fs::exists(clock, ignored)) clocks_.push_back(clock);
            const fs::path heat = entry.path() / "thermal_throttle/core_throttle_count";
            if (fs::exists(heat, ignored)) throttles_.push_back(heat);
        }
        for (const auto& zone : fs::directory_iterator("/sys/class/thermal", ignored)) {
            const auto type = read_value<std::string>(zone.path() / "type");
            if (type && (*type == "x86_pkg_temp" || *type == "cpu-thermal")) zone_ = zone.path() / "temp";
        }
        sample();
    }

    DeviceFacts facts() const override { return {}; }

    DeviceSample sample() override {
        DeviceSample s;
        s.clock_mhz = mean_clock();
        if (!zone_.empty())
            if (const auto milli = read_value<double>(zone_)) s.temperature_c = *milli / 1000;
        s.other_load = other_load();
        const std::uint64_t throttled = throttle_count();
        if (throttled > throttled_) s.held_back = "thermal";
        throttled_ = throttled;
        return s;
    }

  private:
    std::optional<double> mean_clock() const {
        double sum = 0;
        int count = 0;
        for (const fs::path& file : clocks_)
            if (const auto khz = read_value<double>(file)) {
                sum += *khz / 1000;
                ++count;
            }
        if (count == 0) return std::nullopt;
        return sum / count;
    }

    std::uint64_t throttle_count() const {
        return std::accumulate(throttles_.begin(), throttles_.end(), std::uint64_t(0),
                               [](std::uint64_t sum, const fs::path& file) {
                                   return sum + read_value<std::uint64_t>(file).value_or(0);
                               });
    }

    std::optional<double> other_load() {
        const auto machine = machine_jiffies();
        const auto own = own_jiffies();
        if (!machine || !own) return std::nullopt;
        const double all = machine->all - before_.all;
        const double busy = all - (machine->idle - before_.idle);
        const double mine = *own - own_before_;
        if (all < 10) return std::nullopt;  // too short a time to say: the next sample covers it
        before_ = *machine;
        own_before_ = *own;
        return std::clamp((busy - mine) / all, 0.0, 1.0);
    }

    std::vector<fs::path> clocks_, throttles_;
    fs::path zone_;
    Jiffies before_;
    double own_before_ = 0;
    std::uint64_t throttled_ = 0;
};

}  // namespace

std::unique_ptr<DeviceMonitor> make_cpu_monitor() {
    return std::make_unique<CpuMonitor>();
}

}  // namespace recto
