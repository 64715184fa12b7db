#include "ui/message_bar.h"

#include <QAccessible>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>

#include "ui/theme/theme.h"

namespace recto::ui {

MessageBar::MessageBar(const Theme* theme, QWidget* parent) : QFrame(parent), theme_(theme) {
    row_ = new QHBoxLayout(this);
    row_->setContentsMargins(14, 6, 10, 6);
    row_->setSpacing(theme->palette().metrics.gap);
    label_ = new QLabel(this);
    label_->setObjectName(QStringLiteral("message_text"));
    label_->setTextFormat(Qt::PlainText);
    label_->setWordWrap(true);
    row_->addWidget(label_, 1);
    setAttribute(Qt::WA_StyledBackground);
    connect(theme, &Theme::changed, this, [this] { restyle(); });
    restyle();
    hide();
}

void MessageBar::show_message(const QString& sentence, std::vector<Action> actions, bool severe) {
    severe_ = severe;
    for (QWidget* button : buttons_)
        button->deleteLater();
    buttons_.clear();
    label_->setText(sentence);
    label_->setAccessibleName(sentence);
    actions.emplace_back(tr("Dismiss"), std::function<void()>());
    int number = 0;
    for (auto& [text, run] : actions) {
        auto* button = new QPushButton(text, this);
        button->setObjectName(run ? QStringLiteral("message_action_%1").arg(number++)
                                  : QStringLiteral("message_dismiss"));
        button->setProperty("flat", !run);
        connect(button, &QPushButton::clicked, this, [this, run = std::move(run)] {
            dismiss();
            if (run) run();
        });
        row_->addWidget(button);
        buttons_.push_back(button);
    }
    restyle();
    show();
    // Qt before 6.8 has no announcement: an alert on the label is what screen readers speak.
    QAccessibleEvent alert(label_, QAccessible::Alert);
    QAccessible::updateAccessibility(&alert);
}

void MessageBar::dismiss() {
    hide();
}

QString MessageBar::sentence() const {
    return label_->text();
}

void MessageBar::restyle() {
    const Palette& p = theme_->palette();
    setStyleSheet(QStringLiteral("recto--ui--MessageBar{background:%1;border-top:%2px solid %3}")
                      .arg(p.raised.name())
                      .arg(severe_ ? 2 : 1)
                      .arg((severe_ ? p.warning : p.line).name()));
    label_->setFont(p.fonts.body);
}

}  // namespace recto::ui
