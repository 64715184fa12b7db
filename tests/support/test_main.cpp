#include <QCoreApplication>
#include <QTest>
#include <cstdio>
#include <exception>

#include "support/child.h"
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

#ifdef __SANITIZE_THREAD__
// Qt is not built with ThreadSanitizer, so the locks inside QtTest's watchdog thread are not seen as such.
extern "C" const char* __tsan_default_suppressions() { return "race:QWaitCondition\nrace:QTest::qRun\n"; }
#endif

int main(int argc, char** argv) {
    Application app(argc, argv);
    const QString child = qEnvironmentVariable("RECTO_TEST_CHILD");
    if (!child.isEmpty()) return recto::test::Children::all().at(child)();
    int failed = 0;
    for (const auto& make : recto::test::Registry::all()) {
        try {
            failed += QTest::qExec(make().get(), argc, argv);
        } catch (const std::exception& e) {  // Qt has reported the failure; the other classes still run
            std::fprintf(stderr, "%s\n", e.what());
            ++failed;
        }
    }
    return failed == 0 ? 0 : 1;
}
