// Quality by forced tokens: perplexity of a text, and how far a second model's predictions are from the
// first's.
//
// The text's token ids are cut into consecutive windows of `context` tokens, which do not overlap. Where the
// tokenizer puts BOS before a text, each window begins with it and holds context − 1 tokens of the text.
// Every token of a window that has one before it is scored: NLL = log Σ exp(logits) − logit of the token,
// over the whole vocabulary, in nats, summed in float64.
//     perplexity      = exp(mean NLL); its standard error = perplexity · sd(NLL) ÷ √n (delta method)
//     KL(A‖B)         = Σ P_A ln(P_A / P_B) at each scored position, in nats
//     agreement       = share of scored positions where both have the same most probable token
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "engine/model/sequence_logits.h"

namespace recto {

struct Perplexity {
    std::int64_t tokens = 0;  // scored
    int windows = 0;
    int context = 0;
    double mean_nll = 0;
    double value = 0;
    double standard_error = 0;
};

struct Divergence {
    double mean = 0, median = 0, p99 = 0, max = 0;  // KL(A‖B) over the scored positions
    double mean_standard_error = 0;
    double top_agreement = 0;
    // Perplexity of B ÷ perplexity of A, from the paired differences of NLL, with its standard error.
    double perplexity_ratio = 0, ratio_standard_error = 0;
};

struct QualityReport {
    Perplexity a, b;  // b only with a second model
    Divergence divergence;
};

struct QualityOptions {
    int context = 0;        // tokens a window; 0: 2,048, or the shortest model's context below it
    int usual_limit = 0;    // of tokens, where context is 0; 0: none beside those
    std::int32_t bos = -1;  // ≥ 0: every window begins with it
    SequenceLogitsOptions logits;
    // Columns of the logits that both models know; 0: all. Ids beyond it are never in `text`.
    int common_vocab = 0;
};

// `b` may be null. `progress` gets the share done and returns false to stop: Error(cancelled).
// Error(argument) for fewer than two tokens, a context outside 2 … the model's, or models whose logits have
// different widths without common_vocab.
QualityReport measure_quality(const std::shared_ptr<const Model>& a, const std::shared_ptr<const Model>& b,
                              std::span<const std::int32_t> text, const QualityOptions& options,
                              const std::function<bool(double)>& progress = {});

}  // namespace recto
