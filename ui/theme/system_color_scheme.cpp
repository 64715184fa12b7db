#include "ui/theme/system_color_scheme.h"

#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QGuiApplication>
#include <QPalette>

namespace recto::ui {
namespace {

const QString service = QStringLiteral("org.freedesktop.portal.Desktop");
const QString object = QStringLiteral("/org/freedesktop/portal/desktop");
const QString settings = QStringLiteral("org.freedesktop.portal.Settings");
const QString appearance = QStringLiteral("org.freedesktop.appearance");
const QString color_scheme = QStringLiteral("color-scheme");

}  // namespace

SystemColorScheme::SystemColorScheme(QObject* parent) : QObject(parent) {
    const QPalette platform = QGuiApplication::palette();
    platform_dark_ =
        platform.color(QPalette::Window).lightness() < platform.color(QPalette::WindowText).lightness();
    dark_ = platform_dark_;

    QDBusConnection bus = QDBusConnection::sessionBus();
    if (!bus.isConnected()) return;
    bus.connect(service, object, settings, QStringLiteral("SettingChanged"), this,
                SLOT(setting_changed(QString, QString, QDBusVariant)));
    QDBusMessage read = QDBusMessage::createMethodCall(service, object, settings, QStringLiteral("Read"));
    read << appearance << color_scheme;
    // Asynchronous: a portal that is slow to start must not hold up the first paint.
    auto* watcher = new QDBusPendingCallWatcher(bus.asyncCall(read), this);
    connect(watcher, &QDBusPendingCallWatcher::finished, this, [this](QDBusPendingCallWatcher* call) {
        const QDBusPendingReply<QDBusVariant> reply = *call;
        if (reply.isValid()) take(reply.value().variant());
        call->deleteLater();
    });
}

void SystemColorScheme::setting_changed(const QString& space, const QString& key, const QDBusVariant& value) {
    if (space == appearance && key == color_scheme) take(value.variant());
}

void SystemColorScheme::take(const QVariant& value) {
    // Read() wraps its answer in a second variant.
    QVariant inner = value;
    while (inner.canConvert<QDBusVariant>())
        inner = inner.value<QDBusVariant>().variant();
    const uint scheme = inner.toUInt();  // 0 no preference, 1 dark, 2 light
    const bool dark = scheme == 0 ? platform_dark_ : scheme == 1;
    if (dark == dark_) return;
    dark_ = dark;
    Q_EMIT changed();
}

}  // namespace recto::ui
