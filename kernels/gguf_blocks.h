// The block formats of GGUF tensors, each as one small struct: its sizes, its logical form (kernels/weight.h), and
// how a block's codes and group parameters are unpacked. Layouts: llama.cpp ggml/src/ggml-common.h.
//
// codes() writes `elements` logical codes q, one byte each. groups() writes the parameters of each group of `group`
// elements; a composed scale is the exact FP32 product of its parts, as the format's own arithmetic has it.
#pragma once
#include <cstdint>
#include <string.h>  // memcpy by the name that device code has

#include "kernels/both.h"
#include "kernels/half_float.h"
#include "kernels/weight.h"

namespace recto::gguf {

constexpr int max_groups = 16;  // of a block

struct BlockGroups {
    float scale[max_groups];
    float offset[max_groups];
    std::uint16_t super_scale = 0;   // FP16 bits; composed forms only
    std::uint16_t super_offset = 0;
    std::int8_t scale_factor[max_groups];
    std::uint8_t offset_factor[max_groups];
};

RECTO_BOTH inline std::uint16_t load_u16(const std::uint8_t* p) {
    std::uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    return bits;
}
RECTO_BOTH inline std::uint32_t load_u32(const std::uint8_t* p) {
    std::uint32_t bits;
    memcpy(&bits, p, sizeof bits);
    return bits;
}

// 16 bytes → 32 nibbles: the low ones first, then the high ones.
RECTO_BOTH inline void split_nibbles(const std::uint8_t* packed, std::uint8_t* q) {
    for (int i = 0; i < 16; ++i) q[i] = packed[i] & 15U;
    for (int i = 0; i < 16; ++i) q[16 + i] = packed[i] >> 4;
}

// split_nibbles with the fifth bit of element i in bit i of `high`.
RECTO_BOTH inline void split_five_bits(const std::uint8_t* packed, std::uint32_t high, std::uint8_t* q) {
    for (int i = 0; i < 16; ++i) q[i] = std::uint8_t((packed[i] & 15U) | ((high >> i & 1U) << 4));
    for (int i = 0; i < 16; ++i) q[16 + i] = std::uint8_t((packed[i] >> 4) | ((high >> (16 + i) & 1U) << 4));
}

// Blocks of 32 with one FP16 scale at byte 0.
struct Simple {
    static constexpr int elements = 32, group = 32, zero_point = 0;
    static constexpr ScaleForm scale_form = ScaleForm::f16;
    static constexpr OffsetForm offset_form = OffsetForm::none;
    RECTO_BOTH static void groups(const std::uint8_t* b, BlockGroups& g) {
        g.scale[0] = widen_f16(load_u16(b));
        g.offset[0] = 0.0F;
    }
};

struct Q4_0 : Simple {
    static constexpr int bytes = 18, zero_point = 8;
    static constexpr QuantInt integer = QuantInt::u4;
    static constexpr OffsetForm offset_form = OffsetForm::zero_point;
    RECTO_BOTH static void codes(const std::uint8_t* b, std::uint8_t* q) { split_nibbles(b + 2, q); }
    RECTO_BOTH static void groups(const std::uint8_t* b, BlockGroups& g) {
        g.scale[0] = widen_f16(load_u16(b));
        g.offset[0] = -8.0F * g.scale[0];
    }
};

struct Q4_1 : Simple {
    static constexpr int bytes = 20;
    static constexpr QuantInt integer = QuantInt::u4;
    static constexpr OffsetForm offset_form = OffsetForm::f16;
    RECTO_BOTH static void codes(const std::uint8_t* b, std::uint8_t* q) { split_nibbles(b + 4, q); }
    RECTO_BOTH static void groups(const std::uint8_t* b, BlockGroups& g) {
        g.scale[0] = widen_f16(load_u16(b));
        g.offset[0] = widen_f16(load_u16(b + 2));
    }
};

struct Q5_0 : Simple {
    static constexpr int bytes = 22;
    static constexpr QuantInt integer = QuantInt::i8;
    RECTO_BOTH static void codes(const std::uint8_t* b, std::uint8_t* q) {
        split_five_bits(b + 6, load_u32(b + 2), q);
        for (int i = 0; i < 32; ++i) q[i] = std::uint8_t(q[i] - 16);
    }
};

struct Q5_1 : Simple {
    static constexpr int bytes = 24;
    static constexpr QuantInt integer = QuantInt::u8;
    static constexpr OffsetForm offset_form = OffsetForm::f16;
    RECTO_BOTH static void codes(const std::uint8_t* b, std::uint8_t* q) { split_five_bits(b + 8, load_u32(b + 4), q); }
    RECTO_BOTH static void groups(const std::uint8_t* b, BlockGroups& g) { Q4_1::groups(b, g); }
};

struct Q8_0 : Simple {
    static constexpr int bytes = 34;
    static constexpr QuantInt integer = QuantInt::i8;
    RECTO_BOTH static void codes(const std::uint8_t* b, std::uint8_t* q) { memcpy(q, b + 2, 32); }
};

// IQ4 codes index 16 values.
RECTO_BOTH inline void map_iq4(std::uint8_t* q) {
    constexpr std::int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};
    for (int i = 0; i < 32; ++i) q[i] = std::uint8_t(iq4_values[q[i]]);
}

struct IQ4_NL : Simple {
    static constexpr int bytes = 18;
    static constexpr QuantInt integer = QuantInt::i8;
    RECTO_BOTH static void codes(const std::uint8_t* b, std::uint8_t* q) {
        split_nibbles(b + 2, q);
        map_iq4(q);
    }
};

// scale = FP16 × signed factor, no offset of its own.
template <int Groups>
RECTO_BOTH void composed_scale(BlockGroups& g) {
    const float d = widen_f16(g.super_scale);
    for (int j = 0; j < Groups; ++j) g.scale[j] = d * float(g.scale_factor[j]);
}

// offset = −(FP16 × factor).
template <int Groups>
RECTO_BOTH void composed_offset(BlockGroups& g) {
    const float d = widen_f16(g.super_offset);
    for (int j = 0; j < Groups; ++j) g.offset[j] = -(d * float(g.offset_factor[j]));
}

// Blocks of 256 elements under one FP16.
struct Super {
    static constexpr int elements = super_group, zero_point = 0;
};

// 256 two-bit codes out of 64 bytes.
RECTO_BOTH inline void split_crumbs(const std::uint8_t* packed, std::uint8_t* q) {
    for (int half = 0; half < 2; ++half)
        for (int part = 0; part < 4; ++part)
            for (int k = 0; k < 32; ++k)
                q[128 * half + 32 * part + k] = packed[32 * half + k] >> (2 * part) & 3U;
}

struct Q2_K : Super {
    static constexpr int bytes = 84, group = 16;
    static constexpr QuantInt integer = QuantInt::u4;
    static constexpr ScaleForm scale_form = ScaleForm::f16_times_u6;
    static constexpr OffsetForm offset_form = OffsetForm::f16_times_u6;
    RECTO_BOTH static void codes(const std::uint8_t* b, std::uint8_t* q) { split_crumbs(b + 16, q); }
    RECTO_BOTH static void groups(const std::uint8_t* b, BlockGroups& g) {
        g.super_scale = load_u16(b + 80);
        g.super_offset = load_u16(b + 82);
        for (int j = 0; j < 16; ++j) {
            g.scale_factor[j] = std::int8_t(b[j] & 15U);
            g.offset_factor[j] = b[j] >> 4;
        }
        composed_scale<16>(g);
        composed_offset<16>(g);
    }
};

struct Q3_K : Super {
    static constexpr int bytes = 110, group = 16, zero_point = 4;
    static constexpr QuantInt integer = QuantInt::u4;
    static constexpr ScaleForm scale_form = ScaleForm::f16_times_i8;
    static constexpr OffsetForm offset_form = OffsetForm::zero_point;
    RECTO_BOTH static void codes(const std::uint8_t* b, std::uint8_t* q) {
        split_crumbs(b + 32, q);
        for (int j = 0; j < 8; ++j)
            for (int k = 0; k < 32; ++k) q[32 * j + k] |= std::uint8_t((b[k] >> j & 1U) << 2);
    }
    RECTO_BOTH static void groups(const std::uint8_t* b, BlockGroups& g) {
        const std::uint8_t* c = b + 96;
        g.super_scale = load_u16(b + 108);
        for (int j = 0; j < 16; ++j) {
            const unsigned low = j < 8 ? c[j] & 15U : c[j - 8] >> 4;
            const unsigned high = c[8 + j % 4] >> (2 * (j / 4)) & 3U;
            g.scale_factor[j] = std::int8_t(int(low | high << 4) - 32);
        }
        composed_scale<16>(g);
        for (int j = 0; j < 16; ++j) g.offset[j] = -4.0F * g.scale[j];
    }
};

// The 12 bytes of eight 6-bit scales and eight 6-bit minima that Q4_K and Q5_K share.
RECTO_BOTH inline void split_six_bits(const std::uint8_t* c, BlockGroups& g) {
    for (int j = 0; j < 4; ++j) {
        g.scale_factor[j] = std::int8_t(c[j] & 63U);
        g.offset_factor[j] = c[j + 4] & 63U;
        g.scale_factor[j + 4] = std::int8_t((c[j + 8] & 15U) | (c[j] >> 6) << 4);
        g.offset_factor[j + 4] = std::uint8_t((c[j + 8] >> 4) | (c[j + 4] >> 6) << 4);
    }
}

struct Q4_K : Super {
    static constexpr int bytes = 144, group = 32;
    static constexpr QuantInt integer = QuantInt::u4;
    static constexpr ScaleForm scale_form = ScaleForm::f16_times_u6;
    static constexpr OffsetForm offset_form = OffsetForm::f16_times_u6;
    RECTO_BOTH static void nibbles(const std::uint8_t* packed, std::uint8_t* q) {
        for (int pair = 0; pair < 4; ++pair) {
            for (int k = 0; k < 32; ++k) q[64 * pair + k] = packed[32 * pair + k] & 15U;
            for (int k = 0; k < 32; ++k) q[64 * pair + 32 + k] = packed[32 * pair + k] >> 4;
        }
    }
    RECTO_BOTH static void codes(const std::uint8_t* b, std::uint8_t* q) { nibbles(b + 16, q); }
    RECTO_BOTH static void groups(const std::uint8_t* b, BlockGroups& g) {
        g.super_scale = load_u16(b);
        g.super_offset = load_u16(b + 2);
        split_six_bits(b + 4, g);
        composed_scale<8>(g);
        composed_offset<8>(g);
    }
};

struct Q5_K : Super {
    static constexpr int bytes = 176, group = 32;
    static constexpr QuantInt integer = QuantInt::u8;
    static constexpr ScaleForm scale_form = ScaleForm::f16_times_u6;
    static constexpr OffsetForm offset_form = OffsetForm::f16_times_u6;
    RECTO_BOTH static void codes(const std::uint8_t* b, std::uint8_t* q) {
        Q4_K::nibbles(b + 48, q);
        for (int j = 0; j < 8; ++j)
            for (int k = 0; k < 32; ++k) q[32 * j + k] |= std::uint8_t((b[16 + k] >> j & 1U) << 4);
    }
    RECTO_BOTH static void groups(const std::uint8_t* b, BlockGroups& g) { Q4_K::groups(b, g); }
};

struct Q6_K : Super {
    static constexpr int bytes = 210, group = 16;
    static constexpr QuantInt integer = QuantInt::i8;
    static constexpr ScaleForm scale_form = ScaleForm::f16_times_i8;
    static constexpr OffsetForm offset_form = OffsetForm::none;
    RECTO_BOTH static void codes(const std::uint8_t* b, std::uint8_t* q) {
        for (int half = 0; half < 2; ++half) {
            const std::uint8_t* low = b + 64 * half;
            const std::uint8_t* high = b + 128 + 32 * half;
            for (int part = 0; part < 4; ++part)
                for (int k = 0; k < 32; ++k) {
                    const unsigned nibble = low[32 * (part % 2) + k] >> (4 * (part / 2)) & 15U;
                    const unsigned crumb = high[k] >> (2 * part) & 3U;
                    q[128 * half + 32 * part + k] = std::uint8_t((nibble | crumb << 4) - 32U);
                }
        }
    }
    RECTO_BOTH static void groups(const std::uint8_t* b, BlockGroups& g) {
        g.super_scale = load_u16(b + 208);
        memcpy(g.scale_factor, b + 192, 16);
        composed_scale<16>(g);
        for (int j = 0; j < 16; ++j) g.offset[j] = 0.0F;
    }
};

struct IQ4_XS : Super {
    static constexpr int bytes = 136, group = 32;
    static constexpr QuantInt integer = QuantInt::i8;
    static constexpr ScaleForm scale_form = ScaleForm::f16_times_i8;
    static constexpr OffsetForm offset_form = OffsetForm::none;
    RECTO_BOTH static void codes(const std::uint8_t* b, std::uint8_t* q) {
        for (int j = 0; j < 8; ++j) {
            split_nibbles(b + 8 + 16 * j, q + 32 * j);
            map_iq4(q + 32 * j);
        }
    }
    RECTO_BOTH static void groups(const std::uint8_t* b, BlockGroups& g) {
        g.super_scale = load_u16(b);
        const unsigned high = load_u16(b + 2);
        for (int j = 0; j < 8; ++j) {
            const unsigned low = b[4 + j / 2] >> (4 * (j % 2)) & 15U;
            g.scale_factor[j] = std::int8_t(int(low | (high >> (2 * j) & 3U) << 4) - 32);
        }
        composed_scale<8>(g);
        for (int j = 0; j < 8; ++j) g.offset[j] = 0.0F;
    }
};

}  // namespace recto::gguf
