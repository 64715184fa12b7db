// One side of a benchmark: a model that is loaded and unloaded with its times and memory measured.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/bench/compare.h"
#include "engine/bench/model_files.h"
#include "engine/bench/prompts.h"

namespace recto {

struct LoadRecord {
    double seconds = 0;
    std::vector<LoadStage> stages;  // sum to it: the model's own, and "pool" for the engine
    std::string page_cache;         // before it: "warm", "cold", "mixed 37 %"
};

class LoadedSide {
  public:
    // Reads headers and the tokenizer. Error(input).
    LoadedSide(char name, const BenchSide& options, const BenchOptions& workload);
    // The longest of its prompts in its own tokens, before anything is loaded. Error(argument) if that and
    // the output are longer than the model's context.
    void set_longest_input(int tokens);

    // Times a load with `backend`, while the other side's load keeps `other_resident_bytes` of the process.
    // Error (memory), Error(cancelled).
    void load(const std::shared_ptr<Backend>& backend, std::uint64_t other_resident_bytes,
              const std::function<void(const LoadProgress&)>& progress,
              const std::function<bool()>& cancelled);
    void unload();
    bool loaded() const { return engine_ != nullptr; }

    // Device memory that load() will take for weights, workspace and pool, from headers.
    std::uint64_t needed_bytes(const DeviceInfo& device) const;
    std::string page_cache() const;

    // Around a run, for peak_bytes(): the most that this side was seen to hold. On a card, what its free
    // memory fell by; on the CPU, the process's peak less `other_resident_bytes`.
    void begin_memory(const Backend& backend);
    void end_memory(const Backend& backend, std::uint64_t other_resident_bytes);

    char name() const { return name_; }
    std::size_t index() const { return name_ == 'A' ? 0 : 1; }
    const BenchSide& options() const { return options_; }
    const ModelFiles& files() const { return files_; }
    BenchVocabulary vocabulary() const { return {tokenizer_.get(), vocab_}; }
    const Tokenizer* tokenizer() const { return tokenizer_.get(); }
    Engine& engine() { return *engine_; }
    const std::vector<LoadRecord>& loads() const { return loads_; }
    TimedFigure load_s() const;
    std::uint64_t weight_bytes() const { return weight_bytes_; }
    std::uint64_t peak_bytes() const { return peak_bytes_; }
    std::uint64_t resident_bytes() const { return resident_bytes_; }  // of the process, by this side's load
    std::uint64_t pool_tokens() const { return pool_tokens_; }
    std::uint64_t fitting_tokens() const { return fitting_tokens_; }
    // Settings and identity, for the header. Known after the first load; file hashes are added at the end.
    const nlohmann::ordered_json& description() const { return description_; }
    std::uint64_t prompt_hash = prompt_hash_start;

  private:
    EngineOptions sized_engine() const;
    void describe();

    char name_;
    const BenchSide& options_;
    const BenchOptions& workload_;
    ModelFiles files_;
    std::unique_ptr<Tokenizer> tokenizer_;
    int vocab_ = 0, max_position_ = 0, longest_input_ = 0;
    std::shared_ptr<const Model> model_;
    std::unique_ptr<Engine> engine_;
    std::vector<LoadRecord> loads_;
    std::uint64_t weight_bytes_ = 0, peak_bytes_ = 0, resident_bytes_ = 0, pool_tokens_ = 0,
                  fitting_tokens_ = 0;
    std::uint64_t device_bytes_ = 0, free_before_ = 0;
    nlohmann::ordered_json description_;
};

constexpr const char* kv_tokens_definition =
    "tokens that fit: ⌊(memory free before the load, on a card × gpu_memory_utilization, − weights − "
    "workspace) ÷ "
    "block bytes⌋ × block size, where the pool is the benchmark's own; else the tokens of the pool that was "
    "asked "
    "for";
constexpr const char* peak_bytes_definition =
    "card: the most that its free memory fell by; CPU: the process's largest resident memory less what the "
    "other "
    "side's load left resident";

}  // namespace recto
