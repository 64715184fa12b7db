// A step planned before the tokens of the one before it are known.
#include "engine/fake_model.h"
#include "engine/schedule/scheduler.h"
// Qt comes after them.
#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

SchedulerOptions options(int blocks) {
    SchedulerOptions o;
    o.block_size = 4;
    o.kv_blocks = blocks;
    o.max_model_len = 64;
    o.max_num_seqs = 4;
    o.max_num_batched_tokens = 32;
    return o;
}

NewSequence sequence_of(std::uint64_t seed, int prompt, int output) {
    NewSequence n;
    n.prompt = fake_prompt(seed, prompt, 1000);
    n.max_total_tokens = prompt + output;
    return n;
}

}  // namespace

class TestPlanAhead : public QObject {
    Q_OBJECT
  private slots:
    // Rows name their token by the output of the step before that draws it.
    void drawnTokensAreNamedByTheirOutput() {
        Scheduler s(options(40));
        StepPlan first, second, third;
        Sequence& a = s.add(sequence_of(1, 5, 9));
        Sequence& b = s.add(sequence_of(2, 7, 9));
        QVERIFY(s.plan(first));
        s.add(sequence_of(3, 6, 9));  // a prompt joins
        QVERIFY(s.plan_ahead(second));
        QCOMPARE(second.batch.rows(), 1 + 1 + 6);
        QCOMPARE(second.batch.token_from, (std::vector<std::int32_t>{0, 1, -1, -1, -1, -1, -1, -1}));
        QCOMPARE(second.batch.positions[0], 5);
        QCOMPARE(second.batch.positions[1], 7);
        QCOMPARE(second.batch.sequence_ids[1], b.id);
        QCOMPARE(a.pending, 2);
        s.commit(first, std::vector<std::int32_t>{11, 12});
        QCOMPARE(a.pending, 1);
        QCOMPARE(a.total(), 6);
        QCOMPARE(a.computed, 6);
        QVERIFY(s.plan_ahead(third));
        QCOMPARE(third.batch.token_from, (std::vector<std::int32_t>{0, 1, 2}));
        s.commit(second, std::vector<std::int32_t>{21, 22, 23});
        s.commit(third, std::vector<std::int32_t>{31, 32, 33});
        QVERIFY(std::ranges::equal(std::span(a.tokens).last(3), std::vector<std::int32_t>{11, 21, 31}));
        QCOMPARE(a.pending, 0);
    }

    void whatSurelyEndsIsLeftOut() {
        Scheduler s(options(40));
        StepPlan first, second;
        Sequence& a = s.add(sequence_of(1, 5, 1));
        Sequence& b = s.add(sequence_of(2, 7, 2));
        QVERIFY(s.plan(first));
        QVERIFY(s.plan_ahead(second));
        QCOMPARE(second.scheduled.size(), std::size_t(1));
        QCOMPARE(second.scheduled[0].sequence, &b);
        s.commit(first, std::vector<std::int32_t>{1, 2});
        s.remove(a);
        const std::uint64_t step = s.step();
        QVERIFY(!s.plan_ahead(first));  // the second token of b is its last
        QCOMPARE(s.step(), step);
    }

    // Two sequences leave one block of the pool; the third token of each needs one.
    void preemptionWaitsForTheCommit() {
        Scheduler s(options(5));
        StepPlan first, second;
        Sequence& a = s.add(sequence_of(1, 7, 8));
        Sequence& b = s.add(sequence_of(2, 7, 8));
        QVERIFY(s.plan(first));
        QVERIFY(s.plan_ahead(second));  // position 7 fits
        s.commit(first, std::vector<std::int32_t>{1, 2});
        const std::uint64_t step = s.step();
        QVERIFY(!s.plan_ahead(first));
        QCOMPARE(s.step(), step);
        QCOMPARE(a.computed, 8);
        QCOMPARE(s.stats().preemptions, std::uint64_t(0));
        s.commit(second, std::vector<std::int32_t>{3, 4});
        QVERIFY(s.plan(first));
        QCOMPARE(s.stats().preemptions, std::uint64_t(1));
        QCOMPARE(int(b.phase), int(SequencePhase::preempted));
    }

    void aHigherPriorityWaitsForTheCommit() {
        Scheduler s(options(40));
        StepPlan first, second;
        s.add(sequence_of(1, 5, 9));
        QVERIFY(s.plan(first));
        NewSequence urgent = sequence_of(2, 5, 9);
        urgent.priority = 1;
        s.add(std::move(urgent));
        QVERIFY(!s.plan_ahead(second));
    }

    // A block is named when its tokens are known, not when the row that fills it is planned.
    void generatedBlocksAreNamedWithTheirOwnCommit() {
        Scheduler s(options(40));
        StepPlan first, second, third;
        Sequence& a = s.add(sequence_of(1, 6, 9));
        QVERIFY(s.plan(first));
        QVERIFY(s.plan_ahead(second));  // position 6
        s.commit(first, std::vector<std::int32_t>{1});
        QVERIFY(s.plan_ahead(third));  // position 7 fills the second block
        s.commit(second, std::vector<std::int32_t>{2});
        QCOMPARE(a.table.named, 1);
        s.commit(third, std::vector<std::int32_t>{3});
        QCOMPARE(a.table.named, 2);
    }

    void withdrawnStepsLeaveNothingPending() {
        Scheduler s(options(40));
        StepPlan first, second, again;
        Sequence& a = s.add(sequence_of(1, 9, 9));
        QVERIFY(s.plan(first));
        QVERIFY(s.plan_ahead(second));
        s.withdraw(second);
        s.withdraw(first);
        QCOMPARE(a.pending, 0);
        QCOMPARE(a.computed, 0);
        QVERIFY(s.plan(again));
        QCOMPARE(again.batch.token_ids, first.batch.token_ids);
    }

    // What a sequence drew after it was taken away is dropped.
    void removedSequencesAreForgotten() {
        Scheduler s(options(40));
        StepPlan first, second;
        Sequence& a = s.add(sequence_of(1, 5, 9));
        Sequence& b = s.add(sequence_of(2, 5, 9));
        QVERIFY(s.plan(first));
        QVERIFY(s.plan_ahead(second));
        first.forget(a);
        second.forget(a);
        s.remove(a);
        QCOMPARE(s.pool().counts().used, b.table.size());
        const auto committed = s.commit(first, std::vector<std::int32_t>{1, 2});
        QCOMPARE(committed.size(), std::size_t(1));
        QCOMPARE(b.tokens.back(), 2);
        QVERIFY(!second.forgotten());
        second.forget(b);
        QVERIFY(second.forgotten());
    }
};

RECTO_TEST_CLASS(TestPlanAhead);
#include "test_plan_ahead.moc"
