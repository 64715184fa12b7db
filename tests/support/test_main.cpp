#include <QCoreApplication>
#include <QTest>

#include "support/registry.h"

#ifdef QT_WIDGETS_LIB
#include <QApplication>
using Application = QApplication;
#elif defined(QT_GUI_LIB)
#include <QGuiApplication>
using Application = QGuiApplication;
#else
using Application = QCoreApplication;
#endif

int main(int argc, char** argv) {
    Application app(argc, argv);
    int failed = 0;
    for (const auto& make : recto::test::Registry::all()) failed += QTest::qExec(make().get(), argc, argv);
    return failed == 0 ? 0 : 1;
}
