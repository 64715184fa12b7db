#include "ui/chat/message_editor.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/chat/text_field.h"
#include "ui/theme/theme.h"

namespace recto::ui {

MessageEditor::MessageEditor(Theme* theme, Role role, const QString& text, QWidget* parent)
    : QWidget(parent),
      field_(new TextField(this)),
      save_(new QPushButton(this)),
      cancel_(new QPushButton(this)) {
    setObjectName(QStringLiteral("messageEditor"));
    field_->setObjectName(QStringLiteral("messageEditorText"));
    field_->setAccessibleName(role == Role::user ? tr("Edit your message") : tr("Edit the answer"));
    field_->setProperty("field", true);
    field_->setFont(theme->palette().fonts.body);
    field_->setPlainText(text);
    field_->set_submits(true);
    field_->set_send_key(SendKey::ctrl_enter);
    field_->set_escape_cancels(true);
    save_->setObjectName(QStringLiteral("messageEditorSave"));
    save_->setText(role == Role::user ? tr("Save and answer") : tr("Save"));
    save_->setAccessibleName(save_->text());
    save_->setToolTip(tr("Makes a new version; the old one is kept (Ctrl+Enter)"));
    save_->setProperty("primary", true);
    cancel_->setObjectName(QStringLiteral("messageEditorCancel"));
    cancel_->setText(tr("Cancel"));
    cancel_->setAccessibleName(cancel_->text());
    cancel_->setToolTip(tr("Leaves the message as it is (Esc)"));

    auto* buttons = new QHBoxLayout;
    buttons->addStretch();
    buttons->addWidget(cancel_);
    buttons->addWidget(save_);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(theme->palette().metrics.gap);
    column->addWidget(field_);
    column->addLayout(buttons);

    const auto enable = [this] { save_->setEnabled(!field_->is_blank()); };
    enable();
    connect(field_, &TextField::textChanged, this, enable);
    connect(&field_->guard(), &CompositionGuard::composing_changed, this, enable);
    connect(field_, &TextField::height_wanted, this, &MessageEditor::height_wanted);
    connect(field_, &TextField::submitted, this, &MessageEditor::accept);
    connect(field_, &TextField::cancelled, this, &MessageEditor::rejected);
    connect(save_, &QPushButton::clicked, this, &MessageEditor::accept);
    connect(cancel_, &QPushButton::clicked, this, &MessageEditor::rejected);
    field_->moveCursor(QTextCursor::End);
}

void MessageEditor::accept() {
    field_->guard().commit_then([this] {
        if (!field_->is_blank()) Q_EMIT accepted(field_->toPlainText());
    });
}

int MessageEditor::wanted_height(int longest) const {
    const int rest = save_->sizeHint().height() + layout()->spacing();
    return std::max(field_->height_for_lines(2), std::min(field_->height_for_text(), longest)) + rest;
}

}  // namespace recto::ui
