// A growing document against itself: whatever the pieces, the finished blocks are those of the whole text,
// and those of the plain parser where the text has no construct that pieces see differently.
#include <QElapsedTimer>
#include <QRandomGenerator>
#include <QTest>

#include "support/registry.h"
#include "ui/markdown/document.h"
#include "ui/markdown/parse.h"

using namespace recto::ui::markdown;

namespace {

QString rich_text() {
    return QString::fromUtf8(
        "# Title\n\nA paragraph with **bold**, `code` and 中文**重點，**字。\nsecond line\n\n"
        "- one\n- two\n  - nested\n  - more\n- three\n\n"
        "1. first\n2. second\n\n   still second\n3. third\n\n"
        "> quoted\n> text\n\n---\n\n"
        "```cpp\nint main() {\n\n    return 0;\n}\n```\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        "\\[\n- x = 1\n\\]\n\n"
        "    indented code\n\n    more of it\n\n"
        "End with https://example.org and $5.\n");
}

std::vector<Block> fed(const QString& text, const std::function<int()>& piece) {
    Document document;
    for (qsizetype at = 0; at < text.size();) {
        const int length = piece();
        document.append(QStringView(text).sliced(at, std::min<qsizetype>(length, text.size() - at)));
        at += length;
    }
    document.finish();
    return document.blocks();
}

QStringList summary(const std::vector<Block>& blocks) {
    QStringList rows;
    for (const Block& b : blocks)
        rows << QStringLiteral("%1 h%2 i%3 q%4 %5 [%6] %7 spans %8")
                    .arg(int(b.kind))
                    .arg(b.heading_level)
                    .arg(b.indent)
                    .arg(b.quote_depth)
                    .arg(b.marker, b.text, b.language)
                    .arg(b.spans.size());
    return rows;
}

}  // namespace

class TestDocument : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void pieces_do_not_matter() {
        const QString text = rich_text();
        const auto whole = fed(text, [&] { return int(text.size()); });
        QCOMPARE(summary(fed(text, [] { return 1; })), summary(whole));
        QRandomGenerator random(7);
        for (int round = 0; round < 50; ++round) {
            const auto blocks = fed(text, [&] { return random.bounded(1, 40); });
            QVERIFY2(blocks == whole, qPrintable(summary(blocks).join(u'\n')));
        }
    }

    void cutting_gives_what_the_parser_gives_whole() {
        QCOMPARE(summary(fed(rich_text(), [] { return 5; })), summary(parse(rich_text())));
    }

    void frozen_blocks_never_change() {
        Document document;
        std::vector<Block> frozen;
        for (const QChar c : rich_text()) {
            document.append(QStringView(&c, 1));
            QVERIFY(document.frozen() >= frozen.size());
            for (size_t i = 0; i < frozen.size(); ++i)
                QVERIFY(document.blocks()[i] == frozen[i]);
            frozen.assign(document.blocks().begin(),
                          document.blocks().begin() + qsizetype(document.frozen()));
        }
    }

    void an_unclosed_fence_is_code_to_the_end() {
        Document document;
        document.append(QStringLiteral("text\n```py\na\n\n# not a heading\n- b"));
        QCOMPARE(document.blocks().size(), 2U);
        QVERIFY(document.blocks()[1].kind == BlockKind::code);
        QCOMPARE(document.blocks()[1].text, QStringLiteral("a\n\n# not a heading\n- b"));
        QCOMPARE(document.blocks()[1].language, QStringLiteral("py"));
        document.append(QStringLiteral("\n``"));  // perhaps the closing fence: not shown as code meanwhile
        QCOMPARE(document.blocks()[1].text, QStringLiteral("a\n\n# not a heading\n- b\n"));
        document.append(QStringLiteral("`\nafter"));
        QCOMPARE(document.blocks().size(), 3U);
        QCOMPARE(document.blocks()[2].text, QStringLiteral("after"));
    }

    void a_loose_answer_numbers_on() {
        // Models write "1." for every item; CommonMark 5.3 counts on from the first.
        const auto blocks = fed(QStringLiteral("1. a\n1. b\n\n1. c\n"), [] { return 3; });
        QCOMPARE(blocks.size(), 3U);
        QCOMPARE(blocks[1].marker, QStringLiteral("2."));
        QCOMPARE(blocks[2].marker, QStringLiteral("3."));
        QVERIFY(blocks[1].tight);
        QVERIFY(!blocks[2].tight);
    }

    void long_code_comes_in_parts() {
        QString text = QStringLiteral("```\n"), code;
        for (int i = 0; i < 1000; ++i)
            code += QStringLiteral("line %1\n").arg(i);
        const auto blocks = fed(text + code + QStringLiteral("```\n"), [] { return 100; });
        QString joined;
        for (size_t i = 0; i < blocks.size(); ++i) {
            QCOMPARE(blocks[i].joins_previous, i > 0);
            QCOMPARE(blocks[i].joins_next, i + 1 < blocks.size());
            joined += blocks[i].text;
        }
        QCOMPARE(joined, code);
        QVERIFY(blocks.size() >= 20);
    }

    void an_endless_paragraph_is_cut() {
        QString text;
        while (text.size() < 100'000)
            text += QStringLiteral("word%1 ").arg(text.size());
        const auto blocks = fed(text, [] { return 50; });
        QString joined;
        for (const Block& block : blocks) {
            QVERIFY(block.text.size() <= Document::longest_open);
            joined += block.text + u' ';
        }
        QCOMPARE(joined.simplified(), text.simplified());
    }

    // 300,000 tokens are about 1.2 million characters. The cost of a token must not grow with the answer:
    // what is parsed again stays within a small multiple of the text (a re-parse of the whole at every
    // 4-character token would be 150,000 times it).
    void a_long_answer_is_never_parsed_whole() {
        QString text;
        while (text.size() < 1'200'000)
            text += rich_text();
        Document document;
        QElapsedTimer timer;
        timer.start();
        for (qsizetype at = 0; at < text.size(); at += 40)
            document.append(QStringView(text).sliced(at, std::min<qsizetype>(40, text.size() - at)));
        document.finish();
        const qint64 streamed_ms = timer.restart();
        Document whole;
        whole.append(text);
        whole.finish();
        qInfo(
            "300,000 tokens: %lld ms streamed in 40-character pieces, %lld ms at once, %zu blocks, parsed "
            "%.1f times",
            streamed_ms, timer.elapsed(), whole.blocks().size(),
            double(document.parsed_units()) / double(text.size()));
        QVERIFY(document.blocks() == whole.blocks());
        QVERIFY(document.parsed_units() < 10 * text.size());
        QVERIFY(whole.parsed_units() < 2 * text.size());
    }

    void plain_text_stays_as_typed() {
        const QString typed = QStringLiteral("**not bold**\n- no list\n\n```\n$5 <b>");
        const auto blocks = plain_blocks(typed);
        QCOMPARE(blocks.size(), 1U);
        QCOMPARE(blocks[0].text, typed);
        QVERIFY(blocks[0].spans.empty());
        QString joined;
        const QString pasted = QString(50'000, u'x') + u'\n' + QString(500, u'y');
        for (const Block& block : plain_blocks(pasted)) {
            QVERIFY(block.text.size() <= 4000);
            joined += block.text;
        }
        QVERIFY(joined.remove(u'\n') == QString(pasted).remove(u'\n'));
    }
};

RECTO_TEST_CLASS(TestDocument);
#include "test_document.moc"
