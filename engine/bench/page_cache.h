// How much of a model's files the kernel holds in memory before a load: a load from memory and one from disk
// are different things, and a report says which it was.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace recto {

struct PageCacheState {
    std::uint64_t pages = 0, resident = 0;  // over all files
    double share() const { return pages == 0 ? 1.0 : double(resident) / double(pages); }
    bool warm() const { return share() >= 0.99; }
    bool cold() const { return share() <= 0.01; }
    std::string describe() const;  // "warm", "cold", "mixed 37 %"
};

// mmap and mincore, which touch no page. Error(input) for a file that cannot be opened.
PageCacheState page_cache_state(std::span<const std::filesystem::path> files);

// Reads the files once, so that a load finds them in memory as far as they fit there.
void warm_page_cache(std::span<const std::filesystem::path> files);

// "ext4", "tmpfs", "nfs" …; the number in hexadecimal for one that is not known by name.
std::string file_system_of(const std::filesystem::path& path);

}  // namespace recto
