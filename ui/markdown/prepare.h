// What has to happen to the source before a CommonMark parser sees it: maths is cut out (the parser would
// eat its backslashes), and emphasis beside CJK text is helped over CommonMark's flanking rule, which was
// made for words parted by spaces (commonmark/commonmark-spec issue 650).
#pragma once
#include <QByteArray>
#include <QString>
#include <vector>

namespace recto::ui::markdown {

struct Formula {
    QString tex;     // without its delimiters
    QString source;  // with them
    bool display = false;
};

struct Prepared {
    QByteArray utf8;
    std::vector<Formula> formulas;
};

// A formula travels through the parser as  formula_open, digits in digit_zero…, formula_close: Unicode
// noncharacters, which text never holds (any found in the source become U+FFFD).
inline constexpr char16_t formula_open = 0xFDD0;
inline constexpr char16_t formula_close = 0xFDD1;
inline constexpr char16_t word_marker = 0xFDD2;  // counts as a letter for the flanking rule, shown as nothing
inline constexpr char16_t digit_zero = 0xFDD6;   // to 0xFDDF, decimal

Prepared prepare(QStringView source);

// Takes markers out again and puts formulas back as they were written (code, addresses).
QString restore_source(QStringView text, const std::vector<Formula>& formulas);

// Letters, kana, hangul, and the punctuation written among them, full-width forms included.
bool is_cjk(char32_t c);

}  // namespace recto::ui::markdown
