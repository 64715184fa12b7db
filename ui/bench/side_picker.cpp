#include "ui/bench/side_picker.h"

#include <QComboBox>
#include <QEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/format.h"
#include "ui/known_models.h"
#include "ui/settings/settings.h"
#include "ui/starter_model.h"
#include "ui/theme/theme.h"

namespace recto::ui {

SidePicker::SidePicker(char side, const Theme* theme, Settings* settings, QWidget* parent)
    : QFrame(parent), side_(side), theme_(theme), settings_(settings) {
    const QString name = side == 'A' ? QStringLiteral("bench_a") : QStringLiteral("bench_b");
    setObjectName(name + QStringLiteral("_card"));
    setProperty("card", true);
    const Metrics& m = theme->palette().metrics;
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(m.pad, 9, m.pad, 10);
    column->setSpacing(m.small_gap + 1);
    title_ = new QLabel(this);
    title_->setProperty("dim", true);
    models_ = new QComboBox(this);
    models_->setObjectName(name + QStringLiteral("_model"));
    models_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    models_->setMinimumContentsLength(10);
    title_->setBuddy(models_);
    browse_ = new QPushButton(this);
    browse_->setObjectName(name + QStringLiteral("_browse"));
    browse_menu_ = new QMenu(browse_);
    browse_menu_->addAction(QString(), this, [this] { choose_file(); });
    browse_menu_->addAction(QString(), this, [this] { choose_folder(); });
    browse_->setMenu(browse_menu_);
    details_ = new QLabel(this);
    details_->setObjectName(name + QStringLiteral("_details"));
    details_->setTextFormat(Qt::PlainText);
    details_->setWordWrap(true);
    auto* row = new QHBoxLayout;
    row->setSpacing(m.gap);
    row->addWidget(models_, 1);
    row->addWidget(browse_);
    column->addWidget(title_);
    column->addLayout(row);
    column->addWidget(details_);
    column->addStretch(1);
    connect(models_, &QComboBox::currentIndexChanged, this, [this] {
        known_ = false;
        models_->setToolTip(path());
        show_details();
        Q_EMIT path_changed(path());
    });
    connect(theme, &Theme::changed, this, [this] { restyle(); });
    refresh_models();
    restyle();
    retranslate();
}

QString SidePicker::path() const {
    return models_->currentData().toString();
}

void SidePicker::set_path(const QString& path) {
    int index = models_->findData(path);
    if (index < 0 && !path.isEmpty()) {
        models_->addItem(model_path_title(path), path);
        index = models_->count() - 1;
        models_->setItemData(index, path, Qt::ToolTipRole);
    }
    models_->setCurrentIndex(std::max(index, 0));
}

void SidePicker::refresh_models() {
    const QString chosen = path();
    const QSignalBlocker quiet(models_);  // the choice itself does not change
    models_->clear();
    models_->addItem(side_ == 'A' ? tr("choose a model") : tr("none: measure A alone"), QString());
    for (const QString& known : known_models(*settings_)) {
        models_->addItem(model_path_title(known), known);
        models_->setItemData(models_->count() - 1, known, Qt::ToolTipRole);
    }
    set_path(chosen);
}

void SidePicker::set_details(const EstimateReport& report) {
    report_ = report;
    known_ = true;
    show_details();
}

void SidePicker::show_details() {
    QString text;
    if (path().isEmpty()) {
        text = side_ == 'A' ? tr("A GGUF file or a model folder.")
                            : tr("With a second model both are measured in turn, A B B A.");
    } else if (!known_) {
        text = QStringLiteral("…");
    } else if (!report_.error.empty()) {
        text = QString::fromStdString(report_.error);
    } else {
        text = QStringLiteral("%1 · %2 · %3")
                   .arg(QString::fromStdString(report_.architecture),
                        QString::fromStdString(report_.quantization), format_bytes(report_.file_bytes));
    }
    details_->setText(text);
    models_->setAccessibleDescription(text);
    const bool bad = known_ && !path().isEmpty() && !report_.error.empty();
    const Palette& p = theme_->palette();
    details_->setStyleSheet(QStringLiteral("QLabel{color:%1}").arg((bad ? p.danger : p.dim).name()));
}

void SidePicker::choose_file() {
    const QString start = !settings_->models_folder().isEmpty() ? settings_->models_folder()
                          : path().isEmpty()                    ? default_models_folder()
                                                                : QFileInfo(path()).absolutePath();
    auto* dialog = new QFileDialog(window(), tr("Choose a model file"), start,
                                   tr("Models (*.gguf *.safetensors);;All files (*)"));
    dialog->setObjectName(QStringLiteral("bench_file_dialog"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) {
        const bool shard = file.endsWith(QStringLiteral(".safetensors"), Qt::CaseInsensitive);
        set_path(shard ? QFileInfo(file).absolutePath() : file);
    });
    dialog->open();
}

void SidePicker::choose_folder() {
    auto* dialog = new QFileDialog(window(), tr("Choose a model folder (config.json and safetensors)"),
                                   settings_->models_folder());
    dialog->setObjectName(QStringLiteral("bench_folder_dialog"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& folder) { set_path(folder); });
    dialog->open();
}

void SidePicker::retranslate() {
    const QString title = side_ == 'A' ? tr("Model A") : tr("Model B (may be left out)");
    title_->setText(title);
    models_->setAccessibleName(title);
    models_->setItemText(0, side_ == 'A' ? tr("choose a model") : tr("none: measure A alone"));
    browse_->setText(tr("Browse"));
    browse_->setAccessibleName(side_ == 'A' ? tr("Browse for model A") : tr("Browse for model B"));
    browse_menu_->actions()[0]->setText(tr("File…"));
    browse_menu_->actions()[1]->setText(tr("Folder…"));
    show_details();
}

void SidePicker::restyle() {
    const Palette& p = theme_->palette();
    title_->setFont(p.fonts.note);
    models_->setFont(p.fonts.body);
    browse_->setFont(p.fonts.body);
    details_->setFont(p.fonts.small);
    show_details();
}

void SidePicker::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) retranslate();
}

}  // namespace recto::ui
