#include "ui/markdown/document.h"

#include "ui/markdown/parse.h"
#include "ui/markdown/prepare.h"

namespace recto::ui::markdown {

// What the first characters of a line say about block structure.
struct Document::Line {
    QStringView text;      // without indentation and line end
    qsizetype indent = 0;  // columns
    QChar fence_mark;      // of a fence that opens here
    qsizetype fence_length = 0;
    QChar list_mark;   // of a list item that starts here
    QStringView item;  // the item's text
    bool first_number = false;

    explicit Line(QStringView line) {
        qsizetype i = 0;
        for (; i < line.size() && (line[i] == u' ' || line[i] == u'\t'); ++i)
            indent += line[i] == u'\t' ? 4 - indent % 4 : 1;
        text = line.sliced(i);
        while (!text.isEmpty() && (text.back() == u'\n' || text.back() == u'\r'))
            text.chop(1);
        if (blank()) return;
        find_fence();
        find_item();
    }

    bool blank() const { return text.trimmed().isEmpty(); }

    bool heading() const {
        qsizetype level = 0;
        while (level < text.size() && text[level] == u'#')
            ++level;
        return level >= 1 && level <= 6 && (level == text.size() || text[level].isSpace());
    }

    bool rule() const {
        const QChar mark = text.isEmpty() ? QChar() : text[0];
        if (mark != u'-' && mark != u'*' && mark != u'_') return false;
        qsizetype marks = 0;
        for (const QChar c : text) {
            if (c == mark)
                ++marks;
            else if (!c.isSpace())
                return false;
        }
        return marks >= 3;
    }

    // "| --- | :-: |"
    bool table_delimiter() const {
        bool bar = false, dash = false;
        for (const QChar c : text) {
            bar |= c == u'|';
            dash |= c == u'-';
            if (c != u'|' && c != u'-' && c != u':' && !c.isSpace()) return false;
        }
        return bar && dash;
    }

    bool closes(const Fence& fence) const {
        const QStringView t = text.trimmed();
        return t.size() >= fence.length && t.count(fence.mark) == t.size();
    }

  private:
    void find_fence() {
        const QChar mark = text[0];
        if (mark != u'`' && mark != u'~') return;
        qsizetype run = 0;
        while (run < text.size() && text[run] == mark)
            ++run;
        if (run < 3 || (mark == u'`' && text.sliced(run).contains(u'`'))) return;
        fence_mark = mark;
        fence_length = run;
    }

    void find_item() {
        if (rule()) return;
        qsizetype digits = 0;
        while (digits < text.size() && digits < 10 && text[digits] >= u'0' && text[digits] <= u'9')
            ++digits;
        const QChar mark = digits < text.size() ? text[digits] : QChar();
        const bool bullet = digits == 0 && (mark == u'-' || mark == u'*' || mark == u'+');
        const bool number = digits > 0 && digits < 10 && (mark == u'.' || mark == u')');
        if (!bullet && !number) return;
        if (digits + 1 < text.size() && !text[digits + 1].isSpace()) return;
        list_mark = mark;
        item = text.sliced(digits + 1).trimmed();
        first_number = !number || text.first(digits).toInt() == 1;
    }
};

void Document::append(QStringView text) {
    buffer_ += text;
    take_lines();
    buffer_.remove(0, begin_);
    scan_ -= begin_;
    begin_ = 0;
    parse_rest();
}

void Document::finish() {
    if (scan_ < buffer_.size()) take_line(buffer_.size());
    if (fence_.length > 0)
        freeze_code_part(false);
    else
        freeze(buffer_.size());
    blocks_.resize(frozen_);
    buffer_.clear();
    begin_ = scan_ = 0;
    fence_ = {};
    chunk_ = Chunk::none;
}

void Document::take_lines() {
    for (;;) {
        const qsizetype newline = buffer_.indexOf(u'\n', scan_);
        const qsizetype end = newline < 0 ? buffer_.size() : newline + 1;
        if (cut_overlong(end)) continue;
        if (newline < 0) return;
        take_line(end);
    }
}

void Document::take_line(qsizetype end) {
    const Line line(QStringView(buffer_).sliced(scan_, end - scan_));
    if (fence_.length > 0) return take_fenced_line(line, end);
    if (line.blank() && nested_.length == 0) {
        in_formula_ = false;
        after_blank_ = chunk_ != Chunk::none;
        scan_ = end;
        if (chunk_ == Chunk::none) begin_ = end;
        return;
    }
    if (nested_or_formula(line)) {
        scan_ = end;
        return;
    }
    if (chunk_ == Chunk::none || starts_chunk(line)) {
        const bool continues =
            chunk_ == Chunk::list && line.list_mark == list_mark_ && line.indent <= list_indent_;
        const bool after_blank = after_blank_;
        freeze(scan_);
        if (line.fence_length > 0 && line.indent < 4) return open_fence(line, end);
        start_chunk(line, continues, after_blank);
    }
    after_blank_ = false;
    has_table_ |= line.table_delimiter();
    if (line.fence_length > 0) nested_ = {line.fence_mark, line.fence_length, line.indent};
    const Line item(line.item);
    if (item.fence_length > 0) nested_ = {item.fence_mark, item.fence_length, line.indent};
    for (const auto& [open, close] : {std::pair{u"\\[", u"\\]"}, std::pair{u"$$", u"$$"}})
        in_formula_ |= line.text.startsWith(open) && line.text.indexOf(close, 2) < 0;
    scan_ = end;
}

// True if the line belongs to something that is no Markdown: its structure means nothing.
bool Document::nested_or_formula(const Line& line) {
    if (in_formula_) {
        in_formula_ = !line.text.contains(u"\\]") && !line.text.contains(u"$$");
        return true;
    }
    if (nested_.length == 0) return false;
    const bool left = !line.blank() && line.indent == 0 && chunk_ == Chunk::list;
    if (line.closes(nested_) || left) nested_ = {};
    return !left;
}

bool Document::starts_chunk(const Line& line) const {
    const bool item = !line.list_mark.isNull();
    if (chunk_ == Chunk::single) return true;
    if (chunk_ == Chunk::list) {
        if (item && line.indent <= list_indent_) return true;
        if (line.indent >= 2) return false;
        if (after_blank_) return true;
    } else if (chunk_ == Chunk::indented) {
        return line.indent < 4;
    } else if (after_blank_) {
        return true;
    } else if (item && line.indent < 4 && !line.item.isEmpty() && line.first_number) {
        return true;  // what else may interrupt a paragraph, CommonMark leaves to the paragraph
    }
    if (line.indent >= 4) return false;
    const bool underline = chunk_ == Chunk::paragraph && line.text.count(u'-') == line.text.size();
    return line.fence_length > 0 || line.heading() || (line.rule() && !underline) ||
           (line.text.startsWith(u'>') && chunk_ != Chunk::quote);
}

void Document::start_chunk(const Line& line, bool continues_list, bool after_blank) {
    continues_list_ = continues_list;
    item_after_blank_ = after_blank;
    if (line.indent >= 4)
        chunk_ = Chunk::indented;
    else if (line.heading() || line.rule())
        chunk_ = Chunk::single;
    else if (!line.list_mark.isNull())
        chunk_ = Chunk::list;
    else if (line.text.startsWith(u'>'))
        chunk_ = Chunk::quote;
    else
        chunk_ = Chunk::paragraph;
    if (chunk_ == Chunk::list) {
        list_mark_ = line.list_mark;
        if (!continues_list) list_indent_ = line.indent;
    }
}

// A paragraph without end is cut at a place where a line could break.
bool Document::cut_overlong(qsizetype line_end) {
    const bool may_cut = fence_.length == 0 && !has_table_ && !in_formula_ &&
                         (chunk_ == Chunk::none || chunk_ == Chunk::paragraph || chunk_ == Chunk::quote);
    if (!may_cut || line_end - begin_ <= longest_open) return false;
    qsizetype cut = scan_;
    if (cut == begin_) {
        const QStringView head = QStringView(buffer_).sliced(begin_, longest_open);
        qsizetype i = head.size();
        while (i > longest_open / 2 && !head[i - 1].isSpace() && !is_cjk(head[i - 1].unicode()))
            --i;
        if (i <= longest_open / 2) i = head.size() - (head.back().isHighSurrogate() ? 1 : 0);
        cut = begin_ + i;
        if (chunk_ == Chunk::none) start_chunk(Line(head), false, false);
    }
    const Chunk chunk = chunk_;
    freeze(cut);
    scan_ = cut;
    if (chunk == Chunk::paragraph && blocks_.size() > 0) {
        blocks_.back().joins_next = blocks_.back().kind == BlockKind::paragraph;
        joins_previous_ = blocks_.back().joins_next;
    }
    chunk_ = chunk;
    return true;
}

void Document::open_fence(const Line& line, qsizetype end) {
    fence_ = {line.fence_mark, line.fence_length, line.indent};
    const QStringView info = line.text.sliced(line.fence_length).trimmed();
    qsizetype word = 0;
    while (word < info.size() && !info[word].isSpace())
        ++word;
    language_ = info.first(word).toString();
    part_.clear();
    part_lines_ = 0;
    part_joins_previous_ = false;
    begin_ = scan_ = end;
}

void Document::take_fenced_line(const Line& line, qsizetype end) {
    if (line.indent < 4 && line.closes(fence_)) {
        freeze_code_part(false);
        fence_ = {};
        begin_ = scan_ = end;
        return;
    }
    if (part_lines_ == lines_per_code_part) freeze_code_part(true);
    QStringView text = QStringView(buffer_).sliced(scan_, end - scan_);
    for (qsizetype i = 0; i < fence_.indent && text.startsWith(u' '); ++i)
        text = text.sliced(1);
    part_ += text;
    ++part_lines_;
    begin_ = scan_ = end;
}

void Document::freeze_code_part(bool joins_next) {
    blocks_.resize(frozen_);
    blocks_.push_back(code_part({}, joins_next));
    frozen_ = blocks_.size();
    part_.clear();
    part_lines_ = 0;
    part_joins_previous_ = true;
}

Block Document::code_part(QStringView more, bool joins_next) const {
    Block block;
    block.kind = BlockKind::code;
    block.language = language_;
    block.text = part_;
    block.text += more;
    block.joins_previous = part_joins_previous_;
    block.joins_next = joins_next;
    return block;
}

void Document::freeze(qsizetype upto) {
    blocks_.resize(frozen_);
    for (Block& block : parse_open(upto))
        blocks_.push_back(std::move(block));
    if (chunk_ == Chunk::list && blocks_.size() > frozen_ && !blocks_[frozen_].marker.isEmpty()) {
        bool numbered = false;
        const int number = QStringView(blocks_[frozen_].marker).chopped(1).toInt(&numbered);
        next_number_ = (numbered ? number : next_number_) + 1;
    }
    frozen_ = blocks_.size();
    begin_ = upto;
    chunk_ = Chunk::none;
    after_blank_ = has_table_ = in_formula_ = joins_previous_ = continues_list_ = false;
    nested_ = {};
}

std::vector<Block> Document::parse_open(qsizetype upto) {
    const QStringView source = QStringView(buffer_).sliced(begin_, upto - begin_);
    if (source.trimmed().isEmpty()) return {};
    parsed_units_ += source.size();
    std::vector<Block> blocks = parse(source);
    if (blocks.empty()) return blocks;
    Block& first = blocks.front();
    first.joins_previous = joins_previous_;
    if (continues_list_) {
        first.tight = !item_after_blank_;
        if (first.marker.endsWith(list_mark_)) first.marker = QString::number(next_number_) + list_mark_;
    }
    return blocks;
}

void Document::parse_rest() {
    blocks_.resize(frozen_);
    if (fence_.length == 0) {
        for (Block& block : parse_open(buffer_.size()))
            blocks_.push_back(std::move(block));
        return;
    }
    // A line that may become the closing fence is not shown as code first.
    const QStringView rest = QStringView(buffer_).sliced(begin_);
    const QStringView marks = rest.trimmed();
    const bool may_close = !marks.isEmpty() && marks.count(fence_.mark) == marks.size();
    blocks_.push_back(code_part(may_close ? QStringView() : rest, false));
}

std::vector<Block> plain_blocks(QStringView text) {
    constexpr qsizetype longest = 4000;
    constexpr int most_lines = 64;
    std::vector<Block> blocks;
    while (!text.isEmpty() && (text.back() == u'\n' || text.back() == u'\r'))
        text.chop(1);
    while (!text.isEmpty()) {
        qsizetype end = 0, line_end = 0;
        for (int lines = 0; lines < most_lines && end < text.size(); ++lines) {
            const qsizetype newline = text.indexOf(u'\n', end);
            const qsizetype next = newline < 0 ? text.size() : newline + 1;
            if (next > longest && lines > 0) break;
            line_end = end = next;
        }
        if (line_end > longest) {
            end = longest;
            while (end > longest / 2 && !text[end - 1].isSpace() && !is_cjk(text[end - 1].unicode()))
                --end;
            if (end <= longest / 2) end = longest - (text[longest - 1].isHighSurrogate() ? 1 : 0);
        }
        Block block;
        block.text = text.first(end).toString();
        if (block.text.endsWith(u'\n')) block.text.chop(1);
        block.joins_previous = !blocks.empty();
        block.joins_next = end < text.size();
        blocks.push_back(std::move(block));
        text = text.sliced(end);
    }
    return blocks;
}

}  // namespace recto::ui::markdown
