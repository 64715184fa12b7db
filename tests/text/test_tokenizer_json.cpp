// BPE from tokenizer.json. Expected ids and texts: Hugging Face's tokenizers library on the same files
// (tests/data/text/make_json.py).
#include <QTest>
#include <functional>

#include "cpu_timer.h"
#include "kernels/error.h"
#include "starter_vocabulary.h"
#include "support/registry.h"

using namespace recto;
using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

namespace {

TokenizerFiles files(const std::string& name) {
    TokenizerFiles out;
    out.label = name;
    out.tokenizer_json = test::stored_text("json_" + name + ".json");
    return out;
}

QByteArray difference(const std::string& text, const Ids& got, const Ids& expected) {
    QByteArray out = "text \"" + QByteArray::fromStdString(text) + "\"\n  got      ";
    for (std::size_t i = 0; i < got.size() && i < 40; ++i)
        out += QByteArray::number(got[i]) + ' ';
    out += "\n  expected ";
    for (std::size_t i = 0; i < expected.size() && i < 40; ++i)
        out += QByteArray::number(expected[i]) + ' ';
    return out;
}

}  // namespace

class TestTokenizerJson : public QObject {
    Q_OBJECT

  private slots:
    void same_as_the_library_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : {"gpt2", "prefix", "llama3", "qwen2", "smollm", "falcon", "cased", "splits",
                                 "llama2", "metaspace_first", "metaspace_always", "gemma", "rules"})
            QTest::newRow(name) << QString::fromLatin1(name);
    }
    void same_as_the_library() {
        QFETCH(QString, name);
        const auto tokenizer = make_tokenizer(files(name.toStdString()));
        const Json texts = test::stored("hard.json");
        const Json expected = test::stored("json_" + name.toStdString() + ".expected.json");
        QCOMPARE(tokenizer->size(), expected.at("size").get<int>());
        for (std::size_t i = 0; i < texts.size(); ++i) {
            const std::string text = texts[i];
            const Ids ids = tokenizer->encode(text, {.add_bos = false});
            const Ids want = expected.at("plain")[i];
            QVERIFY2(ids == want, difference(text, ids, want));
            const Json& stored = expected.at("decoded")[i];
            const std::string decoded = stored.is_null() ? text : stored.get<std::string>();
            QCOMPARE(
                QString::fromStdString(decode(*tokenizer, ids, {.skip_special = false, .at_start = true})),
                QString::fromStdString(decoded));
        }
        for (const auto& c : expected.at("special")) {
            const std::string text = c[0];
            const Ids ids = tokenizer->encode(text, {.add_bos = false, .parse_special = true});
            const Ids want = c[1];
            QVERIFY2(ids == want, difference(text, ids, want));
        }
        QCOMPARE(tokenizer->encode("Hello world"), expected.at("with_bos").get<Ids>());
    }

    // One unsplit word of a million characters: the merges of these files see no pre-tokenizer.
    void long_words_are_linear() {
        for (const char* name : {"llama2", "gemma", "gpt2"}) {
            const auto tokenizer = make_tokenizer(files(name));
            for (const char* unit : {"a", " ", "the ", "😀"}) {
                std::string text;
                while (text.size() < 1000000)
                    text += unit;
                const test::CpuTimer timer;
                const Ids ids = tokenizer->encode(text, {.add_bos = false});
                QVERIFY2(timer.elapsed_s() < 2.0, QByteArray(name) + " " + unit + " took " +
                                                      QByteArray::number(timer.elapsed_s()) + " s");
                QCOMPARE(decode(*tokenizer, ids, {.at_start = true}), text);
            }
        }
    }

    void inner_pieces_get_no_prefix_space() {
        for (const char* name : {"llama2", "metaspace_first", "metaspace_always", "prefix"}) {
            const auto tokenizer = make_tokenizer(files(name));
            const Ids inner = tokenizer->encode("the quick", {.add_bos = false, .at_start = false});
            QCOMPARE(decode(*tokenizer, inner, {.at_start = false}), std::string("the quick"));
            const Ids first = tokenizer->encode("the quick", {.add_bos = false, .at_start = true});
            QCOMPARE(decode(*tokenizer, first, {.at_start = false}), std::string(" the quick"));
        }
    }

    void config_names_bos_and_eos() {
        TokenizerFiles f = files("gpt2");
        f.tokenizer_config_json =
            R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "add_bos_token": true,
            "added_tokens_decoder": {"900": {"content": "<|eot_id|>", "special": false}}})";
        const auto tokenizer = make_tokenizer(f);
        QCOMPARE(tokenizer->bos(), tokenizer->find("<s>"));
        QVERIFY(tokenizer->adds_bos());
        QCOMPARE(tokenizer->encode("x").front(), tokenizer->bos());
        QCOMPARE(tokenizer->eos()[0], tokenizer->find("</s>"));
        QCOMPARE(tokenizer->size(), 901);
        QVERIFY(tokenizer->is_special(900));  // a turn end is a control token whatever the file says
        QCOMPARE(tokenizer->encode("<|eot_id|>", {.add_bos = false, .parse_special = true}), Ids{900});
        QVERIFY(tokenizer->encode("<|eot_id|>", {.add_bos = false}).size() > 1);
        f.tokenizer_config_json = R"({"add_bos_token": false, "bos_token": "<s>"})";
        f.tokenizer_json = files("llama3").tokenizer_json;
        QVERIFY(!make_tokenizer(f)->adds_bos());
    }

    void what_is_not_supported_is_named_data() {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("value");
        QTest::addColumn<QString>("named");
        const auto row = [](const char* path, const char* value, const char* named) {
            QTest::addRow("%s = %s", path, value) << path << QString(value).replace('\'', '"') << named;
        };
        row("/model/type", "'Unigram'", "Unigram");
        row("/normalizer", "{'type':'Nmt'}", "Nmt");
        row("/normalizer", "{'type':'Replace','pattern':{'Regex':'('},'content':''}", "fails at character");
        row("/normalizer", "[]", "array");
        row("/pre_tokenizer", "{'type':'BertPreTokenizer'}", "BertPreTokenizer");
        row("/pre_tokenizer", "{'type':'Split','pattern':{'Regex':'[a-z&&[^b]]'},'behavior':'Isolated'}",
            "&&");
        row("/pre_tokenizer", "{'type':'Split','pattern':{'Regex':'a'},'behavior':'Sideways'}", "Sideways");
        row("/post_processor", "{'type':'Magic'}", "Magic");
        row("/decoder", "{'type':'WordPiece'}", "WordPiece");
        row("/decoder", "{'type':'Fuse'}", "ByteLevel");
        row("/model/vocab/a", "-5", "-5");
        row("/model/vocab/a", "2000000000", "2000000000");
        row("/model/vocab/a", "'x'", "string");
        row("/model/merges", "['zz qq']", "zz qq");
        row("/model/merges", "[['a']]", "merge");
        row("/model/merges", "3", "number");
        row("/model/dropout", "0.1", "dropout");
        row("/model/end_of_word_suffix", "'</w>'", "end_of_word_suffix");
        row("/model/unk_token", "'<nowhere>'", "<nowhere>");
        row("/added_tokens", "[{'id':99999999,'content':'x'}]", "99999999");
        row("/added_tokens", "[{'id':1}]", "content");
    }
    void what_is_not_supported_is_named() {
        QFETCH(QString, path);
        QFETCH(QString, value);
        QFETCH(QString, named);
        TokenizerFiles f = files("gpt2");
        Json json = Json::parse(f.tokenizer_json);
        json[Json::json_pointer(path.toStdString())] = Json::parse(value.toStdString());
        f.tokenizer_json = json.dump();
        try {
            make_tokenizer(f);
            QFAIL("no error");
        } catch (const Error& e) {
            QCOMPARE(e.kind(), ErrorKind::input);
            const QString sentence = QString::fromUtf8(e.what());
            QVERIFY2(sentence.startsWith("gpt2: ") && sentence.contains(named), e.what());
        }
    }

    void broken_json_is_an_error() {
        TokenizerFiles f = files("gpt2");
        for (const std::string& text :
             {std::string("{"), std::string("[]"), std::string("null"), std::string("\xff"),
              std::string(100000, '['), f.tokenizer_json.substr(0, 5000)}) {
            f.tokenizer_json = text;
            QVERIFY_EXCEPTION_THROWN(make_tokenizer(f), Error);
        }
        f = files("gpt2");
        f.tokenizer_config_json = R"({"added_tokens_decoder": {"x": {"content": "y"}}})";
        QVERIFY_EXCEPTION_THROWN(make_tokenizer(f), Error);
    }
};

RECTO_TEST_CLASS(TestTokenizerJson);
#include "test_tokenizer_json.moc"
