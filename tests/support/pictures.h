// Pictures of widgets in each look, in which nothing may be cut. With RECTO_PICTURES=DIR they are kept for
// looking at; QT_SCALE_FACTOR=1.5 (a process each) makes them at another scale.
#pragma once
#include <QCoreApplication>
#include <QDir>
#include <QPixmap>
#include <QTest>

#include "support/cut_texts.h"
#include "ui/settings/settings.h"

namespace recto::test {

// Rows of a test's data: light and dark, English and Chinese, and larger text.
inline void add_looks() {
    using ui::ThemeChoice;
    QTest::addColumn<int>("theme");
    QTest::addColumn<QString>("language");
    QTest::addColumn<int>("zoom");
    QTest::newRow("dark") << int(ThemeChoice::dark) << "en" << 100;
    QTest::newRow("light") << int(ThemeChoice::light) << "en" << 100;
    QTest::newRow("dark-zh") << int(ThemeChoice::dark) << "zh_TW" << 100;
    QTest::newRow("light-150") << int(ThemeChoice::light) << "en" << 150;
}

// Takes that of the row that runs.
inline void take_look(ui::Settings& settings) {
    QFETCH(int, theme);
    QFETCH(QString, language);
    QFETCH(int, zoom);
    settings.set_theme(ui::ThemeChoice(theme));
    settings.set_language(language);
    settings.set_text_zoom(zoom);
}

inline void check_picture(QWidget* widget, const QString& name) {
    QCoreApplication::processEvents();
    const QPixmap picture = widget->grab();
    const QString folder = qEnvironmentVariable("RECTO_PICTURES");
    if (!folder.isEmpty()) {
        const QString scale = QString::number(qRound(widget->devicePixelRatioF() * 100));
        QVERIFY(QDir().mkpath(folder));
        QVERIFY(picture.save(QStringLiteral("%1/%2-at-%3.png").arg(folder, name, scale)));
    }
    const QStringList cut = cut_texts(widget);
    QVERIFY2(cut.isEmpty(), qPrintable(name + QStringLiteral(" cuts ") + cut.join(QStringLiteral("; "))));
}

}  // namespace recto::test
