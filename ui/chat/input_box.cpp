#include "ui/chat/input_box.h"

#include <QDialog>
#include <QDialogButtonBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QLocale>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/chat/column.h"
#include "ui/theme/theme.h"

namespace recto::ui {

InputBox::InputBox(Theme* theme, QWidget* parent)
    : QWidget(parent),
      theme_(theme),
      frame_(new QFrame(this)),
      field_(new TextField(frame_)),
      chip_row_(new QWidget(frame_)),
      note_(new QLabel(frame_)),
      meter_(new ContextMeter(theme, this)),
      sampling_(new QPushButton(this)),
      prompt_(new QPushButton(this)),
      send_(new QPushButton(this)) {
    const Metrics& m = theme->palette().metrics;
    setObjectName(QStringLiteral("inputBox"));
    frame_->setObjectName(QStringLiteral("inputFrame"));
    frame_->installEventFilter(this);
    field_->setObjectName(QStringLiteral("messageInput"));
    field_->setFrameShape(QFrame::NoFrame);
    field_->viewport()->setAutoFillBackground(false);
    field_->document()->setDocumentMargin(0);
    field_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    field_->set_submits(true);
    field_->set_hands_out_large_pastes(true);
    field_->installEventFilter(this);
    note_->setObjectName(QStringLiteral("inputNote"));
    note_->setProperty("dim", true);
    note_->setAlignment(Qt::AlignRight);
    chip_layout_ = new QVBoxLayout(chip_row_);
    chip_layout_->setContentsMargins(0, 0, 0, 4);
    chip_layout_->setSpacing(4);
    chip_row_->hide();
    auto* box = new QVBoxLayout(frame_);
    box->setContentsMargins(12, 10, 12, 10);
    box->setSpacing(2);
    box->addWidget(chip_row_);
    box->addWidget(field_);
    box->addWidget(note_);

    sampling_->setObjectName(QStringLiteral("samplingButton"));
    prompt_->setObjectName(QStringLiteral("systemPromptButton"));
    send_->setObjectName(QStringLiteral("sendButton"));
    send_->setProperty("primary", true);
    auto* row = new QHBoxLayout;
    row->setSpacing(10);
    row->addWidget(meter_, 1);
    row->addWidget(sampling_);
    row->addWidget(prompt_);
    row->addWidget(send_);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(m.transcript_pad, m.pad, m.transcript_pad, 14);  // see fit_column()
    column->setSpacing(10);
    column->addWidget(frame_);
    column->addLayout(row);
    setTabOrder(field_, sampling_);
    setTabOrder(sampling_, prompt_);
    setTabOrder(prompt_, send_);

    connect(field_, &TextField::textChanged, this, [this] {
        update_state();
        Q_EMIT text_changed(text());
    });
    connect(&field_->guard(), &CompositionGuard::composing_changed, this, &InputBox::update_state);
    connect(field_, &TextField::height_wanted, this, &InputBox::fit_height);
    connect(field_, &TextField::large_paste, this, &InputBox::add_chip);
    connect(field_, &TextField::submitted, this, &InputBox::send);
    connect(field_, &TextField::up_in_empty, this, [this] {
        if (chips_.isEmpty()) Q_EMIT recall_requested();
    });
    connect(send_, &QPushButton::clicked, this, [this] {
        if (busy_)
            Q_EMIT stop_requested();
        else
            send();
    });
    connect(theme_, &Theme::changed, this, &InputBox::apply_theme);
    apply_theme();
    retranslate();
}

QString InputBox::text() const {
    QStringList parts;
    for (const PastedText& chip : chips_)
        parts << chip.text;
    const QString written = field_->toPlainText();
    if (!written.isEmpty()) parts << written;
    return parts.join(QStringLiteral("\n\n"));
}

void InputBox::set_text(const QString& text) {
    chips_.clear();
    rebuild_chips();
    field_->setPlainText(text);
    field_->moveCursor(QTextCursor::End);
}

void InputBox::clear() {
    set_text({});
}

void InputBox::set_send_key(SendKey key) {
    send_key_ = key;
    field_->set_send_key(key);
    retranslate();
}

void InputBox::fit_column() {
    const Column column = column_in(width(), theme_->palette());
    const int right = width() - int(column.x + column.width);
    layout()->setContentsMargins(int(column.x), theme_->palette().metrics.pad, right, 14);
}

void InputBox::resizeEvent(QResizeEvent* event) {
    fit_column();
    QWidget::resizeEvent(event);
}

void InputBox::set_pane_height(int height) {
    pane_height_ = height;
    fit_height();
}

void InputBox::fit_height() {
    const int line = field_->height_for_lines(1);
    const int longest = std::max(line, pane_height_ * 2 / 5 - 2 * 10 - 2);
    const int needed = field_->height_for_text();
    const int wanted = std::clamp(needed, line, longest);
    field_->setVerticalScrollBarPolicy(needed > longest ? Qt::ScrollBarAsNeeded : Qt::ScrollBarAlwaysOff);
    if (field_->height() != wanted || field_->minimumHeight() != wanted) field_->setFixedHeight(wanted);
}

void InputBox::set_busy(bool busy, bool stopping) {
    if (busy == busy_ && stopping == stopping_) return;
    busy_ = busy;
    stopping_ = stopping;
    update_state();
}

void InputBox::set_blocked_reason(const QString& text) {
    if (text == blocked_) return;
    blocked_ = text;
    update_state();
}

void InputBox::set_context(const ContextUse& use) {
    meter_->set_use(use);
}

void InputBox::set_token_count(int tokens, int remaining) {
    tokens_ = tokens;
    remaining_ = remaining;
    update_state();
}

void InputBox::set_sampling_summary(const QString& text) {
    sampling_->setText(text);
}

void InputBox::set_has_system_prompt(bool has) {
    has_prompt_ = has;
    retranslate();
}

// Send says why it is disabled; Stop is enabled as long as something runs.
void InputBox::update_state() {
    const bool something = !chips_.isEmpty() || !field_->is_blank();
    QString reason = blocked_;
    if (reason.isEmpty() && !something) reason = tr("Write a message first");
    send_->setEnabled(busy_ ? !stopping_ : reason.isEmpty());
    const QString label = busy_ ? (stopping_ ? tr("Stopping\u2026") : tr("Stop  Esc")) : tr("Send");
    send_->setText(label);
    send_->setAccessibleName(busy_ ? tr("Stop the answer") : tr("Send the message"));
    const QString help = busy_              ? tr("Stops this answer; its text is kept (Esc)")
                         : reason.isEmpty() ? tr("Send")
                                            : reason;
    send_->setToolTip(help);
    send_->setAccessibleDescription(help);
    const QLocale locale;
    QString note;
    if (!blocked_.isEmpty() && !busy_)
        note = blocked_;
    else if (something && tokens_ >= 0 && remaining_ >= 0)
        note = tr("%1 tokens \u00b7 %2 left").arg(locale.toString(tokens_), locale.toString(remaining_));
    else if (something && tokens_ >= 0)
        note = tr("%1 tokens \u00b7 %2 too many").arg(locale.toString(tokens_), locale.toString(-remaining_));
    note_->setText(note);
    note_->setVisible(!note.isEmpty());
}

void InputBox::send() {
    if (busy_ || !blocked_.isEmpty()) return;  // the text stays as draft
    field_->guard().commit_then([this] {
        if (chips_.isEmpty() && field_->is_blank()) return;
        Q_EMIT send_requested(text());
    });
}

// --- chips

QString InputBox::chip_label(const PastedText& chip) const {
    const QLocale locale;
    if (chip.tokens >= 0) return tr("Pasted text, %1 tokens").arg(locale.toString(chip.tokens));
    return tr("Pasted text, %1 characters").arg(locale.toString(chip.text.size()));
}

void InputBox::add_chip(const QString& text) {
    chips_ << PastedText{text};
    rebuild_chips();
    update_state();
    Q_EMIT text_changed(this->text());
}

void InputBox::rebuild_chips() {
    while (QLayoutItem* item = chip_layout_->takeAt(0)) {
        item->widget()->deleteLater();
        delete item;
    }
    for (int i = 0; i < chips_.size(); ++i) {
        auto* row = new QWidget(chip_row_);
        auto* layout = new QHBoxLayout(row);
        layout->setContentsMargins(0, 0, 0, 0);
        const auto button = [&](const QString& name, const QString& label, const QString& help) {
            auto* b = new QPushButton(label, row);
            b->setObjectName(QStringLiteral("%1%2").arg(name).arg(i));
            b->setAccessibleName(help);
            b->setToolTip(help);
            layout->addWidget(b);
            return b;
        };
        const QString label = chip_label(chips_[i]);
        auto* open = button(QStringLiteral("chipOpen"), label, tr("%1: show it").arg(label));
        auto* keep = button(QStringLiteral("chipInline"), tr("Keep inline"),
                            tr("Put the pasted text into the message"));
        auto* drop =
            button(QStringLiteral("chipRemove"), QStringLiteral("\u00d7"), tr("Remove the pasted text"));
        keep->setProperty("flat", true);
        drop->setProperty("flat", true);
        layout->addStretch();
        chip_layout_->addWidget(row);
        const auto remove = [this, i] {
            chips_.removeAt(i);
            // The button that was clicked dies with its row: not while it is still at work.
            QMetaObject::invokeMethod(
                this, [this] { rebuild_chips(); }, Qt::QueuedConnection);
            update_state();
            Q_EMIT text_changed(text());
            field_->setFocus();
        };
        connect(drop, &QPushButton::clicked, this, remove);
        connect(keep, &QPushButton::clicked, this, [this, i, remove] {
            const QString pasted = chips_[i].text;
            remove();
            field_->insertPlainText(pasted);
        });
        connect(open, &QPushButton::clicked, this, [this, text = chips_[i].text, label] {
            QDialog viewer(window());
            viewer.setObjectName(QStringLiteral("chipViewer"));
            viewer.setWindowTitle(label);
            viewer.resize(640, 480);
            auto* shown = new QPlainTextEdit(text, &viewer);
            shown->setReadOnly(true);
            shown->setAccessibleName(label);
            shown->setObjectName(QStringLiteral("chipViewerText"));
            auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, &viewer);
            connect(buttons, &QDialogButtonBox::rejected, &viewer, &QDialog::reject);
            auto* column = new QVBoxLayout(&viewer);
            column->addWidget(shown);
            column->addWidget(buttons);
            viewer.exec();
        });
    }
    chip_row_->setVisible(!chips_.isEmpty());
}

// --- looks

void InputBox::retranslate() {
    field_->setAccessibleName(tr("Message"));
    field_->setPlaceholderText(send_key_ == SendKey::enter
                                   ? tr("Message, Enter to send, Shift+Enter for a new line")
                                   : tr("Message, Ctrl+Enter to send, Enter for a new line"));
    sampling_->setAccessibleName(tr("Sampling of this chat"));
    sampling_->setToolTip(tr("Temperature, top-p and the like, for this chat"));
    prompt_->setText(has_prompt_ ? tr("System prompt \u2022") : tr("System prompt"));
    prompt_->setAccessibleName(has_prompt_ ? tr("System prompt of this chat, set")
                                           : tr("System prompt of this chat"));
    prompt_->setToolTip(tr("What the model is told before the first message"));
    update_state();
}

void InputBox::apply_theme() {
    const Palette& palette = theme_->palette();
    field_->setFont(palette.fonts.body);
    note_->setFont(palette.fonts.small);
    for (QPushButton* button : {sampling_, prompt_, send_})
        button->setFont(palette.fonts.note);
    // The frame draws the ground, so that it is rounded.
    field_->setStyleSheet(
        QStringLiteral("QPlainTextEdit { background: transparent; border: 0; padding: 0; }"));
    fit_height();
    fit_column();
    frame_->update();
    update();
}

void InputBox::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_->palette().background);
    painter.fillRect(QRect(0, 0, width(), 1), theme_->palette().line);
}

bool InputBox::eventFilter(QObject* watched, QEvent* event) {
    if (watched == frame_ && event->type() == QEvent::Paint) {
        const Palette& palette = theme_->palette();
        QPainter painter(frame_);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(field_->hasFocus() ? palette.focus : palette.line, 1));
        painter.setBrush(palette.panel);
        painter.drawRoundedRect(QRectF(frame_->rect()).adjusted(0.5, 0.5, -0.5, -0.5),
                                palette.metrics.bubble_radius, palette.metrics.bubble_radius);
        return true;
    }
    if (watched == field_ && (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut))
        frame_->update();
    return false;
}

void InputBox::changeEvent(QEvent* event) {
    if (event->type() == QEvent::LanguageChange) {
        retranslate();
        rebuild_chips();
    }
    QWidget::changeEvent(event);
}

}  // namespace recto::ui
