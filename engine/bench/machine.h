// The machine a report was made on, as far as the system tells; what it does not tell is left out.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace recto {

// "cpu", "cores", "ram_bytes", "governor", "turbo", "mains_power", "os", "kernel".
nlohmann::ordered_json describe_machine();

std::string local_time(std::int64_t unix_s);  // "2026-11-30T14:05:09+0100 CET"

// This process's resident memory now and at its largest.
std::uint64_t process_resident_bytes();
std::uint64_t process_peak_bytes();
// Lets process_peak_bytes() start again from what is resident now. False where the kernel has no such switch.
bool reset_process_peak();

}  // namespace recto
