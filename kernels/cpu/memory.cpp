#include "kernels/cpu/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <string>

#include "kernels/error.h"

namespace recto::cpu {

namespace {
constexpr std::size_t huge_page = std::size_t(2) << 20;

std::size_t meminfo_bytes(const std::string& key) {
    std::ifstream file("/proc/meminfo");
    std::string name, unit;
    std::size_t kib = 0;
    while (file >> name >> kib) {
        std::getline(file, unit);
        if (name == key) return kib * 1024;
    }
    return 0;
}
}  // namespace

AlignedBytes::AlignedBytes(std::size_t bytes) {
    if (bytes == 0) return;
    // Loads may run a vector past the end; large areas start on a huge page so that the kernel can use them.
    const bool large = bytes >= huge_page;
    const std::size_t page = large ? huge_page : 4096;
    const std::size_t wanted = (bytes + 256 + page - 1) / page * page;
    if (wanted < bytes) throw Error(ErrorKind::memory, "Not enough memory: the size asked for overflows");
    const std::size_t mapped = wanted + (large ? huge_page : 0);
    void* p =
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        throw Error(ErrorKind::memory, "Not enough memory: needed " + std::to_string(bytes >> 20) +
                                           " MiB, free " + std::to_string(memory_free_bytes() >> 20) +
                                           " MiB; close other programs, or use a smaller model or context");
    }
    auto start = reinterpret_cast<std::uintptr_t>(p);
    if (large) {
        const std::uintptr_t aligned = (start + huge_page - 1) / huge_page * huge_page;
        if (aligned > start) munmap(p, aligned - start);
        const std::size_t tail = mapped - (aligned - start) - wanted;
        if (tail > 0) munmap(reinterpret_cast<void*>(aligned + wanted), tail);
        start = aligned;
        madvise(reinterpret_cast<void*>(start), wanted, MADV_HUGEPAGE);
    }
    data_ = reinterpret_cast<std::uint8_t*>(start);
    bytes_ = bytes;
    mapped_ = wanted;
}

AlignedBytes::~AlignedBytes() {
    if (data_ != nullptr) munmap(data_, mapped_);
}

SharedBytes WeightMemory::take(std::size_t bytes) {
    if (bytes >= huge_page) return {std::make_shared<const AlignedBytes>(bytes), 0, bytes};
    constexpr std::size_t area_bytes = 16 * huge_page;
    constexpr std::size_t apart = 256;  // loads may run a vector past a piece's end
    auto area = area_.lock();
    if (!area || used_ + bytes + apart > area_bytes) {
        area = std::make_shared<const AlignedBytes>(area_bytes);
        area_ = area;
        used_ = 0;
    }
    const std::size_t first = used_;
    used_ += (bytes + 2 * apart - 1) / apart * apart;
    return {std::move(area), first, bytes};
}

std::size_t memory_total_bytes() {
    return meminfo_bytes("MemTotal:");
}
std::size_t memory_free_bytes() {
    return meminfo_bytes("MemAvailable:");
}

}  // namespace recto::cpu
