// Which device serves: what a setting names, or the program's choice.
#pragma once
#include <memory>
#include <string>

#include "kernels/backend.h"

namespace recto {

struct DeviceChoice {
    enum Kind { automatic, cpu, card } kind = automatic;
    int ordinal = 0;  // of a card
};

// "auto", "cpu", "cuda" or "cuda:N". Error(argument) that calls the setting by `name`.
DeviceChoice parse_device(const std::string& text, const std::string& name);

// Whether the system shows an NVIDIA card, usable or not.
bool nvidia_card_present();

// The first card, else the CPU. `notice`: why a card that is there is not used, one sentence; else empty.
std::unique_ptr<Backend> make_automatic_backend(const CpuOptions& cpu, std::string& notice);

}  // namespace recto
