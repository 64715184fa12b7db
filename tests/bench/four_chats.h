// The real window with the starter model, and four chats that never stop answering: what the window's
// benchmarks measure under.
#pragma once
#include <QApplication>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <cstdio>
#include <memory>

#include "ui/language.h"
#include "ui/main_window.h"
#include "ui/models/session.h"
#include "ui/theme/theme.h"

namespace recto::test {

class FourChats {
  public:
    // Null and a sentence on stderr when the starter model is missing or does not load.
    static std::unique_ptr<FourChats> open() {
        const QString path = qEnvironmentVariable("RECTO_STARTER_MODEL");
        if (!QFile::exists(path)) {
            std::fprintf(
                stderr,
                "RECTO_STARTER_MODEL: expected the starter model's path, found none: run by tests/run\n");
            return nullptr;
        }
        std::unique_ptr<FourChats> made(new FourChats);
        made->window_.opener()->load_now(path);
        ui::HostClient* host = made->session_.host();
        if (!QTest::qWaitFor([&] { return made->session_.is_ready() && host->ready(); }, 60'000)) {
            std::fprintf(stderr, "the starter model did not load: %s\n", qPrintable(host->error()));
            return nullptr;
        }
        for (int i = 0; i < 4; ++i)
            made->window_.open_chat(made->session_.new_chat());
        made->keep_busy();
        return made;
    }
    ~FourChats() {
        session_.stop_all();
        QTest::qWaitFor([&] { return session_.busy_count() == 0; }, 10'000);
        session_.shutdown();
    }

    ui::MainWindow& window() { return window_; }
    ui::Session& session() { return session_; }

    // Whoever has finished is asked the next question. Called from a timer while something is measured.
    void keep_busy() {
        for (ui::Chat* chat : session_.chats())
            if (!chat->busy())
                chat->send(QStringLiteral("Tell me a long story about a library, part %1.").arg(++part_));
    }

  private:
    FourChats()
        : session_(ui::ProfilePaths::in(folder_.path())), window_(&theme_, &language_, &session_, {}) {
        theme_.apply_to(*qApp);
        window_.resize(1440, 900);
        window_.show();
        session_.start();
    }

    QTemporaryDir folder_;
    ui::Theme theme_;
    ui::Language language_;
    ui::Session session_;
    ui::MainWindow window_;
    int part_ = 0;
};

inline double percentile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, std::size_t(q * double(values.size())))];
}

}  // namespace recto::test
