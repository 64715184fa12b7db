// The GGUF container: every limit of llama.cpp's ggml/src/gguf.cpp as a small bad file.
#include <QTest>

#include "engine/load/gguf.h"
#include "engine/load/gguf_files.h"
#include "load/gguf_builder.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

void parse(const std::string& bytes) {
    (void)Gguf(bytes_of(bytes), "m.gguf");
}

void check_refused(const std::string& bytes, const std::string& fragment) {
    const AllocationProbe probe;
    check_refusal([&] { parse(bytes); }, "m.gguf: ", fragment);
    // A small multiple of the file at most, whatever it announces.
    QVERIFY2(probe.largest_bytes() <= std::max<std::size_t>(8 * bytes.size(), 4096),
             std::to_string(probe.largest_bytes()).c_str());
}

GgufBuilder one_tensor() {
    GgufBuilder b;
    b.text("general.architecture", "llama").counted_tensor("a", {8, 2}).counted_tensor("b", {8});
    return b;
}

}  // namespace

class TestGguf : public QObject {
    Q_OBJECT

  private slots:
    void reads_every_value_type() {
        GgufBuilder b;
        b.pair("u8", 0, Bytes().put<std::uint8_t>(250)).pair("i8", 1, Bytes().put<std::int8_t>(-5));
        b.pair("u16", 2, Bytes().put<std::uint16_t>(65000)).pair("i16", 3, Bytes().put<std::int16_t>(-300));
        b.u32("u32", 4000000000U).pair("i32", 5, Bytes().put<std::int32_t>(-70000)).f32("f32", 0.25F);
        b.boolean("yes", 1).boolean("no", 0).text("text", "caf\xC3\xA9");
        b.texts("texts", {"a", "", "b c"}).array<float>("floats", 6, {1.5F, -2.0F});
        b.array<std::int32_t>("ints", 5, {3, -4}).array<std::uint8_t>("bytes", 0, {7});
        b.pair("u64", 10, Bytes().put<std::uint64_t>(1ULL << 40))
            .pair("i64", 11, Bytes().put<std::int64_t>(-9));
        b.pair("f64", 12, Bytes().put<double>(1e-300));
        const std::string bytes = b.bytes();
        const Gguf g(bytes_of(bytes), "m.gguf");
        QCOMPARE(g.integer("u8").value(), 250);
        QCOMPARE(g.integer("i8").value(), -5);
        QCOMPARE(g.integer("u16").value(), 65000);
        QCOMPARE(g.integer("i16").value(), -300);
        QCOMPARE(g.integer("u32").value(), 4000000000LL);
        QCOMPARE(g.integer("i32").value(), -70000);
        QCOMPARE(g.number("f32").value(), 0.25);
        QCOMPARE(g.number("u8").value(), 250.0);
        QCOMPARE(g.boolean("yes").value(), true);
        QCOMPARE(g.boolean("no").value(), false);
        QVERIFY(g.text("text").value() == "caf\xC3\xA9");
        QVERIFY((g.texts("texts").value() == std::vector<std::string>{"a", "", "b c"}));
        QVERIFY((g.floats("floats").value() == std::vector<float>{1.5F, -2.0F}));
        QVERIFY((g.integers("ints").value() == std::vector<std::int32_t>{3, -4}));
        QVERIFY((g.integers("bytes").value() == std::vector<std::int32_t>{7}));
        QCOMPARE(g.integer("u64").value(), 1LL << 40);
        QCOMPARE(g.integer("i64").value(), -9);
        QCOMPARE(g.number("f64").value(), 1e-300);
        QVERIFY(!g.integer("absent").has_value());
    }

    void says_which_type_was_expected() {
        GgufBuilder b;
        b.text("text", "x").u32("number", 1).array<float>("floats", 6, {1.0F});
        b.pair("big", 10, Bytes().put<std::uint64_t>(~0ULL));
        const std::string bytes = b.bytes();
        const Gguf g(bytes_of(bytes), "m.gguf");
        check_refusal([&] { (void)g.integer("text"); }, "m.gguf: ", "\"text\" should hold a whole number");
        check_refusal([&] { (void)g.integer("big"); }, "m.gguf: ", "\"big\" should hold a whole number");
        check_refusal([&] { (void)g.number("text"); }, "m.gguf: ", "a number");
        check_refusal([&] { (void)g.boolean("number"); }, "m.gguf: ", "true or false");
        check_refusal([&] { (void)g.text("number"); }, "m.gguf: ", "a string");
        check_refusal([&] { (void)g.texts("floats"); }, "m.gguf: ", "an array of strings");
        check_refusal([&] { (void)g.floats("number"); }, "m.gguf: ", "floating-point");
        check_refusal([&] { (void)g.integers("floats"); }, "m.gguf: ", "whole numbers");
    }

    void places_tensors() {
        const std::string bytes = one_tensor().bytes();
        const Gguf g(bytes_of(bytes), "m.gguf");
        QCOMPARE(g.tensors().size(), 2U);
        QCOMPARE(g.find("a")->dims[1], 2);
        QCOMPARE(g.find("b")->data.size(), 32U);
        float value = 0;
        std::memcpy(&value, g.find("b")->data.data() + 4, 4);
        QCOMPARE(value, 1.0F / 64.0F);
        QVERIFY(g.find("c") == nullptr);
    }

    void accepts_what_the_format_allows() {
        auto version_2 = one_tensor();
        version_2.version = 2;
        parse(version_2.bytes());
        auto unpadded = one_tensor();  // missing padding after the last tensor
        unpadded.tensors.back().dims = {3};
        unpadded.tensors.back().data.resize(12);
        unpadded.pad_last = false;
        parse(unpadded.bytes());
        auto aligned = one_tensor();
        aligned.u32("general.alignment", 8).alignment = 8;
        parse(aligned.bytes());
        GgufBuilder empty;  // a vocabulary only
        empty.text("general.architecture", "llama");
        parse(empty.bytes());
        auto no_elements = one_tensor();
        no_elements.tensors.back() = {"b", {0}, 0, "", {}};
        parse(no_elements.bytes());
    }

    void refuses_bad_headers() {
        auto b = one_tensor();
        b.magic = "ggjt";
        check_refused(b.bytes(), "begins with \"ggjt\"");
        b = one_tensor();
        b.version = 1;
        check_refused(b.bytes(), "has version 1");
        b.version = 4;
        check_refused(b.bytes(), "has version 4");
        b.version = 3U << 24;
        check_refused(b.bytes(), "big-endian");
        for (const std::int64_t count : {std::int64_t(-1), std::int64_t(1) << 40, INT64_MAX}) {
            b = one_tensor();
            b.tensor_count = count;
            check_refused(b.bytes(), "tensors, more than fit");
            b = one_tensor();
            b.pair_count = count;
            check_refused(b.bytes(), "key/value pairs, more than fit");
        }
    }

    void refuses_every_truncation() {
        auto b = one_tensor();
        b.texts("texts", {"a", "b"}).array<float>("floats", 6, {1.0F, 2.0F});
        const std::string whole = b.bytes();
        const std::size_t needed = whole.size();  // both tensors end at a multiple of 32
        for (std::size_t n = 0; n < needed; ++n) {
            const std::string sentence = refusal([&] { parse(whole.substr(0, n)); });
            QVERIFY2(sentence.starts_with("m.gguf: "), sentence.c_str());
        }
    }

    void refuses_bad_pairs() {
        auto b = one_tensor();
        b.u32("x", 1).u32("x", 2);
        check_refused(b.bytes(), "the key \"x\" occurs twice");
        b = one_tensor();
        b.u32("", 1);
        check_refused(b.bytes(), "is empty");
        b = one_tensor();
        b.pair("x", 13, Bytes().put<std::uint64_t>(0));
        check_refused(b.bytes(), "value of type 13");
        b = one_tensor();
        b.boolean("x", 2);
        check_refused(b.bytes(), "should be true or false");
        b = one_tensor();
        b.pair("x", 9, Bytes().put<std::uint32_t>(9).put<std::uint64_t>(0));  // an array of arrays
        check_refused(b.bytes(), "elements of type 9");
        b = one_tensor();
        b.pair("x", 9, Bytes().put<std::uint32_t>(8).put<std::uint64_t>(1ULL << 60));
        check_refused(b.bytes(), "announces 1152921504606846976 elements");
        b = one_tensor();
        b.pair("x", 9, Bytes().put<std::uint32_t>(12).put<std::uint64_t>(1ULL << 61));  // × 8 overflows
        check_refused(b.bytes(), "announces");
        b = one_tensor();
        b.pair("x", 8, Bytes().put<std::uint64_t>(~0ULL));
        check_refused(b.bytes(), "a string value should take 18446744073709551615 bytes");
    }

    void refuses_bad_tensors() {
        auto b = one_tensor();
        b.tensors[1].name = "a";
        check_refused(b.bytes(), "the tensor name \"a\" occurs twice");
        b = one_tensor();
        b.tensors[1].name = std::string(64, 'n');
        check_refused(b.bytes(), "has 64 bytes; at most 63");
        b = one_tensor();
        b.tensors[0].dims = {1, 1, 1, 1, 16};
        check_refused(b.bytes(), "has 5 dimensions");
        b = one_tensor();
        b.tensors[0].dims = {-8, 2};
        check_refused(b.bytes(), "negative dimension -8");
        b = one_tensor();
        b.tensors[0].dims = {std::int64_t(1) << 32, std::int64_t(1) << 32};
        check_refused(b.bytes(), "more than 2^63 elements");
        b = one_tensor();
        b.tensors[0].dims = {0, std::int64_t(1) << 62, 4};
        check_refused(b.bytes(), "more than 2^63 elements");
        b = one_tensor();
        b.tensors[0].dims = {std::int64_t(1) << 62};
        check_refused(b.bytes(), "");
        b = one_tensor();
        b.tensors[0].type = 2;
        check_refused(b.bytes(), "not a multiple of Q4_0's block of 32");
        b = one_tensor();
        b.tensors[0].type = 16;
        check_refused(b.bytes(), "has IQ2_XXS data, which is not supported; supported are F32, F16");
        b.tensors[0].type = 4000;
        check_refused(b.bytes(), "has type 4000 data");
        b = one_tensor();
        b.tensors[1].offset = 0;  // overlaps the first
        check_refused(b.bytes(), "should begin at data offset 64, the file says 0");
        b.tensors[1].offset = 96;  // leaves a hole
        check_refused(b.bytes(), "should begin at data offset 64, the file says 96");
        b = one_tensor();
        b.tensors[1].dims = {1000};
        check_refused(b.bytes(), "should take 4000 bytes at data offset 64");
    }

    void refuses_bad_alignment() {
        for (const std::uint32_t alignment : {0U, 24U, 3U}) {
            auto b = one_tensor();
            b.u32("general.alignment", alignment);
            check_refused(b.bytes(), "should be a power of two, found " + std::to_string(alignment));
        }
        auto huge = one_tensor();
        huge.u32("general.alignment", 1U << 31);  // the data would begin behind the file's end
        check_refused(huge.bytes(), "the data ends at 0");
    }

    void shows_only_printable_bytes_of_names() {
        auto b = one_tensor();
        b.tensors[0].name = b.tensors[1].name = "bad\n\x1B[2J\xFFname";
        check_refused(b.bytes(), "\"bad??[2J?name\" occurs twice");
    }

    void opens_split_files() {
        const auto part = [](int number, const std::string& tensor) {
            GgufBuilder b;
            b.pair("split.no", 2, Bytes().put(std::uint16_t(number)));
            b.pair("split.count", 2, Bytes().put<std::uint16_t>(2)).u32("split.tensors.count", 2);
            b.counted_tensor(tensor, {8});
            return b;
        };
        const Scratch scratch;
        const auto first = scratch.write("m-00001-of-00002.gguf", part(0, "a").bytes());
        const auto second = scratch.write("m-00002-of-00002.gguf", part(1, "b").bytes());
        for (const auto& path : {first, second}) {
            const GgufFiles files(path);
            QCOMPARE(files.tensors().size(), 2U);
            QVERIFY(files.find("a") != nullptr && files.find("b") != nullptr);
            QVERIFY(files.metadata().label() == first.string());
        }
        const auto open = [](const std::filesystem::path& path) { return [path] { (void)GgufFiles(path); }; };
        scratch.write("m-00002-of-00002.gguf", part(1, "a").bytes());
        check_refusal(open(first), second.string(), "is also in another part");
        scratch.write("m-00002-of-00002.gguf", part(0, "b").bytes());
        check_refusal(open(first), second.string(), "split.no should be 1");
        auto extra = part(1, "b");
        extra.counted_tensor("c", {8});
        scratch.write("m-00002-of-00002.gguf", extra.bytes());
        check_refusal(open(first), first.string(), "should hold 2 tensors together, found 3");
        std::filesystem::remove(second);
        check_refusal(open(first), second.string(), "cannot be opened");
        check_refusal(open(scratch.write("m.gguf", part(0, "a").bytes())),
                      (scratch.path() / "m.gguf").string(), "should end in -00001-of-00002.gguf");
    }

    void refuses_what_is_no_file() {
        const Scratch scratch;
        const auto open = [](const std::filesystem::path& path) { return [path] { (void)GgufFiles(path); }; };
        check_refusal(open(scratch.path() / "none.gguf"), (scratch.path() / "none.gguf").string(),
                      "cannot be opened");
        check_refusal(open(scratch.path()), scratch.path().string(), "a regular file was expected");
        check_refusal(open(scratch.write("empty.gguf", "")), scratch.path().string(), "empty");
    }
};

RECTO_TEST_CLASS(TestGguf);
#include "test_gguf.moc"
