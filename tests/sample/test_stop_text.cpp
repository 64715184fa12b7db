#include <QTest>
#include <random>

#include "engine/sample/stop_text.h"
#include "support/registry.h"

using namespace recto;

namespace {

struct Run {
    std::string text;
    std::string match;
    std::string after_each;  // the text visible after each piece, '|' between
};

Run feed(const std::vector<std::string>& pieces, std::vector<std::string> stop, bool include = false,
         int uncounted = 0) {
    StopText s(std::move(stop), include);
    Run run;
    int n = 0;
    for (const auto& piece : pieces) {
        const auto r = s.append(piece, n++ >= uncounted);
        run.text += r.text;
        run.after_each += r.text + "|";
        if (r.match) {
            run.match = *r.match;
            return run;
        }
    }
    run.text += s.flush();
    return run;
}

}  // namespace

class TestStopText : public QObject {
    Q_OBJECT
  private slots:
    void cases_data() {
        QTest::addColumn<QStringList>("pieces");
        QTest::addColumn<QStringList>("stop");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("match");
        const auto row = [](const char* name, QStringList pieces, QStringList stop, const char* text,
                            const char* match) {
            QTest::newRow(name) << std::move(pieces) << std::move(stop) << QString::fromUtf8(text)
                                << QString::fromUtf8(match);
        };
        row("inside a token", {"THE EN", "D of it"}, {"END"}, "THE ", "END");
        row("over three tokens", {"x<", "|im", "_end|>y"}, {"<|im_end|>"}, "x", "<|im_end|>");
        row("at the very end", {"abc", "STOP"}, {"STOP"}, "abc", "STOP");
        row("a prefix that never completes", {"ab<", "|im", "portant"}, {"<|im_end|>"}, "ab<|important", "");
        row("a prefix at the end of the answer", {"ab<|im"}, {"<|im_end|>"}, "ab<|im", "");
        row("two at once, the earlier position wins", {"a second first"}, {"first", "second"}, "a ",
            "second");
        row("two that begin together, the shorter wins", {"xabc"}, {"abc", "ab"}, "x", "ab");
        row("overlapping prefixes", {"aab", "ab", "c"}, {"ababc"}, "a", "ababc");
        row("many bytes a character", {"你好，", "再", "见了"}, {"再见"}, "你好，", "再见");
        row("nothing to stop at", {"one ", "two"}, {}, "one two", "");
        row("empty pieces", {"", "a", "", "b"}, {"ab"}, "", "ab");
    }
    void cases() {
        QFETCH(QStringList, pieces);
        QFETCH(QStringList, stop);
        QFETCH(QString, text);
        QFETCH(QString, match);
        std::vector<std::string> p, s;
        for (const auto& x : pieces)
            p.push_back(x.toStdString());
        for (const auto& x : stop)
            s.push_back(x.toStdString());
        const Run run = feed(p, s);
        QCOMPARE(QString::fromStdString(run.text), text);
        QCOMPARE(QString::fromStdString(run.match), match);
    }

    void onlyTheLongestProperPrefixIsHeld() {
        QCOMPARE(feed({"hello EN", "x", "E", "N", "D"}, {"END"}).after_each, std::string("hello |ENx||||"));
    }
    void includesTheStopString() {
        const Run run = feed({"abcSTOPdef"}, {"STOP"}, true);
        QCOMPARE(run.text, std::string("abcSTOP"));
    }
    // A match must end after the first min_tokens tokens; it may begin inside them.
    void uncountedTextCannotStop() {
        QCOMPARE(feed({"aSTOPb", "c"}, {"STOP"}, false, 1).match, std::string());
        QCOMPARE(feed({"aST", "OPc"}, {"STOP"}, false, 1).text, std::string("a"));
        QCOMPARE(feed({"xbc", "d", "X"}, {"bcdX", "c"}, false, 1).match, std::string("bcdX"));
    }

    // Against a search in the whole text, whatever way it is cut into pieces.
    void agreesWithASearchInTheWholeText() {
        std::mt19937 random(3);
        for (int i = 0; i < 20000; ++i) {
            std::string all;
            std::vector<std::string> pieces;
            for (unsigned n = random() % 12; n > 0; --n) {
                std::string piece;
                for (unsigned k = random() % 4; k > 0; --k)
                    piece += char('a' + random() % 3);
                pieces.push_back(piece);
                all += piece;
            }
            std::vector<std::string> stop;
            for (unsigned n = random() % 3 + 1; n > 0; --n) {
                std::string s;
                for (unsigned k = random() % 4 + 1; k > 0; --k)
                    s += char('a' + random() % 3);
                stop.push_back(s);
            }
            // Piece by piece: the first piece with which some stop string is complete, and then the earliest
            // of them.
            std::string expected = all, match, seen;
            for (const auto& piece : pieces) {
                seen += piece;
                std::size_t best = std::string::npos;
                for (const auto& s : stop) {
                    const std::size_t at = seen.find(s);
                    if (at == std::string::npos) continue;
                    if (best == std::string::npos || at < best || (at == best && s.size() < match.size())) {
                        best = at;
                        match = s;
                    }
                }
                if (best == std::string::npos) continue;
                expected = all.substr(0, best);
                break;
            }
            const Run run = feed(pieces, stop);
            QCOMPARE(run.text, expected);
            QCOMPARE(run.match, match);
        }
    }
};

RECTO_TEST_CLASS(TestStopText);
#include "test_stop_text.moc"
