// How full the context is: a bar, the numbers, and from 80 % on a word as well as a colour.
#pragma once
#include <QPainter>
#include <QWidget>

#include "ui/theme/palette.h"

namespace recto::ui {

class Theme;

struct ContextUse {
    int used = 0;   // tokens of the last prompt and answer
    int limit = 0;  // 0: no model
    int blocks = 0;

    bool operator==(const ContextUse&) const = default;
};

enum class ContextLevel : quint8 { normal, nearly_full, full };
ContextLevel context_level(const ContextUse& use);  // 80 %, 95 %
// "context 612 / 2,048 · 39 blocks"; the blocks are the first to go where room is short.
QString context_text(const ContextUse& use, bool with_blocks = true);
void paint_context_meter(QPainter& painter, const ContextUse& use, const QRectF& area,
                         const Palette& palette);

class ContextMeter : public QWidget {
    Q_OBJECT
  public:
    explicit ContextMeter(Theme* theme, QWidget* parent = nullptr);
    void set_use(const ContextUse& use);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

  protected:
    void paintEvent(QPaintEvent* event) override;
    void changeEvent(QEvent* event) override;

  private:
    void describe();
    Theme* theme_;
    ContextUse use_;
};

}  // namespace recto::ui
