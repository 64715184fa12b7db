#include "ui/panel/section_header.h"

#include <QHBoxLayout>
#include <QLabel>

#include "ui/shrinking_label.h"
#include "ui/theme/theme.h"

namespace recto::ui {

SectionHeader::SectionHeader(const Theme* theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    row_ = new QHBoxLayout(this);
    row_->setContentsMargins(0, 0, 0, 0);
    row_->setSpacing(4);
    title_ = new QLabel(this);
    value_ = new ShrinkingLabel(this);
    row_->addWidget(title_);
    row_->addStretch(1);
    row_->addWidget(value_);
    connect(theme, &Theme::changed, this, [this] { restyle(); });
    restyle();
}

void SectionHeader::set_title(const QString& title) {
    title_->setText(title);
}

void SectionHeader::set_value(const QString& value) {
    if (value != value_->text()) value_->setText(value);
}

QString SectionHeader::value() const {
    return value_->text();
}

void SectionHeader::add_control(QWidget* control) {
    row_->addWidget(control);
}

void SectionHeader::restyle() {
    const Palette& p = theme_->palette();
    title_->setFont(p.fonts.note_strong);
    value_->setFont(p.fonts.note);
    QPalette dim = value_->palette();
    dim.setColor(QPalette::WindowText, p.dim);
    value_->setPalette(dim);
}

}  // namespace recto::ui
