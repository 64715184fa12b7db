// The safetensors container: every row of what the reference library (huggingface/safetensors) refuses and
// accepts.
#include <QTest>
#include <cstring>

#include "engine/load/safetensors.h"
#include "load/files.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;

namespace {

std::string file(const std::string& header, std::size_t data_bytes) {
    return Bytes().put<std::uint64_t>(header.size()).raw(header).raw(std::string(data_bytes, 'd')).text();
}

void parse(const std::string& bytes) {
    (void)Safetensors(bytes_of(bytes), "m.safetensors");
}

void check_refused(const std::string& bytes, const std::string& fragment) {
    const AllocationProbe probe;
    check_refusal([&] { parse(bytes); }, "m.safetensors: ", fragment);
    QVERIFY2(probe.largest_bytes() <= std::max<std::size_t>(8 * bytes.size(), 4096),
             std::to_string(probe.largest_bytes()).c_str());
}

// One tensor "a".
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

}  // namespace

class TestSafetensors : public QObject {
    Q_OBJECT

  private slots:
    void reads_tensors() {
        const std::string bytes =
            file(R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,1],"data_offsets":[2,10]},)"
                 R"("a":{"shape":[],"data_offsets":[0,2],"dtype":"BF16"}}   )",
                 10);
        const Safetensors s(bytes_of(bytes), "m.safetensors");
        QCOMPARE(s.tensors().size(), 2U);
        QCOMPARE(s.tensors()[0].name, std::string("a"));  // by place, not by order in the header
        QCOMPARE(s.find("a")->data.size(), 2U);
        QCOMPARE(s.find("b")->dtype, std::string("F32"));
        QVERIFY((s.find("b")->shape == std::vector<std::int64_t>{2, 1}));
        QVERIFY(s.find("c") == nullptr);
    }

    void accepts_what_the_reference_accepts() {
        parse(file("{}", 0));
        parse(file(" {}\n", 0));
        parse(file(entry("F32", "[1]", "[0,4]") + " ", 4));  // odd header length: an unaligned tensor
        parse(file(entry("F32", "[0,7]", "[0,0]"), 0));      // a zero dimension
        parse(file(entry("I64", "[]", "[0,8]"), 8));         // a scalar
        parse(file(entry("F4", "[4]", "[0,2]"), 2));         // less than a byte an element
        parse(file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":{"x":[1,[2.5]],"y":null}}})",
                   1));
        parse(file(R"({"__metadata__":{}})", 0));
        parse(file(R"({"__metadata__":null})", 0));
    }

    void refuses_bad_lengths() {
        check_refused("1234567", "the header's length should take 8 bytes");
        check_refused(Bytes().put<std::uint64_t>(100'000'001).raw("{}").text(), "at most 100000000 bytes");
        check_refused(Bytes().put<std::uint64_t>(~0ULL).raw("{}").text(), "given as 18446744073709551615");
        check_refused(Bytes().put<std::uint64_t>(3).raw("{}").text(), "the header should take 3 bytes");
        const std::string whole = file(entry("U8", "[4]", "[0,4]"), 4);
        for (std::size_t n = 0; n < whole.size(); ++n) {
            const std::string sentence = refusal([&] { parse(whole.substr(0, n)); });
            QVERIFY2(sentence.starts_with("m.safetensors: "), sentence.c_str());
        }
        check_refused(whole + "x", "they end at 4");
    }

    void refuses_bad_json_data() {
        QTest::addColumn<QByteArray>("header");
        QTest::addColumn<QString>("fragment");
        const auto row = [](const char* name, const std::string& header, const char* fragment) {
            QTest::newRow(name) << QByteArray::fromStdString(header) << fragment;
        };
        row("empty", "", "should be valid JSON");
        row("syntax", "{\"a\":", "should be valid JSON");
        row("invalid UTF-8", std::string("{\"\xFF\":1}"), "should be valid JSON");
        row("bytes after it", "{}x", "should be valid JSON");
        row("zero byte after it", std::string("{}\0", 3), "should be valid JSON");
        row("byte order mark", "\xEF\xBB\xBF{}", "should be valid JSON");
        row("list", "[]", "should be a JSON object, found a list");
        row("number", "7", "should be a JSON object, found the number 7");
        row("entry is a number", R"({"a":1})", "should hold an object, found the number 1");
        row("entry is null", R"({"a":null})", "should hold an object, found null");
        row("metadata holds a number", R"({"__metadata__":{"x":1}})",
            "should hold strings, found the number 1");
        row("metadata holds an object", R"({"__metadata__":{"x":{}}})",
            "should hold strings, found an object");
        row("dtype is a number", R"({"a":{"dtype":1}})", "should hold a string as dtype, found the number 1");
        row("shape is a string", R"({"a":{"shape":"x"}})",
            "a list of whole numbers as shape, found the string");
        row("shape is a number", R"({"a":{"shape":3}})", "found the number 3");
        row("shape is nested", R"({"a":{"shape":[[1]]}})", "found a list");
        row("negative", entry("U8", "[-1]", "[0,1]"), "negative number -1");
        row("fraction", entry("U8", "[1.0]", "[0,1]"), "found 1.0");
        row("no dtype", R"({"a":{"shape":[1],"data_offsets":[0,1]}})", "has no dtype");
        row("no shape", R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", "has no shape");
        row("no offsets", R"({"a":{"dtype":"U8","shape":[1]}})", "has no data_offsets");
        row("one offset", entry("U8", "[1]", "[0]"), "two data_offsets, found 1");
        row("three offsets", entry("U8", "[1]", "[0,1,2]"), "two data_offsets, found 3");
        row("unknown dtype", entry("Q4", "[1]", "[0,1]"), "the dtype \"Q4\"");
        row("field twice", R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
            "has the key \"dtype\" twice");
        row("name twice",
            R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
            "the name \"a\" occurs twice");
        row("deep", R"({"a":{"x":)" + std::string(5000, '['), "nested more than 100 deep");
    }
    void refuses_bad_json() {
        QFETCH(QByteArray, header);
        QFETCH(QString, fragment);
        check_refused(file(header.toStdString(), 1), fragment.toStdString());
    }

    void refuses_bad_places() {
        check_refused(file(entry("U8", "[4]", "[1,5]"), 5), "should begin at data offset 0");
        check_refused(file(entry("U8", "[4]", "[0,4]"), 3), "should end between data offsets 0 and 3");
        check_refused(file(entry("U8", "[0]", "[0,18446744073709551615]"), 3), "says 18446744073709551615");
        check_refused(file(entry("U8", "[4]", "[4,0]"), 4), "should begin at data offset 0");
        check_refused(file(entry("F32", "[2]", "[0,4]"), 4), "should take 8 bytes by its shape and dtype");
        check_refused(file(entry("F32", "[4294967296,4294967296]", "[0,0]"), 0), "larger than 2^64");
        check_refused(file(entry("F32", "[4611686018427387904]", "[0,0]"), 0), "larger than 2^64");
        check_refused(file(entry("F4", "[3]", "[0,2]"), 2), "whole byte");
        const auto two = [](const std::string& first, const std::string& second) {
            return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
                   R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
        };
        check_refused(file(two("[0,4]", "[5,9]"), 9), "\"b\" should begin at data offset 4");  // a gap
        check_refused(file(two("[0,4]", "[2,6]"), 6), "\"b\" should begin at data offset 4");  // an overlap
        check_refused(file(two("[0,4]", "[0,4]"), 4),
                      "should begin at data offset 4");  // the same bytes twice
    }
};

RECTO_TEST_CLASS(TestSafetensors);
#include "test_safetensors.moc"
