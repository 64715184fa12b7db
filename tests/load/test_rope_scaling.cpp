// Expected values: transformers 5.24's modeling_rope_utils.py, as recorded for four settings, and the closed
// forms.
#include <QTest>
#include <cmath>

#include "engine/load/rope_scaling.h"
#include "load/files.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

RopeSettings settings(const std::string& type, double theta, double factor, double max_position,
                      double original) {
    RopeSettings s;
    s.type = type;
    s.theta = theta;
    s.rotary_dims = 128;
    s.factor = factor;
    s.max_position = max_position;
    s.original_max_position = original;
    return s;
}

// Plain frequency ÷ scaled frequency, for each i.
std::vector<double> divisors(const RopeSettings& s) {
    const RopeConfig rope = scale_rope(s, "config.json");
    std::vector<double> result;
    for (std::size_t i = 0; i < rope.inverse_frequency.size(); ++i)
        result.push_back(std::pow(s.theta, -2.0 * double(i) / s.rotary_dims) /
                         double(rope.inverse_frequency[i]));
    return result;
}

bool near(double value, double expected, double tolerance) {
    return std::abs(value - expected) <= tolerance;
}

}  // namespace

class TestRopeScaling : public QObject {
    Q_OBJECT

  private slots:
    void plain() {
        const RopeConfig rope = scale_rope(settings("default", 10000.0, 1.0, 4096, 0), "config.json");
        QCOMPARE(rope.inverse_frequency.size(), 64U);
        QCOMPARE(rope.inverse_frequency[0], 1.0F);
        QCOMPARE(rope.inverse_frequency[32], 0.01F);
        QCOMPARE(rope.attention_factor, 1.0F);
        QCOMPARE(rope.rotary_dims, 128);
    }

    void linear() {
        const auto s = settings("linear", 10000.0, 4.0, 4096, 0);
        for (const double d : divisors(s))
            QVERIFY(near(d, 4.0, 1e-5));
        QCOMPARE(scaled_max_position(s), 16384.0);
    }

    void dynamic() {
        // base' at M · f = 8192 for f = 2
        auto s = settings("dynamic", 10000.0, 2.0, 4096, 0);
        const RopeConfig rope = scale_rope(s, "config.json");
        for (std::size_t i = 0; i < 64; ++i) {
            const double expected = std::pow(30527.7, -double(i) / 64.0);
            QVERIFY(near(rope.inverse_frequency[i] / expected, 1.0, 1e-5));
        }
        QCOMPARE(scaled_max_position(s), 8192.0);
    }

    void llama3() {
        const auto s = settings("llama3", 500000.0, 8.0, 131072, 8192);
        const auto d = divisors(s);
        for (std::size_t i = 0; i <= 28; ++i)
            QVERIFY(near(d[i], 1.0, 1e-5));
        const double ramp[] = {1.2075, 1.5534, 2.0263, 2.6945, 3.6843, 5.2573};
        for (std::size_t i = 29; i <= 34; ++i)
            QVERIFY2(near(d[i], ramp[i - 29], 1e-4), QByteArray::number(d[i]));
        for (std::size_t i = 35; i < 64; ++i)
            QVERIFY(near(d[i], 8.0, 1e-5));
        QCOMPARE(scaled_max_position(s), 131072.0);
    }

    void yarn() {
        auto s = settings("yarn", 1e6, 4.0, 32768, 32768);
        const auto d = divisors(s);
        for (std::size_t i = 0; i <= 23; ++i)
            QVERIFY(near(d[i], 1.0, 1e-5));
        QVERIFY(near(d[24], 1.0462, 1e-4));
        QVERIFY(near(d[31], 1.5455, 1e-4));
        QVERIFY(near(d[39], 3.4, 1e-4));
        for (std::size_t i = 40; i < 64; ++i)
            QVERIFY(near(d[i], 4.0, 1e-5));
        QVERIFY(near(scale_rope(s, "config.json").attention_factor, 1.13863, 1e-5));
        QCOMPARE(scaled_max_position(s), 131072.0);

        s.attention_factor = 0.75;
        QCOMPARE(scale_rope(s, "config.json").attention_factor, 0.75F);
        s.attention_factor.reset();
        s.mscale = 0.707;
        s.mscale_all_dim = 1.0;
        const double expected = (0.0707 * std::log(4.0) + 1.0) / (0.1 * std::log(4.0) + 1.0);
        QVERIFY(near(scale_rope(s, "config.json").attention_factor, expected, 1e-6));
    }

    void longrope() {
        auto s = settings("longrope", 10000.0, 1.0, 131072, 4096);
        s.long_factor.assign(64, 2.0);
        s.short_factor.assign(64, 1.5);
        QVERIFY(near(scale_rope(s, "config.json").attention_factor, 1.19024, 1e-5));
        for (const double d : divisors(s))
            QVERIFY(near(d, 2.0, 1e-5));
        s.max_position = 4096;
        for (const double d : divisors(s))
            QVERIFY(near(d, 1.5, 1e-5));
        QCOMPARE(scale_rope(s, "config.json").attention_factor, 1.0F);
    }

    void longrope_settles_for_the_context() {
        auto s = settings("longrope", 10000.0, 1.0, 131072, 4096);
        s.long_factor.assign(64, 2.0);
        s.short_factor.assign(64, 1.25);
        for (const auto& [context, first, longest] :
             {std::tuple(0, 0.5F, 131072), std::tuple(4097, 0.5F, 131072), std::tuple(4096, 0.8F, 4096),
              std::tuple(100, 0.8F, 4096)}) {
            ModelConfig config;
            config.max_position = 131072;
            config.rope = scale_rope(s, "config.json");
            settle_rope(config, context);
            QCOMPARE(config.rope.inverse_frequency[0], first);
            QCOMPARE(config.max_position, longest);
            QVERIFY(near(config.rope.attention_factor, 1.19024, 1e-5));  // the same for both sets
        }
    }

    void refuses_what_has_no_frequencies() {
        const auto check = [](const RopeSettings& s, const std::string& fragment) {
            check_refusal([&] { (void)scale_rope(s, "config.json"); }, "config.json: ", fragment);
        };
        check(settings("mrope", 10000.0, 1.0, 4096, 0),
              "type \"mrope\" is not supported; supported are default, linear, dynamic, llama3, yarn, "
              "longrope");
        check(settings("linear", 10000.0, 0.0, 4096, 0), "factor greater than 0");
        check(settings("default", 0.0, 1.0, 4096, 0), "theta should be greater than 1");
        check(settings("default", NAN, 1.0, 4096, 0), "theta should be greater than 1");
        check(settings("llama3", 10000.0, 8.0, 0, 0), "needs original_max_position_embeddings");
        auto s = settings("llama3", 10000.0, 8.0, 8192, 8192);
        s.high_freq_factor = 1.0;
        check(s, "0 < low_freq_factor < high_freq_factor");
        s = settings("longrope", 10000.0, 1.0, 131072, 4096);
        s.long_factor.assign(63, 1.0);
        check(s, "should have 64 numbers in long_factor, found 63");
        s.long_factor.assign(64, 0.0);
        check(s, "factors greater than 0");
        s = settings("default", 10000.0, 1.0, 4096, 0);
        s.rotary_dims = 3;
        check(s, "should be even");
        check(settings("dynamic", 1e300, 1e300, 4096, 0), "not positive numbers");
    }
};

RECTO_TEST_CLASS(TestRopeScaling);
#include "test_rope_scaling.moc"
