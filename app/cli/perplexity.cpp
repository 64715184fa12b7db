// perplexity: of a text under a model, and how far a second model's predictions are from it.
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "app/cli/common.h"
#include "app/cli/other_side.h"
#include "app/cli/sequence_limit.h"
#include "engine/bench/perplexity.h"
#include "engine/json_text.h"
#include "kernels/error.h"

namespace recto::cli {
namespace {

struct PerplexityCommand {
    CommonOptions common;
    std::string file;
    OtherSide against;
    int context = 0;
};

// Model B, with the settings of A except for what was asked to differ; null without one.
std::shared_ptr<const Model> load_other(const PerplexityCommand& o, const std::shared_ptr<Backend>& backend) {
    if (!o.against.any()) return nullptr;
    return load(options_of_b(o.common, o.against), backend);
}

const Tokenizer& tokenizer_of(const Model& model) {
    if (model.tokenizer) return *model.tokenizer;
    throw Error(ErrorKind::input, model.path.string() +
                                      ": perplexity needs the model's tokenizer to read a text, found none "
                                      "beside the weights");
}

// The columns that both models know. Widths may differ by padding; the tokens must not.
int common_vocab(const Model& a, const Model& b) {
    const Tokenizer& of_a = tokenizer_of(a);
    const Tokenizer* of_b = b.tokenizer.get();
    if (of_b && of_a.size() != of_b->size())
        throw Error(ErrorKind::argument, "--against needs a model with the same tokens, found " +
                                             std::to_string(of_a.size()) + " and " +
                                             std::to_string(of_b->size()));
    if (!of_b && a.config.vocab != b.config.vocab)
        throw Error(ErrorKind::argument, "--against needs a model with the same tokens; " + b.path.string() +
                                             " has no tokenizer to compare, and " +
                                             std::to_string(b.config.vocab) + " rows of logits instead of " +
                                             std::to_string(a.config.vocab));
    for (int id = 0; of_b && id < of_a.size(); ++id)
        if (of_a.bytes(id) != of_b->bytes(id))
            throw Error(ErrorKind::argument, "--against needs a model with the same tokens; token " +
                                                 std::to_string(id) + " is " +
                                                 std::string(of_a.spelling(id)) + " in one and " +
                                                 std::string(of_b->spelling(id)) + " in the other");
    return a.config.vocab == b.config.vocab ? 0 : std::min({of_a.size(), a.config.vocab, b.config.vocab});
}

Json as_json(const Perplexity& p) {
    return {{"perplexity", p.value},  {"standard_error", p.standard_error},
            {"mean_nll", p.mean_nll}, {"tokens", p.tokens},
            {"windows", p.windows},   {"context", p.context}};
}

void print_json(const QualityReport& r, bool two) {
    Json out = as_json(r.a);
    if (two) {
        const Divergence& d = r.divergence;
        out["against"] = as_json(r.b);
        out["perplexity_ratio"] = {{"value", d.perplexity_ratio}, {"standard_error", d.ratio_standard_error}};
        out["kl"] = {{"mean", d.mean},
                     {"standard_error", d.mean_standard_error},
                     {"median", d.median},
                     {"p99", d.p99},
                     {"max", d.max}};
        out["top_agreement"] = d.top_agreement;
    }
    std::cout << json_text(out) << '\n';
}

bool rounds_large_steps(const Model* m) {
    return m && (m->activations == Activations::token_fp8 || m->activations == Activations::token_int8);
}

// Rows a step. Where a model rounds activations in large steps only, steps are large: its cost would read as
// nothing.
int rows_a_step(int asked, int usual, const Model* a, const Model* b) {
    if (!rounds_large_steps(a) && !rounds_large_steps(b)) return asked > 0 ? asked : usual;
    const int least = int(eight_bit_rows) + 1;
    if (asked > 0 && asked < least)
        throw Error(ErrorKind::argument, "--activations 8 rounds steps of at least " + std::to_string(least) +
                                             " tokens, got --max-num-batched-tokens " +
                                             std::to_string(asked) + "; give more, or leave it out");
    return asked > 0 ? asked : 2 * int(eight_bit_rows);
}

void print_line(const char* side, const Perplexity& p) {
    std::printf("%sperplexity %.4f ± %.4f over %lld tokens in %d windows of %d\n", side, p.value,
                p.standard_error, static_cast<long long>(p.tokens), p.windows, p.context);
}

void print_text(const QualityReport& r, bool two) {
    print_line(two ? "A  " : "", r.a);
    if (!two) return;
    const Divergence& d = r.divergence;
    print_line("B  ", r.b);
    std::printf("B ÷ A           %.5f ± %.5f\n", d.perplexity_ratio, d.ratio_standard_error);
    std::printf("KL(A‖B), nats   mean %.6f ± %.6f, median %.6f, 99 %% %.6f, max %.6f\n", d.mean,
                d.mean_standard_error, d.median, d.p99, d.max);
    std::printf("same top token  %.3f %%\n", d.top_agreement * 100);
}

// Of both models; Error(argument) where it is below a window.
SequenceLimit window_limit(const PerplexityCommand& o, const Model& a, const Model* b) {
    SequenceLimit limit = sequence_limit(o.common, a);
    if (b != nullptr)
        if (const SequenceLimit other = sequence_limit(options_of_b(o.common, o.against), *b);
            !other.option.empty() && (limit.option.empty() || other.tokens < limit.tokens))
            limit = other;
    const int least = std::max(o.context, 2);
    if (!limit.option.empty() && limit.tokens < least)
        throw Error(ErrorKind::argument, limit.option + " must hold a window of " + std::to_string(least) +
                                             " tokens, but holds " + std::to_string(limit.tokens) +
                                             "; give it more, or --context less");
    return limit;
}

int run(const PerplexityCommand& o) {
    install_interrupt_handler();
    check_other_side(o.against);
    const std::string text = read_file(o.file);
    const EngineOptions engine = engine_options(o.common);
    const auto backend = make_backend(o.common);
    const auto a = load(o.common, backend);
    const Tokenizer& tokenizer = tokenizer_of(*a);
    const auto b = load_other(o, backend);
    QualityOptions options;
    options.context = o.context;
    options.usual_limit = window_limit(o, *a, b.get()).tokens;
    if (tokenizer.adds_bos()) options.bos = tokenizer.bos();
    options.logits.block_size = engine.block_size;
    options.logits.chunk_tokens =
        rows_a_step(engine.max_num_batched_tokens, options.logits.chunk_tokens, a.get(), b.get());
    options.logits.kv_dtype = engine.kv_dtype;
    if (b) options.common_vocab = common_vocab(*a, *b);
    EncodeOptions plain;
    plain.add_bos = false;
    const std::vector<std::int32_t> ids = tokenizer.encode(text, plain);
    if (ids.size() < 2)
        throw Error(ErrorKind::input, o.file + ": a text of at least two tokens was expected, found " +
                                          std::to_string(ids.size()));
    const bool show = isatty(STDERR_FILENO) != 0;
    int shown = -1;
    const auto progress = [&](double share) {
        if (show && int(share * 100) != shown)
            std::fprintf(stderr, "\rperplexity %3d %%\033[K", shown = int(share * 100));
        return !interrupted();
    };
    const QualityReport report = measure_quality(a, b, ids, options, progress);
    if (show) std::fputs("\r\033[K", stderr);
    if (o.common.json)
        print_json(report, b != nullptr);
    else
        print_text(report, b != nullptr);
    return exit_done;
}

}  // namespace

void add_perplexity(CLI::App& app, int& code) {
    auto options = std::make_shared<PerplexityCommand>();
    CLI::App* command = app.add_subcommand(
        "perplexity", "Perplexity of a text in windows; with --against, KL divergence and agreement too");
    command->add_option("--file", options->file, "the text, UTF-8")->required();
    command
        ->add_option("--context", options->context,
                     "tokens a window; left out: 2048, or the context of a model that has less")
        ->check(CLI::Range(2, 1 << 24));
    add_other_side_options(*command, options->against, "model B, compared with --model on the same tokens");
    add_common_options(*command, options->common);
    command->callback([options, &code] { code = run(*options); });
}

}  // namespace recto::cli
