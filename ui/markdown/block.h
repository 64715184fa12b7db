// One message as a flat list of blocks: what a layout needs, and nothing of Markdown's syntax.
// Nested lists and quotes are flattened: a leaf block carries its depth and its item's marker.
#pragma once
#include <QString>
#include <vector>

namespace recto::ui::markdown {

enum class BlockKind : quint8 { paragraph, heading, code, table, rule };

// Bits of Span::style.
enum Style : quint16 {
    plain = 0,
    bold = 1,
    italic = 2,
    code = 4,
    strike = 8,
    link = 16,
    math = 32,
    display_math = 64,
    image = 128,
};

// A run of Block::text with one style. Spans are ascending and never overlap; text between them is plain.
struct Span {
    int start = 0;   // UTF-16 units into Block::text
    int length = 0;  // UTF-16 units
    quint16 style = plain;
    int link = -1;  // index into Block::links, or -1

    bool operator==(const Span&) const = default;
};

enum class Align : quint8 { left, center, right };

// A table cell is a run of Block::text: rows end with '\n', cells of a row are parted by '\t'.
struct Cell {
    int row = 0;
    int column = 0;
    int start = 0;
    int length = 0;

    bool operator==(const Cell&) const = default;
};

struct Block {
    BlockKind kind = BlockKind::paragraph;
    int heading_level = 0;       // 1 to 6 for headings
    int indent = 0;              // number of enclosing list items
    int quote_depth = 0;         // number of enclosing quotes
    QString marker;              // "•", "3.", "☐", "☑" on the first block of a list item
    bool tight = false;          // no paragraph gap above
    QString text;                // plain text; '\n' is a line break
    std::vector<Span> spans;     //
    std::vector<QString> links;  // addresses as written, not yet judged safe
    QString language;            // first word of a fence's info string
    // A long code block or paragraph is cut into parts, so that no layout grows without bound.
    bool joins_previous = false;
    bool joins_next = false;
    std::vector<Cell> cells;    // tables, row by row; row 0 is the head
    std::vector<Align> aligns;  // tables, one a column

    bool operator==(const Block&) const = default;
};

}  // namespace recto::ui::markdown
