#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTest>
#include <set>

#include "support/registry.h"
#include "ui/models/block_map_model.h"
#include "ui/models/owner_palette.h"
#include "ui/models/pool_event_model.h"
#include "ui/models/time_series.h"

using namespace recto;
using namespace recto::ui;

namespace {

struct Cell {
    BlockState state;
    OwnerId owner;
    int fill, refs;
};

std::shared_ptr<const PoolSnapshot> pool(int total, const std::vector<Cell>& cells) {
    auto snapshot = std::make_shared<PoolSnapshot>();
    EngineSnapshot& e = snapshot->engine;
    e.block_size = 16;
    e.counts.total = total;
    e.counts.touched = int(cells.size());
    for (const Cell& c : cells) {
        e.blocks.push_back({c.state, std::uint8_t(c.fill), std::uint16_t(c.refs), c.owner});
        e.counts.used += c.state == BlockState::used ? 1 : 0;
        e.counts.cached += c.state == BlockState::cached ? 1 : 0;
        e.counts.shared += c.refs > 1 ? 1 : 0;
        if (c.state != BlockState::used) continue;
        e.allocated_slots += 16;
        e.empty_slots += std::uint64_t(16 - c.fill);
    }
    return snapshot;
}

QString name_of(OwnerId owner) {
    return owner == 1 ? QStringLiteral("Tainan") : QStringLiteral("Regex");
}

}  // namespace

class TestPanelModels : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void initTestCase() { QLocale::setDefault(QLocale::c()); }

    // The order of the reference page: sky, vermillion, yellow, blue, purple, green, orange (Okabe-Ito).
    void coloursAreHandedOutInOrderForLife() {
        OwnerPalette palette;
        const unsigned order[] = {0x56B4E9, 0xD55E00, 0xF0E442, 0x0072B2, 0xCC79A7, 0x009E73, 0xE69F00};
        for (OwnerId owner = 100; owner < 107; ++owner) {
            QVERIFY(!palette.has(owner));
            QCOMPARE(owner_rgb(palette.style(owner).hue), order[owner - 100]);
        }
        QCOMPARE(palette.style(101).number, 1);
        std::set<std::pair<int, int>> seen;
        for (int i = 0; i < 28; ++i)
            seen.insert({int(owner_style(i).hue), int(owner_style(i).pattern)});
        QCOMPARE(seen.size(), std::size_t(28));
        for (int i = 0; i + 1 < 28; ++i)
            QVERIFY(owner_style(i).pattern != owner_style(i + 1).pattern || (i + 1) % 7 == 0);
    }

    void blockMapShowsCellsAndFoldsTheTail() {
        OwnerPalette palette;
        BlockMapModel model([&](OwnerId o) { return palette.style(o); }, name_of);
        const QAbstractItemModelTester tester(&model);
        QCOMPARE(model.rowCount(), 0);
        model.set_snapshot(pool(2000, {{BlockState::used, 1, 16, 2},
                                       {BlockState::used, 2, 4, 1},
                                       {BlockState::cached, 1, 16, 0},
                                       {BlockState::free, 1, 0, 0}}));
        QCOMPARE(model.rowCount(), 5);
        const auto at = [&](int row, int role) { return model.data(model.index(row), role); };
        QCOMPARE(at(4, Qt::DisplayRole).toString(), QStringLiteral("1996 more free"));
        QVERIFY(at(4, BlockMapModel::tail_role).toBool());
        QCOMPARE(at(0, BlockMapModel::owner_name_role).toString(), QStringLiteral("Tainan"));
        QCOMPARE(at(0, BlockMapModel::ref_count_role).toInt(), 2);
        QCOMPARE(at(1, BlockMapModel::fill_role).toDouble(), 0.25);
        QCOMPARE(at(1, BlockMapModel::hue_role).toInt(), int(OwnerHue::vermillion));
        QCOMPARE(at(1, BlockMapModel::pattern_role).toInt(), int(OwnerPattern::horizontal_bars));
        QVERIFY(at(2, BlockMapModel::dimmed_role).toBool());  // cached keeps its owner's hue
        QCOMPARE(at(2, BlockMapModel::hue_role).toInt(), int(OwnerHue::sky));
        QCOMPARE(at(3, BlockMapModel::hue_role).toInt(), -1);  // free has none
        QCOMPARE(model.summary(), QStringLiteral("2 of 2000 used; Regex 1, Tainan 0; 1 shared; 1 cached"));
        QCOMPARE(model.waste(), 12.0 / 32.0);
    }

    void onlyChangedCellsAreTold() {
        OwnerPalette palette;
        BlockMapModel model([&](OwnerId o) { return palette.style(o); }, name_of);
        const QAbstractItemModelTester tester(&model);
        std::vector<Cell> cells(10, {BlockState::used, 1, 16, 1});
        model.set_snapshot(pool(12, cells));
        QSignalSpy changed(&model, &BlockMapModel::dataChanged), updated(&model, &BlockMapModel::updated);
        model.set_snapshot(pool(12, cells));
        QCOMPARE(changed.count(), 0);
        QCOMPARE(updated.count(), 1);
        cells[3].fill = 5;
        cells[4].fill = 6;
        cells[8].owner = 2;
        model.set_snapshot(pool(12, cells));
        QCOMPARE(changed.count(), 2);  // two stretches
        QCOMPARE(changed[0][0].toModelIndex().row(), 3);
        QCOMPARE(changed[0][1].toModelIndex().row(), 4);
        QCOMPARE(changed[1][0].toModelIndex().row(), 8);
    }

    void poolsOfOtherSizesFollow() {
        OwnerPalette palette;
        BlockMapModel model([&](OwnerId o) { return palette.style(o); }, name_of);
        const QAbstractItemModelTester tester(&model);
        const std::vector<Cell> few(3, {BlockState::used, 1, 1, 1}), many(40, {BlockState::used, 2, 1, 1});
        for (const auto& snapshot :
             {pool(3, few), pool(100, many), pool(40, many), pool(5, few), pool(8, {})}) {
            model.set_snapshot(snapshot);
            const int touched = snapshot->engine.counts.touched, total = snapshot->engine.counts.total;
            QCOMPARE(model.rowCount(), touched + (total > touched ? 1 : 0));
            QCOMPARE(int(model.cells().size()), touched);
        }
        model.set_snapshot(nullptr);
        QCOMPARE(model.rowCount(), 0);
    }

    void poolEventsRollOver() {
        PoolEventModel model(name_of, 5);
        const QAbstractItemModelTester tester(&model);
        PoolEventBatch batch;
        for (int i = 0; i < 4; ++i)
            batch.events.push_back({.step = 9, .kind = PoolEventKind::alloc, .block = i, .owner = 1});
        model.append(batch);
        batch.dropped = 7;
        model.append(batch);
        QCOMPARE(model.rowCount(), 5);
        QCOMPARE(model.event(0).block, 3);
        QCOMPARE(model.event(4).block, 3);
        QCOMPARE(model.dropped(), std::uint64_t(7));
        batch.events.resize(12);
        model.append(batch);
        QCOMPARE(model.rowCount(), 5);
        QCOMPARE(model.dropped(), std::uint64_t(7 + 7 + 7));
        QCOMPARE(model.sentence({.kind = PoolEventKind::preempt, .owner = 2, .count = 48}),
                 QStringLiteral("preempt Regex, 48 block(s) freed"));
        model.clear();
        QCOMPARE(model.rowCount(), 0);
    }

    void ratesComeFromCounters() {
        TimeSeries series(10.0);
        for (int i = 0; i <= 20; ++i) {
            EngineSnapshot s = pool(8, {{BlockState::used, 5, 1, 1}, {BlockState::used, 6, 1, 1}})->engine;
            s.time = i;
            s.tokens_decoded = std::uint64_t(60 * i);
            s.tokens_prefilled = std::uint64_t(i < 10 ? 0 : 500);
            series.add(s);
        }
        QCOMPARE(series.owners(), (std::vector<OwnerId>{5, 6}));
        QCOMPARE(series.samples().back().decode_tok_s, 60.0);
        QCOMPARE(series.latest_decode_tok_s(), 60.0);
        QCOMPARE(series.latest_prefill_tok_s(), 0.0);
        QVERIFY(series.samples().front().time >=
                9.0);  // ten seconds, and one sample before them to draw from
        QVERIFY(series.samples().front().time <= 10.0);
        int peak = 0;
        for (const auto& sample : series.samples())
            peak = std::max(peak, int(sample.prefill_tok_s));
        QCOMPARE(peak, 500);
        QCOMPARE(series.samples().back().used, (std::vector<int>{1, 1}));
        EngineSnapshot other;
        other.time = 0.5;  // another engine: its clock begins anew
        series.add(other);
        QCOMPARE(series.samples().size(), std::size_t(1));
        QVERIFY(series.owners().empty());
    }
};

RECTO_TEST_CLASS(TestPanelModels);
#include "test_panel_models.moc"
