// From a path to a loaded model: the estimate, the question, the load. Also the file dialogs and what was
// dropped.
#pragma once
#include <QObject>
#include <QPointer>
#include <QStringList>

#include "ui/host/host_client.h"

class QMimeData;
class QWidget;

namespace recto::ui {

class Settings;
class Theme;

// How models are loaded, from the command line and the settings.
struct LoadChoices {
    QString device = QStringLiteral("auto");
    int kv_blocks = 0;  // 0: the engine's default; the starter model gets its own
    int threads = 0;    // 0: all cores
};

class ModelOpener : public QObject {
    Q_OBJECT
  public:
    ModelOpener(const Theme* theme, Settings* settings, HostClient* host, LoadChoices choices,
                QWidget* window);

    ModelRequest request_for(const QString& path) const;
    void load_now(const QString& path);  // no question: what the person named at the start
    void ask_and_load(const QString& path);
    void choose_file();
    void choose_folder();

    // The model that a drop names: one GGUF file, one .safetensors file's folder, or one folder; empty: none.
    static QString dropped_model(const QMimeData* data);

  private:
    void on_estimate(const EstimateReport& report);
    QString start_folder() const;
    const Theme* theme_;
    Settings* settings_;
    QPointer<HostClient> host_;
    LoadChoices choices_;
    QWidget* window_;
    Ticket asked_ = 0;
};

}  // namespace recto::ui
