#include "kernels/check_16.h"

namespace recto {

CaseWeights::CaseWeights(const LinearCase& c) {
    for (const SyntheticSpec& p : c.parts) {
        owned.push_back(make_synthetic(p));
        parts.push_back(owned.back().get());
    }
}

std::vector<float> run_linear_16(Backend& backend, const LinearCase& c, const CaseWeights& weights,
                                 Activations mode, DType dtype, const LinearInput& in, std::int64_t rows) {
    const auto packed = backend.pack(weights.parts, PackOptions(mode, dtype, gated(c)));
    const std::int64_t cols = c.parts[0].cols, outputs = case_outputs(c);
    std::vector<std::uint16_t> x(in.x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = narrow_16(in.x[i], dtype);
    const bool wide = c.epilogue == Epilogue::add;
    const std::size_t count = std::size_t(rows * outputs);
    const auto x_memory = backend.allocate(x.size() * 2),
               out_memory = backend.allocate(count * (wide ? 4 : 2));
    backend.upload(x_memory->data(), x.data(), x.size() * 2);
    const std::vector<std::uint16_t> poison(count, 0x7FFF);  // NaN: what is not written shows
    if (wide)
        backend.upload(out_memory->data(), in.before.data(), count * 4);
    else
        backend.upload(out_memory->data(), poison.data(), count * 2);
    backend.synchronize();
    backend.linear({x_memory->data(), dtype, rows, cols, cols}, *packed, c.epilogue,
                   {out_memory->data(), wide ? DType::f32 : dtype, rows, outputs, outputs});
    std::vector<float> out(count);
    if (wide) {
        backend.download(out.data(), out_memory->data(), count * 4);
    } else {
        std::vector<std::uint16_t> narrow_out(count);
        backend.download(narrow_out.data(), out_memory->data(), count * 2);
        for (std::size_t i = 0; i < count; ++i)
            out[i] = widen_16(narrow_out[i], dtype);
    }
    return out;
}

}  // namespace recto
