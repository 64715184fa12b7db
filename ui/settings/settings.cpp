#include "ui/settings/settings.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QSaveFile>
#include <algorithm>

namespace recto::ui {

namespace {

constexpr int save_delay_ms = 400;
constexpr int recent_limit = 10;

namespace key {
const QString language = QStringLiteral("language");
const QString theme = QStringLiteral("theme");
const QString text_zoom = QStringLiteral("text_zoom");
const QString send_key = QStringLiteral("send_key");
const QString sampling = QStringLiteral("sampling");
const QString system_prompt = QStringLiteral("system_prompt");
const QString models_folder = QStringLiteral("models_folder");
const QString threads = QStringLiteral("threads");
const QString panel_visible = QStringLiteral("panel_visible");
const QString sidebar_visible = QStringLiteral("sidebar_visible");
const QString geometry = QStringLiteral("geometry");
const QString splitter = QStringLiteral("splitter");
const QString open_chats = QStringLiteral("open_chats");
const QString current_chat = QStringLiteral("current_chat");
const QString last_model = QStringLiteral("last_model");
const QString recent_models = QStringLiteral("recent_models");
const QString benchmark = QStringLiteral("benchmark");
const QString benchmark_open = QStringLiteral("benchmark_open");
}  // namespace key

const QStringList& theme_names() {
    static const QStringList names{QStringLiteral("system"), QStringLiteral("light"), QStringLiteral("dark")};
    return names;
}

const QStringList& send_key_names() {
    static const QStringList names{QStringLiteral("enter"), QStringLiteral("ctrl_enter")};
    return names;
}

const QStringList& languages() {
    static const QStringList names{QStringLiteral("system"), QStringLiteral("en"), QStringLiteral("zh_TW")};
    return names;
}

int choice(const QJsonObject& values, const QString& name, const QStringList& names) {
    return int(std::max(qsizetype(0), names.indexOf(values.value(name).toString())));
}

QByteArray bytes(const QJsonObject& values, const QString& name) {
    return QByteArray::fromBase64(values.value(name).toString().toLatin1());
}

QJsonValue from_bytes(const QByteArray& value) {
    return QString::fromLatin1(value.toBase64());
}

}  // namespace

Settings::Settings(const ProfilePaths& paths, QObject* parent)
    : QObject(parent), paths_(paths), timer_(this) {
    settings_.path = QDir(paths.config).filePath(QStringLiteral("settings.json"));
    layout_.path = QDir(paths.state).filePath(QStringLiteral("layout.json"));
    read(settings_);
    read(layout_);
    timer_.setSingleShot(true);
    timer_.setInterval(save_delay_ms);
    connect(&timer_, &QTimer::timeout, this, [this] { save(); });
}

Settings::~Settings() {
    save();
}

void Settings::read(File& file) {
    QFile in(file.path);
    if (!in.open(QIODevice::ReadOnly)) return;  // the first start
    QJsonParseError error;
    const QJsonDocument document = QJsonDocument::fromJson(in.readAll(), &error);
    if (document.isObject()) {
        file.values = document.object();
        return;
    }
    in.close();
    const QString aside = file.path + QStringLiteral(".broken");
    QFile::remove(aside);
    QFile::rename(file.path, aside);
    notice_ += tr("%1: no valid JSON (%2); it was set aside as %3 and the defaults are used. ")
                   .arg(file.path, error.errorString(), aside);
}

void Settings::put(File& file, const QString& name, const QJsonValue& value) {
    if (file.values.value(name) == value) return;
    file.values.insert(name, value);
    file.dirty = true;
    timer_.start();
    Q_EMIT changed(name);
}

bool Settings::save(QString* error) {
    timer_.stop();
    for (File* file : {&settings_, &layout_}) {
        if (!file->dirty) continue;
        QDir().mkpath(QFileInfo(file->path).path());
        QSaveFile out(file->path);
        const QByteArray text = QJsonDocument(file->values).toJson();
        if (!out.open(QIODevice::WriteOnly) || out.write(text) != text.size() || !out.commit()) {
            const QString sentence =
                tr("%1: the settings could not be saved: %2").arg(file->path, out.errorString());
            if (error) *error = sentence;
            Q_EMIT save_failed(sentence);
            return false;
        }
        file->dirty = false;
    }
    return true;
}

QString Settings::language() const {
    return languages()[choice(settings_.values, key::language, languages())];
}
void Settings::set_language(const QString& v) {
    if (languages().contains(v)) put(settings_, key::language, v);
}

ThemeChoice Settings::theme() const {
    return ThemeChoice(choice(settings_.values, key::theme, theme_names()));
}
void Settings::set_theme(ThemeChoice v) {
    put(settings_, key::theme, theme_names()[int(v)]);
}

int Settings::text_zoom() const {
    const int v = settings_.values.value(key::text_zoom).toInt(100);
    return v >= 80 && v <= 200 ? v : 100;
}
void Settings::set_text_zoom(int v) {
    put(settings_, key::text_zoom, std::clamp(v, 80, 200));
}

SendKey Settings::send_key() const {
    return SendKey(choice(settings_.values, key::send_key, send_key_names()));
}
void Settings::set_send_key(SendKey v) {
    put(settings_, key::send_key, send_key_names()[int(v)]);
}

QJsonObject Settings::sampling() const {
    return settings_.values.value(key::sampling).toObject();
}
void Settings::set_sampling(const QJsonObject& v) {
    put(settings_, key::sampling, v);
}

QString Settings::system_prompt() const {
    return settings_.values.value(key::system_prompt).toString();
}
void Settings::set_system_prompt(const QString& v) {
    put(settings_, key::system_prompt, v);
}

QString Settings::models_folder() const {
    return settings_.values.value(key::models_folder).toString();
}
void Settings::set_models_folder(const QString& v) {
    put(settings_, key::models_folder, v);
}

int Settings::threads() const {
    return std::max(0, settings_.values.value(key::threads).toInt());
}
void Settings::set_threads(int v) {
    put(settings_, key::threads, std::max(0, v));
}

bool Settings::panel_visible() const {
    return layout_.values.value(key::panel_visible).toBool(true);
}
void Settings::set_panel_visible(bool v) {
    put(layout_, key::panel_visible, v);
}

bool Settings::sidebar_visible() const {
    return layout_.values.value(key::sidebar_visible).toBool(true);
}
void Settings::set_sidebar_visible(bool v) {
    put(layout_, key::sidebar_visible, v);
}

QByteArray Settings::geometry() const {
    return bytes(layout_.values, key::geometry);
}
void Settings::set_geometry(const QByteArray& v) {
    put(layout_, key::geometry, from_bytes(v));
}

QByteArray Settings::splitter() const {
    return bytes(layout_.values, key::splitter);
}
void Settings::set_splitter(const QByteArray& v) {
    put(layout_, key::splitter, from_bytes(v));
}

QList<ChatId> Settings::open_chats() const {
    QList<ChatId> ids;
    for (const QJsonValue& value : layout_.values.value(key::open_chats).toArray())
        if (value.toInteger() > 0) ids.append(value.toInteger());
    return ids;
}
void Settings::set_open_chats(const QList<ChatId>& v) {
    QJsonArray ids;
    for (const ChatId id : v)
        ids.append(qint64(id));
    put(layout_, key::open_chats, ids);
}

ChatId Settings::current_chat() const {
    return layout_.values.value(key::current_chat).toInteger();
}
void Settings::set_current_chat(ChatId v) {
    put(layout_, key::current_chat, qint64(v));
}

QJsonObject Settings::benchmark() const {
    return layout_.values.value(key::benchmark).toObject();
}
void Settings::set_benchmark(const QJsonObject& v) {
    put(layout_, key::benchmark, v);
}

bool Settings::benchmark_open() const {
    return layout_.values.value(key::benchmark_open).toBool(false);
}
void Settings::set_benchmark_open(bool v) {
    put(layout_, key::benchmark_open, v);
}

QString Settings::last_model() const {
    return layout_.values.value(key::last_model).toString();
}
void Settings::set_last_model(const QString& v) {
    put(layout_, key::last_model, v);
}

QStringList Settings::recent_models() const {
    QStringList paths;
    for (const QJsonValue& value : layout_.values.value(key::recent_models).toArray())
        if (value.isString()) paths.append(value.toString());
    return paths;
}
void Settings::add_recent_model(const QString& path) {
    QStringList paths = recent_models();
    paths.removeAll(path);
    paths.prepend(path);
    put(layout_, key::recent_models, QJsonArray::fromStringList(paths.mid(0, recent_limit)));
}

}  // namespace recto::ui
