// Offline generation in a few lines:
//
//     recto::LLM llm("path/to/model");
//     const auto outputs = llm.generate({"Hello, my name is", "The capital of France is"},
//                                       {.temperature = 0.8, .top_p = 0.95});
//     for (const auto& o : outputs) std::cout << o.prompt << o.outputs[0].text << '\n';
//
// All prompts of a call run together in one engine; further calls find their past in its prefix cache. Errors
// of files, memory and values are recto::Error (kernels/error.h). One thread at a time.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace recto {

struct LlmOptions {
    // What the weights must be: auto, none, awq, gptq, compressed-tensors or gguf. Error(input) if they are
    // not.
    std::string quantization = "auto";
    ModelDType dtype = ModelDType::automatic;
    ActivationMode activations = ActivationMode::automatic;
    std::string device = "auto";  // auto and cpu: this machine's cores; cuda, cuda:N
    int threads = 0;              // CPU workers; 0: all cores that this process may use
    int max_model_len = 0;        // longest sequence in tokens; 0: the model's, or what the pool holds
    double swap_space_gib = 0;    // host memory for preempted sequences
    std::uint64_t seed = 0;       // of requests without one; 0: from the clock
    EngineOptions engine;         // the rest; max_model_len, swap space and seed above win where they are set
};

struct CompletionOutput {
    int index = 0;
    std::string text;
    std::vector<std::int32_t> token_ids;
    double cumulative_logprob = 0;                    // of tokens, where log probabilities were asked for
    std::vector<std::vector<TokenLogprob>> logprobs;  // per token: the sampled one first, then the best k
    FinishReason finish_reason = FinishReason::none;
    std::optional<std::int32_t> stop_token;  // stop_reason as an id
    std::string stop_string;                 // stop_reason as a string; empty otherwise
};

struct RequestOutput {
    std::string prompt;  // the text given, or the conversation as rendered; empty for token ids
    std::vector<std::int32_t> prompt_token_ids;
    std::vector<std::vector<TokenLogprob>> prompt_logprobs;
    std::vector<CompletionOutput> outputs;  // n of them
    RequestMetrics metrics;
};

struct ChatMessage {
    std::string role;  // "system", "user", "assistant"
    std::string content;
};

class LLM {
  public:
    // `model`: a GGUF file, a Hugging Face folder, or org/name in the Hugging Face cache.
    explicit LLM(const std::string& model, const LlmOptions& options = {});

    // In the order of the prompts. A prompt or parameter that is refused throws before anything is computed,
    // a request that fails throws when the others have ended.
    std::vector<RequestOutput> generate(const std::vector<std::string>& prompts,
                                        const SamplingParams& sampling = {});
    std::vector<RequestOutput> generate(const std::vector<std::vector<std::int32_t>>& prompts,
                                        const SamplingParams& sampling = {});
    // Renders the conversation by the model's chat template and answers it.
    RequestOutput chat(const std::vector<ChatMessage>& messages, const SamplingParams& sampling = {});

    double load_seconds() const { return model_->load_seconds; }
    const Model& model() const { return *model_; }
    Engine& engine() { return *engine_; }

  private:
    struct Prompt {
        std::string text;
        std::vector<std::int32_t> ids;
    };
    std::vector<RequestOutput> run(std::vector<Prompt> prompts, const SamplingParams& sampling);
    const Tokenizer& tokenizer() const;

    std::shared_ptr<const Model> model_;
    std::unique_ptr<Engine> engine_;
};

}  // namespace recto
