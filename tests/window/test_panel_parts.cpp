#include <QImage>
#include <QPainter>
#include <QTest>

#include "support/registry.h"
#include "ui/panel/block_owners.h"
#include "ui/panel/cell_look.h"
#include "ui/panel/flow_legend.h"
#include "ui/panel/history.h"
#include "ui/panel/plot.h"
#include "ui/panel/stage_bar.h"

using namespace recto;
using namespace recto::ui;

namespace {

QImage cell_image(const CellLook& cell, const Palette& palette, qreal ratio = 1) {
    QImage image(QSize(10, 13) * ratio, QImage::Format_ARGB32_Premultiplied);
    image.fill(palette.panel);
    QPainter painter(&image);
    paint_cell(painter, image.rect(), cell, 16, palette, ratio);
    return image;
}

int count_color(const QImage& image, const QColor& color) {
    int n = 0;
    for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x)
            if (image.pixelColor(x, y) == color) ++n;
    return n;
}

CellLook used(int owner, int fill, int refs = 1, int second = -1) {
    CellLook look;
    look.state = BlockState::used;
    look.owner = std::int16_t(owner);
    look.fill = std::uint8_t(fill);
    look.ref_count = std::uint16_t(refs);
    look.second = std::int16_t(second);
    return look;
}

EngineSnapshot snapshot_at(double time, std::uint64_t decoded, OwnerId owner, int blocks) {
    EngineSnapshot s;
    s.time = time;
    s.block_size = 16;
    s.tokens_decoded = decoded;
    s.counts.total = 64;
    s.counts.used = blocks;
    s.counts.touched = blocks;
    s.blocks.assign(std::size_t(blocks), BlockSnapshot{BlockState::used, 16, 1, owner});
    return s;
}

}  // namespace

class TestPanelParts : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void fill_is_height() {
        const Palette p = make_palette(true);
        const QColor sky = p.hues[0];
        const QImage half = cell_image(used(0, 8), p);
        QCOMPARE(half.pixelColor(5, 11), sky);
        QVERIFY(half.pixelColor(5, 2) != sky);
        const QImage full = cell_image(used(0, 16), p);
        QCOMPARE(full.pixelColor(5, 2), sky);
        QVERIFY(count_color(full, sky) > count_color(half, sky));
    }

    void states_differ_without_hue() {
        // Reduced to grey, the states must still be told apart.
        const Palette p = make_palette(true);
        CellLook cached = used(0, 16, 0);
        cached.state = BlockState::cached;
        const CellLook free;
        const QImage a = cell_image(used(0, 16), p).convertToFormat(QImage::Format_Grayscale8);
        const QImage b = cell_image(cached, p).convertToFormat(QImage::Format_Grayscale8);
        const QImage c = cell_image(free, p).convertToFormat(QImage::Format_Grayscale8);
        QVERIFY(a != b && b != c && a != c);
        QVERIFY(qGray(a.pixel(2, 6)) > qGray(b.pixel(2, 6)));                 // cached is dim …
        QVERIFY(std::abs(qGray(b.pixel(5, 6)) - qGray(b.pixel(2, 6))) > 20);  // … with a dot in its middle
    }

    void shared_is_striped_in_both_hues() {
        const Palette p = make_palette(true);
        const QImage image = cell_image(used(0, 16, 2, 1), p, 4);
        QVERIFY(count_color(image, p.hues[0]) > 50);
        QVERIFY(count_color(image, p.hues[1]) > 50);
        const QImage many = cell_image(used(0, 16, 3), p, 4);
        QCOMPARE(count_color(many, p.hues[0]), 0);
        QVERIFY(count_color(many, p.shared_many) > 50);
    }

    void patterns_differ_on_one_hue() {
        Palette p = make_palette(true);
        for (QColor& hue : p.hues)
            hue = p.hues[0];
        std::vector<QImage> looks;
        for (int owner = 0; owner < 4; ++owner)
            looks.push_back(cell_image(used(owner, 16), p));
        for (std::size_t a = 0; a < 4; ++a)
            for (std::size_t b = a + 1; b < 4; ++b)
                QVERIFY(looks[a] != looks[b]);
    }

    void grid_is_whole_device_pixels_data() {
        QTest::addColumn<double>("ratio");
        for (const double ratio : {1.0, 1.25, 1.5, 2.0})
            QTest::addRow("%g", ratio) << ratio;
    }
    void grid_is_whole_device_pixels() {
        QFETCH(double, ratio);
        const BlockGrid grid = block_grid(1000, 364, make_palette(true).metrics, ratio);
        QVERIFY(grid.cell.width() >= 8 * ratio);
        QVERIFY(grid.columns * (grid.cell.width() + grid.gap) - grid.gap <= 364 * ratio);
        QVERIFY(grid.rows * grid.columns >= 1000);
        for (int i = 0; i < 1000; ++i)
            QCOMPARE(grid.index_at(grid.rect(i).center()), i);
    }

    void sprites_equal_the_drawing() {
        const Palette p = make_palette(false);
        CellSprites sprites;
        sprites.reset(QSize(10, 13), 16, p, 1);
        for (const CellLook& cell : {used(0, 3), used(5, 16), used(1, 16, 2, 2), CellLook{}}) {
            QImage direct(10, 13, QImage::Format_ARGB32_Premultiplied);
            direct.fill(Qt::transparent);
            QPainter painter(&direct);
            paint_cell(painter, direct.rect(), cell, 16, p, 1);
            painter.end();
            QCOMPARE(sprites.sprite(cell), direct);
            QCOMPARE(sprites.sprite(cell), direct);  // from the cache
        }
    }

    void owners_follow_events() {
        BlockOwners owners;
        const std::vector<PoolEvent> events{{1, PoolEventKind::alloc, 7, -1, 10, 1, 1},
                                            {2, PoolEventKind::share, 7, -1, 20, 2, 2}};
        owners.apply(events);
        QCOMPARE(owners.other_than(7, 20), OwnerId(10));
        QCOMPARE(owners.other_than(7, 10), OwnerId(20));
        const std::vector<PoolEvent> freed{{3, PoolEventKind::free, 7, -1, 10, 1, 1}};
        owners.apply(freed);
        QCOMPARE(owners.other_than(7, 20), OwnerId(0));
    }

    void axis_ends_are_round() {
        PlotData data;
        data.points = 3;
        data.series.push_back({QStringLiteral("a"), Qt::red, false, {}, {1, 118, 3}});
        QCOMPARE(plot_top(data), 200.0);
        data.stacked = true;
        data.series.push_back({QStringLiteral("b"), Qt::blue, false, {}, {0, 200, 0}});
        QCOMPARE(plot_top(data), 400.0);
        data.most_top = 512;  // blocks: a power of two, at most the pool
        QCOMPARE(plot_top(data), 512.0);
        data.most_top = 300;
        QCOMPARE(plot_top(data), 300.0);
    }

    void areas_are_stacked() {
        Palette p = make_palette(true);
        PlotData data;
        data.points = 11;
        data.stacked = true;
        data.least_top = 10;
        data.series.push_back({QStringLiteral("a"), QColor(Qt::red), false, {}, std::vector<double>(11, 5)});
        data.series.push_back(
            {QStringLiteral("b"), QColor(Qt::green), false, {}, std::vector<double>(11, 5)});
        const QImage image = render_plot(data, QSize(200, 92), p);
        QCOMPARE(image.pixelColor(120, 70), QColor(Qt::red));    // the lower half
        QCOMPARE(image.pixelColor(120, 25), QColor(Qt::green));  // the upper half
    }

    void stages_are_as_long_as_they_took() {
        const Palette p = make_palette(true);
        const QImage image = render_stage_bar({{"map", 1.0}, {"read", 3.0}}, QSize(400, 16), p);
        QCOMPARE(image.pixelColor(50, 8), stage_color(p, "map", 0));
        QCOMPARE(image.pixelColor(95, 8), stage_color(p, "map", 0));
        QCOMPARE(image.pixelColor(105, 8), stage_color(p, "read", 1));
        QCOMPARE(image.pixelColor(390, 8), stage_color(p, "read", 1));
    }

    void legend_flows() {
        const Palette p = make_palette(true);
        std::vector<LegendEntry> entries(6, {Swatch::color, -1, Qt::red, QStringLiteral("twelve chars")});
        const int one_line = paint_legend(nullptr, 2000, entries, p, 1);
        const int narrow = paint_legend(nullptr, 200, entries, p, 1);
        QVERIFY(narrow >= 2 * one_line);
        QCOMPARE(paint_legend(nullptr, 200, {}, p, 1), 0);
    }

    void history_is_even_in_time() {
        TimeSeries series(60);
        for (int i = 0; i <= 40; ++i)
            series.add(snapshot_at(i * 0.25, std::uint64_t(i) * 10, 5, i + 1));
        const std::vector<double> blocks = used_history(series, 0);
        QCOMPARE(blocks.size(), std::size_t(21));  // ten seconds, half a second apart
        QCOMPARE(blocks.back(), 41.0);
        QCOMPARE(blocks.front(), 1.0);
        // 10 tokens each quarter of a second
        const std::vector<double> rate = rate_history(series, &TimeSeries::Sample::decode_tok_s);
        QVERIFY(std::abs(rate.back() - 40.0) < 1e-6);
        QVERIFY(std::abs(rate[10] - 40.0) < 1e-6);
    }
};

RECTO_TEST_CLASS(TestPanelParts);
#include "test_panel_parts.moc"
