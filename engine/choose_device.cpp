#include "engine/choose_device.h"

#include <cctype>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "kernels/error.h"

namespace recto {

DeviceChoice parse_device(const std::string& text, const std::string& name) {
    constexpr std::string_view card = "cuda", numbered = "cuda:";
    if (text == "auto") return {};
    if (text == "cpu") return {DeviceChoice::cpu};
    if (text == card) return {DeviceChoice::card};
    if (text.starts_with(numbered)) {
        int ordinal = 0;
        const char* end = text.data() + text.size();
        const auto [rest, failure] = std::from_chars(text.data() + numbered.size(), end, ordinal);
        if (failure == std::errc() && rest == end && ordinal >= 0) return {DeviceChoice::card, ordinal};
    }
    throw Error(ErrorKind::argument, name + " must be auto, cpu, cuda or cuda:N, got " + text);
}

bool nvidia_card_present() {
    constexpr std::string_view prefix =
        "nvidia";  // nvidia0, nvidia1, …; not nvidiactl, which stands for the driver
    std::error_code error;
    for (std::filesystem::directory_iterator it("/dev", error), end; !error && it != end;
         it.increment(error)) {
        const std::string name = it->path().filename().string();
        if (name.size() > prefix.size() && name.starts_with(prefix) &&
            std::isdigit(static_cast<unsigned char>(name[prefix.size()])))
            return true;
    }
    return false;
}

std::unique_ptr<Backend> make_automatic_backend(const CpuOptions& cpu, std::string& notice) {
    notice.clear();
    std::string why;
    if (auto card = make_cuda_backend({}, why)) return card;
    if (nvidia_card_present()) notice = "the CPU is used although there is an NVIDIA card: " + why;
    return make_cpu_backend(cpu);
}

}  // namespace recto
