// The JSON files of a model folder: config.json, generation_config.json and the safetensors index.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string_view>

#include "engine/load/folder_config.h"
#include "engine/load/safetensors_index.h"
#include "kernels/error.h"

using namespace recto;

namespace {

void refused_or_read(const std::function<void()>& read) {
    try {
        read();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) __builtin_trap();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    refused_or_read([&] {
        const ModelConfig model = read_folder_config(text, "config.json").model;
        // What the transformer builds on.
        if (model.heads % model.kv_heads != 0 || model.head_dim % 8 != 0 ||
            model.rope.inverse_frequency.size() * 2 != std::size_t(model.rope.rotary_dims) ||
            model.rope.rotary_dims > model.head_dim || model.max_position < 1)
            __builtin_trap();
        const auto per_layer = [&](std::size_t size) {
            return size == 0 || size == std::size_t(model.layers);
        };
        const float scales[] = {model.embedding_scale, model.residual_scale, model.logits_scale};
        if (!per_layer(model.window.size()) || !per_layer(model.unrotated.size()) ||
            model.rope_local.inverse_frequency.size() * 2 != std::size_t(model.rope_local.rotary_dims) ||
            !std::all_of(std::begin(scales), std::end(scales),
                         [](float s) { return s > 0 && std::isfinite(s); }))
            __builtin_trap();
    });
    refused_or_read([&] {
        ModelConfig model;
        model.vocab = 100;
        (void)read_generation_config(text, "generation_config.json", model);
    });
    refused_or_read([&] {
        for (const auto& [tensor, file] : read_safetensors_index(text, "index.json"))
            if (file.find('/') != std::string::npos || file.empty()) __builtin_trap();
    });
    return 0;
}
