#include "engine/bench/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "kernels/error.h"

namespace recto {
namespace {

class OpenFile {
  public:
    explicit OpenFile(const std::filesystem::path& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (file_ < 0)
            throw Error(ErrorKind::input, path.string() + ": expected a readable file, found none");
    }
    ~OpenFile() { ::close(file_); }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    int get() const { return file_; }
    std::size_t size() const { return std::size_t(std::max<off_t>(::lseek(file_, 0, SEEK_END), 0)); }

  private:
    int file_;
};

void count_pages(const std::filesystem::path& path, PageCacheState& state) {
    const OpenFile file(path);
    const std::size_t size = file.size();
    if (size == 0) return;
    const auto page = std::size_t(::sysconf(_SC_PAGESIZE));
    const std::size_t pages = (size + page - 1) / page;
    void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
    if (map == MAP_FAILED)
        throw Error(ErrorKind::runtime, path.string() + ": expected a file that can be mapped, found none");
    std::vector<unsigned char> in_memory(pages);
    const int failed = ::mincore(map, size, in_memory.data());
    ::munmap(map, size);
    if (failed != 0)
        throw Error(ErrorKind::runtime,
                    path.string() + ": the kernel does not say which of its pages are in memory");
    state.pages += pages;
    state.resident += std::uint64_t(std::count_if(in_memory.begin(), in_memory.end(),
                                                  [](unsigned char flags) { return (flags & 1) != 0; }));
}

}  // namespace

std::string PageCacheState::describe() const {
    if (warm()) return "warm";
    if (cold()) return "cold";
    return "mixed " + std::to_string(std::lround(share() * 100)) + " %";
}

PageCacheState page_cache_state(std::span<const std::filesystem::path> files) {
    PageCacheState state;
    for (const auto& file : files)
        count_pages(file, state);
    return state;
}

void warm_page_cache(std::span<const std::filesystem::path> files) {
    std::vector<char> piece(std::size_t(4) << 20);
    for (const auto& path : files) {
        const OpenFile file(path);
        ::lseek(file.get(), 0, SEEK_SET);
        while (::read(file.get(), piece.data(), piece.size()) > 0) {
        }
    }
}

std::string file_system_of(const std::filesystem::path& path) {
    struct statfs info {};
    if (::statfs(path.c_str(), &info) != 0) return "unknown";
    struct Name {
        unsigned long magic;
        const char* name;
    };
    // statfs(2)
    static constexpr std::array<Name, 13> names = {{{0xEF53, "ext4"},
                                                    {0x58465342, "xfs"},
                                                    {0x9123683E, "btrfs"},
                                                    {0x01021994, "tmpfs"},
                                                    {0x794C7630, "overlayfs"},
                                                    {0x6969, "nfs"},
                                                    {0x2FC12FC1, "zfs"},
                                                    {0x01021997, "9p"},
                                                    {0x65735546, "fuse"},
                                                    {0x73717368, "squashfs"},
                                                    {0xF2F52010, "f2fs"},
                                                    {0xFF534D42, "cifs"},
                                                    {0xFE534D42, "smb2"}}};
    const auto magic = static_cast<unsigned long>(info.f_type) & 0xFFFFFFFFUL;
    for (const Name& n : names)
        if (n.magic == magic) return n.name;
    char text[24];
    std::snprintf(text, sizeof text, "0x%lx", magic);
    return text;
}

}  // namespace recto
