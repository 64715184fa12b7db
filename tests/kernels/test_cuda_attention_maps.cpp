// The index maths of the CUDA attention kernels, checked without a card: fragments by an emulation of
// mma.m16n8k16 written from the PTX manual's tables, plans by counting who covers which token.

// Before Qt, whose keyword `slots` is a member of StepBatch.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/attention_tiles.h"

#include <QTest>

#include "support/registry.h"

using namespace recto;
using namespace recto::cuda;

namespace {

// Element (row, col) of each factor that a lane's register i holds (PTX ISA, "Matrix fragments for
// mma.m16n8k16 with floating point type": groupID = lane / 4, threadID_in_group = lane % 4).
struct Place {
    int row, col;
};
Place place_of_a(int lane, int i) {
    const int group = lane / 4, thread = lane % 4;
    return {group + ((i / 2) % 2 == 1 ? 8 : 0), thread * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
Place place_of_b(int lane, int i) {
    const int group = lane / 4, thread = lane % 4;
    return {thread * 2 + (i & 1) + (i >= 2 ? 8 : 0), group};
}
Place place_of_c(int lane, int i) {
    const int group = lane / 4, thread = lane % 4;
    return {group + (i >= 2 ? 8 : 0), thread * 2 + (i & 1)};
}

using Fragments = std::vector<std::vector<double>>;  // [lane][element]

// c += a · b over a whole warp.
void multiply(Fragments& c, const Fragments& a, const Fragments& b) {
    double left[16][16], right[16][8];
    for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 8; ++i) {
            const Place p = place_of_a(lane, i);
            left[p.row][p.col] = a[std::size_t(lane)][std::size_t(i)];
        }
        for (int i = 0; i < 4; ++i) {
            const Place p = place_of_b(lane, i);
            right[p.row][p.col] = b[std::size_t(lane)][std::size_t(i)];
        }
    }
    for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 4; ++i) {
            const Place p = place_of_c(lane, i);
            for (int k = 0; k < 16; ++k)
                c[std::size_t(lane)][std::size_t(i)] += left[p.row][k] * right[k][p.col];
        }
    }
}

Fragments fragments(int elements) {
    return Fragments(32, std::vector<double>(std::size_t(elements)));
}

}  // namespace

class TestCudaAttentionMaps : public QObject {
    Q_OBJECT

  private slots:
    void segments_cover_a_row_once() {
        for (const int dim : {64, 80, 96, 128, 256}) {
            for (const int bytes : {1, 2}) {
                for (const int lanes : {key_lanes, value_lanes}) {
                    const RowSegments s = row_segments(dim, lanes, bytes);
                    std::vector<int> seen(std::size_t(dim), 0);
                    for (int i = 0; i < s.count; ++i) {
                        const int width = s.width[i] * bytes;
                        QVERIFY(width == 2 || width == 4 || width == 8 || width == 16);
                        for (int lane = 0; lane < lanes; ++lane) {
                            const int first = s.base[i] + lane * s.width[i];
                            QCOMPARE(first * bytes % width, 0);  // an aligned load
                            for (int e = 0; e < s.width[i]; ++e)
                                ++seen[std::size_t(first + e)];
                        }
                    }
                    QVERIFY(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
                }
            }
        }
    }

    // S^T = K·Q^T and O^T = V^T·P^T as the decode kernel feeds them, against plain sums.
    void products_of_a_chunk() {
        for (const int dim : {64, 80, 96, 128, 256}) {
            for (const int bytes : {1, 2}) {
                std::mt19937 random(std::uint32_t(dim + bytes));
                std::uniform_int_distribution<int> digit(-4, 4);
                std::vector<std::vector<int>> k(16), v(16), q(8);
                for (auto* rows : {&k, &v, &q}) {
                    for (auto& row : *rows) {
                        for (int d = 0; d < dim; ++d)
                            row.push_back(digit(random));
                    }
                }
                const RowSegments keys = row_segments(dim, key_lanes, bytes);
                Fragments scores = fragments(4);
                for (int step = 0; step < dim / 16; ++step) {
                    Fragments a = fragments(8), b = fragments(4);
                    for (std::size_t lane = 0; lane < 32; ++lane) {
                        const std::size_t g = lane / 4;
                        const auto e = std::size_t(key_element(keys, step, int(lane % 4)));
                        // Registers a0 … a3: (token g, first pair), (token g + 8, first), (g, second), (g +
                        // 8, ·).
                        for (std::size_t i = 0; i < 2; ++i) {
                            a[lane][0 + i] = k[g][e + i];
                            a[lane][2 + i] = k[g + 8][e + i];
                            a[lane][4 + i] = k[g][e + 2 + i];
                            a[lane][6 + i] = k[g + 8][e + 2 + i];
                            b[lane][0 + i] = q[g][e + i];
                            b[lane][2 + i] = q[g][e + 2 + i];
                        }
                    }
                    multiply(scores, a, b);
                }
                std::vector<std::vector<double>> p(16, std::vector<double>(8));  // [token][head]
                for (int lane = 0; lane < 32; ++lane) {
                    for (int i = 0; i < 4; ++i) {
                        // As take_scores names them: i / 2 is the token's octet, i % 2 the head.
                        const int token = lane / 4 + 8 * (i / 2), head = 2 * (lane % 4) + i % 2;
                        double expected = 0;
                        for (std::size_t d = 0; d < std::size_t(dim); ++d)
                            expected += double(k[std::size_t(token)][d]) * q[std::size_t(head)][d];
                        QCOMPARE(scores[std::size_t(lane)][std::size_t(i)], expected);
                        p[std::size_t(token)][std::size_t(head)] = expected;
                    }
                }
                const RowSegments values = row_segments(dim, value_lanes, bytes);
                std::vector<int> written(std::size_t(dim) * 8, 0);
                for (int s = 0; s < values.count; ++s) {
                    for (int t = 0; t < values.width[s] / 2; ++t) {
                        Fragments a = fragments(8), b = fragments(4), out = fragments(4);
                        for (std::size_t lane = 0; lane < 32; ++lane) {
                            const std::size_t g = lane / 4, c = lane % 4;
                            const auto e = std::size_t(values.base[s] + int(g) * values.width[s] + 2 * t);
                            for (std::size_t i = 0; i < 2; ++i) {
                                a[lane][0 + i] = v[2 * c + i][e];
                                a[lane][2 + i] = v[2 * c + i][e + 1];
                                a[lane][4 + i] = v[2 * c + 8 + i][e];
                                a[lane][6 + i] = v[2 * c + 8 + i][e + 1];
                                // movmatrix: what lane 4·token + head/2 packed, transposed.
                                b[lane][0 + i] = p[2 * c + i][g];
                                b[lane][2 + i] = p[2 * c + 8 + i][g];
                            }
                        }
                        multiply(out, a, b);
                        for (int lane = 0; lane < 32; ++lane) {
                            for (int i = 0; i < 4; ++i) {
                                // As put_state names them: i / 2 is the element of the pair, i % 2 the head.
                                const int d = values.base[s] + lane / 4 * values.width[s] + 2 * t + i / 2;
                                const int head = 2 * (lane % 4) + i % 2;
                                double expected = 0;
                                for (std::size_t token = 0; token < 16; ++token)
                                    expected += v[token][std::size_t(d)] * p[token][std::size_t(head)];
                                QCOMPARE(out[std::size_t(lane)][std::size_t(i)], expected);
                                ++written[std::size_t(head * dim + d)];
                            }
                        }
                    }
                }
                QVERIFY(std::all_of(written.begin(), written.end(), [](int n) { return n == 1; }));
            }
        }
    }

    // Every row is there once, in all its shares, with numbers of partial results that nobody else has; every
    // packed row of a chunk lies in one tile; nothing is larger than its room.
    void plans_cover_everything_once() {
        std::mt19937 random(5);
        for (int round = 0; round < 300; ++round) {
            AttentionShape shape;
            const int kv_heads = 1 + int(random() % 40);
            shape.heads = {kv_heads * (1 + int(random() % 17)), kv_heads, random() % 2 == 0 ? 128 : 256};
            shape.multiprocessors = 1 + int(random() % 140);
            StepBatch step;
            step.query_start.push_back(0);
            const int sequences = 1 + int(random() % (round % 3 == 0 ? 300 : 6));
            for (int s = 0; s < sequences; ++s) {
                const int queries = random() % 3 == 0 ? 1 + int(random() % 400) : 1;
                const int before = int(random() % (random() % 4 == 0 ? 60000 : 300));
                for (int r = 0; r < queries; ++r) {
                    step.token_ids.push_back(0);
                    step.positions.push_back(before + r);
                    step.row_sequence.push_back(s);
                }
                step.context_tokens.push_back(before + queries);
                step.query_start.push_back(step.rows());
            }
            BatchLimits limits;
            limits.max_rows = step.rows();
            limits.max_sequences = sequences;
            const AttentionPlan plan = plan_attention(step, shape);
            QVERIFY(int(plan.decode.size()) <= shape.most_decode_items(limits));
            QVERIFY(int(plan.prefill.size()) <= shape.most_prefill_tiles(limits));

            std::map<int, std::set<int>> shares;
            std::map<int, int> splits;
            std::set<int> partials;
            int split_items = 0;
            for (const DecodeItem& item : plan.decode) {
                QVERIFY(item.split >= 0 && item.split < item.splits && item.splits <= most_splits);
                QVERIFY(shares[item.row].insert(item.split).second);
                QVERIFY(splits.emplace(item.row, item.splits).first->second == item.splits);
                if (item.splits == 1) continue;
                ++split_items;
                partials.insert(item.first_partial + item.split);
                QVERIFY((item.first_partial + item.split + 1) * shape.units() <= shape.most_partials());
            }
            QCOMPARE(int(partials.size()), split_items);
            for (const auto& [row, found] : shares)
                QCOMPARE(int(found.size()), splits[row]);

            std::map<std::pair<int, int>, int> packed;
            for (const PrefillTile& tile : plan.prefill) {
                QCOMPARE(tile.first_row, step.query_start[std::size_t(tile.sequence)]);
                const int end = std::min(tile.queries * shape.group(),
                                         tile.first_packed + prefill_rows(shape.heads.head_dim));
                for (int i = tile.first_packed; i < end; ++i)
                    ++packed[{tile.sequence, i}];
            }
            std::size_t expected_packed = 0;
            for (int s = 0; s < sequences; ++s) {
                const int first = step.query_start[std::size_t(s)];
                const int queries = step.query_start[std::size_t(s) + 1] - first;
                QCOMPARE(int(shares.count(first)), queries == 1 ? 1 : 0);
                if (queries > 1) expected_packed += std::size_t(queries * shape.group());
            }
            QCOMPARE(packed.size(), expected_packed);
            QVERIFY(std::all_of(packed.begin(), packed.end(), [](const auto& p) { return p.second == 1; }));
        }
    }

    // The busiest block of an H200 (132 multiprocessors) has little more than an even share.
    void plans_are_even() {
        struct Case {
            HeadShape heads;
            int sequences, context;
            double most;  // of an even share of the tokens
        };
        for (const Case& c : {Case{{32, 32, 128}, 1, 16384, 1.06}, Case{{32, 32, 128}, 1, 4096, 1.1},
                              Case{{32, 8, 128}, 1, 16384, 1.06}, Case{{32, 8, 128}, 1, 4096, 1.1},
                              Case{{32, 32, 128}, 256, 178, 1.06}, Case{{32, 32, 128}, 64, 1024, 1.2},
                              Case{{32, 32, 128}, 16, 180, 1.06}, Case{{32, 8, 128}, 64, 1024, 1.06}}) {
            AttentionShape shape{c.heads, 132};
            StepBatch step;
            step.query_start.push_back(0);
            for (int s = 0; s < c.sequences; ++s) {
                step.token_ids.push_back(0);
                step.positions.push_back(c.context - 1);
                step.context_tokens.push_back(c.context);
                step.query_start.push_back(step.rows());
            }
            const AttentionPlan plan = plan_attention(step, shape);
            std::vector<double> load(std::size_t(shape.decode_blocks()));
            std::size_t next = 0;
            for (const DecodeItem& item : plan.decode) {
                for (int unit = 0; unit < shape.units(); ++unit)
                    load[next++ % load.size()] += double(c.context) / item.splits;
            }
            const double even = double(c.sequences) * c.context * shape.units() / double(load.size());
            const double busiest = *std::max_element(load.begin(), load.end());
            QVERIFY2(busiest <= c.most * even, qPrintable(QString("%1 x %2: %3 of an even share")
                                                              .arg(c.sequences)
                                                              .arg(c.context)
                                                              .arg(busiest / even)));
        }
    }

    // 16 rows of 32 units on 396 blocks: 12 rows, 384 items, fill a round and stay whole; the other four are
    // cut in three, 384 items of a third, rather than that 116 blocks have a second whole one.
    void rows_that_fill_a_round_stay_whole() {
        AttentionShape shape{{32, 32, 128}, 132};
        StepBatch step;
        step.query_start.push_back(0);
        for (int s = 0; s < 16; ++s) {
            step.token_ids.push_back(0);
            step.positions.push_back(179 + s % 3);
            step.context_tokens.push_back(180 + s % 3);
            step.query_start.push_back(step.rows());
        }
        int whole = 0, thirds = 0;
        for (const DecodeItem& item : plan_attention(step, shape).decode) {
            whole += item.splits == 1 ? 1 : 0;
            thirds += item.splits == 3 ? 1 : 0;
        }
        QCOMPARE(whole, 12);
        QCOMPARE(thirds, 12);
    }

    // 8 million elements of K: 1,953 tokens of 32 heads of 128, four times as many where four heads share
    // one. What prefill reads does not count.
    void long_contexts_are_told() {
        const auto reads_much = [](HeadShape heads, int sequences, int context, int queries) {
            StepBatch step;
            step.query_start.push_back(0);
            for (int s = 0; s < sequences; ++s) {
                for (int q = 0; q < queries; ++q) {
                    step.token_ids.push_back(0);
                    step.positions.push_back(context - queries + q);
                }
                step.context_tokens.push_back(context);
                step.query_start.push_back(step.rows());
            }
            return plan_attention(step, {heads, 132}).reads_much;
        };
        const HeadShape each{32, 32, 128}, shared{32, 8, 128};
        QVERIFY(!reads_much(each, 16, 122, 1));  // 1,952
        QVERIFY(reads_much(each, 16, 123, 1));
        QVERIFY(!reads_much(shared, 1, 7812, 1));
        QVERIFY(reads_much(shared, 1, 7813, 1));
        QVERIFY(!reads_much(each, 1, 8192, 2));
    }
};

RECTO_TEST_CLASS(TestCudaAttentionMaps);
#include "test_cuda_attention_maps.moc"
