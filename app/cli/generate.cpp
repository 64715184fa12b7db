// generate: all requests run together in the engine; the blog post's program from the command line.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <limits>
#include <map>

#include "app/cli/common.h"
#include "app/cli/requests.h"
#include "app/cli/sampling.h"
#include "engine/json_text.h"
#include "kernels/error.h"

namespace recto::cli {
namespace {

struct GenerateOptions {
    CommonOptions common;
    std::vector<std::string> prompts;
    std::string prompts_file;
    SamplingFlags sampling;
};

struct Output {
    std::string text;
    std::vector<std::int32_t> token_ids;
    std::vector<std::vector<TokenLogprob>> logprobs;
    double cumulative_logprob = 0;
    RequestEvent last;  // finish reason and stop reason
};

struct Result {
    std::map<int, Output> outputs;
    std::vector<std::vector<TokenLogprob>> prompt_logprobs;
    RequestMetrics metrics;
    std::string error;
};

struct RunFigures {
    double wall_s = 0;
    int kv_blocks_peak = 0;
    double waste_sum = 0;
    int waste_samples = 0;
};

void take_event(Result& result, const RequestEvent& event) {
    Output& output = result.outputs[event.output];
    output.text += event.text;
    output.token_ids.insert(output.token_ids.end(), event.token_ids.begin(), event.token_ids.end());
    output.logprobs.insert(output.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
    output.cumulative_logprob = event.cumulative_logprob;
    if (!event.prompt_logprobs.empty()) result.prompt_logprobs = event.prompt_logprobs;
    if (event.finish != FinishReason::none) {
        output.last = event;
        if (event.finish == FinishReason::error) result.error = event.error;
    }
    if (event.request_finished) result.metrics = event.metrics;
}

// Steps until everything is answered; a signal cancels what runs and keeps the text so far.
RunFigures run_all(Engine& engine, std::map<RequestId, std::size_t>& index_of, std::vector<Result>& results,
                   bool observe) {
    RunFigures figures;
    const double start = engine.now();
    bool cancelled = false;
    while (engine.has_work()) {
        if (interrupted() && !cancelled) {
            for (const auto& [id, index] : index_of)
                engine.cancel(id);
            cancelled = true;
        }
        for (const RequestEvent& event : engine.step())
            take_event(results[index_of.at(event.request)], event);
        if (!observe) continue;
        const EngineSnapshot snapshot = engine.snapshot();
        figures.kv_blocks_peak = std::max(figures.kv_blocks_peak, int(snapshot.counts.used));
        if (snapshot.allocated_slots > 0) {
            figures.waste_sum += double(snapshot.empty_slots) / double(snapshot.allocated_slots);
            ++figures.waste_samples;
        }
    }
    figures.wall_s = engine.now() - start;
    return figures;
}

Json logprob_rows(const std::vector<std::vector<TokenLogprob>>& rows, const Tokenizer* tokenizer) {
    Json array = Json::array();
    for (const auto& row : rows) {
        if (row.empty()) {
            array.push_back(nullptr);  // the first prompt token has nothing before it
            continue;
        }
        Json entries = Json::array();
        for (const TokenLogprob& entry : row) {
            const std::int32_t ids[] = {entry.token};
            DecodeOptions plain;
            plain.skip_special = false;
            entries.push_back({{"token_id", entry.token},
                               {"logprob", entry.logprob},
                               {"rank", entry.rank},
                               {"token", tokenizer ? decode(*tokenizer, ids, plain) : std::string()}});
        }
        array.push_back(std::move(entries));
    }
    return array;
}

Json metrics_json(const RequestMetrics& m) {
    return {{"queue_s", m.queue_s()},
            {"ttft_s", m.ttft_s()},
            {"prefill_tokens", m.prompt_tokens - m.cached_tokens},
            {"cached_tokens", m.cached_tokens},
            {"decode_tokens", m.output_tokens},
            {"prefill_tok_s", m.prefill_tok_s()},
            {"decode_tok_s", m.decode_tok_s()},
            {"preemptions", m.preemptions},
            {"swaps", m.swaps},
            {"prefix_queries", m.prefix_queries},
            {"prefix_hits", m.prefix_hits}};
}

Json output_json(int index, const Output& output, const SamplingParams& sampling,
                 const Tokenizer* tokenizer) {
    Json stop_reason;
    if (output.last.stop_token) stop_reason = *output.last.stop_token;
    if (!output.last.stop_string.empty()) stop_reason = output.last.stop_string;
    Json o = {{"index", index},
              {"text", output.text},
              {"token_ids", output.token_ids},
              {"finish_reason", finish_reason_name(output.last.finish)},
              {"stop_reason", stop_reason},
              {"cumulative_logprob", nullptr},
              {"logprobs", nullptr}};
    if (sampling.use_beam_search) o["cumulative_logprob"] = output.cumulative_logprob;
    if (sampling.logprobs) {
        o["cumulative_logprob"] = output.cumulative_logprob;
        o["logprobs"] = logprob_rows(output.logprobs, tokenizer);
    }
    return o;
}

void print_line(const Json& object) {
    // Texts are valid UTF-8 by the detokenizer; a prompt of the person's may not be.
    std::cout << json_text(object) << '\n';
}

void print_json(const std::vector<PromptRequest>& requests, const std::vector<Result>& results,
                const Model& model, const Engine& engine, const RunFigures& figures) {
    std::size_t prompt_tokens = 0;
    std::size_t output_tokens = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const Result& result = results[i];
        Json outputs = Json::array();
        for (const auto& [index, output] : result.outputs) {
            if (output.last.finish == FinishReason::error) continue;
            outputs.push_back(
                output_json(index, output, requests[i].request.sampling, model.tokenizer.get()));
            output_tokens += output.token_ids.size();
        }
        prompt_tokens += requests[i].request.prompt.size();
        print_line({{"index", i},
                    {"prompt", requests[i].prompt},
                    {"prompt_token_ids", requests[i].request.prompt},
                    {"outputs", outputs},
                    {"prompt_logprobs", requests[i].request.sampling.prompt_logprobs
                                            ? logprob_rows(result.prompt_logprobs, model.tokenizer.get())
                                            : Json()},
                    {"error", result.error.empty() ? Json() : Json(result.error)},
                    {"metrics", metrics_json(result.metrics)}});
    }
    Json stages = Json::object();
    for (const LoadStage& stage : model.load_stages)
        stages[stage.name] = stage.seconds;
    const DeviceInfo device = model.backend->device();
    print_line({{"summary",
                 {{"load_s", model.load_seconds},
                  {"load_stages", stages},
                  {"wall_s", figures.wall_s},
                  {"prompt_tokens", prompt_tokens},
                  {"output_tokens", output_tokens},
                  {"total_tok_s", figures.wall_s > 0 ? double(output_tokens) / figures.wall_s : 0.0},
                  {"kv_blocks_total", engine.kv_blocks()},
                  {"kv_blocks_peak", figures.kv_blocks_peak},
                  {"kv_waste_mean", figures.waste_samples ? figures.waste_sum / figures.waste_samples : 0.0},
                  {"device", device.name},
                  {"kernels", device.kernels}}}});
}

void print_text(const std::vector<PromptRequest>& requests, const std::vector<Result>& results,
                const Model& model, const RunFigures& figures) {
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        if (!results[i].error.empty())
            std::cerr << "recto-cli: request " << i << ": " << results[i].error << '\n';
        for (const auto& [index, output] : results[i].outputs) {
            if (output.last.finish == FinishReason::error) continue;
            std::cout << "Prompt: " << requests[i].prompt << "\nGenerated text: " << output.text << "\n\n";
            tokens += output.token_ids.size();
        }
    }
    std::cout << std::flush;
    std::printf("load time: %.3f s\ngeneration time: %.3f s (%zu tokens, %.1f tok/s)\n", model.load_seconds,
                figures.wall_s, tokens, figures.wall_s > 0 ? double(tokens) / figures.wall_s : 0.0);
    std::fflush(stdout);
}

// An answer that the context cut looks like one that reached --max-tokens: say which limit it was.
void note_full_contexts(const std::vector<Result>& results, const Engine& engine) {
    int cut = 0;
    for (const Result& r : results)
        for (const auto& [index, output] : r.outputs)
            cut += output.last.finish == FinishReason::length &&
                   r.metrics.prompt_tokens + int(output.token_ids.size()) >= engine.max_model_len();
    if (cut == 0) return;
    std::cerr << "recto-cli: note: " << cut << (cut == 1 ? " answer" : " answers")
              << " ended at the context's " << engine.max_model_len()
              << " tokens (the model's limit, --max-model-len, or what --kv-blocks " << engine.kv_blocks()
              << " holds)\n";
}

int run(const GenerateOptions& options) {
    install_interrupt_handler();
    if (options.prompts.empty() == options.prompts_file.empty())
        throw Error(ErrorKind::argument,
                    "generate needs --prompt TEXT (repeatable) or --prompts FILE, one of the two");
    SamplingParams sampling;
    options.sampling.apply(sampling);
    sampling.check(
        std::numeric_limits<int>::max());  // before the load: a value out of range should not cost one
    const auto model = load(options.common, make_backend(options.common));
    const std::vector<PromptRequest> requests = [&] {
        const NothingToKeep reading;
        if (!options.prompts_file.empty()) return read_prompts(options.prompts_file, *model, sampling);
        std::vector<PromptRequest> given;
        for (const std::string& prompt : options.prompts)
            given.push_back(text_prompt(prompt, *model, sampling));
        return given;
    }();

    Engine engine(model, engine_options(options.common));
    std::vector<Result> results(requests.size());
    std::map<RequestId, std::size_t> index_of;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        try {
            index_of[engine.submit(requests[i].request)] = i;
        } catch (const Error& e) {
            if (requests.size() == 1) throw;
            results[i].error = e.what();
        }
    }
    const RunFigures figures = run_all(engine, index_of, results, options.common.json);
    if (options.common.json)
        print_json(requests, results, *model, engine, figures);
    else
        print_text(requests, results, *model, figures);
    if (!options.common.json) note_full_contexts(results, engine);
    if (interrupted()) throw Error(ErrorKind::cancelled, "interrupted; what was there by then is shown");
    const bool failed =
        std::any_of(results.begin(), results.end(), [](const Result& r) { return !r.error.empty(); });
    return failed ? exit_runtime : exit_done;
}

}  // namespace

void add_generate(CLI::App& app, int& code) {
    auto options = std::make_shared<GenerateOptions>();
    CLI::App* command = app.add_subcommand("generate", "Continue prompts, all together in one engine");
    command->add_option("--prompt", options->prompts, "a prompt (repeatable)")->allow_extra_args(false);
    command->add_option("--prompts", options->prompts_file,
                        ".jsonl: one request a line; .txt: one prompt a line");
    add_common_options(*command, options->common);
    options->sampling.add_to(*command);
    command->callback([options, &code] { code = run(*options); });
}

}  // namespace recto::cli
