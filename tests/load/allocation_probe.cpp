#include <algorithm>
#include <cstdlib>
#include <new>

#include "load/files.h"

namespace {
thread_local std::size_t largest = 0;

void* allocate(std::size_t bytes) {
    largest = std::max(largest, bytes);
    if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t bytes) {
    return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
    return allocate(bytes);
}
// The library's own would come from another allocator, whose memory must not reach free() below.
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
    largest = std::max(largest, bytes);
    return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace recto::test {

AllocationProbe::AllocationProbe() {
    largest = 0;
}
std::size_t AllocationProbe::largest_bytes() const {
    return largest;
}

}  // namespace recto::test
