// Runs recto-cli as a script would: arguments in; exit code, standard output and standard error out.
#pragma once
#include <QByteArray>
#include <QElapsedTimer>
#include <QFile>
#include <QProcess>
#include <QString>
#include <QStringList>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace recto::test {

using Json = nlohmann::ordered_json;

struct Run {
    int code = -1;  // -1: killed by a signal, or still running after the time limit
    QByteArray out;
    QByteArray err;
    double seconds = 0;

    std::string all() const {
        return "exit " + std::to_string(code) + "\nstdout: " + out.toStdString() +
               "\nstderr: " + err.toStdString();
    }
};

inline QString cli_program() {
    return QStringLiteral(RECTO_BINARY_DIR "/recto-cli");
}

// Far above what any of these takes on an idle machine: a shared one may be many times slower.
constexpr int run_limit_ms = 300'000;

inline void finish(QProcess& process, Run& run) {
    if (!process.waitForFinished(run_limit_ms)) {
        process.kill();
        process.waitForFinished();
    } else if (process.exitStatus() == QProcess::NormalExit) {
        run.code = process.exitCode();
    }
    run.out += process.readAllStandardOutput();
    run.err += process.readAllStandardError();
}

inline Run run_cli(const QStringList& arguments, const QByteArray& input = {}) {
    Run run;
    QProcess process;
    QElapsedTimer timer;
    timer.start();
    process.start(cli_program(), arguments);
    if (!process.waitForStarted()) throw std::runtime_error("recto-cli did not start; is it built?");
    if (!input.isEmpty()) process.write(input);
    process.closeWriteChannel();
    finish(process, run);
    run.seconds = double(timer.nsecsElapsed()) * 1e-9;
    return run;
}

// Empty if the run ended as every failure must: this code, nothing on stdout, one line on stderr that starts
// with the program's name.
inline std::string not_one_line_error(const Run& run, int code) {
    if (run.code != code) return "expected exit " + std::to_string(code) + ": " + run.all();
    if (!run.out.isEmpty()) return "expected an empty stdout: " + run.all();
    if (!run.err.startsWith("recto-cli: ") || run.err.count('\n') != 1 || !run.err.endsWith('\n'))
        return "expected one line 'recto-cli: …': " + run.all();
    return {};
}

inline std::vector<Json> json_lines(const QByteArray& text) {
    std::vector<Json> lines;
    for (const QByteArray& line : text.split('\n'))
        if (!line.isEmpty()) lines.push_back(Json::parse(line.toStdString()));
    return lines;
}

inline std::vector<std::string> keys(const Json& object) {
    std::vector<std::string> names;
    for (const auto& [key, value] : object.items())
        names.push_back(key);
    return names;
}

inline void write_file(const QString& path, const QByteArray& bytes) {
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size())
        throw std::runtime_error("cannot write " + path.toStdString());
}

inline QByteArray file_bytes(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) throw std::runtime_error("cannot read " + path.toStdString());
    return file.readAll();
}

inline Json file_json(const QString& path) {
    return Json::parse(file_bytes(path).toStdString());
}

// A random model of a few hundred KiB without a tokenizer, vocabulary 259, context 512.
inline QString tiny_model() {
    return QStringLiteral(RECTO_TEST_DATA "/model/tiny/llama-gqa-tied");
}

// The starter model is fetched by tests/run; without it the test fails, it never skips.
inline QString starter_model() {
    const QString path = qEnvironmentVariable("RECTO_STARTER_MODEL");
    if (path.isEmpty())
        throw std::runtime_error("RECTO_STARTER_MODEL is not set: run the tests by tests/run");
    return path;
}

}  // namespace recto::test
