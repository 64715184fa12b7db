#include "app/cli/common.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>

#include "engine/choose_device.h"
#include "engine/json_text.h"
#include "engine/load/json_reader.h"
#include "engine/load/starter.h"
#include "kernels/error.h"

namespace recto::cli {
namespace {

// A signal handler can reach nothing but globals of such types.
volatile std::sig_atomic_t interrupt_seen = 0;
volatile std::sig_atomic_t nothing_to_keep = 0;
std::atomic<std::int64_t> interrupt_ms = 0;  // when the first came, by the monotonic clock
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

// timeout(1) sends its signal to the program and then to the program's group: that is one wish, not two.
constexpr std::int64_t same_wish_ms = 200;

void on_interrupt(int signal) {
    if (nothing_to_keep) {
        constexpr char text[] = "recto-cli: interrupted while the prompts were read\n";
        [[maybe_unused]] const auto written = write(STDERR_FILENO, text, sizeof(text) - 1);
        std::_Exit(128 + signal);
    }
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const std::int64_t ms = std::int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
    if (!interrupt_seen) interrupt_ms = ms;
    // A second Ctrl+C does not wait for the step.
    if (interrupt_seen && ms - interrupt_ms > same_wish_ms) std::_Exit(128 + signal);
    interrupt_seen = 1;
}

constexpr double largest_gib = 1 << 20;  // a PiB: any larger number is a slip, and would not fit 64 bits
constexpr double smallest_gib = 1.0 / (1 << 30);  // a byte

// A card cuts a step's products and attention by its batch, so that the order of sums follows it.
void expect_batch_invariance(const CommonOptions& o, Backend& backend) {
    if (o.batch_invariant && backend.device().kind != "cpu")
        throw Error(
            ErrorKind::argument,
            "--batch-invariant: on a card a row's bits follow from how its batch is cut; use --device "
            "cpu, where they never do, or leave it out");
}

}  // namespace

NothingToKeep::NothingToKeep() {
    nothing_to_keep = 1;
}
NothingToKeep::~NothingToKeep() {
    nothing_to_keep = 0;
}

void install_interrupt_handler() {
    struct sigaction action {};
    action.sa_handler = on_interrupt;  // without SA_RESTART: waiting for a line ends too
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    struct sigaction closed {};
    // A closed terminal ends the program in order too, unless it was started to outlive it (nohup).
    if (sigaction(SIGHUP, nullptr, &closed) == 0 && closed.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, nullptr);
}
bool interrupted() {
    return interrupt_seen != 0;
}
void clear_interrupt() {
    interrupt_seen = 0;
}

CLI::Validator number_in(double low, double high, const std::string& range) {
    return CLI::Validator(
        [=](const std::string& text) {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) return std::string();
            return "must be a number " + range + ", got " + text;
        },
        "");
}

CLI::Validator named_model() {
    return CLI::Validator(
        [](const std::string& name) {
            return name.empty() ? std::string("must name a model, got an empty name") : std::string();
        },
        "");
}

CLI::Validator named_place() {
    return CLI::Validator(
        [](const std::string& path) {
            if (path.empty()) return std::string("must name a place for the result, got an empty name");
            if (path == "-")
                return std::string(
                    "must name a place for the result, got -, and standard output is none for it; a "
                    "file of that name is ./-");
            return std::string();
        },
        "");
}

void add_model_option(CLI::App& command, CommonOptions& o) {
    command
        .add_option("--model", o.model,
                    "GGUF file, Hugging Face folder, or org/name in the Hugging Face cache; left out: the "
                    "starter model")
        ->check(named_model());
}

void add_common_options(CLI::App& command, CommonOptions& o) {
    add_model_option(command, o);
    command.add_option("--device", o.device, "auto, cpu, cuda or cuda:N");
    command.add_option("--threads", o.threads, "CPU workers; 0: all cores that this process may use")
        ->check(CLI::Range(0, 1024));
    command.add_option("--max-model-len", o.max_model_len, "longest sequence in tokens; 0: the model's")
        ->check(CLI::Range(0, 1 << 24));
    auto* gib = command.add_option("--kv-cache-gib", o.kv_cache_gib, "size of the KV pool in GiB")
                    ->check(number_in(smallest_gib, largest_gib, "greater than 0, at most 1048576"));
    command.add_option("--kv-blocks", o.kv_blocks, "size of the KV pool in blocks")
        ->check(CLI::Range(1, 1 << 26))
        ->excludes(gib);
    command.add_option("--block-size", o.block_size, "token slots a block, a multiple of 8")
        ->check(CLI::Range(8, 256));
    command.add_option("--max-num-seqs", o.max_num_seqs, "sequences a step; 0: 16 on the CPU")
        ->check(CLI::Range(0, 4096));
    command
        .add_option("--max-num-batched-tokens", o.max_num_batched_tokens,
                    "token budget of a step; 0: 512 on the CPU")
        ->check(CLI::Range(0, 1 << 20));
    command
        .add_option("--max-waiting", o.max_waiting,
                    "requests that may wait to be started; more are refused; 0: no bound")
        ->check(CLI::Range(0, 1 << 30));
    command.add_flag("--no-prefix-caching", o.no_prefix_caching, "compute every prompt anew");
    command.add_flag("--no-overlap", o.no_overlap,
                     "wait for a step's tokens before the next is planned (cards only; for comparisons)");
    command
        .add_option("--gpu-memory-utilization", o.gpu_memory_utilization,
                    "share of a card's free memory to use")
        ->check(number_in(0.05, 1, "in [0.05, 1]"));
    command.add_option("--cpu-offload-gib", o.cpu_offload_gib, "weights kept in host memory (cards only)")
        ->check(number_in(0, largest_gib, "in [0, 1048576]"));
    command
        .add_option("--swap-space-gib", o.swap_space_gib,
                    "host memory for the KV blocks of preempted sequences; beyond it they are recomputed")
        ->check(number_in(0, largest_gib, "in [0, 1048576]"));
    command.add_option("--quantization", o.quantization, "auto, none, awq, gptq or compressed-tensors")
        ->check(CLI::IsMember({"auto", "none", "awq", "gptq", "compressed-tensors"}));
    command
        .add_option(
            "--dtype", o.dtype,
            "auto, float16, bfloat16 or float32 (FP32 activations and KV, exactly dequantized weights)")
        ->check(CLI::IsMember({"auto", "float16", "bfloat16", "float32"}));
    command
        .add_option("--activations", o.activations, "auto, 16 or 8: how activations meet quantized weights")
        ->check(CLI::IsMember({"auto", "16", "8"}));
    command.add_option("--kv-cache-dtype", o.kv_cache_dtype, "auto, float32, float16, bfloat16 or fp8")
        ->check(CLI::IsMember({"auto", "float32", "float16", "bfloat16", "fp8"}));
    command.add_flag("--batch-invariant", o.batch_invariant,
                     "a row's bits do not depend on its batch (always so on the CPU, not offered by a card)");
    command.add_flag("--json", o.json, "machine-readable results");
}

std::filesystem::path model_path(const CommonOptions& o) {
    if (!o.model.empty()) return resolve_model(o.model);
    const std::filesystem::path starter = starter_model_path();
    if (!std::filesystem::exists(starter))
        throw Error(ErrorKind::input, starter.string() +
                                          ": expected the starter model, found no such file; app/run fetches "
                                          "it, or name another with --model");
    return starter;
}

std::shared_ptr<Backend> make_backend(const CommonOptions& o) {
    const DeviceChoice device = parse_device(o.device, "--device");
    if (device.kind == DeviceChoice::card) {
        std::string why;
        auto backend = make_cuda_backend({device.ordinal, o.max_arch}, why);
        if (!backend) throw Error(ErrorKind::runtime, "--device " + o.device + ": " + why);
        expect_batch_invariance(o, *backend);
        return backend;
    }
    CpuOptions cpu;
    cpu.threads = o.threads;
    std::string notice;
    auto backend =
        device.kind == DeviceChoice::cpu ? make_cpu_backend(cpu) : make_automatic_backend(cpu, notice);
    if (!notice.empty()) std::cerr << "recto-cli: " << notice << '\n';
    if (o.cpu_offload_gib > 0 && backend->device().kind == "cpu")
        throw Error(ErrorKind::argument,
                    "--cpu-offload-gib moves weights of a card to host memory; this run uses the CPU, where "
                    "they are already");
    if (o.kv_cache_dtype == "fp8" && backend->device().kind == "cpu")
        throw Error(ErrorKind::argument,
                    "--kv-cache-dtype fp8 needs a card; this run uses the CPU, choose float16");
    expect_batch_invariance(o, *backend);
    return backend;
}

LoadOptions load_options(const CommonOptions& o) {
    LoadOptions load;
    load.context = o.max_model_len;
    load.gpu_memory_utilization = o.gpu_memory_utilization;
    load.cpu_offload_bytes = std::uint64_t(o.cpu_offload_gib * double(1ULL << 30));
    if (o.dtype == "float32") load.dtype = ModelDType::f32;
    if (o.dtype == "float16") load.dtype = ModelDType::f16;
    if (o.dtype == "bfloat16") load.dtype = ModelDType::bf16;
    if (o.activations == "8") load.activations = ActivationMode::eight;
    if (o.activations == "16") load.activations = ActivationMode::floating;
    if (load.dtype == ModelDType::f32 && load.activations == ActivationMode::eight) {
        const bool of_a = o.dtype_option != CommonOptions().dtype_option &&
                          o.activations_option == CommonOptions().activations_option;
        throw Error(ErrorKind::argument,
                    o.dtype_option + " float32 means FP32 activations, got " + o.activations_option + " 8 " +
                        (of_a ? "of model A, which holds for B too; add --against-activations 16"
                              : "beside it; leave one of them out"));
    }
    return load;
}

EngineOptions engine_options(const CommonOptions& o) {
    EngineOptions e;
    if (o.block_size % 8 != 0)
        throw Error(ErrorKind::argument,
                    "--block-size must be a multiple of 8, got " + std::to_string(o.block_size));
    e.max_model_len = o.max_model_len;
    e.block_size = o.block_size;
    e.kv_blocks = o.kv_blocks;
    e.gpu_memory_utilization = o.gpu_memory_utilization;
    e.kv_cache_bytes = std::uint64_t(o.kv_cache_gib * double(1ULL << 30));
    e.max_num_seqs = o.max_num_seqs;
    e.max_num_batched_tokens = o.max_num_batched_tokens;
    e.prefix_caching = !o.no_prefix_caching;
    e.overlap = !o.no_overlap;
    e.swap_space_bytes = std::uint64_t(o.swap_space_gib * double(1ULL << 30));
    e.max_waiting = o.max_waiting;
    if (o.kv_cache_dtype == "float32") e.kv_dtype = DType::f32;
    if (o.kv_cache_dtype == "float16") e.kv_dtype = DType::f16;
    if (o.kv_cache_dtype == "bfloat16") e.kv_dtype = DType::bf16;
    if (o.kv_cache_dtype == "fp8") e.kv_dtype = DType::f8_e4m3;
    return e;
}

void check_quantization(const CommonOptions& o, const ModelSource& source) {
    if (o.quantization == "auto" || o.quantization == source.quantization_method()) return;
    throw Error(ErrorKind::input,
                source.path().string() + ": expected " + o.quantization +
                    (o.quantization == "none" ? " (weights that are not quantized)" : " weights") +
                    " as --quantization says, found " + source.quantization());
}

void print_warnings(const std::vector<std::string>& warnings) {
    for (const std::string& warning : warnings)
        std::cerr << "recto-cli: warning: " << warning << '\n';
}

std::shared_ptr<const Model> load(const CommonOptions& o, std::shared_ptr<Backend> backend) {
    const std::filesystem::path path = model_path(o);
    if (o.quantization != "auto") check_quantization(o, *open_model(path));
    const bool show = isatty(STDERR_FILENO) != 0;
    auto cancel = std::make_shared<std::atomic<bool>>(false);
    const auto progress = [&](const LoadProgress& p) {
        if (interrupted()) cancel->store(true);
        if (show) std::fprintf(stderr, "\rloading: %s %3.0f %%\033[K", p.stage.c_str(), p.fraction * 100);
    };
    auto model = load_model(path, std::move(backend), load_options(o), progress, cancel);
    if (show) std::fputs("\r\033[K", stderr);
    print_warnings(model->warnings);
    return model;
}

std::string read_file(const std::string& path) {
    if (path == "-") {
        std::string text{std::istreambuf_iterator<char>(std::cin), {}};
        if (interrupted()) throw Error(ErrorKind::cancelled, "interrupted");  // a signal ends the reading
        return text;
    }
    std::error_code error;
    const auto kind = std::filesystem::status(path, error).type();
    if (kind == std::filesystem::file_type::directory)
        throw Error(ErrorKind::input, path + ": expected a readable file, found a folder");
    // A device may have no end. Pipes are what a shell's <(command) gives.
    if (kind == std::filesystem::file_type::character || kind == std::filesystem::file_type::block)
        throw Error(ErrorKind::input,
                    path + ": expected a readable file, found a device; \"-\" reads standard input");
    std::ifstream in(path, std::ios::binary);
    if (!in) throw Error(ErrorKind::input, path + ": expected a readable file, found none");
    std::string text{std::istreambuf_iterator<char>(in), {}};
    if (in.bad()) throw Error(ErrorKind::input, path + ": expected a readable file, reading it failed");
    return text;
}

Json parse_value(const std::string& text) {
    try {
        return parse_json(text, "");
    } catch (const Error&) {
        return Json(Json::value_t::discarded);
    }
}

std::vector<std::int32_t> token_ids(const Json& list, const std::string& where, ErrorKind kind) {
    if (!list.is_array()) throw Error(kind, where + ": expected a list of token ids, found something else");
    std::vector<std::int32_t> ids;
    ids.reserve(list.size());
    for (const Json& id : list) {
        // Checked by value: the JSON library would cut 4294967297 and 1.5 down to 1.
        if (!id.is_number_integer() || id < std::numeric_limits<std::int32_t>::min() ||
            id > std::numeric_limits<std::int32_t>::max())
            throw Error(kind, where + ": expected token ids, which are whole numbers of 32 bits, found " +
                                  json_text(id));
        ids.push_back(id.get<std::int32_t>());
    }
    return ids;
}

std::string exact_double(double value) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    return {text, end};
}

}  // namespace recto::cli
