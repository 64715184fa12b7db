#include "ui/chat/prompt_popover.h"

#include <QEvent>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/chat/text_field.h"
#include "ui/theme/theme.h"

namespace recto::ui {

PromptPopover::PromptPopover(Theme* theme, QWidget* window_area)
    : Popover(theme, window_area),
      title_(new QLabel(this)),
      field_(new TextField(this)),
      help_(new QLabel(this)),
      done_(new QPushButton(this)) {
    setObjectName(QStringLiteral("promptPopover"));
    title_->setFont(theme->palette().fonts.strong);
    field_->setObjectName(QStringLiteral("systemPromptText"));
    field_->setProperty("field", true);
    field_->setMinimumSize(380, 140);
    watch(field_);
    help_->setProperty("dim", true);
    help_->setWordWrap(true);
    done_->setObjectName(QStringLiteral("systemPromptDone"));
    watch(done_);
    connect(done_, &QPushButton::clicked, this, &Popover::close_popover);
    connect(this, &Popover::closed, this, &PromptPopover::take);
    column()->addWidget(title_);
    column()->addWidget(field_);
    column()->addWidget(help_);
    column()->addWidget(done_, 0, Qt::AlignRight);
    retranslate();
}

void PromptPopover::set_prompt(const QString& text) {
    prompt_ = text;
    if (!isVisible() && field_->toPlainText() != text) field_->setPlainText(text);
}

void PromptPopover::take() {
    field_->guard().commit_then([this] {
        const QString text = field_->toPlainText();
        if (text == prompt_) return;
        prompt_ = text;
        Q_EMIT prompt_changed(text);
    });
}

void PromptPopover::retranslate() {
    setAccessibleName(tr("System prompt of this chat"));
    title_->setText(tr("System prompt of this chat"));
    field_->setAccessibleName(title_->text());
    field_->setPlaceholderText(tr("What the model is told before the first message"));
    help_->setText(tr("Chats with the same system prompt share its blocks in the KV cache."));
    done_->setText(tr("Done"));
    done_->setAccessibleName(done_->text());
}

void PromptPopover::changeEvent(QEvent* event) {
    if (event->type() == QEvent::LanguageChange) retranslate();
    Popover::changeEvent(event);
}

}  // namespace recto::ui
