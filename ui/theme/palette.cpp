#include "ui/theme/palette.h"

#include <algorithm>
#include <cmath>

namespace recto::ui {
namespace {

QStringList sans_families(const QString& language) {
    QStringList families{QStringLiteral("Inter")};
    // Han characters are unified: without a Traditional Chinese font in front, Japanese or Simplified shapes
    // appear.
    if (language.startsWith(QStringLiteral("zh")) || language.isEmpty() ||
        language.startsWith(QStringLiteral("en")))
        families << QStringLiteral("Noto Sans CJK TC") << QStringLiteral("Noto Sans CJK HK");
    return families << QStringLiteral("Noto Sans") << QStringLiteral("DejaVu Sans")
                    << QStringLiteral("sans-serif");
}

QFont make_font(const QStringList& families, double pixels, double zoom,
                QFont::Weight weight = QFont::Normal) {
    QFont font;
    font.setFamilies(families);
    font.setPointSizeF(pixels * 0.75 * zoom);  // 96 dots per inch: 1 px = 0.75 pt
    font.setWeight(weight);
    return font;
}

Fonts make_fonts(double zoom, const QString& language) {
    const QStringList sans = sans_families(language);
    const QStringList mono{QStringLiteral("JetBrains Mono"), QStringLiteral("DejaVu Sans Mono"),
                           QStringLiteral("Noto Sans Mono CJK TC"), QStringLiteral("monospace")};
    Fonts f;
    f.body = make_font(sans, 13, zoom);
    f.strong = make_font(sans, 13, zoom, QFont::DemiBold);
    f.note = make_font(sans, 12, zoom);
    f.note_strong = make_font(sans, 12, zoom, QFont::DemiBold);
    f.small = make_font(sans, 11, zoom);
    f.tiny = make_font(sans, 10, zoom);
    f.number = make_font(sans, 19, zoom, QFont::DemiBold);
    f.heading = make_font(sans, 16, zoom, QFont::DemiBold);
    f.code = make_font(mono, 12, zoom);
    f.code.setStyleHint(QFont::Monospace);
    return f;
}

void set_dark(Palette& p) {
    p.background = 0x16181d;
    p.panel = 0x1c1f26;
    p.raised = 0x242832;
    p.raised_hover = 0x2c313d;
    p.line = 0x2e333f;
    p.text = 0xe6e8ec;
    p.dim = 0x9aa1ae;
    p.accent = 0x7aa2f7;
    p.on_accent = 0x10131a;
    p.focus = 0x7aa2f7;
    p.selection = 0x34508c;
    p.on_selection = 0xffffff;
    p.code_background = 0x11131a;
    p.warning = 0xe6b450;
    p.danger = 0xf7768e;
    p.success = 0x6fc48b;
    p.cached = 0x3a4150;
    p.free_cell = 0x22262f;
    p.free_outline = 0x3a4150;
    p.data_outline = Qt::transparent;
    p.shared_many = 0xc8ccd4;
    p.on_shared_many = 0x10131a;
}

void set_light(Palette& p) {
    p.background = 0xffffff;
    p.panel = 0xf5f6f8;
    p.raised = 0xe8eaef;
    p.raised_hover = 0xdee1e8;
    p.line = 0xd3d7df;
    p.text = 0x1b1e25;
    p.dim = 0x565d6b;
    p.accent = 0x2b5fd0;
    p.on_accent = 0xffffff;
    p.focus = 0x2b5fd0;
    p.selection = 0xb9cdfb;
    p.on_selection = 0x10131a;
    p.code_background = 0xf1f2f5;
    p.warning = 0x8a5a00;
    p.danger = 0xb3203c;
    p.success = 0x1d7340;
    p.cached = 0xc3c8d2;
    p.free_cell = 0xffffff;
    p.free_outline = 0xb4bac6;
    p.data_outline = 0x6b7280;
    p.shared_many = 0x565d6b;
    p.on_shared_many = 0xffffff;
}

double luminance(const QColor& c) {
    const auto linear = [](double v) {
        return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
}

}  // namespace

OwnerLook Palette::owner(int number) const {
    const OwnerStyle style = owner_style(std::max(number, 0));
    return {hues[std::size_t(style.hue)], style.pattern};
}

QColor Palette::dimmed(const QColor& hue) const {
    const float share = dark ? 0.34F : 0.40F;
    const auto mix = [share](float a, float b) { return a * share + b * (1 - share); };
    return QColor::fromRgbF(mix(hue.redF(), panel.redF()), mix(hue.greenF(), panel.greenF()),
                            mix(hue.blueF(), panel.blueF()));
}

Palette make_palette(bool dark, double zoom, const QString& language) {
    Palette p;
    p.dark = dark;
    p.zoom = std::clamp(zoom, 0.8, 2.0);
    dark ? set_dark(p) : set_light(p);
    for (std::size_t i = 0; i < p.hues.size(); ++i) p.hues[i] = QColor(owner_rgb(OwnerHue(i)));
    p.stages = {p.hues[0], p.hues[4], p.hues[2], p.hues[1], p.hues[3], p.accent};
    p.fonts = make_fonts(p.zoom, language);
    return p;
}

QPalette to_qpalette(const Palette& p) {
    QPalette q;
    q.setColor(QPalette::Window, p.panel);
    q.setColor(QPalette::WindowText, p.text);
    q.setColor(QPalette::Base, p.background);
    q.setColor(QPalette::AlternateBase, p.panel);
    q.setColor(QPalette::ToolTipBase, p.raised);
    q.setColor(QPalette::ToolTipText, p.text);
    q.setColor(QPalette::PlaceholderText, p.dim);
    q.setColor(QPalette::Text, p.text);
    q.setColor(QPalette::Button, p.raised);
    q.setColor(QPalette::ButtonText, p.text);
    q.setColor(QPalette::BrightText, p.danger);
    q.setColor(QPalette::Link, p.accent);
    q.setColor(QPalette::LinkVisited, p.accent);
    q.setColor(QPalette::Highlight, p.selection);
    q.setColor(QPalette::HighlightedText, p.on_selection);
    q.setColor(QPalette::Light, p.raised_hover);
    q.setColor(QPalette::Midlight, p.raised);
    q.setColor(QPalette::Mid, p.line);
    q.setColor(QPalette::Dark, p.line);
    q.setColor(QPalette::Shadow, p.code_background);
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        q.setColor(QPalette::Disabled, role, p.dimmed(p.text));
    return q;
}

double contrast_ratio(const QColor& a, const QColor& b) {
    const double x = luminance(a), y = luminance(b);
    return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

}  // namespace recto::ui
