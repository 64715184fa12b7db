#include "ui/model_card.h"

#include <QEvent>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/format.h"
#include "ui/starter_model.h"
#include "ui/theme/theme.h"

namespace recto::ui {
namespace {

QString path_text(const std::filesystem::path& path) {
    return QString::fromStdString(path.string());
}

QPushButton* make_button(const char* name, QWidget* parent) {
    auto* button = new QPushButton(parent);
    button->setObjectName(QString::fromLatin1(name));
    return button;
}

}  // namespace

ModelCard::ModelCard(const Theme* theme, HostClient* host, QWidget* parent)
    : QFrame(parent), theme_(theme), host_(host) {
    setObjectName(QStringLiteral("model_card"));
    setProperty("card", true);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(10, 9, 10, 10);
    column->setSpacing(2);
    name_ = new QLabel(this);
    name_->setObjectName(QStringLiteral("model_name"));
    details_ = new QLabel(this);
    details_->setObjectName(QStringLiteral("model_details"));
    starter_ = new QLabel(this);
    starter_->setObjectName(QStringLiteral("starter_note"));
    for (QLabel* label : {name_, details_, starter_}) {
        label->setWordWrap(true);
        column->addWidget(label);
    }
    details_->setTextFormat(Qt::PlainText);
    details_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    starter_->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
    starter_->setFocusPolicy(Qt::StrongFocus);
    progress_ = new QProgressBar(this);
    progress_->setObjectName(QStringLiteral("load_progress"));
    progress_->setTextVisible(false);
    progress_->setRange(0, 1000);
    column->addSpacing(4);
    column->addWidget(progress_);
    open_ = make_button("open_model_button", this);
    reload_ = make_button("reload_button", this);
    eject_ = make_button("eject_button", this);
    cancel_ = make_button("cancel_load_button", this);
    auto* row = new QGridLayout;
    row->setContentsMargins(0, 4, 0, 0);
    row->setSpacing(6);
    row->addWidget(open_, 0, 0, 1, 2);
    row->addWidget(reload_, 1, 0);
    row->addWidget(eject_, 1, 1);
    row->addWidget(cancel_, 2, 0, 1, 2);
    column->addLayout(row);

    connect(open_, &QPushButton::clicked, this, &ModelCard::open_wanted);
    connect(reload_, &QPushButton::clicked, this, [this] { host_->reload(); });
    connect(eject_, &QPushButton::clicked, this, [this] { host_->eject(); });
    connect(cancel_, &QPushButton::clicked, this, [this] { host_->cancel_load(); });
    connect(starter_, &QLabel::linkActivated, this, &ModelCard::better_answers_wanted);
    connect(host, &HostClient::state_changed, this, [this] { refresh(); });
    connect(host, &HostClient::load_progress, this,
            [this](const QString& stage, double fraction) { show_progress(stage, fraction); });
    connect(theme, &Theme::changed, this, [this] { restyle(); });
    restyle();
}

QString ModelCard::details() const {
    const auto model = host_->model();
    const auto text = [](const std::string& s) { return QString::fromStdString(s); };
    const QString device =
        model->device.kind == "cpu"
            ? tr("CPU, %1, %n thread(s)", nullptr, model->device.threads).arg(kernels_title(model->device))
            : card_title(*model);
    return tr("%1 · %2\nweights %3 · KV pool %4 blocks × %5\nloaded in %6")
        .arg(text(model->quantization), device, format_bytes(model->weight_bytes),
             format_count(model->kv_blocks))
        .arg(model->block_size)
        .arg(format_seconds(model->load_seconds));
}

void ModelCard::refresh() {
    const HostState state = host_->state();
    const bool ready = state == HostState::ready, loading = state == HostState::loading;
    const QString wanted = path_text(host_->last_request().path);
    bool starter = false;
    if (ready) {
        name_->setText(model_title(*host_->model()));
        details_->setText(details());
        starter = is_starter_model(path_text(host_->model()->path));
        setToolTip(QStringLiteral("%1\n%2").arg(path_text(host_->model()->path),
                                                QString::fromStdString(host_->model()->device.kernels)));
    } else if (loading) {
        name_->setText(QFileInfo(wanted).completeBaseName());
        details_->setText(tr("loading …"));
        progress_->setValue(0);
    } else if (state == HostState::failed) {
        name_->setText(tr("The model did not load"));
        details_->setText(host_->error());
    } else {
        name_->setText(tr("No model loaded"));
        details_->setText(wanted.isEmpty() ? tr("Drop a GGUF file or a model folder here, or open one.")
                                           : tr("%1 was ejected.").arg(QFileInfo(wanted).fileName()));
    }
    starter_->setText(QStringLiteral("%1 <a href=\"better\">%2</a>")
                          .arg(tr("A small model, made for trying things out."), tr("Better answers…")));
    starter_->setVisible(starter);
    progress_->setVisible(loading);
    open_->setVisible(!loading);
    reload_->setVisible(ready || (state == HostState::failed && !wanted.isEmpty()) ||
                        (state == HostState::empty && !wanted.isEmpty()));
    reload_->setText(ready ? tr("Reload") : tr("Load again"));
    eject_->setVisible(ready);
    cancel_->setVisible(loading);
    open_->setText(tr("Open model…"));
    eject_->setText(tr("Eject"));
    cancel_->setText(tr("Cancel"));
    eject_->setToolTip(tr("Gives the model's memory back. Chats keep their text."));
    reload_->setToolTip(tr("Loads the same file again"));
    setAccessibleName(tr("Model"));
    setAccessibleDescription(name_->text() + QStringLiteral(". ") + details_->text());
    progress_->setAccessibleName(tr("Loading the model"));
}

void ModelCard::show_progress(const QString& stage, double fraction) {
    progress_->setValue(int(fraction * 1000));
    details_->setText(tr("loading: %1, %2 %").arg(stage).arg(int(fraction * 100)));
}

void ModelCard::restyle() {
    const Palette& p = theme_->palette();
    name_->setFont(p.fonts.strong);
    details_->setFont(p.fonts.note);
    starter_->setFont(p.fonts.small);
    QPalette dim = details_->palette();
    dim.setColor(QPalette::WindowText, p.dim);
    dim.setColor(QPalette::Link, p.accent);
    details_->setPalette(dim);
    starter_->setPalette(dim);
    starter_->clear();  // the link takes its colour when another text is set
    refresh();
}

void ModelCard::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) refresh();
}

}  // namespace recto::ui
