#include "ui/panel/number_card.h"

#include <QLabel>
#include <QVBoxLayout>

#include "ui/theme/theme.h"

namespace recto::ui {

NumberCard::NumberCard(const Theme* theme, QWidget* parent) : QFrame(parent), theme_(theme) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(10, 6, 8, 7);
    column->setSpacing(0);
    number_ = new QLabel(this);
    caption_ = new QLabel(this);
    caption_->setWordWrap(true);
    caption_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    column->addWidget(number_);
    column->addWidget(caption_, 1);
    setAttribute(Qt::WA_StyledBackground);
    connect(theme, &Theme::changed, this, [this] { restyle(); });
    restyle();
}

void NumberCard::set_caption(const QString& caption, const QString& formula) {
    caption_->setText(caption);
    setToolTip(formula);
    setAccessibleName(caption);
}

void NumberCard::set_number(const QString& number) {
    if (number == number_->text()) return;
    number_->setText(number);
    setAccessibleDescription(number);
}

QString NumberCard::number() const {
    return number_->text();
}

void NumberCard::restyle() {
    const Palette& p = theme_->palette();
    setStyleSheet(QStringLiteral("recto--ui--NumberCard{background:%1;border-radius:%2px}")
                      .arg(p.raised.name())
                      .arg(p.metrics.radius + 1));
    number_->setFont(p.fonts.number);
    caption_->setFont(p.fonts.small);
    QPalette dim = caption_->palette();
    dim.setColor(QPalette::WindowText, p.dim);
    caption_->setPalette(dim);
}

}  // namespace recto::ui
