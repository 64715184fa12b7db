// Every tensor type of GGUF against gguf-py's dequantization (tests/data/load/make_expected.py), bit for bit,
// and its logical form against its dequantized values.
#include <QTest>
#include <cstring>

#include "engine/load/mapped_file.h"
#include "engine/load/safetensors.h"
#include "engine/load/stored_rows.h"
#include "load/files.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

std::unique_ptr<WeightRows> rows_of(const GgufTypeInfo& info, std::span<const std::byte> data,
                                    std::int64_t rows, std::int64_t cols, RowOrder order = {}) {
    StoredMatrix matrix;
    matrix.data = data;
    matrix.rows = rows;
    matrix.cols = cols;
    matrix.order = order;
    return make_gguf_rows(info.type, std::move(matrix));
}

std::vector<float> dequantized(const WeightRows& weight, std::int64_t first = 0, std::int64_t n = -1) {
    if (n < 0) n = weight.rows();
    std::vector<float> out(std::size_t(n * weight.cols()));
    weight.read_f32(first, n, out.data());
    return out;
}

std::vector<float> from_block(std::uint32_t type, const std::string& block, std::int64_t cols) {
    return dequantized(*rows_of(*gguf_type_info(type), bytes_of(block), 1, cols));
}

struct Planes {
    std::vector<std::uint8_t> q, zero_point, offset_factor;
    std::vector<float> scale, offset;
    std::vector<std::uint16_t> super_scale, super_offset;
    std::vector<std::int8_t> scale_factor;

    explicit Planes(const WeightRows& w) {
        const std::size_t n = std::size_t(w.rows() * w.cols()), groups = n / std::size_t(w.form().group_size);
        q.resize(n);
        for (auto* plane : {&zero_point, &offset_factor})
            plane->resize(groups);
        for (auto* plane : {&scale, &offset})
            plane->resize(groups);
        scale_factor.resize(groups);
        for (auto* plane : {&super_scale, &super_offset})
            plane->resize(n / super_group);
        w.read(0, w.rows(),
               {q.data(), scale.data(), offset.data(), zero_point.data(), super_scale.data(),
                scale_factor.data(), super_offset.data(), offset_factor.data()});
    }
};

// The scale or offset that the parts of a composed form make.
void check_composed(const WeightForm& form, const Planes& p) {
    for (std::size_t g = 0; g < p.scale.size(); ++g) {
        const std::size_t super = g * std::size_t(form.group_size) / super_group;
        if (form.scale == ScaleForm::f16_times_u6 || form.scale == ScaleForm::f16_times_i8)
            QCOMPARE(p.scale[g], f16_to_f32(p.super_scale[super]) * float(p.scale_factor[g]));
        if (form.scale == ScaleForm::f16_times_u6) QVERIFY(p.scale_factor[g] >= 0 && p.scale_factor[g] < 64);
        if (form.offset == OffsetForm::f16_times_u6)
            QCOMPARE(p.offset[g], -(f16_to_f32(p.super_offset[super]) * float(p.offset_factor[g])));
        if (form.offset == OffsetForm::zero_point)
            QCOMPARE(p.offset[g], -p.scale[g] * float(p.zero_point[g]));
        if (form.offset == OffsetForm::none) QCOMPARE(p.offset[g], 0.0F);
        if (form.scale == ScaleForm::f16) QCOMPARE(f16_to_f32(f32_to_f16(p.scale[g])), p.scale[g]);
        if (form.offset == OffsetForm::f16) QCOMPARE(f16_to_f32(f32_to_f16(p.offset[g])), p.offset[g]);
    }
}

}  // namespace

class TestGgufTypes : public QObject {
    Q_OBJECT

  private slots:
    void every_type_data() {
        QTest::addColumn<int>("id");
        for (const int id : {0, 1, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 20, 23, 30})
            QTest::newRow(gguf_type_info(std::uint32_t(id))->name) << id;
    }
    void every_type() {
        QFETCH(int, id);
        const GgufTypeInfo& info = *gguf_type_info(std::uint32_t(id));
        const MappedFile file(std::filesystem::path(RECTO_TEST_DATA) / "load/gguf_types.safetensors");
        const Safetensors stored(file.bytes(), "gguf_types.safetensors");
        const SafeTensor& blocks = *stored.find(std::string(info.name) + ".blocks");
        const SafeTensor& expected = *stored.find(std::string(info.name) + ".expected");
        const std::int64_t rows = expected.shape[0], cols = expected.shape[1];
        const auto weight = rows_of(info, blocks.data, rows, cols);
        const auto values = dequantized(*weight);
        QVERIFY(std::memcmp(values.data(), expected.data.data(), expected.data.size()) == 0);
        // A row alone is the same row.
        const auto last = dequantized(*weight, rows - 1, 1);
        QVERIFY(std::memcmp(last.data(), values.data() + (rows - 1) * cols, std::size_t(cols) * 4) == 0);
        if (!weight->form().grouped) {
            std::vector<char> dense(blocks.data.size());
            weight->read_dense(0, rows, dense.data());
            QVERIFY(std::memcmp(dense.data(), blocks.data.data(), dense.size()) == 0);
            return;
        }
        check_logical_form(*weight, values);
    }

    // Values worked out by hand in the format's description.
    void known_blocks() {
        const std::string q4_0("\x00\x3c\x10\x21\x32\x43\x54\x65\x76\x87\x98\xa9\xba\xcb\xdc\xed\xfe\x0f",
                               18);
        const auto values = from_block(2, q4_0, 32);
        for (int i = 0; i < 16; ++i) {
            QCOMPARE(values[std::size_t(i)], float(i - 8));
            QCOMPARE(values[std::size_t(16 + i)], i == 15 ? -8.0F : float(i - 7));
        }

        std::string q4_k(144, '\0');
        q4_k[1] = q4_k[3] = '\x3c';  // d = dmin = 1
        q4_k.replace(4, 12, "\x81\x82\x83\x84\xc5\xc6\xc7\xc8\x25\x36\x47\x58");
        const Planes p(*rows_of(*gguf_type_info(12), bytes_of(q4_k), 1, 256));
        const float scales[] = {1, 2, 3, 4, 37, 38, 39, 40}, minima[] = {5, 6, 7, 8, 50, 51, 52, 53};
        for (std::size_t j = 0; j < 8; ++j) {
            QCOMPARE(p.scale[j], scales[j]);
            QCOMPARE(p.offset[j], -minima[j]);
        }

        std::string q6_k(210, '\0');
        q6_k.replace(192, 16, std::string(16, '\1'));
        q6_k[209] = '\x3c';
        q6_k[69] = '\x90';
        q6_k[128 + 37] = '\x20';
        const auto six = from_block(14, q6_k, 256);
        for (std::size_t i = 0; i < 256; ++i)
            QCOMPARE(six[i], i == 197 ? 9.0F : -32.0F);
    }

    void restores_the_row_order() {
        // A head of 8 holds Hugging Face's rows 0 4 1 5 2 6 3 7; here row r of the file holds the number of
        // the row that belongs there, for two heads.
        const float stored[] = {0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15};
        const auto bytes = std::as_bytes(std::span(stored));
        const auto values = dequantized(*rows_of(*gguf_type_info(0), bytes, 16, 1, {8, 8}));
        for (std::size_t i = 0; i < 16; ++i)
            QCOMPARE(values[i], float(i));
        // Only four dimensions rotate: rows 4 to 7 of the head stay.
        const float partial[] = {0, 2, 1, 3, 4, 5, 6, 7};
        const auto some =
            dequantized(*rows_of(*gguf_type_info(0), std::as_bytes(std::span(partial)), 8, 1, {8, 4}));
        for (std::size_t i = 0; i < 8; ++i)
            QCOMPARE(some[i], float(i));
    }

    void reads_at_any_alignment() {
        std::string shifted = "x";
        const float values[] = {1.5F, -2.25F};
        shifted.append(reinterpret_cast<const char*>(values), sizeof values);
        const auto read = dequantized(*rows_of(*gguf_type_info(0), bytes_of(shifted).subspan(1), 1, 2));
        QCOMPARE(read[0], 1.5F);
        QCOMPARE(read[1], -2.25F);
    }

  private:
    // w = scale · q + offset, and the parts of scale and offset give their products.
    static void check_logical_form(const WeightRows& w, const std::vector<float>& values) {
        const Planes p(w);
        const WeightForm& form = w.form();
        QCOMPARE(w.cols() % form.group_size, 0);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::size_t g = i / std::size_t(form.group_size);
            const int q = form.integer == QuantInt::i8 ? int(static_cast<std::int8_t>(p.q[i])) : int(p.q[i]);
            if (form.integer == QuantInt::u4) QVERIFY(q < 16);
            QCOMPARE(p.scale[g] * float(q) + p.offset[g] == values[i], true);
        }
        check_composed(form, p);
    }
};

RECTO_TEST_CLASS(TestGgufTypes);
#include "test_gguf_types.moc"
