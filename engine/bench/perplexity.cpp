#include "engine/bench/perplexity.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "engine/bench/statistics.h"
#include "kernels/error.h"

namespace recto {
namespace {

double log_sum_exp(std::span<const float> logits) {
    const float largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float v : logits)
        sum += std::exp(double(v) - double(largest));
    return double(largest) + std::log(sum);
}

std::size_t best(std::span<const float> logits) {
    return std::size_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double mean_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values)
        sum += v;
    return sum / double(values.size());
}

// Of the mean of the values; 0 for a single one.
double standard_error_of(const std::vector<double>& values) {
    if (values.size() < 2) return 0;
    const double mean = mean_of(values);
    double squares = 0;
    for (const double v : values)
        squares += (v - mean) * (v - mean);
    const auto n = double(values.size());
    return std::sqrt(squares / (n - 1) / n);
}

Perplexity perplexity_of(const std::vector<double>& nll, int windows, int context) {
    Perplexity p;
    p.tokens = std::int64_t(nll.size());
    p.windows = windows;
    p.context = context;
    p.mean_nll = mean_of(nll);
    p.value = std::exp(p.mean_nll);
    p.standard_error = p.value * standard_error_of(nll);
    return p;
}

void check(const Model& model, const QualityOptions& options, int context) {
    const int limit = model.config.max_position;
    if (context < 2 || (limit > 0 && context > limit))
        throw Error(ErrorKind::argument, "--context must be in [2, " + std::to_string(limit) +
                                             "], the context that " + model.path.filename().string() +
                                             " holds, got " + std::to_string(context));
    if (options.common_vocab > model.config.vocab)
        throw Error(ErrorKind::argument, "the common vocabulary is larger than the model's");
}

class Measurement {
  public:
    Measurement(const std::shared_ptr<const Model>& a, const std::shared_ptr<const Model>& b,
                const QualityOptions& options, int context)
        : options_(options), a_(a, options.logits, context) {
        if (b) b_.emplace(b, options.logits, context);
    }

    // `scored` is called after each token's row.
    void window(std::span<const std::int32_t> ids, const std::function<void()>& scored) {
        a_.begin(ids);
        if (b_) b_->begin(ids);
        for (std::int32_t first = 0; first < std::int32_t(ids.size());) {
            const std::int32_t n = a_.forward();
            if (b_) b_->forward();
            for (std::int32_t i = 0; i < n && std::size_t(first + i) + 1 < ids.size(); ++i) {
                score(i, ids[std::size_t(first + i) + 1]);
                scored();
            }
            first += n;
        }
        ++windows_;
    }

    QualityReport report(int context) const {
        QualityReport r;
        r.a = perplexity_of(nll_a_, windows_, context);
        if (!b_) return r;
        r.b = perplexity_of(nll_b_, windows_, context);
        r.divergence.mean = mean_of(kl_);
        r.divergence.mean_standard_error = standard_error_of(kl_);
        r.divergence.median = quantile(kl_, 0.5);
        r.divergence.p99 = quantile(kl_, 0.99);
        r.divergence.max = *std::max_element(kl_.begin(), kl_.end());
        r.divergence.top_agreement = double(agreed_) / double(kl_.size());
        std::vector<double> difference(nll_a_.size());
        for (std::size_t i = 0; i < difference.size(); ++i)
            difference[i] = nll_b_[i] - nll_a_[i];
        r.divergence.perplexity_ratio = std::exp(mean_of(difference));
        r.divergence.ratio_standard_error = r.divergence.perplexity_ratio * standard_error_of(difference);
        return r;
    }

  private:
    std::span<const float> columns(std::span<const float> row) const {
        return options_.common_vocab > 0 ? row.first(std::size_t(options_.common_vocab)) : row;
    }

    // A NaN or infinity would make every figure one.
    double finite_sum(std::span<const float> logits, const char* side) const {
        const double sum = log_sum_exp(logits);
        if (std::isfinite(sum)) return sum;
        throw Error(ErrorKind::runtime, std::string("the logits of ") + side + " are not finite after " +
                                            std::to_string(nll_a_.size()) +
                                            " scored tokens; its weights or their scales are damaged");
    }

    void score(std::int32_t row, std::int32_t token) {
        const auto a = columns(a_.logits(row));
        const double sum_a = finite_sum(a, b_ ? "model A" : "the model");
        if (!b_) {
            nll_a_.push_back(sum_a - double(a[std::size_t(token)]));
            return;
        }
        const auto b = columns(b_->logits(row));
        const double sum_b = finite_sum(b, "model B");
        nll_a_.push_back(sum_a - double(a[std::size_t(token)]));
        nll_b_.push_back(sum_b - double(b[std::size_t(token)]));
        double kl = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            const double log_a = double(a[i]) - sum_a;
            // What A gives no chance adds nothing; −inf there would make 0 · inf.
            if (log_a > -700) kl += std::exp(log_a) * (log_a - (double(b[i]) - sum_b));
        }
        kl_.push_back(std::max(kl, 0.0));  // rounding may leave −1e−17 where the two are equal
        agreed_ += best(a) == best(b);
    }

    const QualityOptions& options_;
    SequenceRunner a_;
    std::optional<SequenceRunner> b_;
    int windows_ = 0;
    std::int64_t agreed_ = 0;
    std::vector<double> nll_a_, nll_b_, kl_;  // one a scored token
};

// Of two models the shorter one's: both read the same windows.
int usual_context(const Model& a, const Model* b, int limit) {
    int context = limit > 0 ? std::min(limit, 2048) : 2048;
    for (const Model* model : {&a, b})
        if (model != nullptr && model->config.max_position > 0)
            context = std::min(context, model->config.max_position);
    return context;
}

}  // namespace

QualityReport measure_quality(const std::shared_ptr<const Model>& a, const std::shared_ptr<const Model>& b,
                              std::span<const std::int32_t> text, const QualityOptions& options,
                              const std::function<bool(double)>& progress) {
    const int context =
        options.context > 0 ? options.context : usual_context(*a, b.get(), options.usual_limit);
    check(*a, options, context);
    if (b) {
        check(*b, options, context);
        if (options.common_vocab == 0 && a->config.vocab != b->config.vocab)
            throw Error(ErrorKind::argument, "models with the same vocabulary were expected, found " +
                                                 std::to_string(a->config.vocab) + " and " +
                                                 std::to_string(b->config.vocab) + " tokens");
    }
    const std::size_t bos = options.bos >= 0 ? 1 : 0;
    if (text.size() + bos < 2)
        throw Error(ErrorKind::argument,
                    "a text of at least two tokens was expected, found " + std::to_string(text.size()));
    const std::size_t stride = std::size_t(context) - bos;
    Measurement measurement(a, b, options, int(std::min(std::size_t(context), text.size() + bos)));
    const auto total = double(text.size());
    double done = 0;
    std::vector<std::int32_t> ids;
    for (std::size_t first = 0; first < text.size(); first += stride) {
        const auto part = text.subspan(first, std::min(stride, text.size() - first));
        if (part.size() + bos < 2) break;  // a last token without one before it predicts nothing
        ids.assign(bos, options.bos);
        ids.insert(ids.end(), part.begin(), part.end());
        measurement.window(ids, [&] {
            if (progress && !progress(++done / total))
                throw Error(ErrorKind::cancelled, "measuring the perplexity was cancelled");
        });
    }
    return measurement.report(context);
}

}  // namespace recto
