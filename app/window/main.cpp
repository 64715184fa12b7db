// The window program: arguments, one session, one window.
#include <sys/signalfd.h>
#include <unistd.h>
#include <QApplication>
#include <QCommandLineParser>
#include <QDir>
#include <QFileInfo>
#include <QMessageBox>
#include <QSocketNotifier>
#include <QTimer>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/choose_device.h"
#include "kernels/error.h"
#include "ui/icons.h"
#include "ui/language.h"
#include "ui/main_window.h"
#include "ui/models/session.h"
#include "ui/starter_model.h"
#include "ui/theme/theme.h"

using namespace recto::ui;

namespace {

struct Arguments {
    QString profile, model;
    LoadChoices load;
};

void print_error(const QString& sentence) {
    std::fprintf(stderr, "recto: %s\n", qPrintable(sentence));
}

// Qt aborts when it finds no display; this is the same answer as a sentence.
bool display_missing(int argc, char** argv) {
    const auto set = [](const char* name) {
        const char* value = std::getenv(name);
        return value != nullptr && *value != '\0';
    };
    if (set("QT_QPA_PLATFORM") || set("DISPLAY") || set("WAYLAND_DISPLAY")) return false;
    for (int i = 1; i < argc; ++i)
        for (const char* quiet : {"-platform", "--platform", "--help", "-h", "--version", "-v"})
            if (std::strcmp(argv[i], quiet) == 0) return false;
    return true;
}

bool only_text_wanted(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        for (const char* option : {"--help", "-h", "--version", "-v"})
            if (std::strcmp(argv[i], option) == 0) return true;
    return false;
}

// 0: the value was not given. Exits with 2 when it is not a count.
int count_of(const QCommandLineParser& parser, const QString& name) {
    if (!parser.isSet(name)) return 0;
    bool ok = false;
    const int value = parser.value(name).toInt(&ok);
    if (ok && value > 0) return value;
    print_error(
        QStringLiteral("--%1: expected a number of at least 1, found \"%2\"").arg(name, parser.value(name)));
    std::exit(2);
}

// A device that was asked for is used, or nothing starts: a window that cannot load would only hide why.
// Exits with 2 where the name is wrong, with 1 where the device is not there.
void require_device(const QString& name) {
    using namespace recto;
    try {
        const DeviceChoice device = parse_device(name.toStdString(), "--device");
        if (device.kind != DeviceChoice::card) return;
        std::string why;
        if (make_cuda_backend({device.ordinal, {}}, why)) return;
        print_error(QStringLiteral("--device %1: %2").arg(name, QString::fromStdString(why)));
        std::exit(1);
    } catch (const Error& error) {
        print_error(QString::fromStdString(error.what()));
        std::exit(error.kind() == ErrorKind::argument ? 2 : 1);
    }
}

Arguments read_arguments(const QCoreApplication& app) {
    QCommandLineParser parser;
    parser.setApplicationDescription(QStringLiteral("Chat with language models on this computer."));
    parser.addHelpOption();
    parser.addVersionOption();
    parser.addOptions(
        {{QStringLiteral("profile"), QStringLiteral("Keep chats and settings in DIR: a separate instance."),
          QStringLiteral("DIR")},
         {QStringLiteral("model"), QStringLiteral("Load this GGUF file, folder or org/name."),
          QStringLiteral("PATH")},
         {QStringLiteral("device"), QStringLiteral("auto, cpu, cuda or cuda:N."), QStringLiteral("DEVICE"),
          QStringLiteral("auto")},
         {QStringLiteral("kv-blocks"), QStringLiteral("Blocks in the KV pool."), QStringLiteral("N")},
         {QStringLiteral("threads"), QStringLiteral("CPU threads."), QStringLiteral("N")}});
    parser.addPositionalArgument(QStringLiteral("FILE"), QStringLiteral("A model to open."),
                                 QStringLiteral("[FILE…]"));
    if (!parser.parse(app.arguments())) {
        print_error(parser.errorText());
        std::exit(2);
    }
    if (parser.isSet(QStringLiteral("help"))) parser.showHelp(0);
    if (parser.isSet(QStringLiteral("version"))) parser.showVersion();
    Arguments arguments;
    arguments.profile = parser.value(QStringLiteral("profile"));
    arguments.model = parser.value(QStringLiteral("model"));
    if (arguments.model.isEmpty() && !parser.positionalArguments().isEmpty())
        arguments.model = parser.positionalArguments().constFirst();
    arguments.load.device = parser.value(QStringLiteral("device"));
    arguments.load.kv_blocks = count_of(parser, QStringLiteral("kv-blocks"));
    arguments.load.threads = count_of(parser, QStringLiteral("threads"));
    return arguments;
}

// Ctrl+C in the terminal and a polite kill arrive as readable bytes instead of ending the process in the
// middle of a write. To be called before any thread starts: threads inherit the mask. -1: the system has none
// to give.
int block_end_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        sigaddset(&signals, signal);
    if (pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) return -1;
    return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

// What to load at the start: what was named, what was loaded last, or the starter; empty: nothing is there.
QString first_model(const QString& named, const Settings& settings) {
    if (!named.isEmpty()) return named;
    for (const QString& path : {settings.last_model(), starter_model_path()})
        if (!path.isEmpty() && QFileInfo::exists(path)) return path;
    return {};
}

}  // namespace

int main(int argc, char** argv) {
    QCoreApplication::setApplicationName(QStringLiteral("recto"));
    QCoreApplication::setApplicationVersion(QStringLiteral("0.1.0"));
    if (only_text_wanted(argc, argv)) {
        const QCoreApplication app(argc, argv);
        read_arguments(app);
    }
    if (display_missing(argc, argv)) {
        print_error(
            QStringLiteral("no display was found (neither DISPLAY nor WAYLAND_DISPLAY is set); "
                           "in a terminal use: app/run cli chat"));
        return 1;
    }
    QGuiApplication::setDesktopFileName(QStringLiteral("org.recto.recto"));
    const int end_signals = block_end_signals();
    QApplication app(argc, argv);
    const Arguments arguments = read_arguments(app);
    require_device(arguments.load.device);
    app.setApplicationDisplayName(QStringLiteral("Recto"));
    app.setWindowIcon(app_icon());

    const ProfilePaths paths = arguments.profile.isEmpty()
                                   ? ProfilePaths::standard()
                                   : ProfilePaths::in(QDir(arguments.profile).absolutePath());
    Theme theme;
    theme.apply_to(app);
    Language language;
    Session session(paths);
    MainWindow window(&theme, &language, &session, arguments.load);
    QObject::connect(&session, &Session::failed, &window, [&window](const QString& sentence) {
        print_error(sentence);
        QMessageBox::critical(&window, QStringLiteral("Recto"), sentence);
        QCoreApplication::exit(1);
    });
    if (end_signals >= 0) {
        auto* notifier = new QSocketNotifier(end_signals, QSocketNotifier::Read, &window);
        QObject::connect(notifier, &QSocketNotifier::activated, &window, [&window, end_signals] {
            signalfd_siginfo info{};
            if (read(end_signals, &info, sizeof info) == ssize_t(sizeof info)) window.quit_now();
        });
    }
    window.show();
    session.start();
    // After the first paint: the window stands before the model does.
    QTimer::singleShot(0, &window, [&] {
        const QString model = first_model(arguments.model, session.settings());
        if (!model.isEmpty()) window.opener()->load_now(model);
    });
    const int code = app.exec();
    session.shutdown();
    return code;
}
