// Everything a person can set, typed, in one place. Two JSON files: settings.json (config) and layout.json
// (state). Written atomically soon after a change; keys that this version does not know are kept; a value of
// a wrong type or out of its range counts as absent. A file that is no JSON is set aside as
// settings.json.broken and said so.
#pragma once
#include <QByteArray>
#include <QJsonObject>
#include <QObject>
#include <QStringList>
#include <QTimer>

#include "ui/settings/profile_paths.h"
#include "ui/store/records.h"

namespace recto::ui {

enum class ThemeChoice : std::uint8_t { system, light, dark };
enum class SendKey : std::uint8_t { enter, ctrl_enter };

class Settings : public QObject {
    Q_OBJECT
  public:
    explicit Settings(const ProfilePaths& paths, QObject* parent = nullptr);
    ~Settings() override;  // save()

    const ProfilePaths& paths() const { return paths_; }
    QString notice() const { return notice_; }  // what was wrong with the files at reading; empty: nothing

    // --- settings.json
    QString language() const;  // "system", "en", "zh_TW"
    void set_language(const QString& v);
    ThemeChoice theme() const;
    void set_theme(ThemeChoice v);
    int text_zoom() const;      // percent, 80 … 200
    void set_text_zoom(int v);  // clamped
    SendKey send_key() const;
    void set_send_key(SendKey v);
    QJsonObject sampling() const;  // defaults of new answers; names of SamplingParams (see sampling_json.h)
    void set_sampling(const QJsonObject& v);
    QString system_prompt() const;  // of new chats
    void set_system_prompt(const QString& v);
    QString models_folder() const;  // where the person keeps models; empty: not said
    void set_models_folder(const QString& v);
    int threads() const;  // 0: all cores
    void set_threads(int v);

    // --- layout.json
    bool panel_visible() const;
    void set_panel_visible(bool v);
    bool sidebar_visible() const;
    void set_sidebar_visible(bool v);
    QByteArray geometry() const;  // QWidget::saveGeometry
    void set_geometry(const QByteArray& v);
    QByteArray splitter() const;
    void set_splitter(const QByteArray& v);
    QList<ChatId> open_chats() const;  // tabs, left to right
    void set_open_chats(const QList<ChatId>& v);
    ChatId current_chat() const;
    void set_current_chat(ChatId v);
    QJsonObject benchmark() const;  // the plan chosen last (see bench_plan.h)
    void set_benchmark(const QJsonObject& v);
    bool benchmark_open() const;  // its tab
    void set_benchmark_open(bool v);
    QString last_model() const;  // path
    void set_last_model(const QString& v);
    QStringList recent_models() const;  // newest first, at most 10
    void add_recent_model(const QString& path);

    bool save(QString* error = nullptr);  // now; false: one sentence in *error

  Q_SIGNALS:
    void changed(const QString& key);  // JSON key, e.g. "theme"
    void save_failed(const QString& sentence);

  private:
    struct File {
        QString path;
        QJsonObject values;
        bool dirty = false;
    };
    void read(File& file);
    void put(File& file, const QString& key, const QJsonValue& value);
    ProfilePaths paths_;
    File settings_, layout_;
    QString notice_;
    QTimer timer_;
};

}  // namespace recto::ui
