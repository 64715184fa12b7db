#include "engine/bench/device_watch.h"

#include <algorithm>
#include <chrono>

#include "engine/bench/statistics.h"

namespace recto {
namespace {

using Field = std::optional<double> DeviceSample::*;

std::vector<double> values(const std::vector<DeviceSample>& samples, Field field) {
    std::vector<double> list;
    for (const DeviceSample& s : samples)
        if (s.*field) list.push_back(*(s.*field));
    return list;
}

std::optional<double> quantile_of(const std::vector<DeviceSample>& samples, Field field, double q) {
    const std::vector<double> list = values(samples, field);
    if (list.empty()) return std::nullopt;
    return quantile(list, q);
}

}  // namespace

DeviceWatch::DeviceWatch(std::unique_ptr<DeviceMonitor> monitor, double period_s)
    : monitor_(std::move(monitor)), period_s_(period_s) {
    if (monitor_) thread_ = std::thread([this] { run(); });
}

DeviceWatch::~DeviceWatch() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void DeviceWatch::begin() {
    if (!monitor_) return;
    {
        const std::lock_guard lock(mutex_);
        samples_.clear();
        sample_locked();
        watching_ = true;
    }
    wake_.notify_all();
}

DeviceWatch::Seen DeviceWatch::end() {
    Seen seen;
    if (!monitor_) return seen;
    const std::lock_guard lock(mutex_);
    watching_ = false;
    sample_locked();
    seen.clock_mhz = quantile_of(samples_, &DeviceSample::clock_mhz, 0.5);
    seen.memory_clock_mhz = quantile_of(samples_, &DeviceSample::memory_clock_mhz, 0.5);
    seen.temperature_c = quantile_of(samples_, &DeviceSample::temperature_c, 1);
    seen.power_w = quantile_of(samples_, &DeviceSample::power_w, 0.5);
    // The first sample's figure covers the time before the run.
    const std::vector<DeviceSample> during(samples_.begin() + 1, samples_.end());
    seen.other_load = quantile_of(during, &DeviceSample::other_load, 0.5);
    const std::vector<double> energy = values(samples_, &DeviceSample::energy_j);
    if (energy.size() >= 2) seen.energy_j = energy.back() - energy.front();
    for (const DeviceSample& s : during)
        if (seen.held_back.empty()) seen.held_back = s.held_back;
    return seen;
}

DeviceFacts DeviceWatch::facts() {
    const std::lock_guard lock(mutex_);
    return monitor_ ? monitor_->facts() : DeviceFacts{};
}

void DeviceWatch::sample_locked() {
    samples_.push_back(monitor_->sample());
}

void DeviceWatch::run() {
    std::unique_lock lock(mutex_);
    while (!ending_) {
        if (!watching_) {
            wake_.wait(lock);
            continue;
        }
        wake_.wait_for(lock, std::chrono::duration<double>(period_s_));
        if (watching_ && !ending_) sample_locked();
    }
}

}  // namespace recto
