// inspect: what is in a model file, and whether it fits, from headers only.
#include <cmath>
#include <cstdio>
#include <iostream>

#include "app/cli/common.h"
#include "engine/json_text.h"
#include "kernels/error.h"

namespace recto::cli {
namespace {

struct InspectCommand {
    CommonOptions common;
    bool tensors = false;
};

std::string mib(std::uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f MiB", double(bytes) / double(1 << 20));
    return text;
}

Json describe(const ModelSource& source, const DeviceInfo& device, const LoadOptions& load,
              const EngineOptions& engine) {
    const ModelConfig& c = source.config();
    const MemoryEstimate m = estimate_memory(source, device, load, memory_use(engine));
    Json tokenizer;
    Json template_info;
    if (source.has_tokenizer()) {
        const TokenizerFiles files = source.tokenizer_files();
        tokenizer = make_tokenizer(files)->describe();
        if (!files.chat_template.empty())
            template_info = {{"source", files.chat_template_source}, {"bytes", files.chat_template.size()}};
    }
    return {{"path", source.path().string()},
            {"format", source.format()},
            {"architecture", c.architecture},
            {"family", c.family},
            {"name", c.name},
            {"quantization", source.quantization()},
            {"warnings", source.warnings()},
            {"parameters", source.parameters()},
            {"file_bytes", source.file_bytes()},
            {"layers", c.layers},
            {"hidden", c.hidden},
            {"intermediate", c.intermediate},
            {"experts", c.experts.count},
            {"experts_per_token", c.experts.per_token},
            {"expert_intermediate", c.experts.intermediate},
            {"heads", c.heads},
            {"kv_heads", c.kv_heads},
            {"head_dim", c.head_dim},
            {"vocab", c.vocab},
            {"max_position", c.max_position},
            {"rope", {{"type", c.rope.type}, {"theta", c.rope.theta}, {"dims", c.rope.rotary_dims}}},
            {"tied_embedding", c.tied_embedding},
            {"tokenizer", tokenizer},
            {"chat_template", template_info},
            {"activations", activations_name(settle_activations(device, load, source))},
            {"memory",
             {{"weight_bytes", m.weight_bytes},
              {"workspace_bytes", m.workspace_bytes},
              {"kv_bytes_per_token", m.kv_bytes_per_token},
              {"full_context_kv_bytes", m.full_context_kv_bytes},
              {"free_bytes", m.free_bytes},
              {"budget_bytes", m.budget_bytes},
              {"host_weight_bytes", m.host_weight_bytes},
              {"needed_offload_bytes", m.needed_offload_bytes},
              {"longest_context", m.longest_context},
              {"fits", m.fits}}}};
}

void print(const Json& d) {
    const auto text = [](const Json& v) {
        return v.is_null() ? std::string("none") : v.is_string() ? v.get<std::string>() : v.dump();
    };
    const Json& m = d["memory"];
    const std::string mixture = d["experts"].get<int>() == 0
                                    ? ""
                                    : ", " + d["experts"].dump() + " experts of " +
                                          d["expert_intermediate"].dump() + " of which a token takes " +
                                          d["experts_per_token"].dump();
    std::cout << "model         " << text(d["name"]) << " (" << text(d["family"]) << ", "
              << text(d["architecture"]) << ")\n"
              << "file          " << text(d["path"]) << "\n"
              << "format        " << text(d["format"]) << ", " << text(d["quantization"]) << ", "
              << mib(d["file_bytes"]) << "\n"
              << "parameters    " << text(d["parameters"]) << "\n"
              << "shape         " << d["layers"] << " layers, hidden " << d["hidden"] << ", MLP "
              << d["intermediate"] << mixture << ", " << d["heads"] << " heads / " << d["kv_heads"]
              << " KV heads of " << d["head_dim"] << ", vocabulary " << d["vocab"] << "\n"
              << "context       " << d["max_position"] << " tokens, RoPE " << text(d["rope"]["type"])
              << " theta " << d["rope"]["theta"] << "\n"
              << "tokenizer     " << text(d["tokenizer"]) << "\n"
              << "chat template "
              << (d["chat_template"].is_null() ? "none" : text(d["chat_template"]["source"])) << "\n"
              << "activations   " << text(d["activations"]) << "\n"
              << "memory needed weights " << mib(m["weight_bytes"]) << ", workspace "
              << mib(m["workspace_bytes"]) << ", KV " << double(m["kv_bytes_per_token"]) / 1024
              << " KiB a token (" << mib(m["full_context_kv_bytes"]) << " for a full context)\n"
              << "memory free   " << mib(m["free_bytes"])
              << (m["budget_bytes"] == m["free_bytes"]
                      ? ""
                      : ", of which " + mib(m["budget_bytes"]) + " may be used")
              << "; longest context that fits: " << m["longest_context"] << " tokens\n";
    if (m["host_weight_bytes"] > 0)
        std::cout << "offloaded     " << mib(m["host_weight_bytes"]) << " of weights to host memory\n";
    if (m["needed_offload_bytes"] > 0)
        std::cout << "does not fit  unless weights stay in host memory: --cpu-offload-gib "
                  << std::ceil(m["needed_offload_bytes"].get<double>() / double(1 << 30) * 100) / 100 << "\n";
    for (const Json& warning : d["warnings"])
        std::cout << "warning       " << text(warning) << "\n";
}

int run(const InspectCommand& o) {
    const auto source = open_model(model_path(o.common));
    check_quantization(o.common, *source);
    Json description =
        describe(*source, make_backend(o.common)->device(), load_options(o.common), engine_options(o.common));
    if (o.tensors) {
        Json list = Json::array();
        for (const TensorInfo& t : source->tensors())
            list.push_back({{"name", t.name}, {"type", t.type}, {"shape", t.shape}, {"bytes", t.bytes}});
        description["tensors"] = std::move(list);
    }
    if (o.common.json) {
        std::cout << json_text(description, 2) << '\n';
        return exit_done;
    }
    print(description);
    if (o.tensors)
        for (const Json& t : description["tensors"])
            std::cout << t["name"].get<std::string>() << "  " << t["type"].get<std::string>() << "  "
                      << t["shape"].dump() << "  " << t["bytes"] << "\n";
    return exit_done;
}

}  // namespace

void add_inspect(CLI::App& app, int& code) {
    auto options = std::make_shared<InspectCommand>();
    CLI::App* command =
        app.add_subcommand("inspect", "What is in a model, and whether it fits; reads headers only");
    command->add_flag("--tensors", options->tensors, "list every tensor");
    add_common_options(*command, options->common);
    command->callback([options, &code] { code = run(*options); });
}

}  // namespace recto::cli
