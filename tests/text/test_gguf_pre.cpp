// The pre-tokenizers that GGUF files name, under the starter model's vocabulary. Expected: hashes of
// llama.cpp's ids (tests/data/text/make_pre.py).
#include <QTest>

#include "engine/text/gguf_pre.h"
#include "starter_vocabulary.h"
#include "support/registry.h"

using namespace recto;

class TestGgufPre : public QObject {
    Q_OBJECT
    nlohmann::json data_, texts_;
    TokenizerFiles files_;

  private slots:
    void initTestCase() {
        try {
            data_ = test::stored("pre.json");
            texts_ = test::stored("hard.json");
            files_ = test::starter_files();
        } catch (const std::exception& e) {
            QFAIL(e.what());
        }
    }

    void same_as_llama_cpp_data() {
        QTest::addColumn<QString>("name");
        for (const auto& [name, hashes] : data_.at("names").items())
            QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }
    void same_as_llama_cpp() {
        QFETCH(QString, name);
        files_.gguf->pre = name.toStdString();
        const auto tokenizer = make_tokenizer(files_);
        const auto& hashes = data_.at("names").at(name.toStdString());
        QCOMPARE(hashes.size(), texts_.size());
        QByteArray different;
        for (std::size_t i = 0; i < texts_.size(); ++i) {
            const std::string text = texts_[i];
            if (test::hash_of_ids(tokenizer->encode(text, {.add_bos = false})) !=
                hashes[i].get<std::uint32_t>())
                different += "\n  \"" + QByteArray::fromStdString(text) + "\"";
        }
        QVERIFY2(different.isEmpty(), different);
    }
};

RECTO_TEST_CLASS(TestGgufPre);
#include "test_gguf_pre.moc"
