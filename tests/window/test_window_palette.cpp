#include <QTest>

#include "support/registry.h"
#include "ui/theme/palette.h"
#include "ui/theme/style_sheet.h"
#include "ui/theme/theme.h"

using namespace recto::ui;

// The bounds are WCAG 2.1's: 4.5:1 for text (1.4.3), 3:1 for graphics and focus (1.4.11).
class TestWindowPalette : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void contrast_formula() {
        QCOMPARE(contrast_ratio(Qt::black, Qt::white), 21.0);  // WCAG's own example
        // reference table of the data hues on the dark panel
        QVERIFY(std::abs(contrast_ratio(QColor(0x56B4E9), QColor(0x1C1F26)) - 7.2) < 0.06);
        QVERIFY(std::abs(contrast_ratio(QColor(0x0072B2), QColor(0x1C1F26)) - 3.2) < 0.06);
    }

    void text_is_readable_data() {
        QTest::addColumn<bool>("dark");
        QTest::newRow("dark") << true;
        QTest::newRow("light") << false;
    }
    void text_is_readable() {
        QFETCH(bool, dark);
        const Palette p = make_palette(dark);
        for (const QColor& surface : {p.background, p.panel, p.raised}) {
            QVERIFY(contrast_ratio(p.text, surface) >= 4.5);
            QVERIFY2(contrast_ratio(p.dim, surface) >= 4.5, qPrintable(surface.name()));
            QVERIFY(contrast_ratio(p.accent, surface) >= 4.5);
            QVERIFY(contrast_ratio(p.focus, surface) >= 3.0);
            QVERIFY2(contrast_ratio(p.danger, surface) >= 4.5, qPrintable(surface.name()));
            QVERIFY2(contrast_ratio(p.warning, surface) >= 4.5, qPrintable(surface.name()));
        }
        QVERIFY(contrast_ratio(p.on_accent, p.accent) >= 4.5);
        QVERIFY(contrast_ratio(p.on_selection, p.selection) >= 4.5);
        QVERIFY(contrast_ratio(p.text, p.code_background) >= 4.5);
    }

    void hues_are_seen_on_the_panel() {
        const Palette dark = make_palette(true);
        for (const QColor& hue : dark.hues)
            QVERIFY(contrast_ratio(hue, dark.panel) >= 3.0);
        // On white some hues are too light: the outline carries the 3:1.
        const Palette light = make_palette(false);
        QVERIFY(contrast_ratio(light.data_outline, light.panel) >= 3.0);
        QCOMPARE(light.hues, dark.hues);
    }

    void owners_repeat_only_after_28() {
        const Palette p = make_palette(true);
        for (int a = 0; a < 28; ++a)
            for (int b = a + 1; b < 28; ++b)
                QVERIFY(p.owner(a).hue != p.owner(b).hue || p.owner(a).pattern != p.owner(b).pattern);
        QCOMPARE(p.owner(0).hue, QColor(0x56B4E9));
        QCOMPARE(p.owner(1).hue, QColor(0xD55E00));
        QCOMPARE(p.owner(2).hue, QColor(0xF0E442));
        QCOMPARE(p.owner(3).hue, QColor(0x0072B2));
    }

    void style_sheet_has_no_open_names() {
        QVERIFY(!style_sheet(make_palette(true)).contains(QLatin1Char('@')));
        QVERIFY(!style_sheet(make_palette(false)).contains(QLatin1Char('@')));
    }

    void mode_and_zoom_switch_live() {
        Theme theme;
        int changes = 0;
        connect(&theme, &Theme::changed, this, [&] { ++changes; });
        theme.set_mode(ColorMode::light);
        QVERIFY(!theme.palette().dark);
        theme.set_mode(ColorMode::dark);
        QVERIFY(theme.palette().dark);
        const double before = theme.palette().fonts.body.pointSizeF();
        theme.set_zoom(1.5);
        QVERIFY(std::abs(theme.palette().fonts.body.pointSizeF() - 1.5 * before) < 1e-6);
        theme.set_zoom(9);
        QCOMPARE(theme.zoom(), 2.0);
        QCOMPARE(changes, 4);
    }
};

RECTO_TEST_CLASS(TestWindowPalette);
#include "test_window_palette.moc"
