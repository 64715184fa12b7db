#include "ui/theme/style_sheet.h"

#include <QList>

namespace recto::ui {
namespace {

// @name stands for a colour or size of the palette.
constexpr const char* rules = R"(
QMenuBar { background: @panel; color: @dim; border-bottom: 1px solid @line; padding: 4px 8px; }
QMenuBar::item { background: transparent; padding: 4px 9px; border-radius: 5px; }
QMenuBar::item:selected { background: @raised; color: @text; }
QMenu { background: @panel; color: @text; border: 1px solid @line; padding: 4px; }
QMenu::item { padding: 5px 26px 5px 22px; border-radius: 5px; }
QMenu::item:selected { background: @raised; }
QMenu::item:disabled { color: @disabled; }
QMenu::separator { height: 1px; background: @line; margin: 4px 8px; }
QToolTip { background: @raised; color: @text; border: 1px solid @line; padding: 4px 6px; }
QPushButton { background: @raised; color: @text; border: 1px solid @line; border-radius: @radius; padding: 5px 10px; }
QPushButton:hover { background: @hover; }
QPushButton:pressed { background: @line; }
QPushButton:focus { border: 1px solid @focus; }
QPushButton:disabled { color: @disabled; }
QPushButton[primary="true"] { background: @accent; color: @onaccent; border: 1px solid @accent; font-weight: 600; }
QPushButton[primary="true"]:hover { background: @accenthover; }
QPushButton[primary="true"]:focus { border: 2px solid @text; padding: 4px 9px; }
QPushButton[primary="true"]:disabled { background: @raised; color: @disabled; border-color: @line; }
QPushButton[flat="true"], QToolButton { background: transparent; color: @dim; border: 1px solid transparent; border-radius: 5px; padding: 2px 5px; }
QPushButton[flat="true"]:hover, QToolButton:hover { background: @raised; color: @text; }
QPushButton[flat="true"]:focus, QToolButton:focus { border: 1px solid @focus; }
QPushButton[flat="true"]:disabled, QToolButton:disabled { color: @disabled; }
QPushButton[flat="true"]:checked, QToolButton:checked { color: @accent; }
QToolButton#tab_close { padding: 0; }
QLineEdit, QSpinBox, QDoubleSpinBox, QComboBox, QPlainTextEdit[field="true"] { background: @panel; color: @text; border: 1px solid @line; border-radius: @radius; padding: 4px 8px; selection-background-color: @selection; selection-color: @onselection; }
QLineEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus, QPlainTextEdit[field="true"]:focus { border: 1px solid @focus; }
QLineEdit:disabled, QSpinBox:disabled, QDoubleSpinBox:disabled, QComboBox:disabled { color: @disabled; }
QComboBox::drop-down { border: 0; width: 22px; }
QComboBox::down-arrow { image: url(:/icons/chevron-down.svg); width: 12px; height: 12px; }
QComboBox QAbstractItemView { background: @panel; border: 1px solid @line; selection-background-color: @raised; selection-color: @text; }
QLabel[dim="true"] { color: @dim; }
QFrame[card="true"] { border: 1px solid @line; border-radius: @cardradius; }
QProgressBar { background: @raised; border: 0; border-radius: 2px; max-height: 4px; min-height: 4px; }
QProgressBar::chunk { background: @accent; border-radius: 2px; }
QScrollBar:vertical { background: transparent; width: 12px; margin: 0; }
QScrollBar::handle:vertical { background: @scroll; border-radius: 4px; min-height: 28px; margin: 2px; }
QScrollBar:horizontal { background: transparent; height: 12px; margin: 0; }
QScrollBar::handle:horizontal { background: @scroll; border-radius: 4px; min-width: 28px; margin: 2px; }
QScrollBar::handle:hover { background: @dim; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QSplitter::handle { background: @line; }
QDialog { background: @panel; }
)";

}  // namespace

QString style_sheet(const Palette& p) {
    // A name that begins another one comes after it.
    const QList<std::pair<QString, QString>> values{
        {QStringLiteral("@panel"), p.panel.name()},
        {QStringLiteral("@disabled"), p.dimmed(p.text).name()},
        {QStringLiteral("@dim"), p.dim.name()},
        {QStringLiteral("@line"), p.line.name()},
        {QStringLiteral("@raised"), p.raised.name()},
        {QStringLiteral("@hover"), p.raised_hover.name()},
        {QStringLiteral("@text"), p.text.name()},
        {QStringLiteral("@accenthover"), (p.dark ? p.accent.lighter(108) : p.accent.darker(108)).name()},
        {QStringLiteral("@accent"), p.accent.name()},
        {QStringLiteral("@onaccent"), p.on_accent.name()},
        {QStringLiteral("@onselection"), p.on_selection.name()},
        {QStringLiteral("@selection"), p.selection.name()},
        {QStringLiteral("@focus"), p.focus.name()},
        {QStringLiteral("@scroll"), p.cached.name()},
        {QStringLiteral("@cardradius"), QStringLiteral("%1px").arg(p.metrics.card_radius)},
        {QStringLiteral("@radius"), QStringLiteral("%1px").arg(p.metrics.radius)},
    };
    QString sheet = QString::fromLatin1(rules);
    for (const auto& [name, value] : values)
        sheet.replace(name + QStringLiteral(";"), value + QStringLiteral(";"));
    for (const auto& [name, value] : values)
        sheet.replace(name, value);
    return sheet;
}

}  // namespace recto::ui
