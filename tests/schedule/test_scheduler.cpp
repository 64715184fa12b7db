#include "engine/fake_model.h"
#include "engine/schedule/scheduler.h"
// Qt comes after them.
#include <QTest>
#include <random>

#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

constexpr int vocab = 5;  // few tokens, so that prefixes meet by chance too

SchedulerOptions options(int blocks, int block_size = 4, int sequences = 8) {
    SchedulerOptions o;
    o.block_size = block_size;
    o.kv_blocks = blocks;
    o.max_model_len = 64;
    o.max_num_seqs = sequences;
    o.max_num_batched_tokens = 32;
    return o;
}

NewSequence sequence_of(std::vector<std::int32_t> prompt, int output) {
    NewSequence n;
    n.max_total_tokens = int(prompt.size()) + output;
    n.prompt = std::move(prompt);
    return n;
}

// Every table entry is one reference, and nothing else is.
void check_references(const Scheduler& s) {
    s.pool().check_invariants();
    std::map<BlockId, int> references;
    for (const Sequence* q : s.running()) {
        QCOMPARE(int(q->phase), int(SequencePhase::running));
        QVERIFY(q->table.size() * s.options().block_size >= q->computed);
        std::set<BlockId> once(q->table.blocks.begin(), q->table.blocks.end());
        QCOMPARE(int(once.size()), q->table.size());
        for (BlockId id : q->table.blocks)
            ++references[id];
    }
    std::set<SavedId> saved;
    for (const Sequence* q : s.waiting()) {
        QVERIFY(q->table.blocks.empty());
        QCOMPARE(int(q->saved.size()), blocks_for(q->computed, s.options().block_size));
        QCOMPARE(q->phase == SequencePhase::swapped, q->computed > 0);
        saved.insert(q->saved.begin(), q->saved.end());
    }
    QCOMPARE(s.swap_space().used(), int(saved.size()));
    QVERIFY(s.swap_space().used() <= s.swap_space().total());
    int copied = 0;
    for (SavedId id : saved)
        copied += s.swap_space().saved(id).place >= 0;
    QCOMPARE(s.swap_space().copied(), copied);
    for (BlockId id = 0; id < s.pool().total(); ++id)
        QCOMPARE(s.pool().block(id).ref_count, references[id]);
}

// Host memory of swapped blocks: [place][bytes].
struct Host {
    std::map<std::int32_t, std::vector<std::int32_t>> places;
    std::vector<std::int32_t>& operator[](std::int32_t place) {
        auto& bytes = places[place];
        bytes.resize(64);
        return bytes;
    }
};

// Runs one step greedily on the model; returns what was appended.
std::vector<CommittedToken> run_step(Scheduler& s, FakeModel& model, StepPlan& plan, Host* given = nullptr) {
    Host none;
    Host& host = given ? *given : none;
    if (!s.plan(plan)) return {};
    for (const BlockTransfer& t : plan.transfers) {
        if (t.kind == TransferKind::copy) model.copy_block(t.from, t.to);
        if (t.kind == TransferKind::swap_out) model.swap_out(t.from, host[t.to].data());
        if (t.kind == TransferKind::swap_in) model.swap_in(t.to, host[t.from].data());
    }
    model.forward(plan.batch);
    std::vector<std::int32_t> tokens;
    for (const ScheduledSequence& item : plan.scheduled)
        for (int d = 0; d < item.draws; ++d)
            tokens.push_back((model.argmax(item.first_output + item.outputs - 1, vocab) + d) % vocab);
    const auto committed = s.commit(plan, tokens);
    return {committed.begin(), committed.end()};
}

}  // namespace

class TestScheduler : public QObject {
    Q_OBJECT
  private slots:
    // Random arrivals, ends, cancels, forks and failed steps; after each step every reference is accounted
    // for and every token is what a formula gives for the sequence's own text. With 2-bit hashes nearly all
    // names collide.
    void soak_data() {
        QTest::addColumn<quint64>("mask");
        QTest::addColumn<int>("chunk");
        QTest::addColumn<int>("swap");
        QTest::newRow("64-bit hashes") << ~quint64(0) << 0 << 0;
        QTest::newRow("2-bit hashes") << quint64(3) << 0 << 0;
        QTest::newRow("2-bit hashes, chunks of 3") << quint64(3) << 3 << 0;
        QTest::newRow("swap of 9 blocks") << ~quint64(0) << 0 << 9;
        QTest::newRow("swap of 100 blocks, 2-bit hashes, chunks of 3") << quint64(3) << 3 << 100;
    }
    void soak() {
        QFETCH(quint64, mask);
        QFETCH(int, chunk);
        QFETCH(int, swap);
        SchedulerOptions o = options(20);
        o.swap_blocks = swap;
        Host host;
        o.prefix_hash_mask = mask;
        o.fixed_chunk_tokens = chunk;
        Scheduler s(o);
        FakeModel model(vocab, o.kv_blocks, o.block_size);
        StepPlan plan;
        std::mt19937 random(11);
        const auto below = [&](int n) { return int(random() % unsigned(n)); };
        std::map<std::uint64_t, int> limit;
        for (int step = 0; step < 8000 || s.has_work(); ++step) {
            if (step < 8000 && below(2) == 0 && s.waiting().size() < 20) {
                NewSequence n =
                    sequence_of(fake_prompt(std::uint64_t(below(6)), 1 + below(30), vocab), 1 + below(20));
                n.priority = below(3);
                n.forks = below(4) == 0 ? 1 + below(4) : 1;
                n.request = std::uint64_t(step);
                limit[n.request] = n.max_total_tokens;
                s.add(std::move(n));
            }
            if (below(50) == 0 && !s.running().empty())
                s.remove(*s.running()[std::size_t(below(int(s.running().size())))]);
            if (below(50) == 0 && !s.waiting().empty())
                s.remove(*s.waiting()[std::size_t(below(int(s.waiting().size())))]);
            if (below(60) == 0 && s.plan(plan)) {  // a step that fails ends its sequences
                s.withdraw(plan);
                for (const auto& item : plan.scheduled)
                    s.remove(*item.sequence);
            }
            std::vector<Sequence*> ended;
            for (const CommittedToken& c : run_step(s, model, plan, &host)) {
                const ScheduledSequence& item = plan.scheduled[std::size_t(c.scheduled)];
                const auto& t = c.sequence->tokens;
                const int draw = item.draws > 1 ? c.sequence->output : 0;
                QCOMPARE(t.back(), (fake_next(std::span(t).first(t.size() - 1), vocab) + draw) % vocab);
                if (c.sequence->total() >= limit[c.sequence->request]) ended.push_back(c.sequence);
            }
            for (Sequence* q : ended)
                s.remove(*q);
            check_references(s);
            if (QTest::currentTestFailed()) return;
        }
        QCOMPARE(s.pool().counts().used, 0);
        QVERIFY(s.stats().preemptions > 100);
        QCOMPARE(s.stats().swaps > 100, swap > 0);
        QCOMPARE(s.stats().blocks_in > 30, swap > 0);
        QCOMPARE(s.swap_space().used(), 0);
        QVERIFY(s.stats().prefix_hits > 1000);
    }

    void optionsAreChecked() {
        SchedulerOptions o = options(8);
        o.max_num_batched_tokens = 7;
        try {
            Scheduler s(o);
            QFAIL("accepted");
        } catch (const Error& e) {
            QCOMPARE(e.what(), "max_num_batched_tokens must be at least max_num_seqs (8), got 7");
        }
    }

    // Several long prompts are not admitted chunk by chunk to preempt each other: the whole of each must fit
    // beside what the others still need.
    void admissionCountsTheWholeSequence() {
        SchedulerOptions o = options(20);
        o.fixed_chunk_tokens = 4;
        Scheduler s(o);
        FakeModel model(vocab, o.kv_blocks, o.block_size);
        StepPlan plan;
        for (std::uint64_t i = 0; i < 3; ++i)
            s.add(sequence_of(fake_prompt(50 + i, 40, 1000), 4));
        run_step(s, model, plan);
        // 10 blocks each, 20 there, one kept back: the second would leave none.
        QCOMPARE(s.running().size(), std::size_t(1));
        QCOMPARE(s.waiting().front()->blocks_missing, 1);
        for (int i = 0; i < 12; ++i)
            run_step(s, model, plan);
        QCOMPARE(s.stats().preemptions, std::uint64_t(0));
    }

    void theYoungestIsPreemptedAndGoesToTheFront() {
        SchedulerOptions o = options(8);
        o.watermark = 0;
        Scheduler s(o);
        FakeModel model(vocab, o.kv_blocks, o.block_size);
        StepPlan plan;
        Sequence& old = s.add(sequence_of(fake_prompt(60, 16, 1000), 14));
        Sequence& young = s.add(sequence_of(fake_prompt(61, 14, 1000), 14));
        Sequence& later = s.add(sequence_of(fake_prompt(62, 12, 1000), 14));
        while (young.phase != SequencePhase::preempted)
            run_step(s, model, plan);
        QCOMPARE(int(old.phase), int(SequencePhase::running));
        QCOMPARE(young.preemptions, 1);
        QVERIFY(young.output_tokens() > 0);  // kept
        QCOMPARE(s.waiting().size(), std::size_t(2));
        QCOMPARE(s.waiting().front(), &young);
        QCOMPARE(s.waiting().back(), &later);
        QVERIFY(plan.preempted == std::vector<Sequence*>{&young});
    }

    void aLowerPriorityIsPreemptedFirst() {
        SchedulerOptions o = options(8);
        o.watermark = 0;
        Scheduler s(o);
        FakeModel model(vocab, o.kv_blocks, o.block_size);
        StepPlan plan;
        Sequence& low = s.add(sequence_of(fake_prompt(60, 16, 1000), 14));
        run_step(s, model, plan);
        NewSequence n = sequence_of(fake_prompt(61, 10, 1000), 14);
        n.priority = 1;
        Sequence& high = s.add(std::move(n));
        while (s.stats().preemptions == 0)
            run_step(s, model, plan);
        QCOMPARE(low.preemptions, 1);
        QCOMPARE(high.preemptions, 0);
    }

    // A place and blocks are free after the preemption, and a short request waits behind the preempted one.
    void nothingIsAdmittedInAStepWithAPreemption() {
        SchedulerOptions o = options(8, 4, 2);
        o.watermark = 0;
        Scheduler s(o);
        FakeModel model(vocab, o.kv_blocks, o.block_size);
        StepPlan plan;
        s.add(sequence_of(fake_prompt(60, 15, 1000), 14));
        Sequence& young = s.add(sequence_of(fake_prompt(61, 13, 1000), 14));
        run_step(s, model, plan);
        Sequence& later = s.add(sequence_of(fake_prompt(62, 3, 1000), 3));
        while (s.stats().preemptions == 0)
            run_step(s, model, plan);
        QCOMPARE(young.preemptions, 1);
        QCOMPARE(int(later.phase), int(SequencePhase::waiting));
        QCOMPARE(s.running().size(), std::size_t(1));
        QVERIFY(s.pool().available() >= 1);
    }

    // The youngest of the lowest priority makes way in the step in which the urgent one comes, and no more of
    // them than needed; what cannot fit even so preempts nobody.
    void aHigherPriorityPreemptsWhatRuns() {
        SchedulerOptions o = options(14);
        o.watermark = 0;
        Scheduler s(o);
        FakeModel model(vocab, o.kv_blocks, o.block_size);
        StepPlan plan;
        NewSequence n = sequence_of(fake_prompt(60, 15, 1000), 8);
        n.priority = 2;
        Sequence& high = s.add(std::move(n));
        Sequence& old = s.add(sequence_of(fake_prompt(61, 15, 1000), 8));
        Sequence& young = s.add(sequence_of(fake_prompt(62, 15, 1000), 8));
        run_step(s, model, plan);
        QCOMPARE(s.running().size(), std::size_t(3));

        n = sequence_of(fake_prompt(63, 42, 1000), 8);  // 11 blocks: the two of priority 0 leave 10
        n.priority = 1;
        Sequence& large = s.add(std::move(n));
        run_step(s, model, plan);
        QCOMPARE(s.stats().preemptions, std::uint64_t(0));
        s.remove(large);

        n = sequence_of(fake_prompt(64, 10, 1000), 8);
        n.priority = 1;
        Sequence& urgent = s.add(std::move(n));
        run_step(s, model, plan);
        QCOMPARE(int(urgent.phase), int(SequencePhase::running));
        QVERIFY(urgent.output_tokens() > 0);
        QVERIFY(plan.preempted == std::vector<Sequence*>{&young});
        QCOMPARE(int(old.phase), int(SequencePhase::running));
        QCOMPARE(int(high.phase), int(SequencePhase::running));
    }

    void aHigherPriorityTakesThePlace() {
        SchedulerOptions o = options(100, 4, 1);
        Scheduler s(o);
        FakeModel model(vocab, o.kv_blocks, o.block_size);
        StepPlan plan;
        Sequence& low = s.add(sequence_of(fake_prompt(61, 15, 1000), 8));
        run_step(s, model, plan);
        NewSequence n = sequence_of(fake_prompt(64, 10, 1000), 8);
        n.priority = 1;
        Sequence& urgent = s.add(std::move(n));
        run_step(s, model, plan);
        QCOMPARE(int(urgent.phase), int(SequencePhase::running));
        QCOMPARE(int(low.phase), int(SequencePhase::preempted));
    }

    void namesOfAFailedStepAreWithdrawn() {
        Scheduler s(options(20));
        StepPlan plan;
        Sequence& a = s.add(sequence_of(fake_prompt(1, 13, vocab), 4));
        QVERIFY(s.plan(plan));
        QCOMPARE(plan.named.size(), std::size_t(3));
        QCOMPARE(a.computed, 13);
        s.withdraw(plan);
        QCOMPARE(a.computed, 0);
        s.remove(a);
        QCOMPARE(s.pool().counts().cached, 0);
        QCOMPARE(s.pool().counts().used, 0);
        s.pool().check_invariants();
    }

    // Prompt blocks are named when they are planned, generated ones when they are committed.
    void blocksAreNamedAtPlanAndAtCommit() {
        SchedulerOptions o = options(20);
        Scheduler s(o);
        FakeModel model(vocab, o.kv_blocks, o.block_size);
        StepPlan plan;
        Sequence& a = s.add(sequence_of(fake_prompt(1, 6, vocab), 8));
        run_step(s, model, plan);
        QCOMPARE(a.table.named, 1);
        run_step(s, model, plan);  // position 6
        QVERIFY(s.plan(plan));     // position 7 fills the second block
        QCOMPARE(a.computed, 8);
        QCOMPARE(a.table.named, 1);
        QVERIFY(plan.named.empty());
        s.commit(plan, std::vector<std::int32_t>{0});
        QCOMPARE(a.table.named, 2);
    }

    // The chunk beside decoding sequences follows the measured speed: 1 ms a row and a target of 0.1 s give
    // 96 rows with 4 decoding, in whole blocks.
    void chunksFollowTheTimeTarget() {
        ChunkPolicy p(0.1, 16);
        QCOMPARE(p.rows_beside(0), 64);  // before anything was measured
        p.observe(512, 0.512);
        QCOMPARE(p.rows_beside(4), 96);
        QCOMPARE(p.rows_beside(5), 80);
        p.observe(1, 5.0);  // one row says nothing
        QCOMPARE(p.rows_beside(4), 96);
        for (int i = 0; i < 100; ++i)
            p.observe(512, 51.2);
        QCOMPARE(p.rows_beside(4), 16);  // a prompt always advances
    }

    void longPromptsAreCutOnlyBesideDecodes() {
        SchedulerOptions o = options(200);
        o.max_model_len = 600;
        o.max_num_batched_tokens = 256;
        Scheduler s(o);
        FakeModel model(vocab, o.kv_blocks, o.block_size);
        StepPlan plan;
        s.add(sequence_of(fake_prompt(1, 300, vocab), 20));
        run_step(s, model, plan);
        QCOMPARE(plan.batch.rows(), 256);
        run_step(s, model, plan);
        QCOMPARE(plan.batch.rows(), 44);
        s.add(sequence_of(fake_prompt(2, 300, 1000), 20));
        run_step(s, model, plan);
        QCOMPARE(plan.batch.rows(),
                 1 + 60);  // the first guess: 64 rows less the decode, in whole blocks of 4
        s.set_fixed_chunk(10);
        run_step(s, model, plan);
        QCOMPARE(plan.batch.rows(), 1 + 10);
    }
};

RECTO_TEST_CLASS(TestScheduler);
#include "test_scheduler.moc"
