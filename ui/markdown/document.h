// A message that grows: text is appended, finished blocks are frozen, and only the open rest is parsed
// again. Cuts are made where CommonMark's block structure allows it (blank lines, headings, fences, items
// of a top-level list), so a long answer costs the same per token at its end as at its start.
// Limits that follow from parsing piece by piece: link reference definitions are shown, not resolved.
#pragma once
#include <QString>
#include <vector>

#include "ui/markdown/block.h"

namespace recto::ui::markdown {

class Document {
  public:
    // The rest after the last cut is longer than this only for tables and single list items.
    static constexpr qsizetype longest_open = 8192;  // UTF-16 units
    static constexpr int lines_per_code_part = 48;

    void append(QStringView text);
    void finish();  // no text follows: everything is frozen

    const std::vector<Block>& blocks() const { return blocks_; }
    size_t frozen() const { return frozen_; }  // blocks()[0, frozen()) never change again
    // Source text parsed so far, all calls together; the measure of what re-parsing costs.
    qsizetype parsed_units() const { return parsed_units_; }

  private:
    enum class Chunk : quint8 { none, single, paragraph, list, quote, indented };
    struct Fence {
        QChar mark;
        qsizetype length = 0;  // 0: no fence
        qsizetype indent = 0;
    };
    struct Line;

    void take_lines();
    void take_line(qsizetype end);
    void take_fenced_line(const Line& line, qsizetype end);
    bool nested_or_formula(const Line& line);
    bool starts_chunk(const Line& line) const;
    void start_chunk(const Line& line, bool continues_list, bool after_blank);
    bool cut_overlong(qsizetype line_end);
    void open_fence(const Line& line, qsizetype end);
    void freeze(qsizetype upto);
    void freeze_code_part(bool joins_next);
    std::vector<Block> parse_open(qsizetype upto);
    Block code_part(QStringView more, bool joins_next) const;
    void parse_rest();

    std::vector<Block> blocks_;
    size_t frozen_ = 0;
    qsizetype parsed_units_ = 0;

    QString buffer_;
    qsizetype begin_ = 0;  // start of the open chunk
    qsizetype scan_ = 0;   // start of the first line not yet looked at

    Chunk chunk_ = Chunk::none;
    bool after_blank_ = false;     // the last line was blank
    bool has_table_ = false;       // a table may not be split
    bool in_formula_ = false;      // a display formula's lines are no Markdown
    bool joins_previous_ = false;  // the chunk is the rest of an overlong paragraph
    Fence fence_;                  // a fence at top level
    Fence nested_;                 // a fence inside a list item
    QString language_;
    QString part_;  // code of the open part
    int part_lines_ = 0;
    bool part_joins_previous_ = false;

    QChar list_mark_;  // '-', '*', '+', '.', ')'
    qsizetype list_indent_ = 0;
    bool continues_list_ = false;  // the chunk goes on with the list of the chunk before
    bool item_after_blank_ = false;
    int next_number_ = 1;
};

// A text shown as it was typed: no Markdown, cut into parts of bounded length.
std::vector<Block> plain_blocks(QStringView text);

}  // namespace recto::ui::markdown
