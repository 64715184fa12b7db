// The factory that opens model files and chooses a backend.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>

#include "engine/choose_device.h"
#include "engine/model/model.h"
#include "ui/host/bench_host.h"
#include "ui/host/engine_host.h"
#include "ui/host/template_choice.h"

namespace recto::ui {

namespace {

// `notice`: why a card that is there is not used, where the choice was left to us.
std::shared_ptr<Backend> make_backend(const ModelRequest& request, std::string& notice) {
    const DeviceChoice device = parse_device(request.device, "device");
    if (device.kind == DeviceChoice::card) {
        std::string why;
        std::shared_ptr<Backend> backend = make_cuda_backend({device.ordinal, {}}, why);
        // Never a silent fall to the CPU: the person asked for the card.
        if (!backend)
            throw Error(ErrorKind::runtime, "The device " + request.device + " cannot be used: " + why);
        return backend;
    }
    CpuOptions cpu;
    cpu.threads = request.threads;
    cpu.share_with_window = true;
    if (device.kind == DeviceChoice::automatic) return make_automatic_backend(cpu, notice);
    return make_cpu_backend(cpu);
}

// Why a card that is there is not the one in use goes to the terminal.
std::shared_ptr<Backend> announced_backend(const ModelRequest& request) {
    std::string notice;
    std::shared_ptr<Backend> backend = make_backend(request, notice);
    if (!notice.empty()) std::fprintf(stderr, "recto: %s\n", notice.c_str());
    return backend;
}

// FNV-1a over the file's size, its first and its last mebibyte. (Fowler, Noll, Vo; 64-bit offset basis and
// prime.)
std::string fingerprint(const std::filesystem::path& path) {
    std::filesystem::path file = path;
    if (std::filesystem::is_directory(path)) {
        file.clear();
        for (const auto& entry : std::filesystem::directory_iterator(path))
            if (entry.path().extension() == ".safetensors" && (file.empty() || entry.path() < file))
                file = entry.path();
        if (file.empty()) return {};
    }
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    const auto add = [&hash](const char* bytes, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            hash = (hash ^ std::uint8_t(bytes[i])) * 0x100000001b3ULL;
    };
    const std::uint64_t size = std::filesystem::file_size(file);
    add(reinterpret_cast<const char*>(&size), sizeof size);
    constexpr std::uint64_t part = 1 << 20;
    std::vector<char> buffer(part);
    std::ifstream in(file, std::ios::binary);
    for (const std::uint64_t offset : {std::uint64_t(0), size > part ? size - part : 0}) {
        in.seekg(std::streamoff(offset));
        in.read(buffer.data(), std::streamsize(std::min(part, size)));
        add(buffer.data(), std::size_t(in.gcount()));
        in.clear();
    }
    std::array<char, 17> hex{};
    std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(hash));
    return hex.data();
}

std::string display_name(const ModelConfig& config, const std::filesystem::path& path) {
    if (!config.name.empty()) return config.name;
    const std::string stem =
        std::filesystem::is_directory(path) ? path.filename().string() : path.stem().string();
    return stem.empty() ? path.string() : stem;
}

EstimateReport estimate(const ModelRequest& request) {
    EstimateReport report;
    const std::unique_ptr<ModelSource> source = open_model(resolve_model(request.path.string()));
    report.name = display_name(source->config(), source->path());
    report.architecture = source->config().architecture;
    report.format = source->format();
    report.quantization = source->quantization();
    report.file_bytes = source->file_bytes();
    report.trained_context = source->config().max_position;
    std::string notice;
    report.memory = estimate_memory(*source, make_backend(request, notice)->device(), request.load);
    return report;
}

LoadedEngine load(const ModelRequest& request, const std::function<void(const LoadProgress&)>& progress,
                  const CancelFlag& cancel) {
    const std::filesystem::path path = resolve_model(request.path.string());
    LoadedEngine loaded;
    loaded.info.estimate = estimate(request).memory;
    const std::shared_ptr<Backend> backend = announced_backend(request);
    LoadOptions options = request.load;
    options.context = request.engine.max_model_len;
    loaded.model = load_model(path, backend, options, progress, cancel);
    const Model& model = *loaded.model;
    loaded.engine = std::make_unique<Engine>(loaded.model, request.engine);
    if (model.tokenizer) loaded.tokenizer = {loaded.model, model.tokenizer.get()};
    if (model.chat_template) loaded.chat_template = {loaded.model, model.chat_template.get()};
    loaded.find_template = known_template_finder();

    LoadedModelInfo& info = loaded.info;
    info.path = path;
    info.name = display_name(model.config, path);
    info.family = model.config.family;
    info.architecture = model.config.architecture;
    info.format = model.format;
    info.quantization = model.quantization;
    info.fingerprint = fingerprint(path);
    info.device = backend->device();
    info.activations = model.activations;
    if (!model.layers.empty() && model.layers.front().qkv)
        info.weight_kernels = model.layers.front().qkv->describe();
    if (model.tokenizer) {
        info.tokenizer = model.tokenizer->describe();
        info.family_template = template_for_vocabulary(*model.tokenizer);
    }
    info.known_templates = known_template_names(info.family_template);
    info.template_error = model.chat_template_error;
    if (model.chat_template) info.template_id = "model";
    info.generation_defaults = model.generation_defaults;
    info.weight_bytes = model.weight_bytes;
    info.workspace_bytes = loaded.engine->workspace_bytes();
    info.kv_bytes = loaded.engine->kv_bytes();
    info.kv_blocks = loaded.engine->kv_blocks();
    info.block_size = loaded.engine->block_size();
    info.block_bytes = info.kv_blocks > 0 ? info.kv_bytes / std::uint64_t(info.kv_blocks) : 0;
    info.max_model_len = loaded.engine->max_model_len();
    info.trained_context = model.config.max_position;
    info.vocab = model.config.vocab;
    info.load_stages = model.load_stages;
    info.load_seconds = model.load_seconds;
    return loaded;
}

}  // namespace

BenchRunner real_bench_runner() {
    return [](const BenchRequest& request, const std::function<void(const CompareProgress&)>& progress,
              const std::function<bool()>& cancelled) {
        CompareOptions options = request.options;
        options.a.model = resolve_model(options.a.model.string());
        if (options.b) options.b->model = resolve_model(options.b->model.string());
        ModelRequest device;
        device.device = request.device;
        device.threads = request.threads;
        options.make_backend = [device] { return announced_backend(device); };
        options.cuda_ordinal = parse_device(request.device, "device").ordinal;
        options.command_line = repeat_command(options, request.device, request.threads);
        return run_compare(options, progress, cancelled);
    };
}

EngineFactory real_engine_factory() {
    return {estimate, load};
}

}  // namespace recto::ui
