// The cases of drawing on a device: the host's sampler must give the tokens that the scalar reference gives,
// so that a row's token does not depend on where it is drawn.
#include <QTest>

#include "engine/sample/sampler.h"
#include "kernels/draw_cases.h"
#include "support/registry.h"

using namespace recto;

class TestDraws : public QObject {
    Q_OBJECT
  private slots:
    void hostGivesTheReferencesToken_data() {
        QTest::addColumn<std::size_t>("index");
        const auto cases = draw_cases();
        for (std::size_t i = 0; i < cases.size(); ++i)
            if (cases[i].draw.kind != DrawKind::none) QTest::newRow(cases[i].name.c_str()) << i;
    }
    void hostGivesTheReferencesToken() {
        QFETCH(std::size_t, index);
        const DrawCase c = draw_cases()[index];
        std::vector<float> logits = draw_logits(c);
        for (float& v : logits) {
            v *= c.logits_scale;
            if (c.softcap > 0) v = c.softcap * std::tanh(v / c.softcap);
        }
        const auto expected = expected_draws(c);
        Sampler sampler(c.vocab, c.valid);
        for (int r = 0; r < c.rows; ++r) {
            const RowDraw d = draw_of(c, r);
            ResolvedSampling s;
            s.params.temperature = d.kind == DrawKind::greedy ? 0.0 : 1.0 / double(d.inverse_temperature);
            s.params.top_k = d.top_k;
            s.params.top_p = d.top_p;
            s.params.min_p = double(d.min_p);
            const std::vector<std::int32_t> output(d.output_index, 0);
            const std::uint64_t seeds[] = {d.seed};
            Draw drawn[1];
            sampler.sample(
                std::span(logits).subspan(std::size_t(r) * std::size_t(c.vocab), std::size_t(c.vocab)), s, {},
                output, seeds, drawn);
            QCOMPARE(drawn[0].token, expected[std::size_t(r)]);
        }
    }
};

RECTO_TEST_CLASS(TestDraws);
#include "test_draws.moc"
