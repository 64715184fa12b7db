// Row operations of the CPU against plain loops in double precision (kernels/reference.cpp) and the
// definitions in kernels/backend.h, in every instruction set.
#include <cmath>
#include <cstring>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/select.h"
#include "kernels/reference.h"
#include "kernels/synthetic.h"

#include <QTest>

#include "support/registry.h"

#undef slots  // Qt's keyword; here it is a member of StepBatch

using namespace recto;

namespace {

std::vector<std::unique_ptr<Backend>> all_sets() {
    const cpu::CpuFeatures f = cpu::detect_cpu();
    std::vector<std::unique_ptr<Backend>> v;
    for (const char* set : {"scalar", "avx2", "avxvnni", "avx512"}) {
        if (std::strcmp(set, "avx2") == 0 && !f.avx2) continue;
        if (std::strcmp(set, "avxvnni") == 0 && !f.avx_vnni) continue;
        if (std::strcmp(set, "avx512") == 0 && !f.avx512) continue;
        CpuOptions options;
        options.threads = 2;
        options.max_isa = set;
        v.push_back(make_cpu_backend(options));
    }
    return v;
}

Tensor view(std::vector<float>& v, std::int64_t rows, std::int64_t cols) {
    return {v.data(), DType::f32, rows, cols, cols};
}

StepBatch tokens(std::vector<std::int32_t> ids, int first_position) {
    StepBatch s;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        s.positions.push_back(first_position + int(i));
        s.row_sequence.push_back(0);
        s.slots.push_back(first_position + int(i));
    }
    s.query_start = {0, std::int32_t(ids.size())};
    s.context_tokens = {first_position + std::int32_t(ids.size())};
    s.token_ids = std::move(ids);
    return s;
}

}  // namespace

class TestRows : public QObject {
    Q_OBJECT

  private Q_SLOTS:
    void rms_norm_matches_reference() {
        for (const auto& backend : all_sets()) {
            for (const std::int64_t cols : {8, 48, 96, 259, 576, 4096}) {
                for (const std::int64_t rows : {1, 3, 40}) {
                    std::vector<float> x = random_floats(std::size_t(rows * cols), 3.0F, 1);
                    std::vector<float> w = random_floats(std::size_t(cols), 2.0F, 2), out(x.size());
                    backend->rms_norm(view(x, rows, cols), w.data(), 1e-5F, view(out, rows, cols));
                    const auto expected = reference::rms_norm(x.data(), rows, cols, w.data(), double(1e-5F));
                    for (std::size_t i = 0; i < out.size(); ++i) {
                        // The sum of squares loses at most cols / 16 + 4 roundings, the rest four.
                        const double bound =
                            0x1p-24 * (double(cols) / 16 + 8) * std::fabs(expected[i]) + 1e-30;
                        QVERIFY(std::fabs(double(out[i]) - expected[i]) <= bound);
                    }
                }
            }
        }
    }

    void rope_and_norms_match_reference() {
        const HeadShape shape{4, 2, 48};
        const int rotary = 32, rows = 5, first = 1000, width = (4 + 2 * 2) * 48;
        std::vector<float> frequencies;
        for (int i = 0; i < rotary / 2; ++i)
            frequencies.push_back(float(std::pow(10000.0, -2.0 * i / rotary)));
        for (const auto& backend : all_sets()) {
            for (const bool norms : {false, true}) {
                std::vector<float> qkv = random_floats(std::size_t(rows) * width, 1.0F, 3);
                const std::vector<float> before = qkv;
                const std::vector<float> q_norm = random_floats(48, 1.0F, 4),
                                         k_norm = random_floats(48, 1.0F, 5);
                KvShape kv_shape;
                kv_shape.blocks = 64;
                kv_shape.layers = 1;
                kv_shape.kv_heads = 2;
                kv_shape.head_dim = 48;
                kv_shape.dtype = DType::f32;
                const auto kv = backend->make_kv(kv_shape);
                const auto batch = backend->make_batch({});
                backend->upload_batch(*batch, tokens({1, 2, 3, 4, 5}, first));
                std::vector<float> table(std::size_t(rows) * rotary);
                backend->rope_table(*batch, {rotary, frequencies, 1.5F}, view(table, rows, rotary));
                RopeStoreArgs args;
                args.shape = shape;
                args.rotary_dims = rotary;
                args.norm_eps = 1e-6F;
                if (norms) {
                    args.q_norm = q_norm.data();
                    args.k_norm = k_norm.data();
                }
                backend->rope_store(*batch, args, view(table, rows, rotary), view(qkv, rows, width), *kv);
                for (int r = 0; r < rows; ++r) {
                    for (int h = 0; h < 6; ++h) {
                        const std::size_t at = std::size_t(r) * width + std::size_t(h) * 48;
                        std::vector<double> head(before.begin() + std::ptrdiff_t(at),
                                                 before.begin() + std::ptrdiff_t(at) + 48);
                        if (norms)
                            head = reference::rms_norm(&before[at], 1, 48,
                                                       h < 4 ? q_norm.data() : k_norm.data(), double(1e-6F));
                        reference::rotate(head.data(), rotary, first + r, frequencies, 1.5);
                        for (std::size_t d = 0; d < 48; ++d) {
                            QVERIFY(std::fabs(double(qkv[at + d]) - head[d]) < 2e-6);
                        }
                    }
                }
            }
        }
    }

    void embed_is_exact() {
        // The logical value itself is the oracle: w = scale · q + offset, then one multiplication.
        const std::vector<WeightForm> forms = {
            dense_form(DType::f32),
            dense_form(DType::f16),
            dense_form(DType::bf16),
            grouped_form(QuantInt::i8, 32, ScaleForm::f16, OffsetForm::none, "Q8_0"),
            grouped_form(QuantInt::u4, 32, ScaleForm::f16, OffsetForm::f16, "Q4_1"),
            grouped_form(QuantInt::u4, 64, ScaleForm::f16, OffsetForm::zero_point, "AWQ"),
            grouped_form(QuantInt::i8, 16, ScaleForm::f16_times_i8, OffsetForm::none, "Q6_K"),
            grouped_form(QuantInt::u4, 32, ScaleForm::f16_times_u6, OffsetForm::f16_times_u6, "Q4_K")};
        for (const auto& backend : all_sets()) {
            for (const WeightForm& form : forms) {
                const auto weight = make_synthetic({259, 512, form, 9, false, false});
                const WeightRows* parts[] = {weight.get()};
                const auto packed = backend->pack(parts, Activations::int8);
                const std::vector<std::int32_t> ids = {0, 258, 17, 255, 256, 33};
                const auto batch = backend->make_batch({});
                backend->upload_batch(*batch, tokens(ids, 0));
                std::vector<float> out(ids.size() * 512), row(512);
                backend->embed(*batch, *packed, 3.5F, view(out, std::int64_t(ids.size()), 512));
                for (std::size_t i = 0; i < ids.size(); ++i) {
                    weight->read_f32(ids[i], 1, row.data());
                    for (std::size_t k = 0; k < 512; ++k)
                        QCOMPARE(out[i * 512 + k], row[k] * 3.5F);
                }
            }
        }
    }

    void argmax_takes_the_lowest_and_refuses_non_finite() {
        for (const auto& backend : all_sets()) {
            for (const std::int64_t cols : {1, 15, 16, 259, 1024, 5000}) {
                std::vector<float> x = random_floats(std::size_t(4 * cols), 1.0F, 6);
                for (float& v : x)
                    v = std::round(v * 20) / 20;  // many equal elements
                for (std::int64_t r = 0; r < 4; ++r)
                    x[std::size_t(r * cols)] = -5.0F;
                std::int32_t ids[4];
                const std::int64_t valid = cols > 20 ? cols - 3 : cols;
                if (valid < cols) x[std::size_t(cols - 1)] = 100.0F;  // beyond the valid ones
                backend->argmax(view(x, 4, cols), valid, ids);
                for (std::int64_t r = 0; r < 4; ++r) {
                    const float* row = x.data() + r * cols;
                    QCOMPARE(ids[r], std::int32_t(std::max_element(row, row + valid) - row));
                }
                x[std::size_t(valid - 1)] = std::nanf("");
                x[std::size_t(cols + valid / 2)] = -HUGE_VALF;
                backend->argmax(view(x, 4, cols), valid, ids);
                QCOMPARE(ids[0], -1);
                QCOMPARE(ids[1], -1);
                QVERIFY(ids[2] >= 0);
            }
        }
    }

    void gather_and_add() {
        for (const auto& backend : all_sets()) {
            std::vector<float> x = random_floats(std::size_t(20) * 70, 1.0F, 7),
                               y = random_floats(std::size_t(20) * 70, 1.0F, 8);
            const std::vector<float> before = x;
            backend->add(view(x, 20, 70), view(y, 20, 70));
            for (std::size_t i = 0; i < x.size(); ++i)
                QCOMPARE(x[i], before[i] + y[i]);
            StepBatch step = tokens(std::vector<std::int32_t>(20, 1), 0);
            step.logit_rows = {3, 19};
            const auto batch = backend->make_batch({});
            backend->upload_batch(*batch, step);
            std::vector<float> out(2 * 70);
            backend->gather_rows(*batch, view(x, 20, 70), view(out, 2, 70));
            QVERIFY(std::memcmp(out.data(), &x[3 * 70], 70 * 4) == 0 &&
                    std::memcmp(&out[70], &x[19 * 70], 70 * 4) == 0);
        }
    }

    void blocks_move_whole() {
        const auto backend = std::move(all_sets().back());
        KvShape shape;
        shape.blocks = 5;
        shape.layers = 3;
        shape.kv_heads = 2;
        shape.head_dim = 40;
        const auto kv = backend->make_kv(shape);
        std::vector<std::uint8_t> data(shape.block_bytes()), back(data.size());
        for (std::size_t i = 0; i < data.size(); ++i)
            data[i] = std::uint8_t(i * 31 + 7);
        backend->swap_in(*kv, 4, data.data());
        backend->copy_block(*kv, 4, 1);
        backend->swap_out(*kv, 1, back.data());
        QVERIFY(back == data);
        QCOMPARE(kv->bytes(), 5 * shape.block_bytes());
    }

    void panels_cover_every_row() {
        for (const int most : {4, 12}) {
            for (std::int64_t rows = 1; rows < 200; ++rows) {
                const cpu::PanelPlan p = cpu::plan_panels(rows, most);
                QCOMPARE(p.full * p.size + p.tail_rows, rows);
                QVERIFY(p.size <= most && p.tail_size >= p.tail_rows && p.tail_size <= p.size);
                for (const int size : {p.size, p.tail_size}) {
                    if (size > 0)
                        QVERIFY(cpu::scalar_kernels().max_rows < size ||
                                cpu::scalar_kernels().tile({}, size));
                }
            }
        }
        for (const int threads : {1, 2, 64}) {
            const cpu::Schedule s = cpu::schedule_linear(96, 43, 12, 800, threads);
            QVERIFY(s.bands * s.band_panels >= 43 && (s.bands - 1) * s.band_panels < 43 && s.grain >= 1);
        }
    }
};

RECTO_TEST_CLASS(TestRows);
#include "test_rows.moc"
