#include "ui/models/sampling_json.h"

#include <QJsonArray>
#include <cmath>
#include <limits>

#include "engine/error.h"

namespace recto::ui {

namespace {

[[noreturn]] void wrong_type(const QString& name, const char* expected) {
    throw Error(ErrorKind::argument, name.toStdString() + " must be " + expected + ".");
}

void read(const QJsonObject& json, const char* name, double& value) {
    const QJsonValue v = json.value(QLatin1String(name));
    if (v.isUndefined()) return;
    if (!v.isDouble()) wrong_type(QLatin1String(name), "a number");
    value = v.toDouble();
}

std::int64_t whole(const char* name, const QJsonValue& v) {
    const double number = v.toDouble();
    if (!v.isDouble() || number != std::floor(number)) wrong_type(QLatin1String(name), "a whole number");
    return v.toInteger();
}

void read(const QJsonObject& json, const char* name, int& value) {
    const QJsonValue v = json.value(QLatin1String(name));
    if (!v.isUndefined()) value = int(whole(name, v));
}

void read(const QJsonObject& json, const char* name, bool& value) {
    const QJsonValue v = json.value(QLatin1String(name));
    if (v.isUndefined()) return;
    if (!v.isBool()) wrong_type(QLatin1String(name), "true or false");
    value = v.toBool();
}

template <class T>
void read(const QJsonObject& json, const char* name, std::optional<T>& value) {
    const QJsonValue v = json.value(QLatin1String(name));
    if (v.isUndefined()) return;
    if (v.isNull())
        value.reset();
    else
        value = T(whole(name, v));
}

void read_stop(const QJsonObject& json, std::vector<std::string>& stop) {
    const QJsonValue v = json.value(QLatin1String("stop"));
    if (v.isUndefined()) return;
    if (!v.isArray()) wrong_type(QStringLiteral("stop"), "a list of texts");
    stop.clear();
    for (const QJsonValue& item : v.toArray()) {
        if (!item.isString()) wrong_type(QStringLiteral("stop"), "a list of texts");
        stop.push_back(item.toString().toStdString());
    }
}

template <class T>
QJsonValue optional_json(const std::optional<T>& value) {
    return value ? QJsonValue(qint64(*value)) : QJsonValue(QJsonValue::Null);
}

QJsonObject all_to_json(const SamplingParams& p) {
    QJsonArray stop;
    for (const std::string& text : p.stop)
        stop.append(QString::fromStdString(text));
    return {{QStringLiteral("temperature"), p.temperature},
            {QStringLiteral("top_k"), p.top_k},
            {QStringLiteral("top_p"), p.top_p},
            {QStringLiteral("min_p"), p.min_p},
            {QStringLiteral("repetition_penalty"), p.repetition_penalty},
            {QStringLiteral("frequency_penalty"), p.frequency_penalty},
            {QStringLiteral("presence_penalty"), p.presence_penalty},
            {QStringLiteral("seed"), optional_json(p.seed)},
            {QStringLiteral("max_tokens"), optional_json(p.max_tokens)},
            {QStringLiteral("min_tokens"), p.min_tokens},
            {QStringLiteral("ignore_eos"), p.ignore_eos},
            {QStringLiteral("stop"), stop}};
}

}  // namespace

SamplingParams chat_sampling_defaults() {
    SamplingParams params;
    params.temperature = 0.8;
    params.top_p = 0.95;
    params.max_tokens.reset();
    return params;
}

SamplingParams sampling_from_json(const QJsonObject& json, SamplingParams params) {
    read(json, "temperature", params.temperature);
    read(json, "top_k", params.top_k);
    read(json, "top_p", params.top_p);
    read(json, "min_p", params.min_p);
    read(json, "repetition_penalty", params.repetition_penalty);
    read(json, "frequency_penalty", params.frequency_penalty);
    read(json, "presence_penalty", params.presence_penalty);
    read(json, "seed", params.seed);
    read(json, "max_tokens", params.max_tokens);
    read(json, "min_tokens", params.min_tokens);
    read(json, "ignore_eos", params.ignore_eos);
    read_stop(json, params.stop);
    return params;
}

QJsonObject sampling_to_json(const SamplingParams& params) {
    const QJsonObject defaults = all_to_json(chat_sampling_defaults());
    QJsonObject different;
    const QJsonObject all = all_to_json(params);
    for (auto it = all.begin(); it != all.end(); ++it)
        if (it.value() != defaults.value(it.key())) different.insert(it.key(), it.value());
    return different;
}

QString sampling_problem(const QJsonObject& json) {
    try {
        // No vocabulary is known here; the ranges of ids are the engine's to check.
        sampling_from_json(json).check(std::numeric_limits<int>::max());
    } catch (const Error& e) {
        return QString::fromUtf8(e.what());
    }
    return {};
}

}  // namespace recto::ui
