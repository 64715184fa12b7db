// From a benchmark report to the rows of its table: labels, units, verdicts in words.
#include <QCoreApplication>
#include <QLocale>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/bench/verdict.h"
#include "ui/bench/bench_table_model.h"
#include "ui/format.h"

namespace recto::ui {
namespace {

using Row = BenchTableModel::Row;
using Cell = BenchTableModel::Cell;
using Tone = BenchTableModel::Tone;

QString tr(const char* text, const char* comment = nullptr, int n = -1) {
    return BenchTableModel::tr(text, comment, n);
}

// What "better" is called.
enum class Measure : std::uint8_t { time, rate, size, amount };

Measure measure_of(const char* figure) {
    if (std::strcmp(figure, "energy_j_token") == 0) return Measure::size;
    return std::strstr(figure, "_s") != nullptr && std::strstr(figure, "tok_s") == nullptr &&
                   std::strstr(figure, "char_s") == nullptr
               ? Measure::time
               : Measure::rate;
}

QString label_of(const char* figure) {
    static const std::vector<std::pair<const char*, const char*>> labels = {
        {"ttft_s", QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "First token (TTFT)")},
        {"prefill_tok_s", QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "Prefill, tok/s")},
        {"decode_tok_s", QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "Decode, tok/s")},
        {"tpot_s", QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "Time per token (TPOT)")},
        {"itl_s", QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "Gap between tokens (ITL)")},
        {"total_tok_s", QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "Total, tok/s")},
        {"total_decode_tok_s",
         QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "Total while all decode, tok/s")},
        {"prefill_char_s", QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "Prefill, characters/s")},
        {"decode_char_s", QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "Decode, characters/s")},
        {"energy_j_token", QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "Energy, J a token")},
    };
    for (const auto& [name, label] : labels)
        if (std::strcmp(name, figure) == 0) return tr(label);
    return QString::fromLatin1(figure);  // of a report written by a later version
}

// Three digits that say something, more where the spread would vanish.
int decimals_for(double value, double spread) {
    int decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;
    while (spread > 0 && decimals < 3 && spread * std::pow(10.0, decimals) < 0.5)
        ++decimals;
    return decimals;
}

struct Unit {
    double factor = 1;
    QString pattern = QStringLiteral("%1");  // "%1 ms"
};

Unit unit_for(Measure measure, double median) {
    if (measure != Measure::time) return {};
    if (median < 0.995) return {1000, tr("%1 ms")};
    return {1, tr("%1 s")};
}

QString number(double value, int decimals) {
    return QLocale().toString(value, 'f', decimals);
}

QString spread_text(const TimedFigure& f, const Unit& unit) {
    const double median = f.median() * unit.factor, spread = f.iqr() / 2 * unit.factor;
    const int decimals = decimals_for(median, spread);
    if (f.samples.size() < 2) return number(median, decimals);
    return QStringLiteral("%1 ± %2").arg(number(median, decimals), number(spread, decimals));
}

QString range_tip(const TimedFigure& f, const Unit& unit) {
    const int decimals = decimals_for(f.median() * unit.factor, f.iqr() / 2 * unit.factor);
    return tr("%1 to %2, %n run(s)", nullptr, int(f.samples.size()))
        .arg(unit.pattern.arg(number(f.min() * unit.factor, decimals)),
             unit.pattern.arg(number(f.max() * unit.factor, decimals)));
}

Cell no_cell(const QString& why = {}) {
    return {QStringLiteral("–"), why, Tone::dim};
}

Cell figure_cell(const BenchRow* row, const ReportColumn& column) {
    if (row == nullptr) return no_cell();
    const TimedFigure& f = row->*column.figure;
    const bool steady = std::strcmp(column.name, "total_decode_tok_s") == 0;
    if (f.samples.empty())
        return no_cell(
            steady && row->steady_voided > 0
                ? tr("Void: in under half of the steps all sequences decoded. More output tokens help.")
                : QString());
    const Unit unit = unit_for(measure_of(column.name), f.median());
    Cell cell;
    cell.text = spread_text(f, unit);
    cell.tip = range_tip(f, unit);
    cell.text = unit.pattern.arg(cell.text);
    if (steady && row->steady_voided > 0)
        cell.tip += QLatin1Char('\n') + tr("%n run(s) left out: too few steps with all sequences decoding",
                                           nullptr, row->steady_voided);
    if (row->throttled) {
        cell.text.prepend(QStringLiteral("⚠ "));
        cell.tip += QLatin1Char('\n') + tr("The device was held back by heat or power in every try.");
    }
    return cell;
}

// The tail of the gaps, over all runs together.
Cell tail_cell(const BenchRow* row) {
    if (row == nullptr || row->itl_gaps == 0) return no_cell();
    const Unit unit = unit_for(Measure::time, row->itl_p99_s);
    const double p99 = row->itl_p99_s * unit.factor;
    return {unit.pattern.arg(number(p99, decimals_for(p99, 0))),
            tr("p95 %1, longest %2, over %3 gaps")
                .arg(format_seconds(row->itl_p95_s), format_seconds(row->itl_max_s),
                     format_count(std::int64_t(row->itl_gaps))),
            Tone::normal};
}

// "2.8× faster", "3.1 % slower": `gain` > 1 is better for B.
QString gain_text(double gain, Measure measure) {
    const bool better = gain >= 1;
    const double factor = better ? gain : 1 / gain;
    const bool times = factor >= 1.1;
    const QString amount = times ? number(factor, factor >= 9.95    ? 0
                                                  : factor >= 1.995 ? 1
                                                                    : 2)
                                 : number((factor - 1) * 100, factor >= 1.0095 ? 1 : 2);
    const char* text = nullptr;
    switch (measure) {
        case Measure::time:
        case Measure::rate:
            text = better ? (times ? QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "%1× faster")
                                   : QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "%1 % faster"))
                          : (times ? QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "%1× slower")
                                   : QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "%1 % slower"));
            break;
        case Measure::size:
            text = better ? (times ? QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "%1× smaller")
                                   : QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "%1 % smaller"))
                          : (times ? QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "%1× larger")
                                   : QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "%1 % larger"));
            break;
        case Measure::amount:
            text = better ? (times ? QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "%1× more")
                                   : QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "%1 % more"))
                          : (times ? QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "%1× fewer")
                                   : QT_TRANSLATE_NOOP("recto::ui::BenchTableModel", "%1 % fewer"));
            break;
    }
    return tr(text).arg(amount);
}

Cell marked(const QString& text, bool better) {
    return {(better ? QStringLiteral("▲ ") : QStringLiteral("▼ ")) + text,
            {},
            better ? Tone::better : Tone::worse};
}

// Of bytes and counts: no noise, so any difference is certain.
Cell exact_verdict(double a, double b, Measure measure) {
    if (a <= 0 || b <= 0) return {};
    if (a == b) return {tr("the same"), {}, Tone::dim};
    const double gain = measure == Measure::amount ? b / a : a / b;
    return marked(gain_text(gain, measure), gain > 1);
}

Cell timed_verdict(const Verdict* v, bool higher_is_better, Measure measure) {
    if (v == nullptr || v->ratio <= 0) return {};
    Cell cell;
    const double gain = higher_is_better ? v->ratio : 1 / v->ratio;
    if (v->word == "clear") {
        cell = marked(gain_text(gain, measure), gain > 1);
    } else if (v->word == "likely") {
        cell.text = tr("likely %1").arg(gain_text(gain, measure));
    } else if (v->word == "too few runs") {
        cell = {tr("too few runs"), {}, Tone::dim};
    } else {
        cell = {tr("within noise"), {}, Tone::dim};
    }
    cell.tip = tr("B ÷ A = %1; noise up to %2 %; p = %3 (exact rank test), %4 and %5 runs")
                   .arg(number(v->ratio, 3), number(v->floor * 100, 1), number(v->p, 3))
                   .arg(v->runs_a)
                   .arg(v->runs_b);
    if (std::min(v->runs_a, v->runs_b) < fewest_runs)
        cell.tip += QLatin1Char('\n') +
                    tr("Fewer than %1 runs a side cannot tell a difference from noise.").arg(fewest_runs);
    return cell;
}

class Rows {
  public:
    explicit Rows(const CompareReport& report) : report_(report) {}

    std::vector<Row> build() {
        if (report_.rows.empty()) return {};
        add_models();
        for (const BenchRow& row : report_.rows)
            if (first_of_shape(row)) add_shape(row);
        return std::move(rows_);
    }

  private:
    static bool same_shape(const BenchRow& x, const BenchRow& y) {
        return x.sequences == y.sequences && x.prompt_tokens == y.prompt_tokens &&
               x.output_tokens == y.output_tokens && x.depth == y.depth;
    }
    bool first_of_shape(const BenchRow& row) const {
        for (const BenchRow& other : report_.rows) {
            if (&other == &row) return true;
            if (same_shape(other, row)) return false;
        }
        return true;
    }
    const BenchRow* side(char name, const BenchRow* shape) const {
        for (const BenchRow& row : report_.rows)
            if (row.side == name && (shape == nullptr || same_shape(row, *shape))) return &row;
        return nullptr;
    }
    const Verdict* verdict(const char* figure, const BenchRow* shape) const {
        for (const Verdict& v : report_.verdicts)
            if (v.figure == figure &&
                (shape == nullptr ||
                 (v.sequences == shape->sequences && v.depth == shape->depth &&
                  v.prompt_tokens == shape->prompt_tokens && v.output_tokens == shape->output_tokens)))
                return &v;
        return nullptr;
    }
    Row& add(const QString& key, const QString& label, const QString& formula) {
        rows_.push_back({key, label, formula, false, {}, {}, {}});
        return rows_.back();
    }

    void add_section(const QString& key, const QString& label) { add(key, label, {}).section = true; }

    // The largest of a side's rows: peaks rise from row to row.
    double largest(char name, std::uint64_t BenchRow::*value) const {
        std::uint64_t most = 0;
        for (const BenchRow& row : report_.rows)
            if (row.side == name) most = std::max(most, row.*value);
        return double(most);
    }

    void add_exact(const QString& key, const QString& label, const QString& formula,
                   std::uint64_t BenchRow::*value, Measure measure) {
        Row& row = add(key, label, formula);
        const auto cell = [measure](double v) {
            if (v <= 0) return no_cell();
            return Cell{
                measure == Measure::size ? format_bytes(std::uint64_t(v)) : format_count(std::int64_t(v)),
                {},
                Tone::normal};
        };
        const double a = largest('A', value), b = largest('B', value);
        row.a = cell(a);
        row.b = cell(b);
        row.verdict = exact_verdict(a, b, measure);
    }

    void add_models() {
        add_section(QStringLiteral("models"), tr("Models"));
        Row& load = add(QStringLiteral("load_s"), tr("Load time"), tr("open → first step possible"));
        const auto cell = [](const BenchRow* row) {
            if (row == nullptr || row->load_s.samples.empty()) return no_cell();
            const Unit unit = unit_for(Measure::time, row->load_s.median());
            return Cell{unit.pattern.arg(spread_text(row->load_s, unit)),
                        row->load_s.samples.size() > 1 ? range_tip(row->load_s, unit) : QString(),
                        Tone::normal};
        };
        load.a = cell(side('A', nullptr));
        load.b = cell(side('B', nullptr));
        load.verdict = timed_verdict(verdict("load_s", nullptr), false, Measure::time);
        add_exact(QStringLiteral("weight_bytes"), tr("Weights in memory"), {}, &BenchRow::weight_bytes,
                  Measure::size);
        add_exact(QStringLiteral("kv_tokens"), tr("Tokens that fit"),
                  tr("blocks × block size beside the weights"), &BenchRow::kv_tokens, Measure::amount);
        add_exact(QStringLiteral("peak_bytes"), tr("Peak memory"), {}, &BenchRow::peak_bytes, Measure::size);
    }

    void add_shape(const BenchRow& shape) {
        const QString name = QStringLiteral("%1/%2/%3/%4")
                                 .arg(shape.sequences)
                                 .arg(shape.prompt_tokens)
                                 .arg(shape.output_tokens)
                                 .arg(shape.depth);
        QString title = tr("%n sequence(s) · %1 in + %2 out", nullptr, shape.sequences)
                            .arg(format_count(shape.prompt_tokens), format_count(shape.output_tokens));
        if (shape.depth > 0) title += tr(" · at depth %1").arg(format_count(shape.depth));
        add_section(name, title);
        const BenchRow *a = side('A', &shape), *b = side('B', &shape);
        for (const ReportColumn& column : report_columns()) {
            const auto has = [&column](const BenchRow* row) {
                return row != nullptr && !(row->*column.figure).samples.empty();
            };
            if (!column.always && !has(a) && !has(b)) continue;
            Row& row = add(name + QLatin1Char(' ') + QLatin1String(column.name), label_of(column.name),
                           tr(column.formula));
            row.a = figure_cell(a, column);
            row.b = figure_cell(b, column);
            row.verdict =
                timed_verdict(verdict(column.name, &shape), column.higher_is_better, measure_of(column.name));
            if (std::strcmp(column.name, "itl_s") == 0) add_tail(name, a, b);
        }
        for (const FirstDifference& d : report_.first_differences)
            if (d.sequences == shape.sequences && d.depth == shape.depth) add_difference(name, shape, d);
    }

    void add_tail(const QString& shape_name, const BenchRow* a, const BenchRow* b) {
        Row& row = add(shape_name + QStringLiteral(" itl_p99"), tr("Gap between tokens, p99"),
                       tr("99 of 100 gaps are shorter, all runs together"));
        row.a = tail_cell(a);
        row.b = tail_cell(b);
    }

    void add_difference(const QString& shape_name, const BenchRow& shape, const FirstDifference& d) {
        Row& row = add(shape_name + QStringLiteral(" same"), tr("Same greedy tokens as A"),
                       tr("prompts whose outputs are identical"));
        const int prompts = int(d.first.size());
        row.a = no_cell();
        row.b = {tr("%1 of %2").arg(d.identical).arg(prompts), {}, Tone::normal};
        row.verdict =
            d.identical == prompts
                ? Cell{tr("none differs"), {}, Tone::dim}
                : Cell{tr("first differs at %1").arg(number(d.median, 0)),
                       tr("Median over the prompts, of %1 tokens. Outputs that run free drift apart after "
                          "one difference, so how much differs later says little.")
                           .arg(shape.output_tokens),
                       Tone::dim};
    }

    const CompareReport& report_;
    std::vector<Row> rows_;
};

}  // namespace

std::vector<Row> bench_rows(const CompareReport& report) {
    return Rows(report).build();
}

}  // namespace recto::ui
