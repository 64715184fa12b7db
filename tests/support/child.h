// A test that must kill a process runs its own program again as the victim: child functions register by name,
// and test_main runs the one that RECTO_TEST_CHILD names instead of the tests.
#pragma once
#include <QCoreApplication>
#include <QProcess>
#include <QProcessEnvironment>
#include <QString>
#include <functional>
#include <map>

namespace recto::test {

struct Children {
    using Run = std::function<int()>;
    static std::map<QString, Run>& all() {
        static std::map<QString, Run> children;
        return children;
    }
};

struct RegisterChild {
    RegisterChild(const char* name, Children::Run run) {
        Children::all().emplace(QString::fromLatin1(name), std::move(run));
    }
};

// `argument` reaches the child as RECTO_TEST_ARGUMENT.
inline void start_child(QProcess& process, const char* name, const QString& argument) {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QString::fromLatin1("RECTO_TEST_CHILD"), QString::fromLatin1(name));
    environment.insert(QString::fromLatin1("RECTO_TEST_ARGUMENT"), argument);
    process.setProcessEnvironment(environment);
    process.setProcessChannelMode(QProcess::ForwardedErrorChannel);
    process.start(QCoreApplication::applicationFilePath(), QStringList());
}

}  // namespace recto::test
