// Bytes of tokens to text, piece by piece. Expected texts: Python's bytes.decode(errors="replace") stored in
// detokenizer.json (make_detokenizer.py), and the rule that splitting changes nothing.
#include <QTest>
#include <map>
#include <random>

#include "engine/text/utf8.h"
#include "starter_vocabulary.h"
#include "support/registry.h"

using namespace recto;
using Ids = std::vector<std::int32_t>;

namespace {

// Tokens 0–255 are the bytes, 256 and 257 control tokens, 258 " x", 259 "" (a padding token).
class ByteTokenizer final : public Tokenizer {
  public:
    explicit ByteTokenizer(bool strips = false) : strips_(strips) {
        for (int b = 0; b < 256; ++b)
            text_[static_cast<std::size_t>(b)] = std::string(1, static_cast<char>(b));
        text_[256] = "<a>";
        text_[257] = "<b>";
        text_[258] = " x";
    }
    Ids encode(std::string_view text, const EncodeOptions&) const override {
        Ids ids;
        for (const char c : text)
            ids.push_back(static_cast<unsigned char>(c));
        return ids;
    }
    int size() const override { return static_cast<int>(text_.size()); }
    std::string_view bytes(std::int32_t id) const override {
        return id >= 0 && id < size() ? std::string_view(text_[static_cast<std::size_t>(id)])
                                      : std::string_view();
    }
    std::string_view spelling(std::int32_t id) const override { return bytes(id); }
    bool is_special(std::int32_t id) const override { return id == 256 || id == 257; }
    std::int32_t find(std::string_view) const override { return -1; }
    std::int32_t bos() const override { return -1; }
    std::span<const std::int32_t> eos() const override { return {}; }
    bool adds_bos() const override { return false; }
    bool strips_leading_space() const override { return strips_; }
    std::string describe() const override { return "bytes"; }

  private:
    std::array<std::string, 260> text_;
    bool strips_;
};

}  // namespace

class TestDetokenizer : public QObject {
    Q_OBJECT

  private slots:
    void same_as_python() {
        const ByteTokenizer tokenizer;
        const auto data = test::stored("detokenizer.json");
        int cases = 0;
        for (const auto& c : data.at("cases")) {
            const std::string bytes = test::from_hex(c[0]);
            const std::string text = c[1];
            QCOMPARE(decode(tokenizer, tokenizer.encode(bytes, {})), text);
            QCOMPARE(replace_invalid_utf8(bytes), text);
            QCOMPARE(is_valid_utf8(bytes), bytes == text);
            ++cases;
        }
        QVERIFY(cases > 500);
    }

    // Random runs of valid characters and random bytes, from the words of a real vocabulary and byte by byte.
    void one_by_one_is_all_at_once() {
        const ByteTokenizer tokenizer;
        std::mt19937 random(7);
        for (int round = 0; round < 2000; ++round) {
            std::string bytes;
            const auto length = random() % 40;
            for (unsigned i = 0; i < length; ++i) {
                if (random() % 2 == 0) {
                    append_utf8(bytes,
                                std::array<char32_t, 5>{U'a', U'é', U'漢', U'😀', U'\u0301'}[random() % 5]);
                } else {
                    bytes += static_cast<char>(random());
                }
            }
            Detokenizer detokenizer(tokenizer);
            std::string text;
            for (const auto id : tokenizer.encode(bytes, {})) {
                const std::string piece = detokenizer.append(id);
                QVERIFY(is_valid_utf8(piece));
                text += piece;
                // What went out is never taken back: it is the beginning of the whole.
                QVERIFY(replace_invalid_utf8(bytes).starts_with(text));
            }
            text += detokenizer.flush();
            QCOMPARE(text, replace_invalid_utf8(bytes));
        }
    }

    void nothing_waits_longer_than_it_must() {
        const ByteTokenizer tokenizer;
        Detokenizer detokenizer(tokenizer);
        QCOMPARE(detokenizer.append(0xF0), std::string());
        QCOMPARE(detokenizer.append(0x9F), std::string());
        QCOMPARE(detokenizer.append(0x98), std::string());
        QCOMPARE(detokenizer.append(0x80), std::string("😀"));
        QCOMPARE(detokenizer.append(0xF0), std::string());
        QCOMPARE(detokenizer.append('a'), std::string("\uFFFDa"));
        QCOMPARE(detokenizer.append(0xFF), std::string("\uFFFD"));
        QCOMPARE(detokenizer.append(0xE4), std::string());
        QCOMPARE(detokenizer.flush(), std::string("\uFFFD"));
        QCOMPARE(detokenizer.flush(), std::string());
    }

    void special_tokens() {
        const ByteTokenizer tokenizer;
        const Ids ids = {'x', 256, 257, 'y', 256, 256, 0xE4, 257, 0xBD};
        QCOMPARE(decode(tokenizer, ids), std::string("xy\uFFFD"));
        QCOMPARE(decode(tokenizer, ids, {.skip_special = false}),
                 std::string("x<a> <b>y<a> <a>\uFFFD<b>\uFFFD"));
        QCOMPARE(decode(tokenizer, ids, {.skip_special = false, .spaces_between_special = false}),
                 std::string("x<a><b>y<a><a>\uFFFD<b>\uFFFD"));
        QCOMPARE(decode(tokenizer, Ids{259, -1, 100000, 'z'}), std::string("z"));
    }

    void one_leading_blank() {
        const ByteTokenizer strips(true);
        const ByteTokenizer keeps(false);
        const Ids ids = {256, 258, 258, ' '};
        QCOMPARE(decode(strips, ids, {.at_start = true}), std::string("x x "));
        QCOMPARE(decode(strips, ids, {.at_start = false}), std::string(" x x "));
        QCOMPARE(decode(keeps, ids, {.at_start = true}), std::string(" x x "));
        QCOMPARE(decode(strips, Ids{' ', ' ', 'a'}, {.at_start = true}), std::string(" a"));
        QCOMPARE(decode(strips, Ids{'a', ' '}, {.at_start = true}), std::string("a "));
    }
};

RECTO_TEST_CLASS(TestDetokenizer);
#include "test_detokenizer.moc"
