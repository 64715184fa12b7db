// Expected blocks are read off the CommonMark 0.31 and GFM specifications (section numbers beside the
// cases) and off the rules of our own written in ui/markdown/*.h.
#include <QTest>

#include "support/registry.h"
#include "ui/markdown/parse.h"

using namespace recto::ui::markdown;

namespace {

// "b[bold] plain i[…]": a block's text with its styled spans marked.
QString marked(const Block& block) {
    QString out;
    int at = 0;
    for (const Span& span : block.spans) {
        out += block.text.mid(at, span.start - at);
        QString name;
        for (const auto& [bit, letter] : {std::pair{bold, 'b'},
                                          {italic, 'i'},
                                          {code, 'c'},
                                          {strike, 's'},
                                          {Style::link, 'l'},
                                          {math, 'm'},
                                          {display_math, 'd'},
                                          {image, 'g'}})
            if (span.style & bit) name += QLatin1Char(letter);
        out += name + u'[' + block.text.mid(span.start, span.length) + u']';
        at = span.start + span.length;
    }
    return out + block.text.mid(at);
}

QString one(const QString& source) {
    const auto blocks = parse(source);
    QStringList all;
    for (const Block& block : blocks)
        all << marked(block);
    return all.join(QStringLiteral(" ¶ "));
}

}  // namespace

class TestParse : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void inline_styles_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* name, const QString& source, const QString& expected) {
            QTest::newRow(name) << source << expected;
        };
        row("6.2 emphasis", QStringLiteral("a *b* **c** ***d***"), QStringLiteral("a i[b] b[c] bi[d]"));
        row("6.1 code span", QStringLiteral("call `f(**x**)` now"), QStringLiteral("call c[f(**x**)] now"));
        row("GFM strike", QStringLiteral("~~gone~~ here"), QStringLiteral("s[gone] here"));
        row("6.3 link", QStringLiteral("[site](https://e.org/a)"), QStringLiteral("l[site]"));
        row("GFM bare address", QStringLiteral("see https://e.org/a now"),
            QStringLiteral("see l[https://e.org/a] now"));
        row("image is text", QStringLiteral("![a cat](http://e.org/c.png)"),
            QStringLiteral("g[a cat (http://e.org/c.png)]"));
        row("tag-like words stay", QStringLiteral("use vector<int> and <b>x</b>"),
            QStringLiteral("use vector<int> and <b>x</b>"));
        row("6.1 backslash escape", QStringLiteral("2 \\* 3 \\* 4"), QStringLiteral("2 * 3 * 4"));
        row("entity", QStringLiteral("a &lt; b &amp; c &#x4e2d; &unknown;"),
            QString::fromUtf8("a < b & c 中 &unknown;"));
        row("unclosed emphasis", QStringLiteral("an **open end"), QStringLiteral("an **open end"));
        row("definition is shown", QStringLiteral("[1]: https://e.org"),
            QStringLiteral("[1]: l[https://e.org]"));
    }
    void inline_styles() {
        QFETCH(QString, source);
        QFETCH(QString, expected);
        QCOMPARE(one(source), expected);
    }

    // CommonMark leaves the first, second, fifth and sixth un-bold (commonmark-spec issue 650).
    void emphasis_beside_cjk_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* source, const char* expected) {
            QTest::newRow(source) << QString::fromUtf8(source) << QString::fromUtf8(expected);
        };
        row("**重點，**請看", "b[重點，]請看");
        row("的**「分頁」**的", "的b[「分頁」]的");
        row("這是**重點**。", "這是b[重點]。");
        row("~~舊的。~~新的", "s[舊的。]新的");
        row("用**區塊(block)**儲存", "用b[區塊(block)]儲存");
        row("**注意:**請先備份", "b[注意:]請先備份");
        row("*強調！*然後", "i[強調！]然後");
        row("2 * 3 * 4 乘法", "2 * 3 * 4 乘法");
        row("`**碼，**`不變", "c[**碼，**]不變");
    }
    void emphasis_beside_cjk() {
        QFETCH(QString, source);
        QFETCH(QString, expected);
        QCOMPARE(one(source), expected);
    }

    void formulas_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* source, const char* expected) {
            QTest::newRow(source) << QString::fromUtf8(source) << QString::fromUtf8(expected);
        };
        row("so \\(a_1 * b_2 * c\\) is", "so m[a_1 * b_2 * c] is");
        row("\\[\nx = y\n\\]", "md[x = y]");
        row("$$ E = mc^2 $$", "md[E = mc^2]");
        row("let $x_1$ be", "let m[x_1] be");
        row("$5 and $6, or $7.50", "$5 and $6, or $7.50");
        row("costs $5=cheap and 3$", "costs m[5=cheap and 3]");
        row("from $10 to US$20", "from $10 to US$20");
        row("a `\\(x\\)` b", "a c[\\(x\\)] b");
        row("an \\(open one", "an (open one");
        row("**bold \\(x\\)**", "b[bold ]bm[x]");
        row("\\$5 \\$x^2\\$", "$5 $x^2$");
    }
    void formulas() {
        QFETCH(QString, source);
        QFETCH(QString, expected);
        QCOMPARE(one(source), expected);
    }

    void headings_and_rules() {
        const auto blocks = parse(QStringLiteral("# One\n\nTwo\n===\n\n### Three ###\n\n---\n"));
        QCOMPARE(blocks.size(), 4U);
        QCOMPARE(blocks[0].heading_level, 1);
        QCOMPARE(blocks[1].text, QStringLiteral("Two"));
        QCOMPARE(blocks[1].heading_level, 1);
        QCOMPARE(blocks[2].text, QStringLiteral("Three"));
        QCOMPARE(blocks[2].heading_level, 3);
        QVERIFY(blocks[3].kind == BlockKind::rule);
    }

    void lists_are_flat_with_depth_and_marker() {
        const auto blocks =
            parse(QStringLiteral("- a\n  - b\n    more\n- [x] c\n- [ ] d\n\n3. e\n4. f\n\n   g\n"));
        QStringList rows;
        for (const Block& block : blocks)
            rows << QStringLiteral("%1%2 %3").arg(block.indent).arg(block.marker, block.text);
        QCOMPARE(rows,
                 (QStringList{QString::fromUtf8("1• a"), QString::fromUtf8("2• b\nmore"),
                              QString::fromUtf8("1☑ c"), QString::fromUtf8("1☐ d"), QStringLiteral("13. e"),
                              QStringLiteral("14. f"), QStringLiteral("1 g")}));
    }

    void quotes_nest() {
        const auto blocks = parse(QStringLiteral("> a\n> > b\n\nc\n"));
        QCOMPARE(blocks.size(), 3U);
        QCOMPARE(blocks[0].quote_depth, 1);
        QCOMPARE(blocks[1].quote_depth, 2);
        QCOMPARE(blocks[2].quote_depth, 0);
    }

    void code_keeps_its_text() {
        const auto blocks =
            parse(QStringLiteral("- x\n\n  ```c++ file.h\n  a  <b> \\(c\\) **d**\n\n  e\n  ```\n"));
        QCOMPARE(blocks.size(), 2U);
        QVERIFY(blocks[1].kind == BlockKind::code);
        QCOMPARE(blocks[1].language, QStringLiteral("c++"));
        QCOMPARE(blocks[1].text, QStringLiteral("a  <b> \\(c\\) **d**\n\ne\n"));
        QVERIFY(blocks[1].spans.empty());
    }

    void table_cells_are_runs_of_the_text() {
        const auto blocks = parse(QStringLiteral("| a | **b** |\n|:--|--:|\n| 1 | 2 |\n| 3 | 4 |\n"));
        QCOMPARE(blocks.size(), 1U);
        const Block& table = blocks[0];
        QVERIFY(table.kind == BlockKind::table);
        QCOMPARE(table.text, QStringLiteral("a\tb\n1\t2\n3\t4\n"));
        QCOMPARE(table.cells.size(), 6U);
        QCOMPARE(table.cells[3].row, 1);
        QCOMPARE(table.cells[3].column, 1);
        QCOMPARE(table.text.mid(table.cells[3].start, table.cells[3].length), QStringLiteral("2"));
        QVERIFY(table.aligns == (std::vector{Align::left, Align::right}));
        QCOMPARE(marked(table).left(6), QStringLiteral("a\tb[b]"));
    }

    void addresses_are_kept_as_written() {
        const auto blocks = parse(QStringLiteral("[a](javascript:x) [b](<http://e.org/a&amp;b>)"));
        QCOMPARE(blocks[0].links.size(), 2U);
        QCOMPARE(blocks[0].links[0], QStringLiteral("javascript:x"));
        QCOMPARE(blocks[0].links[1], QStringLiteral("http://e.org/a&b"));
        QCOMPARE(blocks[0].spans[1].link, 1);
    }

    void noncharacters_in_the_text_do_no_harm() {
        const QString hostile = QString(QChar(0xFDD0)) + QChar(0xFDD9) + QChar(0xFDD1) + QStringLiteral(" x");
        const QString shown = QString(3, QChar(QChar::ReplacementCharacter)) + QStringLiteral(" x");
        QCOMPARE(one(hostile), shown);
    }
};

RECTO_TEST_CLASS(TestParse);
#include "test_parse.moc"
