// convert: any model that Recto reads, as a Hugging Face folder with dense weights.
#include "engine/save/convert.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "app/cli/common.h"
#include "engine/json_text.h"

namespace recto::cli {
namespace {

struct ConvertCommand {
    CommonOptions common;
    std::string out, dtype = "float16";
};

SaveType save_type(const std::string& dtype) {
    return dtype == "float32" ? SaveType::f32 : dtype == "bfloat16" ? SaveType::bf16 : SaveType::f16;
}

int run(const ConvertCommand& o) {
    const auto source = open_model(model_path(o.common));
    install_interrupt_handler();
    print_warnings(source->warnings());  // what is not used is lost
    const ConvertReport report =
        convert_model(*source, o.out, save_type(o.dtype), save_progress("converting"));
    if (!report.tokenizer_left_out.empty())
        std::cerr << "recto-cli: " << o.out << ": written without a tokenizer: " << report.tokenizer_left_out
                  << '\n';
    if (o.common.json)
        std::cout << json_text(Json{{"folder", o.out},
                                    {"dtype", o.dtype},
                                    {"weight_bytes", report.weight_bytes},
                                    {"tokenizer", report.tokenizer_left_out.empty()}})
                  << '\n';
    return exit_done;
}

}  // namespace

SaveProgress save_progress(const char* what) {
    const bool show = isatty(STDERR_FILENO) != 0;
    return [what, show, last = -1](double fraction) mutable {
        if (interrupted())
            throw Error(ErrorKind::cancelled, std::string(what) + " was interrupted; nothing is left");
        const int percent = int(fraction * 100);
        if (!show || percent == last) return;
        last = percent;
        std::fprintf(stderr, "\r%s: %3d %%%s", what, percent, percent == 100 ? "\r\033[K" : "\033[K");
    };
}

void add_convert(CLI::App& app, int& code) {
    auto options = std::make_shared<ConvertCommand>();
    CLI::App* command = app.add_subcommand(
        "convert", "A model as a Hugging Face folder with dense weights (config, safetensors, tokenizer)");
    add_model_option(*command, options->common);
    command->add_option("--out", options->out, "the folder to write: new, or empty")
        ->required()
        ->check(named_place());
    command
        ->add_option(
            "--dtype", options->dtype,
            "float16 (default), bfloat16 or float32: quantized weights are dequantized exactly, then "
            "rounded once")
        ->check(CLI::IsMember({"float16", "bfloat16", "float32"}));
    command->add_flag("--json", options->common.json, "a machine-readable summary");
    command->footer(
        "GGUF and Hugging Face folders of every family that Recto runs, quantized or not. transformers and "
        "vLLM load the result.\n"
        "Example: recto-cli convert --model model.gguf --out model-hf --dtype bfloat16");
    command->callback([options, &code] { code = run(*options); });
}

}  // namespace recto::cli
