#include "ui/language.h"

#include <QCoreApplication>
#include <QLibraryInfo>
#include <QLocale>

namespace recto::ui {
namespace {

// Hong Kong and Macau read Traditional Chinese too.
QString system_language() {
    const QLocale system = QLocale::system();
    const bool traditional =
        system.language() == QLocale::Chinese && system.script() == QLocale::TraditionalHanScript;
    return traditional ? QStringLiteral("zh_TW") : QStringLiteral("en");
}

}  // namespace

Language::Language(QObject* parent) : QObject(parent) {}

Language::~Language() {
    QCoreApplication::removeTranslator(&own_);
    QCoreApplication::removeTranslator(&qt_);
}

void Language::set(const QString& choice) {
    const QString wanted =
        choice == QStringLiteral("system") || choice.isEmpty() ? system_language() : choice;
    if (wanted == current_) return;
    current_ = wanted;
    QLocale::setDefault(QLocale(wanted));
    QCoreApplication::removeTranslator(&own_);
    QCoreApplication::removeTranslator(&qt_);
    if (qt_.load(QStringLiteral("qtbase_") + wanted, QLibraryInfo::path(QLibraryInfo::TranslationsPath)))
        QCoreApplication::installTranslator(&qt_);  // Qt's own dialogs; English needs none
    const bool found = own_.load(QStringLiteral(":/i18n/recto_%1.qm").arg(wanted));
    Q_ASSERT(found);
    if (found) QCoreApplication::installTranslator(&own_);
    Q_EMIT changed(current_);
}

}  // namespace recto::ui
