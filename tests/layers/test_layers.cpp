// Dependencies run one way: kernels ← engine ← ui ← app. Read from the includes, so that a slip cannot hide.
#include <QDirIterator>
#include <QFile>
#include <QProcess>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include "support/registry.h"

class TestLayers : public QObject {
    Q_OBJECT

    struct Rule {
        QString folder;
        QStringList may_include;  // first path element of a quoted include
        bool may_use_qt;
        bool may_use_widgets;
    };

    static QStringList sources(const QString& folder) {
        QStringList files;
        QDirIterator it(QStringLiteral(RECTO_SOURCE_DIR "/") + folder, {"*.h", "*.cpp", "*.cu", "*.cuh"}, QDir::Files,
                        QDirIterator::Subdirectories);
        while (it.hasNext()) files << it.next();
        return files;
    }

    static void check(const QString& file, const Rule& rule, QStringList& bad) {
        QFile f(file);
        QVERIFY2(f.open(QIODevice::ReadOnly), qPrintable(file));
        // No raw string here: moc loses the class behind a raw string that holds a quote.
        static const QRegularExpression include(QStringLiteral("^\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"]"));
        static const QRegularExpression qt(QStringLiteral("^(Q[A-Z]|Qt)"));
        static const QRegularExpression widgets(QStringLiteral(
            "^(Q\\w*Widget\\w*|QApplication|QMainWindow|QAbstractScrollArea|QLabel|QPushButton|QDialog|QMenu|QtWidgets.*)$"));
        static const QStringList layers = {"kernels", "engine", "ui", "app"};
        const QStringList lines = QString::fromUtf8(f.readAll()).split('\n');
        for (int i = 0; i < lines.size(); ++i) {
            const auto m = include.match(lines[i]);
            if (!m.hasMatch()) continue;
            const QString name = m.captured(2);
            const QString where = QStringLiteral("%1:%2 includes %3").arg(file).arg(i + 1).arg(name);
            const QString layer = name.section('/', 0, 0);
            if (m.captured(1) == "\"" && layers.contains(layer) && !rule.may_include.contains(layer)) bad << where;
            if (!rule.may_use_qt && qt.match(name).hasMatch()) bad << where;
            if (!rule.may_use_widgets && widgets.match(name).hasMatch()) bad << where;
        }
    }

  private slots:
    void includes_look_down_only() {
        const QList<Rule> rules = {
            {"kernels", {"kernels"}, false, false},
            {"engine", {"engine", "kernels"}, false, false},
            // ui reaches kernels only through the engine's own headers
            {"ui", {"ui", "engine"}, true, true},
            {"ui/host", {"ui", "engine"}, true, false},
            {"ui/store", {"ui", "engine"}, true, false},
            {"ui/models", {"ui", "engine"}, true, false},
            {"ui/markdown", {"ui", "engine"}, true, false},
            {"ui/settings", {"ui", "engine"}, true, false},
            {"app/cli", {"app", "engine", "kernels"}, false, false},
            {"app/examples", {"app", "engine", "kernels"}, false, false},
        };
        QStringList bad;
        for (const Rule& rule : rules) {
            const QStringList files = sources(rule.folder);
            QVERIFY2(!files.isEmpty(), qPrintable(rule.folder + " holds no sources: the test looks in the wrong place"));
            for (const QString& file : files) check(file, rule, bad);
        }
        QVERIFY2(bad.isEmpty(), qPrintable(bad.join('\n')));
    }

    void a_slip_is_seen() {
        const QTemporaryDir dir;
        const QString file = dir.filePath("slip.cpp");
        QFile f(file);
        QVERIFY(f.open(QIODevice::WriteOnly));
        f.write("#include <QString>\n  #  include \"engine/engine.h\"\n#include <QWidget>\n");
        f.close();
        QStringList bad;
        check(file, {"kernels", {"kernels"}, false, false}, bad);
        QCOMPARE(bad.size(), 4);  // Qt twice, the engine, and a widget
    }

    void top_level_is_what_the_design_says() {
        const QStringList expected = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "app",
                                      "engine",         "kernels",           "resources", "tests",   "ui"};
        QProcess git;
        git.start("git", {"-C", RECTO_SOURCE_DIR, "ls-files"});
        QVERIFY(git.waitForFinished());
        QStringList found;
        const QStringList paths = QString::fromUtf8(git.readAllStandardOutput()).split('\n', Qt::SkipEmptyParts);
        for (const QString& path : paths) {
            const QString top = path.section('/', 0, 0);
            if (!top.startsWith('.') && !found.contains(top)) found << top;
        }
        found.sort();
        QCOMPARE(found, expected);
    }
};

RECTO_TEST_CLASS(TestLayers);
#include "test_layers.moc"
