// Whether the desktop prefers dark: the freedesktop Settings portal (org.freedesktop.appearance
// color-scheme), read once and followed; without a portal, the lightness of the platform's palette.
#pragma once
#include <QDBusVariant>
#include <QObject>

namespace recto::ui {

class SystemColorScheme : public QObject {
    Q_OBJECT
  public:
    explicit SystemColorScheme(QObject* parent = nullptr);
    bool dark() const { return dark_; }

  Q_SIGNALS:
    void changed();

  private Q_SLOTS:
    void setting_changed(const QString& space, const QString& key, const QDBusVariant& value);

  private:
    void take(const QVariant& value);
    bool platform_dark_ = false;
    bool dark_ = false;
};

}  // namespace recto::ui
