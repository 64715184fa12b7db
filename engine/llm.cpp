#include "engine/llm.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <unordered_map>

#include "engine/choose_device.h"
#include "kernels/error.h"

namespace recto {
namespace {

std::shared_ptr<Backend> backend_for(const LlmOptions& o) {
    const DeviceChoice device = parse_device(o.device, "device");
    if (device.kind != DeviceChoice::card) {
        CpuOptions cpu;
        cpu.threads = o.threads;
        return make_cpu_backend(cpu);
    }
    std::string why;
    if (auto backend = make_cuda_backend({device.ordinal, {}}, why)) return backend;
    throw Error(ErrorKind::runtime, "device " + o.device + ": " + why);
}

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    return text;
}

void check_quantization(const std::filesystem::path& path, const std::string& wanted) {
    if (wanted == "auto") return;
    if (wanted != "none" && wanted != "awq" && wanted != "gptq" && wanted != "compressed-tensors" &&
        wanted != "gguf")
        throw Error(ErrorKind::argument,
                    "quantization must be auto, none, awq, gptq, compressed-tensors or gguf, got " + wanted);
    const auto source = open_model(path);
    const std::string found = wanted == "gguf" ? source->format() : source->quantization();
    if (!lower(found).starts_with(wanted))
        throw Error(ErrorKind::input, path.string() + ": expected " + wanted + " weights, found " +
                                          source->quantization() +
                                          "; leave quantization at auto to take what is there");
}

LoadOptions load_options(const LlmOptions& o) {
    LoadOptions load;
    load.dtype = o.dtype;
    load.activations = o.activations;
    return load;
}

EngineOptions engine_options(const LlmOptions& o) {
    EngineOptions e = o.engine;
    if (o.max_model_len != 0) e.max_model_len = o.max_model_len;
    if (!(o.swap_space_gib >= 0 && o.swap_space_gib <= 1 << 20))
        throw Error(ErrorKind::argument,
                    "swap_space_gib must be in [0, 1048576], got " + std::to_string(o.swap_space_gib));
    if (o.swap_space_gib > 0) e.swap_space_bytes = std::uint64_t(o.swap_space_gib * double(1ULL << 30));
    if (o.seed != 0) e.seed = o.seed;
    return e;
}

void take(RequestOutput& request, RequestEvent& e) {
    auto at = std::ranges::find(request.outputs, e.output, &CompletionOutput::index);
    if (at == request.outputs.end()) at = request.outputs.insert(at, {.index = e.output});
    CompletionOutput& o = *at;
    o.text += e.text;
    o.token_ids.insert(o.token_ids.end(), e.token_ids.begin(), e.token_ids.end());
    std::ranges::move(e.logprobs, std::back_inserter(o.logprobs));
    o.cumulative_logprob = e.cumulative_logprob;
    o.finish_reason = e.finish;
    o.stop_token = e.stop_token;
    o.stop_string = e.stop_string;
    if (!e.prompt_logprobs.empty()) request.prompt_logprobs = std::move(e.prompt_logprobs);
    if (e.request_finished) request.metrics = std::move(e.metrics);
}

}  // namespace

LLM::LLM(const std::string& model, const LlmOptions& options) {
    const std::filesystem::path path = resolve_model(model);
    check_quantization(path, options.quantization);
    const EngineOptions engine = engine_options(options);
    model_ = load_model(path, backend_for(options), load_options(options));
    engine_ = std::make_unique<Engine>(model_, engine);
}

const Tokenizer& LLM::tokenizer() const {
    if (!model_->tokenizer)
        throw Error(
            ErrorKind::input,
            model_->path.string() + ": expected a tokenizer for a text prompt, found none; give token ids");
    return *model_->tokenizer;
}

std::vector<RequestOutput> LLM::generate(const std::vector<std::string>& prompts,
                                         const SamplingParams& sampling) {
    std::vector<Prompt> all;
    for (const std::string& text : prompts)
        all.push_back({text, tokenizer().encode(text)});
    return run(std::move(all), sampling);
}

std::vector<RequestOutput> LLM::generate(const std::vector<std::vector<std::int32_t>>& prompts,
                                         const SamplingParams& sampling) {
    std::vector<Prompt> all;
    for (const auto& ids : prompts)
        all.push_back({{}, ids});
    return run(std::move(all), sampling);
}

RequestOutput LLM::chat(const std::vector<ChatMessage>& messages, const SamplingParams& sampling) {
    if (!model_->chat_template)
        throw Error(ErrorKind::input,
                    model_->path.string() + ": expected a chat template, found " +
                        (model_->chat_template_error.empty() ? "none" : model_->chat_template_error));
    Json json = Json::array();
    for (const ChatMessage& m : messages)
        json.push_back({{"role", m.role}, {"content", m.content}});
    TemplateOptions options;
    options.bos_token = tokenizer().spelling(tokenizer().bos());
    if (!tokenizer().eos().empty()) options.eos_token = tokenizer().spelling(tokenizer().eos().front());
    const std::vector<TextPiece> pieces = model_->chat_template->render(json, options);
    Prompt prompt;
    for (const TextPiece& piece : pieces)
        prompt.text += piece.text;
    prompt.ids = encode_pieces(tokenizer(), pieces);
    std::vector<Prompt> one;
    one.push_back(std::move(prompt));
    return std::move(run(std::move(one), sampling).front());
}

std::vector<RequestOutput> LLM::run(std::vector<Prompt> prompts, const SamplingParams& sampling) {
    std::vector<RequestOutput> results(prompts.size());
    std::unordered_map<RequestId, std::size_t> index;
    const auto cancel_all = [&] {
        for (const auto& [id, i] : index)
            engine_->cancel(id);
        while (engine_->has_work())
            engine_->step();
    };
    try {
        for (std::size_t i = 0; i < prompts.size(); ++i) {
            results[i].prompt = std::move(prompts[i].text);
            results[i].prompt_token_ids = std::move(prompts[i].ids);
            Request request;
            request.prompt = results[i].prompt_token_ids;
            request.sampling = sampling;
            request.owner = OwnerId(i + 1);
            index[engine_->submit(std::move(request))] = i;
        }
    } catch (...) {
        cancel_all();
        throw;
    }
    std::string error;
    while (engine_->has_work())
        for (RequestEvent& e : engine_->step()) {
            const auto found = index.find(e.request);
            if (found == index.end()) continue;  // of a request that somebody gave to engine()
            if (error.empty() && e.finish == FinishReason::error)
                error = "request " + std::to_string(found->second) + ": " + e.error;
            take(results[found->second], e);
        }
    if (!error.empty()) throw Error(ErrorKind::runtime, error);
    for (RequestOutput& r : results)
        std::ranges::sort(r.outputs, {}, &CompletionOutput::index);
    return results;
}

}  // namespace recto
