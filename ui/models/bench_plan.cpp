#include "ui/models/bench_plan.h"

#include <QJsonArray>
#include <QStringList>
#include <algorithm>

namespace recto::ui {
namespace {

QJsonArray to_array(const std::vector<int>& counts) {
    QJsonArray array;
    for (const int count : counts)
        array.append(count);
    return array;
}

void read_counts(const QJsonObject& json, const char* key, int least, int most, std::vector<int>& counts) {
    QStringList texts;
    for (const QJsonValue& value : json.value(QLatin1String(key)).toArray())
        texts << QString::number(value.toInt(least - 1));
    if (const auto read = parse_counts(texts.join(QLatin1Char(',')), least, most)) counts = *read;
}

void read_count(const QJsonObject& json, const char* key, int least, int most, int& count) {
    const int value = json.value(QLatin1String(key)).toInt(least - 1);
    if (value >= least && value <= most) count = value;
}

}  // namespace

std::int64_t BenchPlan::kv_tokens() const {
    const int widest = sequences.empty() ? 0 : *std::max_element(sequences.begin(), sequences.end());
    const int deepest = depths.empty() ? 0 : *std::max_element(depths.begin(), depths.end());
    return std::int64_t(widest) * (std::int64_t(deepest) + prompt_tokens + output_tokens);
}

std::optional<std::vector<int>> parse_counts(const QString& text, int least, int most) {
    std::vector<int> counts;
    QString plain = text;
    // What a Chinese keyboard types between numbers.
    for (const char16_t comma : {u'，', u'、', u';', u' '})
        plain.replace(QChar(comma), QLatin1Char(','));
    for (const QString& part : plain.split(QLatin1Char(','), Qt::SkipEmptyParts)) {
        bool ok = false;
        const int count = part.toInt(&ok);
        if (!ok || count < least || count > most) return std::nullopt;
        if (std::find(counts.begin(), counts.end(), count) == counts.end()) counts.push_back(count);
    }
    if (counts.empty()) return std::nullopt;
    return counts;
}

QString counts_text(const std::vector<int>& counts) {
    QStringList texts;
    for (const int count : counts)
        texts << QString::number(count);
    return texts.join(QStringLiteral(", "));
}

QJsonObject plan_to_json(const BenchPlan& plan) {
    return {{QStringLiteral("a"), plan.a},
            {QStringLiteral("b"), plan.b},
            {QStringLiteral("device"), plan.device},
            {QStringLiteral("prompt_tokens"), plan.prompt_tokens},
            {QStringLiteral("output_tokens"), plan.output_tokens},
            {QStringLiteral("sequences"), to_array(plan.sequences)},
            {QStringLiteral("depths"), to_array(plan.depths)},
            {QStringLiteral("repeats"), plan.repeats}};
}

BenchPlan plan_from_json(const QJsonObject& json) {
    BenchPlan plan;
    plan.a = json.value(QLatin1String("a")).toString();
    plan.b = json.value(QLatin1String("b")).toString();
    plan.device = json.value(QLatin1String("device")).toString(plan.device);
    read_count(json, "prompt_tokens", 1, most_bench_tokens, plan.prompt_tokens);
    read_count(json, "output_tokens", least_bench_output, most_bench_tokens, plan.output_tokens);
    read_counts(json, "sequences", 1, most_bench_sequences, plan.sequences);
    read_counts(json, "depths", 0, most_bench_tokens, plan.depths);
    read_count(json, "repeats", 1, most_bench_repeats, plan.repeats);
    return plan;
}

}  // namespace recto::ui
