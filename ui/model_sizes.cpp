#include "ui/model_sizes.h"

#include <QCoreApplication>
#include <QFile>
#include <algorithm>

namespace recto::ui {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("recto::ui", text);
}

// Weights are packed to about the file's size; the rest is workspace and the KV pool.
constexpr std::uint64_t overhead = 600ULL << 20;

ModelSuggestion suggestion(const char* name, double file_gb, std::uint64_t free_bytes) {
    ModelSuggestion m{QString::fromLatin1(name), QStringLiteral("Q4_K_M"), std::uint64_t(file_gb * 1e9), 0};
    m.needed_bytes = m.file_bytes + m.file_bytes / 10 + overhead;
    m.fits = free_bytes > 0 && m.needed_bytes <= free_bytes;
    return m;
}

}  // namespace

std::vector<SizeClass> size_classes(std::uint64_t free) {
    // File sizes of the published 4-bit GGUF builds, rounded.
    std::vector<SizeClass> classes{
        {tr("Under 1 billion parameters"),
         tr("Quick on any machine. Short, simple tasks."),
         {suggestion("SmolLM2 360M Instruct", 0.27, free), suggestion("Qwen2.5 0.5B Instruct", 0.40, free)}},
        {tr("1 to 2 billion"),
         tr("Good on a laptop. Everyday questions, short texts."),
         {suggestion("Llama 3.2 1B Instruct", 0.81, free), suggestion("Qwen2.5 1.5B Instruct", 0.99, free),
          suggestion("SmolLM2 1.7B Instruct", 1.06, free)}},
        {tr("3 billion"),
         tr("Noticeably better answers, about half as fast."),
         {suggestion("Llama 3.2 3B Instruct", 2.02, free), suggestion("Qwen2.5 3B Instruct", 1.93, free)}},
        {tr("7 to 8 billion"),
         tr("Solid answers. Slow on a CPU, quick on a graphics card."),
         {suggestion("Qwen2.5 7B Instruct", 4.68, free), suggestion("Llama 3.1 8B Instruct", 4.92, free)}},
        {tr("14 billion and more"),
         tr("For much memory and patience."),
         {suggestion("Qwen2.5 14B Instruct", 8.99, free), suggestion("Qwen2.5 32B Instruct", 19.9, free),
          suggestion("Llama 3.3 70B Instruct", 42.5, free)}},
    };
    for (SizeClass& c : classes)
        c.fits =
            std::any_of(c.models.begin(), c.models.end(), [](const ModelSuggestion& m) { return m.fits; });
    return classes;
}

std::uint64_t available_memory() {
    QFile file(QStringLiteral("/proc/meminfo"));
    if (!file.open(QIODevice::ReadOnly)) return 0;
    const QList<QByteArray> lines =
        file.readAll().split('\n');  // a proc file has no size: readLine would do too
    for (const QByteArray& line : lines)
        if (line.startsWith("MemAvailable:"))
            return line.mid(13).trimmed().split(' ').first().toULongLong() * 1024;
    return 0;
}

}  // namespace recto::ui
