#include "engine/load/unused_tensors.h"

#include <algorithm>
#include <charconv>

namespace recto {

namespace {

// "model.layers.12.mlp…", "blk.12.…": 12; -1 where there is none.
int layer_of(const std::string& name) {
    for (const std::string_view prefix : {"layers.", "blk."}) {
        const auto at = name.find(prefix);
        if (at == std::string::npos) continue;
        int layer = -1;
        const char* end = name.data() + name.size();
        const auto [rest, failure] = std::from_chars(name.data() + at + prefix.size(), end, layer);
        if (failure == std::errc() && rest != end && *rest == '.') return layer;
    }
    return -1;
}

}  // namespace

bool TensorUse::uses(const std::string& name) const {
    if (tensors_.contains(name) || name.ends_with("rotary_emb.inv_freq")) return true;
    const auto dot = name.rfind('.');
    return dot != std::string::npos && name.substr(dot) != ".bias" && modules_.contains(name.substr(0, dot));
}

std::string TensorUse::note(const std::string& label, const std::vector<std::string>& names,
                            int layers) const {
    std::string example;
    std::size_t unused = 0;
    int held = 0;
    for (const std::string& name : names) {
        if (uses(name)) continue;
        const int layer = layer_of(name);
        // The one that says most: of a layer that the configuration does not have.
        if (unused++ == 0 || (layer >= layers && held <= layers)) example = name;
        held = std::max(held, layer + 1);
    }
    if (unused == 0) return {};
    return label + ": " + std::to_string(unused) + " of " + std::to_string(names.size()) +
           (unused == 1 ? " tensors is not used: " : " tensors are not used, such as ") + example +
           (held > layers ? "; the configuration asks for " + std::to_string(layers) +
                                (layers == 1 ? " layer, the weights have " : " layers, the weights have ") +
                                std::to_string(held)
                          : "");
}

}  // namespace recto
