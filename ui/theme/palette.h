// Every colour, size and font of the window, in one struct. Widgets take them from here and hold no literals.
// Sources: the data hues are Okabe and Ito's (2008), handed out in the order whose first four stay furthest
// apart under simulated colour-vision deficiency; text keeps 4.5:1 and graphics 3:1 on the surface they are
// drawn on.
#pragma once
#include <QColor>
#include <QFont>
#include <QPalette>
#include <QString>
#include <array>
#include <cstdint>

#include "ui/models/owner_palette.h"

namespace recto::ui {

// How an owner's blocks are drawn. Diagonals are kept for shared blocks.
struct OwnerLook {
    QColor hue;
    OwnerPattern pattern{};
};

// Sizes in device-independent pixels. Text sizes follow the zoom; distances do not, so that a large text
// wins room instead of losing it to margins.
struct Metrics {
    int menu_height = 36;
    int status_height = 26;
    int sidebar_width = 232;
    int panel_width = 392;
    int pad = 12;  // inside panels
    int gap = 8;   // between neighbours
    int small_gap = 4;
    int radius = 7;           // buttons, fields, rows
    int card_radius = 9;      // cards
    int bubble_radius = 12;   // the person's message
    int bubble_tail = 3;      // its lower right corner
    int dot = 9;              // owner dot
    int transcript_pad = 34;  // left and right of the transcript and the input box
    int message_gap = 16;
    int target = 24;  // smallest clickable edge
    int focus_width = 2;
    int cell = 10;  // block map: width of a cell; never below 8
    int cell_height = 13;
    int cell_gap = 2;
    int plot_height = 92;
    int stage_bar_height = 16;
};

struct Fonts {
    QFont body;    // 13 px at 100 %
    QFont strong;  // body, semibold
    QFont note;    // 12 px: cards, section titles
    QFont note_strong;
    QFont small;    // 11 px: states, statistics
    QFont tiny;     // 10 px: axes
    QFont number;   // 19 px, semibold: the number cards
    QFont code;     // 12 px, monospace
    QFont heading;  // 16 px, semibold: pages
};

struct Palette {
    bool dark = true;
    double zoom = 1.0;

    QColor background;  // transcript
    QColor panel;       // sidebar, live panel, bars
    QColor raised;      // bubbles, cards, buttons, the chosen row
    QColor raised_hover;
    QColor line;  // borders and grid lines
    QColor text;
    QColor dim;        // second-rank text, 4.5:1 on panel, background and raised
    QColor accent;     // the one primary action, links, the decode curve; never a data hue
    QColor on_accent;  // text on accent
    QColor focus;      // focus ring
    QColor selection;  // selected text
    QColor on_selection;
    QColor code_background;
    QColor warning;  // 80 % of the context
    QColor danger;   // 95 % of the context, errors
    QColor success;
    QColor cached;     // a cached block without a known owner
    QColor free_cell;  // interior of a free block
    QColor free_outline;
    QColor data_outline;  // 1 px around data marks: transparent in the dark, ≥ 3:1 on white
    QColor shared_many;   // a block with three owners or more
    QColor on_shared_many;
    std::array<QColor, 7> hues;
    std::array<QColor, 6> stages;  // load time: map, tokenizer, read, repack, upload, warm-up

    Metrics metrics;
    Fonts fonts;

    // The look of the n-th owner (OwnerStyle::number); repeats only after 28.
    OwnerLook owner(int number) const;
    // A cached block keeps its owner's hue, dimmed towards the panel.
    QColor dimmed(const QColor& hue) const;
};

// language: "zh_TW" puts Traditional Chinese glyph shapes first; the others keep the system's order behind
// Latin.
Palette make_palette(bool dark, double zoom = 1.0, const QString& language = {});

QPalette to_qpalette(const Palette& palette);

// WCAG 2 contrast ratio, 1 … 21.
double contrast_ratio(const QColor& a, const QColor& b);

}  // namespace recto::ui
