// make-model: random weights in the shape of a well-known model, in any format that Recto reads.
#include "engine/save/make_model.h"

#include <iostream>

#include "app/cli/common.h"
#include "engine/json_text.h"
#include "engine/save/model_shapes.h"

namespace recto::cli {
namespace {

struct MakeModelCommand {
    MakeModelOptions make;
    std::string out, version, dtype = "float16";
    bool json = false;
};

int run(MakeModelCommand o) {
    if (o.dtype != "float16") o.make.dtype = o.dtype == "float32" ? SaveType::f32 : SaveType::bf16;
    if (o.version == "gemv") o.make.awq_version = AwqVersion::gemv;
    if (o.version == "gemv_fast") o.make.awq_version = AwqVersion::gemv_fast;
    install_interrupt_handler();
    make_model(o.make, o.out, save_progress("making"));
    if (o.json)
        std::cout << json_text(Json{{"model", o.out},
                                    {"like", o.make.like},
                                    {"quantization", o.make.quantization},
                                    {"seed", o.make.seed}})
                  << '\n';
    return exit_done;
}

std::string shape_list() {
    std::string names;
    for (const auto& name : model_shape_names())
        names += (names.empty() ? "" : ", ") + name;
    return names;
}

}  // namespace

void add_make_model(CLI::App& app, int& code) {
    auto o = std::make_shared<MakeModelCommand>();
    CLI::App* command = app.add_subcommand(
        "make-model",
        "A model with random weights in the shape of a well-known one, for benchmarks and tests");
    command->add_option("--like", o->make.like, "the shape: " + shape_list())->required();
    command->add_option("--quantization", o->make.quantization,
                        "none (default), awq, gptq, compressed-tensors, or gguf:TYPE such as gguf:Q4_K");
    command->add_option(
        "--group-size", o->make.group_size,
        "inputs that share a scale in awq, gptq and compressed-tensors: 128 (default), 32, 64, …, -1 "
        "for whole rows");
    command->add_option("--version", o->version, "awq: gemm (default), gemv or gemv_fast")
        ->check(CLI::IsMember({"gemm", "gemv", "gemv_fast"}));
    command->add_flag("--act-order", o->make.act_order, "gptq: groups scattered over the inputs");
    command->add_option("--seed", o->make.seed, "the same seed gives the same bytes (0)");
    command->add_option("--layers", o->make.layers, "another number of layers than the shape's")
        ->check(CLI::Range(1, 4096));
    command
        ->add_option("--dtype", o->dtype,
                     "folders: float16 (default), bfloat16 or float32 for what is not quantized")
        ->check(CLI::IsMember({"float16", "bfloat16", "float32"}));
    command
        ->add_option("--out", o->out,
                     "a new or empty folder; with gguf:TYPE also a new file whose name ends in .gguf")
        ->required()
        ->check(named_place());
    command->add_flag("--json", o->json, "a machine-readable summary");
    command->footer(
        "The text such a model writes means nothing; its speed and its memory are those of the real shape.\n"
        "Example: recto-cli make-model --like llama-2-7b --quantization awq --out llama-2-7b-awq");
    command->callback([o, &code] { code = run(*o); });
}

}  // namespace recto::cli
