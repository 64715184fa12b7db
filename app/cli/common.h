// What every command of recto-cli shares: the common options, loading a model with progress, interruption.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/save/byte_sink.h"
#include "kernels/error.h"

namespace recto::cli {

enum ExitCode {
    exit_done = 0,
    exit_runtime = 1,
    exit_arguments = 2,
    exit_input = 3,
    exit_memory = 4,
    exit_interrupted = 130
};

struct CommonOptions {
    std::string model;  // empty: the starter model
    std::string device = "auto";
    std::string max_arch;  // CudaOptions; of kernels
    int threads = 0;
    int max_model_len = 0;
    double kv_cache_gib = 0;
    int kv_blocks = 0;
    int block_size = 16;
    int max_num_seqs = 0;
    int max_num_batched_tokens = 0;
    bool no_prefix_caching = false;
    bool no_overlap = false;
    double gpu_memory_utilization = 0.9;
    double cpu_offload_gib = 0;
    double swap_space_gib = 0;
    int max_waiting = 0;
    std::string quantization = "auto";
    std::string dtype = "auto";
    std::string activations = "auto";
    // The options that set the two, for messages: model B has its own.
    std::string dtype_option = "--dtype", activations_option = "--activations";
    std::string kv_cache_dtype = "auto";
    bool batch_invariant = false;
    bool json = false;
};

// A number from low to high, in words for the message; CLI::Range lets NaN through.
CLI::Validator number_in(double low, double high, const std::string& range);
// An empty name, as of a variable that a script did not set, is no choice of the default.
CLI::Validator named_model();
// Of results that are written to a place: "-", which elsewhere is standard output, would become a file.
CLI::Validator named_place();
void add_model_option(CLI::App& command, CommonOptions& options);
void add_common_options(CLI::App& command, CommonOptions& options);

std::filesystem::path model_path(const CommonOptions& options);  // Error(input) if the starter is not there
std::shared_ptr<Backend> make_backend(
    const CommonOptions& options);  // Error(argument, runtime): never another device than asked for
// Error(input) if --quantization says something else than what the tensors are.
void check_quantization(const CommonOptions& options, const ModelSource& source);
// Warnings of the model go to the error stream.
void print_warnings(const std::vector<std::string>& warnings);  // a model's, to standard error
std::shared_ptr<const Model> load(const CommonOptions& options, std::shared_ptr<Backend> backend);
LoadOptions load_options(const CommonOptions& options);
EngineOptions engine_options(const CommonOptions& options);

// Set by SIGINT and SIGTERM once install_interrupt_handler was called.
void install_interrupt_handler();
bool interrupted();
void clear_interrupt();  // the interruption was for one answer only
// While one lives there is nothing to keep, and an interruption ends the program at once: a tokenizer with a
// line of 100 MB asks nobody.
class NothingToKeep {
  public:
    NothingToKeep();
    ~NothingToKeep();
    NothingToKeep(const NothingToKeep&) = delete;
    NothingToKeep& operator=(const NothingToKeep&) = delete;
};

std::string read_file(const std::string& path);  // "-" is standard input; Error(input)
std::string exact_double(double value);          // shortest text that reads back the same

// Shows the share on standard error if that is a terminal, and throws Error(cancelled) once interrupted.
SaveProgress save_progress(const char* what);

// Text as JSON; discarded if it is none or nested too deep: the caller refuses it in its own words.
Json parse_value(const std::string& text);

// A JSON array of token ids, each a whole number of 32 bits. Error(kind) that starts with `where`.
std::vector<std::int32_t> token_ids(const Json& list, const std::string& where, ErrorKind kind);

// Each command adds itself; its callback returns an exit code through `code`.
void add_generate(CLI::App& app, int& code);
void add_chat(CLI::App& app, int& code);
void add_tokenize(CLI::App& app, int& code);
void add_template(CLI::App& app, int& code);
void add_logits(CLI::App& app, int& code);
void add_perplexity(CLI::App& app, int& code);
void add_inspect(CLI::App& app, int& code);
void add_convert(CLI::App& app, int& code);
void add_make_model(CLI::App& app, int& code);
void add_bench(CLI::App& app, int& code);
void add_kernels(CLI::App& app, int& code);
void add_version(CLI::App& app, int& code);

}  // namespace recto::cli
