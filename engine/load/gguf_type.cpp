#include "engine/load/gguf_type.h"

namespace recto {

namespace {

constexpr GgufTypeInfo readable[] = {
    {GgufType::f32, "F32", 1, 4},           {GgufType::f16, "F16", 1, 2},
    {GgufType::bf16, "BF16", 1, 2},         {GgufType::q4_0, "Q4_0", 32, 18},
    {GgufType::q4_1, "Q4_1", 32, 20},       {GgufType::q5_0, "Q5_0", 32, 22},
    {GgufType::q5_1, "Q5_1", 32, 24},       {GgufType::q8_0, "Q8_0", 32, 34},
    {GgufType::q2_k, "Q2_K", 256, 84},      {GgufType::q3_k, "Q3_K", 256, 110},
    {GgufType::q4_k, "Q4_K", 256, 144},     {GgufType::q5_k, "Q5_K", 256, 176},
    {GgufType::q6_k, "Q6_K", 256, 210},     {GgufType::iq4_nl, "IQ4_NL", 32, 18},
    {GgufType::iq4_xs, "IQ4_XS", 256, 136},
};

struct Named {
    std::uint32_t id;
    const char* name;
};
constexpr Named unread[] = {
    {4, "Q4_2"},      {5, "Q4_3"},   {9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"},  {17, "IQ2_XS"},
    {18, "IQ3_XXS"},  {19, "IQ1_S"}, {21, "IQ3_S"}, {22, "IQ2_S"}, {24, "I8"},       {25, "I16"},
    {26, "I32"},      {27, "I64"},   {28, "F64"},   {29, "IQ1_M"}, {31, "Q4_0_4_4"}, {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"}, {34, "TQ1_0"}, {35, "TQ2_0"}, {39, "MXFP4"}, {40, "NVFP4"},
};

}  // namespace

const GgufTypeInfo* gguf_type_info(std::uint32_t id) {
    for (const auto& info : readable)
        if (std::uint32_t(info.type) == id) return &info;
    return nullptr;
}

std::string gguf_type_name(std::uint32_t id) {
    if (const auto* info = gguf_type_info(id)) return info->name;
    for (const auto& named : unread)
        if (named.id == id) return named.name;
    return "type " + std::to_string(id);
}

std::string gguf_type_names() {
    std::string names;
    for (const auto& info : readable)
        names += (names.empty() ? "" : ", ") + std::string(info.name);
    return names;
}

}  // namespace recto
