// Tokenizer files made of GGUF vocabularies give the ids that the vocabulary gives. Expected: llama.cpp's ids
// (tests/data/text/make_pre.py, make_starter.py) and the sentencepiece library's (make_sentencepiece.py).
#include <QTest>

#include "engine/save/tokenizer_writer.h"
#include "engine/text/sentencepiece_proto.h"
#include "starter_vocabulary.h"
#include "support/registry.h"

using namespace recto;
using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

namespace {

std::unique_ptr<Tokenizer> through_files(const TokenizerFiles& gguf) {
    const SavedTokenizer saved = saved_tokenizer(gguf, 2048);
    if (!saved.reason.empty()) throw std::runtime_error("left out: " + saved.reason);
    TokenizerFiles files;
    files.label = "written";
    for (const auto& [name, content] : saved.files) {
        if (name == "tokenizer.json") files.tokenizer_json = content;
        if (name == "tokenizer.model") files.sentencepiece_model = content;
        if (name == "tokenizer_config.json") files.tokenizer_config_json = content;
    }
    return make_tokenizer(files);
}

// The vocabulary of a tokenizer.model as a conversion to GGUF writes it.
TokenizerFiles gguf_of_model(const std::string& name) {
    const auto proto = read_sentencepiece_proto(test::stored_text("sp_" + name + ".model"), name);
    TokenizerFiles out;
    out.label = name;
    auto& gguf = out.gguf.emplace();
    gguf.model = "llama";
    for (const auto& piece : proto.pieces) {
        QString text = QString::fromStdString(piece.text);
        if (piece.type == SentencePieceProto::user_defined) text.replace(QChar(0x2581), ' ');
        gguf.tokens.push_back(text.toStdString());
        gguf.scores.push_back(piece.score);
        gguf.types.push_back(piece.type);
    }
    gguf.bos = proto.bos_id;
    gguf.eos = proto.eos_id;
    gguf.unknown = proto.unknown_id;
    gguf.add_bos = true;
    gguf.add_space_prefix = proto.add_dummy_prefix;
    return out;
}

}  // namespace

class TestSavedTokenizer : public QObject {
    Q_OBJECT
    Json pre_, texts_;
    TokenizerFiles starter_;

  private slots:
    void initTestCase() {
        try {
            pre_ = test::stored("pre.json");
            texts_ = test::stored("hard.json");
            starter_ = test::starter_files();
        } catch (const std::exception& e) {
            QFAIL(e.what());
        }
    }

    void byte_level_same_as_llama_cpp_data() {
        QTest::addColumn<QString>("name");
        for (const auto& [name, hashes] : pre_.at("names").items())
            QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }
    void byte_level_same_as_llama_cpp() {
        QFETCH(QString, name);
        starter_.gguf->pre = name.toStdString();
        const auto tokenizer = through_files(starter_);
        const auto& hashes = pre_.at("names").at(name.toStdString());
        QByteArray different;
        for (std::size_t i = 0; i < texts_.size(); ++i) {
            const std::string text = texts_[i];
            if (test::hash_of_ids(tokenizer->encode(text, {.add_bos = false})) !=
                hashes[i].get<std::uint32_t>())
                different += "\n  \"" + QByteArray::fromStdString(text) + "\"";
        }
        QVERIFY2(different.isEmpty(), different);
    }

    void special_tokens_stay_special() {
        starter_.gguf->pre = "smollm";
        const auto tokenizer = through_files(starter_);
        int cases = 0;
        const Json cases_of_starter = test::stored("starter.json").at("cases");
        for (const auto& c : cases_of_starter) {
            if (!c.value("special", false) || !c.contains("text")) continue;
            const std::string text = c.at("text");
            const Ids expected = c.at("ids");
            QVERIFY2(tokenizer->encode(text, {.add_bos = false, .parse_special = true}) == expected,
                     text.c_str());
            ++cases;
        }
        QVERIFY(cases > 5);
        QCOMPARE(tokenizer->bos(), 1);
        QCOMPARE(tokenizer->eos()[0], 2);
        QVERIFY(!tokenizer->adds_bos());
        starter_.gguf->add_bos = true;
        const auto with_bos = through_files(starter_);
        starter_.gguf->add_bos = false;
        QCOMPARE(with_bos->encode("").at(0), 1);
    }

    void sentencepiece_same_as_the_library_data() {
        QTest::addColumn<QString>("name");
        QTest::newRow("llama") << "llama";
        QTest::newRow("gemma") << "gemma";
    }
    void sentencepiece_same_as_the_library() {
        QFETCH(QString, name);
        const auto tokenizer = through_files(gguf_of_model(name.toStdString()));
        const Json expected = test::stored("sp_" + name.toStdString() + ".expected.json");
        QCOMPARE(tokenizer->size(), expected.at("size").get<int>());
        QCOMPARE(tokenizer->bos(), expected.at("bos").get<int>());
        QCOMPARE(tokenizer->eos()[0], expected.at("eos").get<int>());
        for (std::size_t i = 0; i < texts_.size(); ++i) {
            const std::string text = texts_[i];
            QCOMPARE(tokenizer->encode(text, {.add_bos = false}), Ids(expected.at("ids")[i]));
        }
        QCOMPARE(tokenizer->encode("a").front(), expected.at("bos").get<int>());
    }

    void what_cannot_be_written_says_why() {
        TokenizerFiles files = starter_;
        files.gguf->pre = "nobody's";
        QVERIFY(saved_tokenizer(files, 0).reason.find("nobody's") != std::string::npos);
        files.gguf->model = "rwkv";
        QVERIFY(saved_tokenizer(files, 0).reason.find("rwkv") != std::string::npos);
        files = starter_;
        files.gguf->tokens[300] = "\xFF\xFE";
        files.gguf->types[300] = 1;
        QVERIFY(!saved_tokenizer(files, 0).reason.empty());
        files = starter_;
        files.chat_template = "\xC3(";
        QVERIFY(saved_tokenizer(files, 0).reason.find("UTF-8") != std::string::npos);
    }
};

RECTO_TEST_CLASS(TestSavedTokenizer);
#include "test_saved_tokenizer.moc"
