// The palette in use, switched live: the person's choice (system, light, dark), the text zoom and the
// language. Widgets take a Theme*, read palette() when they paint and connect to changed().
#pragma once
#include <QObject>
#include <memory>

#include "ui/theme/palette.h"

class QApplication;

namespace recto::ui {

enum class ColorMode : std::uint8_t { system, light, dark };

class SystemColorScheme;

class Theme : public QObject {
    Q_OBJECT
  public:
    explicit Theme(QObject* parent = nullptr);
    ~Theme() override;

    const Palette& palette() const { return palette_; }
    ColorMode mode() const { return mode_; }
    double zoom() const { return zoom_; }

    void set_mode(ColorMode mode);
    void set_zoom(double zoom);  // clamped to 0.8 … 2.0
    void set_language(const QString& language);

    // Fusion, our palette, fonts and style sheet, now and after every change.
    void apply_to(QApplication& app);

  Q_SIGNALS:
    void changed();

  private:
    void rebuild();
    Palette palette_;
    ColorMode mode_ = ColorMode::system;
    double zoom_ = 1.0;
    QString language_;
    std::unique_ptr<SystemColorScheme> system_;
    QApplication* app_ = nullptr;
};

}  // namespace recto::ui
