// safetensors: any bytes are refused with a sentence or parsed into tensors that fill the data exactly.
#include <cstddef>
#include <cstdint>

#include "engine/load/safetensors.h"
#include "kernels/error.h"

using namespace recto;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const Safetensors file({reinterpret_cast<const std::byte*>(data), size}, "fuzz.safetensors");
        std::size_t bytes = 0;
        for (const auto& tensor : file.tensors()) {
            if (file.find(tensor.name) != &tensor) __builtin_trap();
            for (const std::byte byte : tensor.data)
                bytes += byte == std::byte{0} ? 1 : 1;
        }
        std::uint64_t header = 0;
        for (int i = 7; i >= 0; --i)
            header = header << 8 | data[i];
        if (8 + header + bytes != size) __builtin_trap();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) __builtin_trap();
    }
    return 0;
}
