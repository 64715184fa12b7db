#include "ui/theme/theme.h"

#include <QApplication>
#include <QStyleFactory>
#include <algorithm>

#include "ui/theme/style_sheet.h"
#include "ui/theme/system_color_scheme.h"

namespace recto::ui {

Theme::Theme(QObject* parent) : QObject(parent), system_(std::make_unique<SystemColorScheme>()) {
    connect(system_.get(), &SystemColorScheme::changed, this, [this] {
        if (mode_ == ColorMode::system) rebuild();
    });
    palette_ = make_palette(system_->dark());
}

Theme::~Theme() = default;

void Theme::set_mode(ColorMode mode) {
    if (mode == mode_) return;
    mode_ = mode;
    rebuild();
}

void Theme::set_zoom(double zoom) {
    zoom = std::clamp(zoom, 0.8, 2.0);
    if (zoom == zoom_) return;
    zoom_ = zoom;
    rebuild();
}

void Theme::set_language(const QString& language) {
    if (language == language_) return;
    language_ = language;
    rebuild();
}

void Theme::apply_to(QApplication& app) {
    app_ = &app;
    app.setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    rebuild();
}

void Theme::rebuild() {
    const bool dark = mode_ == ColorMode::dark || (mode_ == ColorMode::system && system_->dark());
    palette_ = make_palette(dark, zoom_, language_);
    if (app_ != nullptr) {
        app_->setPalette(to_qpalette(palette_));
        app_->setFont(palette_.fonts.body);
        app_->setStyleSheet(style_sheet(palette_));
    }
    Q_EMIT changed();
}

}  // namespace recto::ui
