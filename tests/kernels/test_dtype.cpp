// kernels/dtype.h against arithmetic in double precision, for all 65,536 halves and their neighbourhoods.
#include <cmath>

#include "kernels/dtype.h"

#include <QTest>

#include "support/registry.h"

using namespace recto;

namespace {

// The value of a binary16 by its definition (IEEE 754-2019, 3.4).
double half_value(unsigned h) {
    const unsigned exponent = (h >> 10) & 31U, fraction = h & 1023U;
    double v;
    if (exponent == 31)
        v = fraction == 0 ? HUGE_VAL : std::nan("");
    else if (exponent == 0)
        v = std::ldexp(double(fraction), -24);
    else
        v = std::ldexp(1024.0 + fraction, int(exponent) - 25);
    return (h & 0x8000U) != 0 ? -v : v;
}

// The value of an E4M3 byte by its definition (OCP 8-bit floating point specification 1.0, table 1).
double e4m3_value(unsigned b) {
    const unsigned exponent = (b >> 3) & 15U, fraction = b & 7U;
    double v;
    if (exponent == 15 && fraction == 7)
        v = std::nan("");
    else if (exponent == 0)
        v = std::ldexp(double(fraction), -9);
    else
        v = std::ldexp(8.0 + fraction, int(exponent) - 10);
    return (b & 0x80U) != 0 ? -v : v;
}

}  // namespace

class TestDtype : public QObject {
    Q_OBJECT

  private slots:
    void widening_is_exact() {
        for (unsigned h = 0; h < 65536; ++h) {
            const double expected = half_value(h), got = double(f16_to_f32(std::uint16_t(h)));
            if (std::isnan(expected))
                QVERIFY(std::isnan(got));
            else
                QVERIFY(got == expected && std::signbit(got) == std::signbit(expected));
            const double wide = double(bf16_to_f32(std::uint16_t(h)));
            const unsigned exponent = (h >> 7) & 255U, fraction = h & 127U;
            double b = exponent == 255 ? (fraction == 0 ? HUGE_VAL : std::nan(""))
                       : exponent == 0 ? std::ldexp(double(fraction), -133)
                                       : std::ldexp(128.0 + fraction, int(exponent) - 134);
            if ((h & 0x8000U) != 0) b = -b;
            if (std::isnan(b))
                QVERIFY(std::isnan(wide));
            else
                QVERIFY(wide == b);
        }
    }

    void halves_return() {
        for (unsigned h = 0; h < 65536; ++h) {
            const float v = f16_to_f32(std::uint16_t(h));
            if (std::isnan(v))
                QVERIFY(std::isnan(f16_to_f32(f32_to_f16(v))));
            else
                QCOMPARE(unsigned(f32_to_f16(v)), h);
            const float b = bf16_to_f32(std::uint16_t(h));
            if (std::isnan(b))
                QVERIFY(std::isnan(bf16_to_f32(f32_to_bf16(b))));
            else
                QCOMPARE(unsigned(f32_to_bf16(b)), h);
        }
    }

    // Between two neighbouring halves lies the midpoint, exact in FP32: it goes to the even one, its
    // neighbours in FP32 to the nearer one.
    void narrowing_rounds_half_to_even() {
        for (unsigned h = 0; h < 0x7C00U; ++h) {
            const double above = h + 1 == 0x7C00U ? 65536.0 : half_value(h + 1);
            const float middle = float((half_value(h) + above) / 2);
            const unsigned even = (h & 1U) == 0 ? h : h + 1;
            QCOMPARE(unsigned(f32_to_f16(middle)), even);
            QCOMPARE(unsigned(f32_to_f16(std::nextafterf(middle, 0.0F))), h);
            QCOMPARE(unsigned(f32_to_f16(std::nextafterf(middle, HUGE_VALF))), h + 1);
            QCOMPARE(unsigned(f32_to_f16(-middle)), even | 0x8000U);
        }
        for (unsigned h = 0; h < 0x7F80U; ++h) {
            const float middle = std::bit_cast<float>((h << 16) | 0x8000U);
            QCOMPARE(unsigned(f32_to_bf16(middle)), (h & 1U) == 0 ? h : h + 1);
            QCOMPARE(unsigned(f32_to_bf16(std::bit_cast<float>((h << 16) | 0x7FFFU))), h);
            QCOMPARE(unsigned(f32_to_bf16(std::bit_cast<float>((h << 16) | 0x8001U))), h + 1);
        }
    }

    void e4m3_widens_exactly_and_returns() {
        QCOMPARE(e4m3_value(0x7E), 448.0);  // the table's largest, smallest normal and smallest numbers
        QCOMPARE(e4m3_value(0x08), 0x1p-6);
        QCOMPARE(e4m3_value(0x01), 0x1p-9);
        for (unsigned b = 0; b < 256; ++b) {
            const double expected = e4m3_value(b), got = double(e4m3_to_f32(std::uint8_t(b)));
            QCOMPARE(unsigned(f32_to_e4m3(float(got))), b);
            if (std::isnan(expected))
                QVERIFY(std::isnan(got));
            else
                QVERIFY(got == expected && std::signbit(got) == std::signbit(expected));
        }
    }

    void e4m3_rounds_half_to_even_and_saturates() {
        for (unsigned b = 0; b < 0x7EU; ++b) {
            const float middle = float((e4m3_value(b) + e4m3_value(b + 1)) / 2);
            const unsigned even = (b & 1U) == 0 ? b : b + 1;
            QCOMPARE(unsigned(f32_to_e4m3(middle)), even);
            QCOMPARE(unsigned(f32_to_e4m3(std::nextafterf(middle, 0.0F))), b);
            QCOMPARE(unsigned(f32_to_e4m3(std::nextafterf(middle, HUGE_VALF))), b + 1);
            QCOMPARE(unsigned(f32_to_e4m3(-middle)), even | 0x80U);
        }
        for (const float large : {448.0F, 449.0F, 464.0F, 480.0F, 1e30F, HUGE_VALF}) {
            QCOMPARE(unsigned(f32_to_e4m3(large)), 0x7EU);
            QCOMPARE(unsigned(f32_to_e4m3(-large)), 0xFEU);
        }
        QCOMPARE(unsigned(f32_to_e4m3(1e-30F)), 0U);
        QCOMPARE(unsigned(f32_to_e4m3(-0.0F)), 0x80U);
    }

    // 11, 8 and 4 bits of 1 + 2^-3 + 2^-4 + 2^-10.
    void stored_numbers_are_those_of_the_type() {
        const float v = 0x1.304p0F;
        QCOMPARE(as_stored(v, DType::f32), v);
        QCOMPARE(as_stored(v, DType::f16), v);
        QCOMPARE(as_stored(v, DType::bf16), 0x1.3p0F);
        QCOMPARE(as_stored(v, DType::f8_e4m3), 0x1.4p0F);
        QCOMPARE(widen_16(narrow_16(v, DType::f16), DType::f16), v);
        QCOMPARE(unsigned(narrow_16(v, DType::bf16)), 0x3F98U);
    }
};

RECTO_TEST_CLASS(TestDtype);
#include "test_dtype.moc"
