#include "engine/bench/machine.h"

#include <sched.h>
#include <sys/utsname.h>

#include <ctime>
#include <filesystem>
#include <fstream>

namespace recto {
namespace {

using Json = nlohmann::ordered_json;

std::string first_line(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

// The value behind "key<blanks>separator<blanks>" in a file of such lines; empty if there is none.
std::string value_of(const char* file, const std::string& key, char separator) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        if (line.rfind(key, 0) != 0) continue;
        const std::size_t at = line.find(separator);
        if (at == std::string::npos) continue;
        const std::size_t begin = line.find_first_not_of(" \t\"", at + 1);
        const std::size_t end = line.find_last_not_of(" \t\"");
        return begin == std::string::npos ? "" : line.substr(begin, end - begin + 1);
    }
    return "";
}

std::uint64_t kib_line(const char* file, const std::string& key) {
    const std::string text = value_of(file, key, ':');
    return text.empty() ? 0 : std::stoull(text) * 1024;
}

std::string mains_power() {
    std::error_code ignored;
    std::string state;
    for (const auto& supply : std::filesystem::directory_iterator("/sys/class/power_supply", ignored)) {
        if (first_line(supply.path() / "type") != "Mains") continue;
        const std::string online = first_line(supply.path() / "online");
        if (online == "1") return "yes";
        if (online == "0") state = "no";
    }
    return state;
}

std::string turbo() {
    const std::string off = first_line("/sys/devices/system/cpu/intel_pstate/no_turbo");
    if (!off.empty()) return off == "0" ? "on" : "off";
    const std::string boost = first_line("/sys/devices/system/cpu/cpufreq/boost");
    return boost.empty() ? "" : boost == "1" ? "on" : "off";
}

}  // namespace

Json describe_machine() {
    Json machine = Json::object();
    const auto set = [&machine](const char* key, const std::string& text) {
        if (!text.empty()) machine[key] = text;
    };
    set("cpu", value_of("/proc/cpuinfo", "model name", ':'));
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) == 0) machine["cores"] = CPU_COUNT(&mask);
    machine["ram_bytes"] = kib_line("/proc/meminfo", "MemTotal:");
    set("governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    set("turbo", turbo());
    set("mains_power", mains_power());
    set("os", value_of("/etc/os-release", "PRETTY_NAME", '='));
    utsname names{};
    if (uname(&names) == 0) {
        machine["kernel"] = std::string(names.sysname) + " " + names.release;
        machine["architecture"] = names.machine;
    }
    return machine;
}

std::string local_time(std::int64_t unix_s) {
    const auto time = std::time_t(unix_s);
    std::tm parts{};
    if (localtime_r(&time, &parts) == nullptr) return "";
    char text[64];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z %Z", &parts)};
}

std::uint64_t process_resident_bytes() {
    return kib_line("/proc/self/status", "VmRSS:");
}

std::uint64_t process_peak_bytes() {
    return kib_line("/proc/self/status", "VmHWM:");
}

bool reset_process_peak() {
    std::ofstream out("/proc/self/clear_refs");
    out << "5";  // proc(5): resets the peak, touches no page
    out.close();
    return !out.fail();
}

}  // namespace recto
