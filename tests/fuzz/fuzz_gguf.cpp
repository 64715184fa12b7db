// GGUF: any bytes are refused with a sentence or read without leaving them.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/load/gguf_source.h"
#include "engine/load/gguf_vocabulary.h"
#include "engine/load/name_map.h"
#include "kernels/error.h"

using namespace recto;

namespace {

void read_planes(const WeightRows& weight) {
    const auto cols = std::size_t(weight.cols());
    std::vector<float> values(cols), scale(cols), offset(cols);
    std::vector<std::uint8_t> q(cols);
    for (std::int64_t row = 0; row < weight.rows(); ++row) {
        weight.read_f32(row, 1, values.data());
        if (weight.form().grouped) weight.read(row, 1, {q.data(), scale.data(), offset.data()});
    }
}

void read_model(const std::shared_ptr<const GgufFiles>& files) {
    const auto source = make_gguf_source(files, "fuzz.gguf");
    (void)source->tensors();
    (void)source->quantization();
    for_each_required_tensor(source->config(), [&](TensorRole role, int layer, int expert) {
        if (is_norm(role)) {
            (void)source->norm(role, layer);
        } else if (const auto weight = source->weight(role, layer, expert)) {
            read_planes(*weight);
        }
    });
}

void expect_refusal_only(const Error& error) {
    if (error.kind() != ErrorKind::input) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    try {
        const auto files = std::make_shared<const GgufFiles>(bytes, "fuzz.gguf");
        try {
            (void)read_gguf_vocabulary(files->metadata());
        } catch (const Error& error) {
            expect_refusal_only(error);
        }
        read_model(files);
    } catch (const Error& error) {
        expect_refusal_only(error);
    }
    return 0;
}
