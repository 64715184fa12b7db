// A find of the fuzz target: a file that declares its end token as ordinary and normalized. User text must
// not become that token; with parse_special it does.
#include <QFile>
#include <QTest>
#include <algorithm>

#include "engine/text/tokenizer.h"
#include "support/registry.h"

using namespace recto;

class TestDeclaredEnds : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void user_text_is_not_an_end() {
        QFile file(
            QStringLiteral(RECTO_TEST_DATA "/fuzz/fuzz_tokenizer_json/control_token_declared_ordinary"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        TokenizerFiles files;
        files.tokenizer_json = file.readAll().toStdString();
        files.label = "fuzz find";
        const auto tokenizer = make_tokenizer(files);
        const std::int32_t end = tokenizer->find("</s>");
        QVERIFY(end >= 0 && tokenizer->is_special(end));
        EncodeOptions options;
        options.add_bos = false;
        for (const std::int32_t id : tokenizer->encode("lo</s>lo", options))
            QVERIFY(id != end);
        options.parse_special = true;
        const auto ids = tokenizer->encode("lo</s>lo", options);
        QCOMPARE(std::count(ids.begin(), ids.end(), end), 1);
    }
};

RECTO_TEST_CLASS(TestDeclaredEnds);
#include "test_declared_ends.moc"
