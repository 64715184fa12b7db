#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "support/registry.h"
#include "ui/settings/settings.h"

using namespace recto::ui;

namespace {

QJsonObject read_json(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
}

void write(const QString& path, const QByteArray& text) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(text);
}

}  // namespace

class TestSettings : public QObject {
    Q_OBJECT
    QTemporaryDir dir_;
    ProfilePaths fresh_profile() {
        static int number = 0;
        const ProfilePaths paths = ProfilePaths::in(dir_.filePath(QString::number(++number)));
        QDir().mkpath(paths.config);
        return paths;
    }
    static QString file(const ProfilePaths& paths) { return paths.config + QStringLiteral("/settings.json"); }

  private Q_SLOTS:
    void keepsWhatIsSet() {
        const ProfilePaths paths = fresh_profile();
        {
            Settings s(paths);
            s.set_language(QStringLiteral("zh_TW"));
            s.set_theme(ThemeChoice::dark);
            s.set_text_zoom(150);
            s.set_send_key(SendKey::ctrl_enter);
            s.set_sampling({{QStringLiteral("temperature"), 0.1}});
            s.set_system_prompt(QStringLiteral("be brief"));
            s.set_panel_visible(false);
            s.set_geometry(QByteArray("\x00\xff\x01", 3));
            s.set_open_chats({3, 1, 2});
            s.set_current_chat(1);
            for (int i = 0; i < 12; ++i)
                s.add_recent_model(QStringLiteral("/m%1").arg(i));
            s.add_recent_model(QStringLiteral("/m5"));
        }
        const Settings s(paths);
        QCOMPARE(s.language(), QStringLiteral("zh_TW"));
        QCOMPARE(s.theme(), ThemeChoice::dark);
        QCOMPARE(s.text_zoom(), 150);
        QCOMPARE(s.send_key(), SendKey::ctrl_enter);
        QCOMPARE(s.sampling().value(QStringLiteral("temperature")).toDouble(), 0.1);
        QCOMPARE(s.system_prompt(), QStringLiteral("be brief"));
        QVERIFY(!s.panel_visible());
        QVERIFY(s.sidebar_visible());
        QCOMPARE(s.geometry(), QByteArray("\x00\xff\x01", 3));
        QCOMPARE(s.open_chats(), (QList<ChatId>{3, 1, 2}));
        QCOMPARE(s.current_chat(), ChatId(1));
        QCOMPARE(s.recent_models().size(), 10);
        QCOMPARE(s.recent_models().first(), QStringLiteral("/m5"));
        QCOMPARE(s.recent_models().count(QStringLiteral("/m5")), 1);
    }

    void unknownKeysStay() {
        const ProfilePaths paths = fresh_profile();
        write(file(paths), "{\"from_the_future\": {\"a\": [1, 2]}, \"theme\": \"dark\"}");
        {
            Settings s(paths);
            QCOMPARE(s.theme(), ThemeChoice::dark);
            s.set_theme(ThemeChoice::light);
        }
        const QJsonObject json = read_json(file(paths));
        QCOMPARE(json.value(QStringLiteral("theme")).toString(), QStringLiteral("light"));
        QCOMPARE(json.value(QStringLiteral("from_the_future"))
                     .toObject()
                     .value(QStringLiteral("a"))
                     .toArray()
                     .size(),
                 2);
    }

    void wrongTypesAndRangesCountAsAbsent() {
        const ProfilePaths paths = fresh_profile();
        write(file(paths),
              "{\"theme\": 7, \"text_zoom\": 5000, \"language\": \"xx\", \"sampling\": \"hot\", \"threads\": "
              "-3}");
        Settings s(paths);
        QCOMPARE(s.theme(), ThemeChoice::system);
        QCOMPARE(s.text_zoom(), 100);
        QCOMPARE(s.language(), QStringLiteral("system"));
        QVERIFY(s.sampling().isEmpty());
        QCOMPARE(s.threads(), 0);
        s.set_text_zoom(20);
        QCOMPARE(s.text_zoom(), 80);
    }

    void brokenFileIsSetAside() {
        const ProfilePaths paths = fresh_profile();
        write(file(paths), "{ \"theme\": ");
        Settings s(paths);
        QVERIFY(!s.notice().isEmpty());
        QVERIFY(QFile::exists(file(paths) + QStringLiteral(".broken")));
        QCOMPARE(s.theme(), ThemeChoice::system);
    }

    void changesAreSavedByThemselvesAndTold() {
        const ProfilePaths paths = fresh_profile();
        Settings s(paths);
        QSignalSpy changed(&s, &Settings::changed);
        s.set_theme(ThemeChoice::dark);
        s.set_theme(ThemeChoice::dark);
        QCOMPARE(changed.count(), 1);
        QCOMPARE(changed.first().first().toString(), QStringLiteral("theme"));
        QTRY_COMPARE(read_json(file(paths)).value(QStringLiteral("theme")).toString(),
                     QStringLiteral("dark"));
    }

    void failedSaveIsTold() {
        ProfilePaths paths = fresh_profile();
        write(paths.config + QStringLiteral("/blocker"), "");
        paths.config += QStringLiteral("/blocker");  // a file where a folder should be
        Settings s(paths);
        s.set_theme(ThemeChoice::dark);
        QString error;
        QVERIFY(!s.save(&error));
        QVERIFY(error.contains(QStringLiteral("settings.json")));
    }

    void pathsFollowXdg() {
        qputenv("XDG_CONFIG_HOME", "/somewhere/config");
        qputenv("XDG_DATA_HOME", "relative/is/invalid");
        qunsetenv("XDG_STATE_HOME");
        const ProfilePaths paths = ProfilePaths::standard();
        QCOMPARE(paths.config, QStringLiteral("/somewhere/config/recto"));
        QCOMPARE(paths.data, QDir::home().filePath(QStringLiteral(".local/share/recto")));
        QCOMPARE(paths.state, QDir::home().filePath(QStringLiteral(".local/state/recto")));
        qunsetenv("XDG_CONFIG_HOME");
        qunsetenv("XDG_DATA_HOME");
        QCOMPARE(ProfilePaths::in(QStringLiteral("/p")).store().database(),
                 QStringLiteral("/p/data/chats.sqlite"));
    }
};

RECTO_TEST_CLASS(TestSettings);
#include "test_settings.moc"
