// What a benchmark is asked to do, as a person chooses it: the models, the workload, the device. Kept in the
// settings between starts.
#pragma once
#include <QJsonObject>
#include <QString>
#include <optional>
#include <vector>

namespace recto::ui {

struct BenchPlan {
    QString a, b;  // file, folder or a name that resolve_model() knows; b empty: A alone
    QString device = QStringLiteral("auto");  // "auto", "cpu", "cuda", "cuda:N"
    int prompt_tokens = 128, output_tokens = 100;
    std::vector<int> sequences = {1, 8, 64};
    std::vector<int> depths = {0};  // tokens in the context before the prompt
    int repeats = 6;

    // Tokens in the KV cache when the largest shape ends.
    std::int64_t kv_tokens() const;
};

// Bounds of the fields.
constexpr int most_bench_tokens = 1'000'000;
constexpr int least_bench_output = 2;  // one token has no gap to measure
constexpr int most_bench_sequences = 1024;
constexpr int most_bench_repeats = 100;

// "1, 8, 64" → {1, 8, 64}, in the order given, without repetition. Nothing for an empty list, a text that is
// no number, or a number outside least … most.
std::optional<std::vector<int>> parse_counts(const QString& text, int least, int most);
QString counts_text(const std::vector<int>& counts);  // "1, 8, 64"

QJsonObject plan_to_json(const BenchPlan& plan);
BenchPlan plan_from_json(const QJsonObject& json);  // a value out of its bounds counts as absent

}  // namespace recto::ui
