// What passes between the window and an engine's thread: plain values, no Qt, no lock.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engine/engine.h"
#include "engine/error.h"
#include "engine/text/chat_template.h"

namespace recto::ui {

// Names one answer (or one question to the host) for the one who asked; unique in a process.
using Ticket = std::uint64_t;

enum class HostState : std::uint8_t { empty, loading, ready, failed, closed };

struct ModelRequest {             // what to load, and how
    std::filesystem::path path;   // file, folder, or a name that resolve_model() knows
    std::string device = "auto";  // "auto", "cpu", "cuda", "cuda:N"
    int threads = 0;              // CPU workers; 0: all cores
    LoadOptions load;
    EngineOptions engine;
};

// Computed from the file's headers and the memory free at that moment.
struct EstimateReport {
    Ticket ticket = 0;
    ModelRequest request;
    std::string name, architecture, format, quantization;
    std::uint64_t file_bytes = 0;
    MemoryEstimate memory;
    std::uint64_t returned_bytes =
        0;                    // what ejecting the model loaded now would give back; not in memory.free_bytes
    int trained_context = 0;  // longest context that the model was made for
    std::string error;        // one sentence; then nothing else is valid
    ErrorKind error_kind = ErrorKind::runtime;
};

struct LoadedModelInfo {
    std::filesystem::path path;
    std::string name;  // for people; the file's name where the model gives none
    std::string family, architecture, format, quantization;
    std::string fingerprint;  // hex, of the file's size, first and last mebibyte: tells builds apart, cheaply
    DeviceInfo device;
    std::string weight_kernels;  // what the linear layers run on
    Activations activations = Activations::floating;  // how their inputs meet quantized weights
    std::string tokenizer;
    std::string template_id;     // in use unless a chat chooses: "model", a known template's name, or empty
    std::string template_error;  // why the model's own cannot be used, although it has one
    std::vector<std::string> known_templates;  // that a chat may choose; the family's own first
    std::string family_template;  // the known template made for this family; empty if there is none
    GenerationDefaults generation_defaults;
    std::uint64_t weight_bytes = 0, workspace_bytes = 0, kv_bytes = 0, block_bytes = 0;
    int kv_blocks = 0, block_size = 0;
    int max_model_len = 0;  // as the engine runs it, not as it was asked for
    int trained_context = 0;
    int vocab = 0;
    MemoryEstimate estimate;  // made just before the load
    std::vector<LoadStage> load_stages;
    double load_seconds = 0;
};

struct HostStatus {
    HostState state = HostState::empty;
    std::string error;  // failed: one sentence; ready: why a later load was refused, this model stayed
    ErrorKind error_kind = ErrorKind::runtime;
    std::shared_ptr<const LoadedModelInfo> model;  // ready
};

struct PromptMessage {
    std::string role;                     // "system", "user", "assistant"
    std::string content;                  // UTF-8
    std::vector<std::int32_t> token_ids;  // of an answer, as generated; empty when unknown or edited
};

// "Answer this conversation." The prompt is rendered and encoded on the engine's thread.
struct AnswerRequest {
    Ticket ticket = 0;
    std::vector<PromptMessage> messages;  // the system prompt first, where there is one
    std::string template_id;  // "": what the model uses; "model": its own; else a known template's name
    Json variables = Json::object();  // for the template
    bool continue_last = false;       // the last message is an answer that goes on where it ended
    SamplingParams sampling;          // n = 1
    OwnerId owner = 0;
    int priority = 0;
};

struct AnswerStarted {
    Ticket ticket = 0;
    RequestId request = 0;  // as snapshots name it
    std::shared_ptr<const std::vector<std::int32_t>> prompt_ids;
    int prompt_tokens = 0;
    int spliced_tokens = 0;   // taken over from earlier answers instead of encoded again
    std::string template_id;  // in use: "model" or a known template's name
    int max_model_len = 0;
};

// Everything new about one answer since the last drain.
struct AnswerUpdate {
    Ticket ticket = 0;
    std::string text;                     // to append; valid UTF-8
    std::vector<std::int32_t> token_ids;  // to append
    bool finished = false;
    FinishReason finish = FinishReason::none;
    bool context_full = false;  // finish = length, and the context's end was the reason
    std::string stop_string;
    std::string error;  // finish = error: one sentence
    ErrorKind error_kind = ErrorKind::runtime;
    bool refused = false;    // never reached the engine: no AnswerStarted came
    RequestMetrics metrics;  // valid so far; token_times only with finished
};

struct TokenCount {
    Ticket ticket = 0;
    int tokens = 0;
    int prompt_tokens = 0;  // the whole prompt with this text as its next message; 0 if not asked for
    std::string error;
};

struct RenderedPrompt {  // "show rendered prompt"
    Ticket ticket = 0;
    std::string text;
    std::vector<std::int32_t> ids;
    std::string template_id;
    std::string error;
};

struct BlockDescription {
    BlockDetail detail;
    std::vector<std::string> token_texts;  // one a token; may hold halves of characters as U+FFFD
};

struct PoolSnapshot {
    int host = 0;
    EngineSnapshot engine;
    double cost_s = 0;        // engine time that making it took
    double cost_total_s = 0;  // of all snapshots so far
    bool paused = false;
};

struct PoolEventBatch {
    std::vector<PoolEvent> events;  // in order
    std::uint64_t dropped = 0;      // older ones that nobody fetched in time
};

struct HostStateChange {
    HostStatus status;
};
struct PausedChange {
    bool paused = false;
};

using HostEvent = std::variant<HostStateChange, LoadProgress, EstimateReport, AnswerStarted, AnswerUpdate,
                               TokenCount, RenderedPrompt, BlockDescription, PausedChange>;

}  // namespace recto::ui
