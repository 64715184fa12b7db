#include "ui/markdown/prepare.h"

#include <optional>

namespace recto::ui::markdown {

namespace {

bool is_noncharacter(QChar c) {
    return c.unicode() >= 0xFDD0 && c.unicode() <= 0xFDEF;
}

bool is_ascii_punctuation(QChar c) {
    const auto u = c.unicode();
    return (u >= 33 && u <= 47) || (u >= 58 && u <= 64) || (u >= 91 && u <= 96) || (u >= 123 && u <= 126);
}

bool is_punctuation(char32_t c) {
    switch (QChar::category(c)) {
        case QChar::Punctuation_Connector:
        case QChar::Punctuation_Dash:
        case QChar::Punctuation_Open:
        case QChar::Punctuation_Close:
        case QChar::Punctuation_InitialQuote:
        case QChar::Punctuation_FinalQuote:
        case QChar::Punctuation_Other:
            return true;
        default:
            return c < 128 && is_ascii_punctuation(QChar(char16_t(c)));
    }
}

class Preparer {
  public:
    explicit Preparer(QStringView source) : source_(source) {
        out_.reserve(source.size() + source.size() / 16);
    }

    Prepared run() {
        while (at_ < source_.size())
            step();
        return {out_.toUtf8(), std::move(formulas_)};
    }

  private:
    QChar peek(qsizetype ahead = 0) const {
        return at_ + ahead < source_.size() ? source_[at_ + ahead] : QChar();
    }

    void copy(qsizetype count) {
        for (const qsizetype end = std::min(at_ + count, source_.size()); at_ < end; ++at_)
            out_ += is_noncharacter(source_[at_]) ? QChar(QChar::ReplacementCharacter) : source_[at_];
    }

    void step() {
        if ((at_ == 0 || source_[at_ - 1] == u'\n') && line_start()) return;
        const QChar c = peek();
        if (c == u'`') {
            code_span();
        } else if (c == u'\\') {
            if (peek(1) == u'(' && formula(2, u"\\)", false)) return;
            if (peek(1) == u'[' && formula(2, u"\\]", true)) return;
            copy(is_ascii_punctuation(peek(1)) ? 2 : 1);
        } else if (c == u'$') {
            if (peek(1) == u'$' ? formula(2, u"$$", true) : dollar_formula()) return;
            copy(1);
        } else if (c == u'*' || c == u'~') {
            emphasis_run(c);
        } else {
            copy(1);
        }
    }

    // True if the whole line was dealt with.
    bool line_start() {
        const qsizetype line_end = source_.indexOf(u'\n', at_);
        const QStringView line = source_.sliced(at_, (line_end < 0 ? source_.size() : line_end) - at_);
        qsizetype inner = 0;
        while (inner < line.size() && (line[inner] == u' ' || line[inner] == u'\t' || line[inner] == u'>'))
            ++inner;
        const QStringView text = line.sliced(inner);
        if (text.startsWith(u"```") || text.startsWith(u"~~~")) {
            copy_fence(text[0]);
            return true;
        }
        // A reference definition would vanish from the page: show it. (References themselves stay literal.)
        if (inner <= 3 && text.startsWith(u'[')) {
            const qsizetype close = text.indexOf(u"]:");
            if (close > 1 && text.first(close).lastIndexOf(u'[') == 0) {
                copy(inner);
                out_ += u'\\';
                copy(1);
                return true;
            }
        }
        return false;
    }

    void copy_fence(QChar mark) {
        const QString fence(3, mark);
        bool first = true;
        while (at_ < source_.size()) {
            const qsizetype end = source_.indexOf(u'\n', at_);
            const qsizetype next = end < 0 ? source_.size() : end + 1;
            const QStringView line = source_.sliced(at_, next - at_).trimmed();
            copy(next - at_);
            const bool closes = line.startsWith(fence) && line.count(mark) == line.size();
            if (!first && closes) return;
            first = false;
        }
    }

    void code_span() {
        qsizetype run = 0;
        while (peek(run) == u'`')
            ++run;
        for (qsizetype i = at_ + run; i < source_.size();) {
            if (source_[i] != u'`') {
                // A code span does not reach over a blank line; a fence inside a list item may.
                if (run < 3 && source_[i] == u'\n' && i + 1 < source_.size() && source_[i + 1] == u'\n')
                    break;
                ++i;
                continue;
            }
            qsizetype length = 0;
            while (i + length < source_.size() && source_[i + length] == u'`')
                ++length;
            if (length == run) return copy(i + length - at_);
            i += length;
        }
        copy(run);
    }

    bool formula(qsizetype open, QStringView closer, bool display) {
        qsizetype end = source_.indexOf(closer, at_ + open);
        if (end <= at_ + open) return false;
        const QStringView tex = source_.sliced(at_ + open, end - at_ - open);
        for (qsizetype i = tex.indexOf(u'\n'); i >= 0; i = tex.indexOf(u'\n', i + 1)) {
            qsizetype j = i + 1;
            while (j < tex.size() && (tex[j] == u' ' || tex[j] == u'\t'))
                ++j;
            if (j < tex.size() && tex[j] == u'\n') return false;
        }
        if (tex.trimmed().isEmpty()) return false;
        add_formula(tex, end + closer.size(), display);
        return true;
    }

    // $x_1$ but not "$5 and $6": no space inside, no digit right after, one line, something mathematical.
    bool dollar_formula() {
        const QChar after = peek(1);
        if (after.isNull() || after.isSpace()) return false;
        for (qsizetype end = at_ + 1; end < source_.size() && source_[end] != u'\n'; ++end) {
            if (source_[end] != u'$' || source_[end - 1] == u'\\') continue;
            const QStringView tex = source_.sliced(at_ + 1, end - at_ - 1);
            const bool digit_after = end + 1 < source_.size() && source_[end + 1].isDigit();
            if (tex.isEmpty() || tex.back().isSpace() || digit_after) return false;
            if (std::none_of(tex.begin(), tex.end(),
                             [](QChar c) { return QStringView(u"\\^_{=").contains(c); }))
                return false;
            add_formula(tex, end + 1, false);
            return true;
        }
        return false;
    }

    void add_formula(QStringView tex, qsizetype end, bool display) {
        out_ += QChar(formula_open);
        for (const QChar digit : QString::number(formulas_.size()))
            out_ += QChar(char16_t(digit_zero + digit.unicode() - u'0'));
        out_ += QChar(formula_close);
        formulas_.push_back({tex.trimmed().toString(), source_.sliced(at_, end - at_).toString(), display});
        at_ = end;
    }

    char32_t before(qsizetype i) const {
        if (i <= 0) return 0;
        if (i > 1 && source_[i - 1].isLowSurrogate() && source_[i - 2].isHighSurrogate())
            return QChar::surrogateToUcs4(source_[i - 2], source_[i - 1]);
        return source_[i - 1].unicode();
    }

    char32_t after(qsizetype i) const {
        if (i >= source_.size()) return 0;
        if (i + 1 < source_.size() && source_[i].isHighSurrogate() && source_[i + 1].isLowSurrogate())
            return QChar::surrogateToUcs4(source_[i], source_[i + 1]);
        return source_[i].unicode();
    }

    void emphasis_run(QChar mark) {
        qsizetype run = 0;
        while (peek(run) == mark)
            ++run;
        const char32_t left = before(at_), right = after(at_ + run);
        const bool beside_cjk = is_cjk(left) || is_cjk(right);
        if (beside_cjk && is_punctuation(left)) out_ += QChar(word_marker);
        copy(run);
        if (beside_cjk && is_punctuation(right)) out_ += QChar(word_marker);
    }

    QStringView source_;
    qsizetype at_ = 0;
    QString out_;
    std::vector<Formula> formulas_;
};

}  // namespace

bool is_cjk(char32_t c) {
    return (c >= 0x2E80 && c <= 0x9FFF) || (c >= 0xAC00 && c <= 0xD7AF) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0xFE30 && c <= 0xFE4F) || (c >= 0xFF00 && c <= 0xFFEF) || (c >= 0x20000 && c <= 0x3FFFF) ||
           c == 0x2018 || c == 0x2019 || c == 0x201C || c == 0x201D || c == 0x2026 || c == 0x2014;
}

Prepared prepare(QStringView source) {
    return Preparer(source).run();
}

QString restore_source(QStringView text, const std::vector<Formula>& formulas) {
    QString out;
    out.reserve(text.size());
    for (qsizetype i = 0; i < text.size(); ++i) {
        const auto c = text[i].unicode();
        if (c == word_marker) continue;
        if (c != formula_open) {
            out += text[i];
            continue;
        }
        size_t index = 0;
        for (++i; i < text.size() && text[i] != QChar(formula_close); ++i)
            index = index * 10 + (text[i].unicode() - digit_zero);
        Q_ASSERT(index < formulas.size());
        out += formulas[index].source;
    }
    return out;
}

}  // namespace recto::ui::markdown
