// WeightRows::raw against WeightRows::read and read_dense, which have their own tests: the bytes that raw()
// points at, unpacked by the functions that kernels/cuda runs, must give the same planes, bit for bit.
#include <QDirIterator>
#include <QTest>
#include <algorithm>
#include <array>

#include "engine/load/mapped_file.h"
#include "engine/load/model_source.h"
#include "engine/load/row_range.h"
#include "engine/load/safetensors.h"
#include "engine/load/stored_rows.h"
#include "kernels/gguf_blocks.h"
#include "kernels/raw_words.h"
#include "load/files.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

struct Unpacked {
    std::vector<std::uint8_t> q, zero_point;
    std::vector<float> scale, offset;

    bool operator==(const Unpacked&) const = default;
};

// The plane without the gaps between its lines, as it is copied to a device.
std::vector<std::byte> compact(const RawPlane& plane, const RowOrder& order = {}) {
    std::vector<std::byte> out(plane.bytes());
    for (std::int64_t i = 0; i < plane.lines; ++i)
        std::copy_n(plane.data + order.file_row(i) * plane.stride, plane.line_bytes,
                    out.data() + i * plane.line_bytes);
    return out;
}

template <class Block>
void unpack_blocks(const std::vector<std::byte>& bytes, Unpacked& out) {
    constexpr int groups = Block::elements / Block::group;
    for (std::size_t at = 0; at < bytes.size(); at += Block::bytes) {
        const auto* block = reinterpret_cast<const std::uint8_t*>(bytes.data() + at);
        std::array<std::uint8_t, Block::elements> q;
        Block::codes(block, q.data());
        out.q.insert(out.q.end(), q.begin(), q.end());
        gguf::BlockGroups g;
        Block::groups(block, g);
        out.scale.insert(out.scale.end(), g.scale, g.scale + groups);
        out.offset.insert(out.offset.end(), g.offset, g.offset + groups);
        if (Block::offset_form == OffsetForm::zero_point)
            out.zero_point.insert(out.zero_point.end(), groups, std::uint8_t(Block::zero_point));
    }
}

void unpack_words(const WeightRows& rows, const RawWeight& raw, Unpacked& out) {
    const auto packed = compact(raw.packed), zeros = compact(raw.zeros), scales = compact(raw.scales);
    const WeightForm& form = rows.form();
    const raw::WordView view{raw.layout,
                             raw.bits,
                             raw.zeros_less_one,
                             raw.zero_bytes,
                             packed.data(),
                             zeros.empty() ? nullptr : zeros.data(),
                             scales.data(),
                             raw.packed.line_bytes,
                             raw.zeros.line_bytes,
                             raw.scales.line_bytes,
                             int(dtype_bytes(raw.scale_dtype))};
    for (std::int64_t r = 0; r < rows.rows(); ++r) {
        for (std::int64_t k = 0; k < rows.cols(); ++k)
            out.q.push_back(
                raw::code(view, r, raw.permutation.empty() ? k : raw.permutation[std::size_t(k)]));
        for (std::int64_t g = 0; g < rows.cols() / form.group_size; ++g) {
            const std::int64_t in_file = g * form.group_size / raw.file_group;
            float scale = 0;
            widen_to_f32(raw.scale_dtype, raw::scale_at(view, r, in_file), 1, &scale);
            out.scale.push_back(scale);
            if (form.offset == OffsetForm::zero_point) {
                out.zero_point.push_back(raw::zero_point(view, r, in_file));
                out.offset.push_back(-float(out.zero_point.back()) * scale);
            } else {
                out.offset.push_back(0.0F);
            }
        }
    }
}

Unpacked unpacked(const WeightRows& rows, const RawWeight& raw) {
    Unpacked out;
    const auto blocks = [&] { return compact(raw.packed, raw.order); };
    switch (raw.layout) {
        case RawLayout::dense:
            break;
        case RawLayout::q4_0:
            unpack_blocks<gguf::Q4_0>(blocks(), out);
            break;
        case RawLayout::q4_1:
            unpack_blocks<gguf::Q4_1>(blocks(), out);
            break;
        case RawLayout::q5_0:
            unpack_blocks<gguf::Q5_0>(blocks(), out);
            break;
        case RawLayout::q5_1:
            unpack_blocks<gguf::Q5_1>(blocks(), out);
            break;
        case RawLayout::q8_0:
            unpack_blocks<gguf::Q8_0>(blocks(), out);
            break;
        case RawLayout::q2_k:
            unpack_blocks<gguf::Q2_K>(blocks(), out);
            break;
        case RawLayout::q3_k:
            unpack_blocks<gguf::Q3_K>(blocks(), out);
            break;
        case RawLayout::q4_k:
            unpack_blocks<gguf::Q4_K>(blocks(), out);
            break;
        case RawLayout::q5_k:
            unpack_blocks<gguf::Q5_K>(blocks(), out);
            break;
        case RawLayout::q6_k:
            unpack_blocks<gguf::Q6_K>(blocks(), out);
            break;
        case RawLayout::iq4_nl:
            unpack_blocks<gguf::IQ4_NL>(blocks(), out);
            break;
        case RawLayout::iq4_xs:
            unpack_blocks<gguf::IQ4_XS>(blocks(), out);
            break;
        default:
            unpack_words(rows, raw, out);
    }
    return out;
}

Unpacked as_read(const WeightRows& rows) {
    Unpacked out;
    const auto cells = std::size_t(rows.rows() * rows.cols());
    const std::size_t groups = cells / std::size_t(rows.form().group_size);
    out.q.resize(cells);
    out.scale.resize(groups);
    out.offset.resize(groups);
    if (rows.form().offset == OffsetForm::zero_point) out.zero_point.resize(groups);
    WeightPlanes planes;
    planes.q = out.q.data();
    planes.scale = out.scale.data();
    planes.offset = out.offset.data();
    planes.zero_point = out.zero_point.empty() ? nullptr : out.zero_point.data();
    rows.read(0, rows.rows(), planes);
    return out;
}

// Whether raw() says the same as the reader; false also where there is no raw().
bool agrees(const WeightRows& rows) {
    const auto raw = rows.raw();
    if (!raw) return false;
    if (rows.form().grouped) return unpacked(rows, *raw) == as_read(rows);
    std::vector<std::byte> expected(std::size_t(rows.rows() * rows.cols()) * dtype_bytes(rows.form().dense));
    rows.read_dense(0, rows.rows(), expected.data());
    return raw->layout == RawLayout::dense && compact(raw->packed, raw->order) == expected;
}

QStringList models() {
    QStringList found;
    for (const char* room : {"/load", "/model"}) {
        QDirIterator it(QStringLiteral(RECTO_TEST_DATA) + QString::fromLatin1(room),
                        {QStringLiteral("config.json"), QStringLiteral("*.gguf")}, QDir::Files,
                        QDirIterator::Subdirectories);
        while (it.hasNext()) {
            const QFileInfo file(it.next());
            found << (file.suffix() == QStringLiteral("gguf") ? file.filePath() : file.path());
        }
    }
    found.sort();
    return found;
}

}  // namespace

class TestRawWeight : public QObject {
    Q_OBJECT

  private slots:
    void every_model_data() {
        QTest::addColumn<QString>("path");
        for (const QString& path : models())
            QTest::newRow(qPrintable(path.section(QLatin1Char('/'), -2))) << path;
    }

    void every_model() {
        QFETCH(QString, path);
        const auto source = open_model(path.toStdString());
        const ModelConfig& c = source->config();
        std::vector<std::unique_ptr<WeightRows>> weights;
        const auto add = [&](TensorRole role, int layer = 0, int expert = 0) {
            if (auto rows = source->weight(role, layer, expert)) weights.push_back(std::move(rows));
        };
        add(TensorRole::embedding);
        add(TensorRole::lm_head);
        for (int layer = 0; layer < c.layers; ++layer) {
            for (const auto role :
                 {TensorRole::attn_q, TensorRole::attn_k, TensorRole::attn_v, TensorRole::attn_o})
                add(role, layer);
            if (!c.is_mixture(layer)) {
                for (const auto role : {TensorRole::ffn_gate, TensorRole::ffn_up, TensorRole::ffn_down})
                    add(role, layer);
                continue;
            }
            for (int e = 0; e < c.experts.count; ++e)
                for (const auto role :
                     {TensorRole::expert_gate, TensorRole::expert_up, TensorRole::expert_down})
                    add(role, layer, e);
        }
        QVERIFY(!weights.empty());
        for (const auto& rows : weights) {
            // AutoAWQ's gemv_fast interleaves rows and inputs: its reader unpacks it on the host.
            const bool only_read = rows->form().grouped && rows->form().offset == OffsetForm::f16 &&
                                   rows->form().source_name == std::string("AWQ");
            QCOMPARE(agrees(*rows), !only_read);
        }
    }

    // Every type of GGUF, from the file that test_gguf_types reads.
    void gguf_types_data() {
        QTest::addColumn<int>("type");
        for (const auto type : {0, 1, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 20, 23, 30})
            QTest::newRow(gguf_type_info(std::uint32_t(type))->name) << type;
    }

    void gguf_types() {
        QFETCH(int, type);
        const GgufTypeInfo& info = *gguf_type_info(std::uint32_t(type));
        const std::int64_t rows = 12, cols = 512, blocks = rows * cols / info.elements;
        std::vector<std::byte> data(std::size_t(blocks * info.bytes));
        std::uint32_t state = 12345;  // xorshift32; NaN and infinite scales would not compare
        for (auto& byte : data) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            byte = std::byte(state & 0xBF);  // no half of these bytes has the exponent 31
        }
        for (const RowOrder order : {RowOrder{}, RowOrder{6, 4}}) {
            StoredMatrix matrix;
            matrix.data = data;
            matrix.rows = rows;
            matrix.cols = cols;
            matrix.order = order;
            QVERIFY(agrees(*make_gguf_rows(info.type, std::move(matrix))));
        }
        StoredMatrix matrix;
        matrix.data = data;
        matrix.rows = rows;
        matrix.cols = cols;
        const std::shared_ptr<const WeightRows> whole = make_gguf_rows(info.type, std::move(matrix));
        QVERIFY(agrees(*make_row_range(whole, 3, 5)));
    }

    // Parts of a fused matrix: whole words of outputs have raw bytes, others do not.
    void ranges() {
        int narrowed = 0;
        for (const QString& path : models()) {
            const auto source = open_model(path.toStdString());
            const std::shared_ptr<const WeightRows> whole = source->weight(TensorRole::attn_o, 0);
            if (!whole->raw() || whole->rows() < 24) continue;
            const auto range = make_row_range(whole, 8, 16);
            QVERIFY2(agrees(*range), qPrintable(path));
            const auto odd = make_row_range(whole, 3, 16);
            if (odd->raw())
                QVERIFY2(agrees(*odd), qPrintable(path));
            else
                QVERIFY2(whole->form().grouped, qPrintable(path));
            ++narrowed;
        }
        QVERIFY(narrowed > 10);
    }
};

RECTO_TEST_CLASS(TestRawWeight);
#include "test_raw_weight.moc"
