#include "engine/load/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/load/refuse.h"
#include "kernels/error.h"

namespace recto {

namespace {

class Descriptor {
  public:
    // O_NONBLOCK: opening a named pipe must not hang before its kind is known.
    explicit Descriptor(const std::filesystem::path& path)
        : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (fd_ < 0)
            refuse(path.string(), std::string("a readable file was expected, but it cannot be opened: ") +
                                      std::strerror(errno));
    }
    ~Descriptor() { ::close(fd_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

  private:
    int fd_;
};

std::size_t regular_file_size(const Descriptor& file, const std::filesystem::path& path) {
    struct stat status {};
    if (::fstat(file.get(), &status) != 0)
        refuse(path.string(), std::string("its size cannot be read: ") + std::strerror(errno));
    if (!S_ISREG(status.st_mode)) refuse(path.string(), "a regular file was expected, this is none");
    return std::size_t(status.st_size);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
    const Descriptor file(path);
    size_ = regular_file_size(file, path);
    if (size_ == 0) refuse(path.string(), "a model file was expected, this one is empty");
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (address == MAP_FAILED) {
        if (errno == ENOMEM)
            throw Error(ErrorKind::memory, path.string() + ": no address space to map " +
                                               std::to_string(size_) + " bytes; raise the limit (ulimit -v)");
        refuse(path.string(), std::string("it cannot be mapped: ") + std::strerror(errno));
    }
    data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
    ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::prefetch() const {
    // Only a hint: without it the pages are read when they are touched.
    (void)::madvise(const_cast<std::byte*>(data_), size_, MADV_WILLNEED);
}

void MappedFile::release() const {
    (void)::madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

std::string read_text_file(const std::filesystem::path& path, std::size_t limit_bytes) {
    const Descriptor file(path);
    const std::size_t size = regular_file_size(file, path);
    if (size > limit_bytes)
        refuse(path.string(), "at most " + std::to_string(limit_bytes) + " bytes were expected, it has " +
                                  std::to_string(size));
    std::string text(size, '\0');
    std::size_t done = 0;
    while (done < size) {
        const ssize_t n = ::read(file.get(), text.data() + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) refuse(path.string(), std::string("reading it failed: ") + std::strerror(errno));
        if (n == 0) refuse(path.string(), "it became shorter while it was read; try again");
        done += std::size_t(n);
    }
    return text;
}

}  // namespace recto
