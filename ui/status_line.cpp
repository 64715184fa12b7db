#include "ui/status_line.h"

#include <QAccessible>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>

#include "ui/format.h"
#include "ui/shrinking_label.h"
#include "ui/theme/theme.h"

namespace recto::ui {

StatusLine::StatusLine(const Theme* theme, Session* session, QWidget* parent)
    : QWidget(parent), theme_(theme), session_(session) {
    setObjectName(QStringLiteral("status_line"));
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(14, 1, 14, 0);
    row->setSpacing(22);
    const auto add = [&](const char* name, QLabel* label = nullptr) {
        if (label == nullptr) label = new QLabel(this);
        label->setObjectName(QString::fromLatin1(name));
        label->setTextFormat(Qt::PlainText);
        row->addWidget(label);
        return label;
    };
    // A model's or a processor's name may be longer than a screen.
    model_ = add("status_model", new ShrinkingLabel(this));
    device_ = add("status_device", new ShrinkingLabel(this));
    pool_ = add("status_pool");
    speed_ = add("status_speed");
    row->addStretch(1);
    address_ = add("status_address");
    address_->hide();
    // Announcements are made through a label that is not seen: before Qt 6.8 an alert on a label is what is
    // spoken.
    spoken_ = new QLabel(this);
    spoken_->setObjectName(QStringLiteral("status_spoken"));
    spoken_->setFixedSize(0, 0);
    step_ = add("status_step");
    chats_ = add("status_chats");
    HostClient* host = session->host();
    connect(host, &HostClient::state_changed, this, [this] { show_model(); });
    connect(host, &HostClient::load_progress, this, [this](const QString&, double fraction) {
        model_->setText(tr("○ loading, %1 %").arg(int(fraction * 100)));
    });
    connect(host, &HostClient::paused_changed, this, [this] { show_chats(); });
    connect(session, &Session::snapshot_ready, this,
            [this](HostClient* from, const std::shared_ptr<const PoolSnapshot>& snapshot) {
                if (from == session_->host()) show_snapshot(snapshot.get());
            });
    for (const auto signal : {&Session::chat_added, &Session::chat_removed, &Session::chat_changed})
        connect(session, signal, this, [this] { show_chats(); });
    connect(session, &Session::ready, this, [this] { show_chats(); });
    connect(theme, &Theme::changed, this, [this] { restyle(); });
    restyle();
    show_model();
    show_chats();
}

void StatusLine::show_model() {
    HostClient* host = session_->host();
    marks_.clear();
    const auto model = host->model();
    device_->setVisible(model != nullptr);
    for (QLabel* label : {pool_, speed_, step_})
        label->setVisible(false);
    if (model) {
        model_->setText(
            QStringLiteral("● %1 %2").arg(model_title(*model), QString::fromStdString(model->quantization)));
        device_->setText(device_line(*model));
        model_->setToolTip(model_->text());
        device_->setToolTip(device_->text() + QLatin1Char('\n') +
                            QString::fromStdString(model->device.kernels));
        return;
    }
    model_->setToolTip({});
    switch (host->state()) {
        case HostState::loading:
            model_->setText(tr("○ loading"));
            break;
        case HostState::failed:
            model_->setText(tr("✕ the model did not load"));
            break;
        default:
            model_->setText(tr("○ no model loaded"));
            break;
    }
}

void StatusLine::show_snapshot(const PoolSnapshot* snapshot) {
    if (snapshot == nullptr || !session_->host()->ready()) return;
    const EngineSnapshot& s = snapshot->engine;
    if (!marks_.empty() && s.time < marks_.back().time) marks_.clear();
    marks_.push_back({s.time, s.tokens_decoded});
    while (marks_.size() > 2 && s.time - marks_[1].time >= 1.0)
        marks_.erase(marks_.begin());
    const double span = s.time - marks_.front().time;
    const double rate = span > 0 ? double(s.tokens_decoded - marks_.front().decoded) / span : 0;
    const double used = s.counts.total > 0 ? 100.0 * s.counts.used / s.counts.total : 0;
    pool_->setText(tr("KV %1 %").arg(QLocale().toString(used, 'f', used > 0 && used < 10 ? 1 : 0)));
    speed_->setText(tr("%1 tok/s").arg(format_rate(rate)));
    step_->setText(tr("step %1").arg(format_seconds(s.last_step_s)));
    pool_->setVisible(true);
    speed_->setVisible(true);
    step_->setVisible(s.last_step_s > 0);
}

void StatusLine::show_address(const QString& address) {
    address_->setText(address);
    address_->setVisible(!address.isEmpty());
}

void StatusLine::announce(const QString& sentence) {
    spoken_->setText(sentence);
    spoken_->setAccessibleName(sentence);
    QAccessibleEvent alert(spoken_, QAccessible::Alert);
    QAccessible::updateAccessibility(&alert);
}

void StatusLine::show_chats() {
    const int busy = session_->busy_count();
    const QString chats = tr("%n chat(s)", nullptr, int(session_->chats().size()));
    QString text = busy > 0 ? tr("%1, %n answering", nullptr, busy).arg(chats) : chats;
    if (session_->host()->paused()) text = tr("paused · %1").arg(text);
    chats_->setText(text);
}

void StatusLine::restyle() {
    const Palette& p = theme_->palette();
    QPalette colors = palette();
    colors.setColor(QPalette::WindowText, p.dim);
    for (QLabel* label : {model_, device_, pool_, speed_, step_, chats_, address_}) {
        label->setFont(p.fonts.small);
        label->setPalette(colors);
    }
    setFixedHeight(std::max(p.metrics.status_height, QFontMetrics(p.fonts.small).height() + 8));
    update();
}

void StatusLine::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() != QEvent::LanguageChange) return;
    show_model();
    show_snapshot(session_->host()->last_snapshot().get());
    show_chats();
}

void StatusLine::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_->palette().panel);
    painter.fillRect(QRect(0, 0, width(), 1), theme_->palette().line);
}

}  // namespace recto::ui
