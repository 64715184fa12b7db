#include "ui/model_opener.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QMimeData>
#include <QUrl>

#include "ui/memory_dialog.h"
#include "ui/settings/settings.h"
#include "ui/starter_model.h"
#include "ui/theme/theme.h"

namespace recto::ui {

ModelOpener::ModelOpener(const Theme* theme, Settings* settings, HostClient* host, LoadChoices choices,
                         QWidget* window)
    : QObject(window),
      theme_(theme),
      settings_(settings),
      host_(host),
      choices_(std::move(choices)),
      window_(window) {
    connect(host, &HostClient::estimate_ready, this,
            [this](const std::shared_ptr<const EstimateReport>& report) { on_estimate(*report); });
    connect(host, &HostClient::state_changed, this, [this](HostState state) {
        if (state != HostState::ready) return;
        const QString path = QString::fromStdString(host_->model()->path.string());
        settings_->set_last_model(path);
        settings_->add_recent_model(path);
    });
}

ModelRequest ModelOpener::request_for(const QString& path) const {
    ModelRequest request;
    request.path = path.toStdString();
    request.device = choices_.device.toStdString();
    request.threads = choices_.threads > 0 ? choices_.threads : settings_->threads();
    request.engine.kv_blocks = choices_.kv_blocks;
    if (choices_.kv_blocks == 0 && is_starter_model(path)) request.engine.kv_blocks = starter_kv_blocks;
    return request;
}

void ModelOpener::load_now(const QString& path) {
    host_->load(request_for(path));
}

void ModelOpener::ask_and_load(const QString& path) {
    if (!host_) return;
    if (host_->held()) {
        host_->load(request_for(path));  // refused, and says why
        return;
    }
    asked_ = host_->estimate(request_for(path));
}

void ModelOpener::on_estimate(const EstimateReport& report) {
    if (report.ticket != asked_) return;
    asked_ = 0;
    auto* dialog = new MemoryDialog(theme_, report, window_);
    connect(dialog, &MemoryDialog::load_confirmed, this, [this](const ModelRequest& request) {
        if (host_) host_->load(request);
    });
    dialog->open();
}

QString ModelOpener::start_folder() const {
    if (!settings_->models_folder().isEmpty()) return settings_->models_folder();
    const QString last = settings_->last_model();
    return last.isEmpty() ? default_models_folder() : QFileInfo(last).absolutePath();
}

void ModelOpener::choose_file() {
    auto* dialog = new QFileDialog(window_, tr("Open model file"), start_folder(),
                                   tr("Models (*.gguf *.safetensors);;All files (*)"));
    dialog->setObjectName(QStringLiteral("open_model_dialog"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) {
        settings_->set_models_folder(QFileInfo(file).absolutePath());
        const bool shard = file.endsWith(QStringLiteral(".safetensors"), Qt::CaseInsensitive);
        ask_and_load(shard ? QFileInfo(file).absolutePath() : file);
    });
    dialog->open();
}

void ModelOpener::choose_folder() {
    auto* dialog =
        new QFileDialog(window_, tr("Open model folder (config.json and safetensors)"), start_folder());
    dialog->setObjectName(QStringLiteral("open_folder_dialog"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    connect(dialog, &QFileDialog::fileSelected, this,
            [this](const QString& folder) { ask_and_load(folder); });
    dialog->open();
}

QString ModelOpener::dropped_model(const QMimeData* data) {
    const QList<QUrl> urls = data->urls();
    if (urls.size() != 1 || !urls.front().isLocalFile()) return {};
    const QFileInfo info(urls.front().toLocalFile());
    if (info.isDir()) return info.absoluteFilePath();
    if (info.suffix().compare(QStringLiteral("gguf"), Qt::CaseInsensitive) == 0)
        return info.absoluteFilePath();
    if (info.suffix().compare(QStringLiteral("safetensors"), Qt::CaseInsensitive) == 0)
        return info.absolutePath();
    return {};
}

}  // namespace recto::ui
