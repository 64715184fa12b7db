#include "ui/format.h"

#include <QCoreApplication>
#include <QLocale>

#include "ui/starter_model.h"

namespace recto::ui {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("recto::ui", text);
}

}  // namespace

QString format_bytes(std::uint64_t bytes) {
    return QLocale().formattedDataSize(qint64(bytes), 1);
}

QString format_seconds(double seconds) {
    const QLocale locale;
    if (seconds < 0.5)
        return tr("%1 ms").arg(locale.toString(seconds * 1000, 'f', seconds < 0.00995 ? 1 : 0));
    return tr("%1 s").arg(locale.toString(seconds, 'f', 2));
}

QString format_count(std::int64_t n) {
    return QLocale().toString(qlonglong(n));
}

QString format_rate(double rate) {
    return QLocale().toString(rate, 'f', rate > 0 && rate < 10 ? 1 : 0);
}

QString kernels_title(const DeviceInfo& device) {
    QString text = QString::fromStdString(device.kernels).section(QStringLiteral(" ("), 0, 0);
    if (text.startsWith(QStringLiteral("avx512"))) text.replace(0, 6, QStringLiteral("AVX-512"));
    return text.startsWith(QStringLiteral("avx")) ? text.toUpper() : text;
}

QString model_title(const LoadedModelInfo& model) {
    if (is_starter_model(QString::fromStdString(model.path.string())))
        return QStringLiteral("SmolLM2 135M Instruct");
    return QString::fromStdString(model.name);
}

QString card_title(const LoadedModelInfo& model) {
    const QString name = QString::fromStdString(model.device.name);
    switch (model.activations) {
        case Activations::token_fp8:
            return tr("%1, FP8 activations in prefill").arg(name);
        case Activations::token_int8:
            return tr("%1, INT8 activations in prefill").arg(name);
        case Activations::int8:
        case Activations::int8_twice:
        case Activations::floating:
            break;
    }
    return name;
}

QString device_line(const LoadedModelInfo& model) {
    if (model.device.kind != "cpu") return card_title(model);
    const QString text =
        tr("no graphics card in use: running on the CPU with %1").arg(kernels_title(model.device));
    return model.activations == Activations::floating ? text : tr("%1, INT8 activations").arg(text);
}

}  // namespace recto::ui
