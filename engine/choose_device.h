// Which device serves when the person leaves the choice to the program.
#pragma once
#include <memory>
#include <string>

#include "kernels/backend.h"

namespace recto {

// Whether the system shows an NVIDIA card, usable or not.
bool nvidia_card_present();

// The first card, else the CPU. `notice`: why a card that is there is not used, one sentence; else empty.
std::unique_ptr<Backend> make_automatic_backend(const CpuOptions& cpu, std::string& notice);

}  // namespace recto
