#include "kernels/cases.h"

#include <utility>

namespace recto {

namespace {

SyntheticSpec spec(std::int64_t rows, std::int64_t cols, const WeightForm& form, std::uint64_t seed,
                   bool bias = false, bool permuted = false) {
    return {rows, cols, form, seed, bias, permuted};
}

using enum QuantInt;
using S = ScaleForm;
using O = OffsetForm;

}  // namespace

std::vector<LinearCase> linear_cases() {
    const WeightForm q4_0 = grouped_form(u4, 32, S::f16, O::zero_point, "Q4_0");
    const WeightForm q4_1 = grouped_form(u4, 32, S::f16, O::f16, "Q4_1");
    const WeightForm q5_1 = grouped_form(u8, 32, S::f16, O::f16, "Q5_1");
    const WeightForm q8_0 = grouped_form(i8, 32, S::f16, O::none, "Q8_0");
    const WeightForm q2_k = grouped_form(u4, 16, S::f16_times_u6, O::f16_times_u6, "Q2_K");
    const WeightForm q4_k = grouped_form(u4, 32, S::f16_times_u6, O::f16_times_u6, "Q4_K");
    const WeightForm q5_k = grouped_form(u8, 32, S::f16_times_u6, O::f16_times_u6, "Q5_K");
    const WeightForm q6_k = grouped_form(i8, 16, S::f16_times_i8, O::none, "Q6_K");
    const WeightForm awq64 = grouped_form(u4, 64, S::f16, O::zero_point, "AWQ g64");
    const WeightForm awq128 = grouped_form(u4, 128, S::f16, O::zero_point, "AWQ g128");
    const WeightForm fast128 = grouped_form(u4, 128, S::f16, O::f16, "AWQ gemv_fast g128");
    const WeightForm w4a16 = grouped_form(u4, 128, S::bf16, O::zero_point, "W4A16 g128");
    const WeightForm gptq8 = grouped_form(u8, 128, S::f16, O::zero_point, "GPTQ 8-bit g128");
    const WeightForm other = grouped_form(u8, 32, S::f32, O::f32, "8-bit, FP32 scale and offset");
    auto whole = [](QuantInt q, int cols) {
        return grouped_form(q, cols, S::f16, O::zero_point, "whole row");
    };

    std::vector<LinearCase> cases;
    auto one = [&](const SyntheticSpec& s, Epilogue e = Epilogue::store) {
        const std::string shape = std::to_string(s.rows) + "x" + std::to_string(s.cols);
        const std::string extra = std::string(s.bias ? " bias" : "") + (s.permuted ? " act-order" : "");
        const bool add = e == Epilogue::add;
        cases.push_back({std::string(s.form.source_name) + " " + shape + extra + (add ? " add" : ""),
                         {s},
                         Activations::int8,
                         e});
        if (s.form.grouped) {
            cases.push_back(
                {std::string(s.form.source_name) + " " + shape + extra + (add ? " add" : "") + " floating",
                 {s},
                 Activations::floating,
                 e});
        }
    };
    one(spec(96, 576, q4_1, 1));
    one(spec(100, 576, q4_1, 2, true), Epilogue::add);
    one(spec(64, 1536, q4_1, 3), Epilogue::add);
    one(spec(259, 576, q8_0, 4));
    one(spec(48, 96, q4_0, 5));
    one(spec(33, 32 * 7, q5_1, 6, true));
    one(spec(32, 512, q2_k, 7));
    one(spec(40, 768, q4_k, 8));
    one(spec(40, 512, q5_k, 9));
    one(spec(40, 768, q6_k, 10));
    one(spec(24, 192, awq64, 11));
    one(spec(64, 384, awq128, 12, true, true));
    one(spec(16, 256, fast128, 13));
    one(spec(31, 384, w4a16, 14));
    one(spec(20, 256, gptq8, 15, false, true));
    one(spec(17, 160, other, 16));
    one(spec(19, 48, whole(u4, 48), 17));
    one(spec(19, 96, whole(u8, 96), 18));
    one(spec(5, 576, whole(u4, 576), 19));
    for (const DType d : {DType::f32, DType::f16, DType::bf16}) {
        one(spec(50, 48, dense_form(d), 20));
        one(spec(34, 576, dense_form(d), 21, true), Epilogue::add);
    }
    for (const Epilogue e : {Epilogue::silu_mul, Epilogue::gelu_mul}) {
        const std::string name = e == Epilogue::silu_mul ? "silu" : "gelu";
        for (const Activations mode : {Activations::int8, Activations::floating}) {
            const std::string way = mode == Activations::int8 ? "" : " floating";
            cases.push_back({name + " gate|up Q4_1 96x576" + way,
                             {spec(96, 576, q4_1, 30), spec(96, 576, q4_1, 31)},
                             mode,
                             e});
            cases.push_back({name + " gate|up Q4_K|Q6_K 40x256, bias" + way,
                             {spec(40, 256, q4_k, 32, true), spec(40, 256, q6_k, 33, true)},
                             mode,
                             e});
            cases.push_back({name + " one part 2x48x96" + way, {spec(96, 96, q4_0, 34)}, mode, e});
            cases.push_back({name + " one part 2x20x96" + way, {spec(40, 96, q8_0, 35)}, mode, e});
        }
        cases.push_back(
            {name + " gate|up BF16 50x64",
             {spec(50, 64, dense_form(DType::bf16), 36), spec(50, 64, dense_form(DType::bf16), 37)},
             Activations::int8,
             e});
    }
    // Twice int8: every integer type and sum width, a permuted input, a dense part beside a quantized one.
    auto twice = [&](const std::string& name, const std::vector<SyntheticSpec>& parts, Epilogue e) {
        cases.push_back({name + " int8 twice", parts, Activations::int8_twice, e});
    };
    twice("Q4_1 100x576 bias", {spec(100, 576, q4_1, 50, true)}, Epilogue::add);
    twice("Q8_0 259x576", {spec(259, 576, q8_0, 51)}, Epilogue::store);
    twice("Q6_K 40x768", {spec(40, 768, q6_k, 52)}, Epilogue::store);
    twice("AWQ g128 64x384 act-order", {spec(64, 384, awq128, 53, true, true)}, Epilogue::store);
    twice("whole row 19x48", {spec(19, 48, whole(u4, 48), 54)}, Epilogue::store);
    twice("silu gate|up Q5_1 48x96", {spec(48, 96, q5_1, 55), spec(48, 96, q5_1, 56)}, Epilogue::silu_mul);
    twice("Q4_0|BF16 32x96", {spec(32, 96, q4_0, 57), spec(32, 96, dense_form(DType::bf16), 58)},
          Epilogue::store);
    // q|k|v of unlike formats, as K-quant mixes have them.
    for (const Activations mode : {Activations::int8, Activations::int8_twice, Activations::floating}) {
        const char* way = mode == Activations::int8         ? ""
                          : mode == Activations::int8_twice ? " int8 twice"
                                                            : " floating";
        cases.push_back({std::string("q|k|v Q4_K|Q4_K|Q6_K") + way,
                         {spec(96, 256, q4_k, 40), spec(40, 256, q4_k, 41), spec(40, 256, q6_k, 42)},
                         mode,
                         Epilogue::store});
    }
    return cases;
}

std::vector<ExpertCase> expert_cases() {
    const WeightForm q4_0 = grouped_form(u4, 32, S::f16, O::zero_point, "Q4_0");
    const WeightForm q4_k = grouped_form(u4, 32, S::f16_times_u6, O::f16_times_u6, "Q4_K");
    const WeightForm q6_k = grouped_form(i8, 16, S::f16_times_i8, O::none, "Q6_K");
    const WeightForm q8_0 = grouped_form(i8, 32, S::f16, O::none, "Q8_0");
    const WeightForm awq64 = grouped_form(u4, 64, S::f16, O::zero_point, "AWQ g64");
    std::vector<ExpertCase> cases;
    // hidden → 2 × width → hidden; with `fused`, gate and up are one part, as stacked files have them.
    auto one = [&](int experts, int per_row, bool renormalize, std::int64_t hidden, std::int64_t width,
                   const WeightForm& up, const WeightForm& down, bool fused, bool bias, bool permuted) {
        const auto seed = std::uint64_t(1000 + 100 * cases.size());
        for (const Activations mode : {Activations::int8, Activations::floating}) {
            if (mode == Activations::floating && !up.grouped) continue;
            ExpertCase c;
            c.name = std::to_string(per_row) + " of " + std::to_string(experts) + " " + up.source_name + "|" +
                     down.source_name + " " + std::to_string(hidden) + "x" + std::to_string(width) +
                     (renormalize ? "" : " not renormalized") + (fused ? " fused" : "") +
                     (bias ? " bias" : "") + (permuted ? " act-order" : "") +
                     (mode == Activations::floating ? " floating" : "");
            c.experts = experts;
            c.per_row = per_row;
            c.renormalize = renormalize;
            if (fused)
                c.gate_up = {spec(2 * width, hidden, up, seed, bias, permuted)};
            else
                c.gate_up = {spec(width, hidden, up, seed, bias, permuted),
                             spec(width, hidden, up, seed + 1, bias, permuted)};
            c.down = spec(hidden, width, down, seed + 2, bias, permuted);
            c.mode = mode;
            cases.push_back(std::move(c));
        }
    };
    one(8, 2, true, 256, 512, q4_k, q6_k, false, false, false);
    one(40, 8, true, 128, 96, q4_0, q8_0, false, false, false);
    one(16, 3, false, 96, 32, q8_0, q4_0, false, true, false);
    one(6, 2, true, 128, 64, awq64, awq64, false, false, true);
    one(5, 2, true, 64, 40, dense_form(DType::bf16), dense_form(DType::bf16), true, false, false);
    one(4, 4, false, 48, 24, dense_form(DType::f32), dense_form(DType::f16), false, false, false);
    one(3, 1, true, 50, 33, dense_form(DType::f16), dense_form(DType::f32), false, false, false);
    return cases;
}

std::vector<AttentionCase> attention_cases() {
    return {
        {"GQA 9/3 x 64, decode at 1", {9, 3, 64}, DType::f16, 16, 1, 1},
        {"GQA 9/3 x 64, decode at 255", {9, 3, 64}, DType::f16, 16, 255, 1},
        {"GQA 9/3 x 64, decode at 1100", {9, 3, 64}, DType::f16, 16, 1100, 1},
        {"GQA 9/3 x 64, prefill 300", {9, 3, 64}, DType::f16, 16, 300, 300},
        {"GQA 9/3 x 64, chunk of 37 at 600", {9, 3, 64}, DType::f16, 16, 600, 37},
        {"MHA 4 x 48, blocks of 8", {4, 4, 48}, DType::f32, 8, 77, 20},
        {"MHA 2 x 96, blocks of 32, bfloat16", {2, 2, 96}, DType::bf16, 32, 270, 9},
        {"MQA 16/1 x 128", {16, 1, 128}, DType::f16, 16, 140, 3},
        {"GQA 5/1 x 40", {5, 1, 40}, DType::f16, 24, 90, 13},
        {"window 64, GQA 8/2 x 64", {8, 2, 64}, DType::f16, 16, 700, 90, 64},
        {"window 300, blocks of 8", {4, 2, 64}, DType::f16, 8, 901, 1, 300},
        {"softcap 50, GQA 4/2 x 256", {4, 2, 256}, DType::f32, 16, 280, 5, 0, 50.0F},
    };
}

std::vector<AttentionStepCase> attention_step_cases() {
    using Sequences = std::vector<AttentionStepCase::Sequence>;
    // Around every border: chunks of 16, blocks, tiles of 64, shares of a row.
    Sequences borders;
    for (const int context : {1,   2,   7,   8,   15,  16,  17,  31,  33,  63,  64,  65,
                              127, 128, 129, 178, 255, 256, 257, 511, 512, 513, 777, 1024})
        borders.push_back({context, 1});
    std::vector<AttentionStepCase> shapes;
    auto add = [&](const std::string& name, HeadShape shape, const Sequences& sequences, int block_size = 16,
                   int window = 0, float softcap = 0.0F, int rotary_dims = 0, bool head_norms = false) {
        AttentionStepCase c;
        c.name = name;
        c.shape = shape;
        c.sequences = sequences;
        c.block_size = block_size;
        c.window = window;
        c.softcap = softcap;
        c.rotary_dims = rotary_dims;
        c.head_norms = head_norms;
        shapes.push_back(c);
    };
    add("GQA 9/3 x 64, mixed", {9, 3, 64}, {{1, 1}, {300, 300}, {255, 1}, {600, 37}, {1100, 1}, {17, 2}});
    add("MHA 8 x 128, 24 decoding", {8, 8, 128}, borders);
    add("MHA 4 x 128, decode at 5000", {4, 4, 128}, {{5000, 1}});
    add("GQA 8/2 x 128, decode at 3001", {8, 2, 128}, {{3001, 1}});
    add("MQA 8/1 x 128, decode at 12345", {8, 1, 128}, {{12345, 1}});
    add("MHA 8 x 128, one long among short", {8, 8, 128}, {{40, 1}, {6000, 1}, {3, 1}, {129, 1}, {700, 1}});
    add("MHA 2 x 128, tile borders", {2, 2, 128},
        {{128, 128}, {129, 129}, {64, 64}, {63, 63}, {191, 65}, {300, 172}});
    add("MHA 2 x 128, chunk of 100 at 2100", {2, 2, 128}, {{2100, 100}});
    add("MQA 16/1 x 128", {16, 1, 128}, {{140, 3}, {900, 1}, {1, 1}});
    add("MQA 12/1 x 64", {12, 1, 64}, {{500, 1}, {50, 20}, {2000, 1}});
    add("GQA 5/1 x 80, blocks of 24", {5, 1, 80}, {{90, 13}, {333, 1}, {24, 24}, {25, 1}}, 24);
    add("GQA 7/1 x 96, blocks of 8", {7, 1, 96}, {{270, 130}, {65, 1}, {1500, 1}}, 8);
    add("GQA 28/4 x 128, blocks of 32", {28, 4, 128}, {{129, 1}, {200, 64}, {2050, 1}}, 32);
    add("window 64, GQA 8/2 x 64", {8, 2, 64}, {{700, 90}, {700, 1}, {64, 1}, {65, 1}, {66, 66}}, 16, 64);
    add("window 300, blocks of 8", {4, 2, 64}, {{901, 1}, {901, 450}, {300, 1}, {301, 1}}, 8, 300);
    add("window 1000, decode at 9000", {8, 2, 128}, {{9000, 1}, {20, 1}}, 16, 1000);
    add("softcap 50, GQA 4/2 x 256", {4, 2, 256}, {{280, 5}, {300, 1}, {40, 40}, {1200, 1}}, 16, 0, 50.0F);
    add("softcap 30 and window 40, GQA 4/1 x 256", {4, 1, 256}, {{280, 150}, {300, 1}}, 16, 40, 30.0F);
    add("rope, GQA 6/2 x 128", {6, 2, 128}, {{70, 70}, {90, 1}}, 16, 0, 0.0F, 128);
    add("rope and head norms, GQA 4/2 x 128", {4, 2, 128}, {{70, 70}, {90, 1}}, 16, 0, 0.0F, 128, true);
    add("rope of 32 of 80, head norms", {4, 4, 80}, {{33, 33}, {40, 1}}, 16, 0, 0.0F, 32, true);
    add("rope of 40 of 80", {2, 1, 80}, {{33, 33}, {40, 1}}, 16, 0, 0.0F, 40);
    add("rope, MHA 3 x 64", {3, 3, 64}, {{33, 33}, {40, 1}}, 32, 0, 0.0F, 64);
    std::vector<AttentionStepCase> cases;
    const std::pair<DType, DType> types[] = {{DType::f16, DType::f16},
                                             {DType::bf16, DType::bf16},
                                             {DType::f16, DType::bf16},
                                             {DType::f16, DType::f8_e4m3},
                                             {DType::bf16, DType::f8_e4m3}};
    for (const AttentionStepCase& shape : shapes) {
        for (const auto& [activation, cache] : types) {
            AttentionStepCase c = shape;
            c.activation = activation;
            c.cache = cache;
            c.name += std::string(", ") + dtype_name(activation) + " over " + dtype_name(cache);
            cases.push_back(c);
        }
    }
    // The plain kernels serve these: other head sizes, FP32.
    AttentionStepCase odd{"GQA 4/2 x 48, float16 over float16", {4, 2, 48}, {{100, 1}, {40, 40}}};
    cases.push_back(odd);
    odd.name = "GQA 4/2 x 48, float32 over fp8_e4m3";
    odd.activation = DType::f32;
    odd.cache = DType::f8_e4m3;
    cases.push_back(odd);
    odd.name = "GQA 4/2 x 64, float32 over float32";
    odd.shape.head_dim = 64;
    odd.cache = DType::f32;
    cases.push_back(odd);
    return cases;
}

}  // namespace recto
