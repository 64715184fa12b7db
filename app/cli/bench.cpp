// bench: the benchmark's table from the command line.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>

#include "app/cli/common.h"
#include "engine/bench/bench.h"
#include "engine/bench/report.h"
#include "kernels/error.h"

namespace recto::cli {
namespace {

struct BenchCommand {
    CommonOptions common;
    BenchOptions bench;
    std::string json_file, csv_file;
    bool markdown = false;
};

void write_file(const std::string& path, const std::string& text) {
    std::ofstream out(path, std::ios::binary);
    out << text;
    out.close();
    if (!out)
        throw Error(ErrorKind::runtime,
                    path + ": expected a file that can be written, found none; check the folder");
}

std::string command_line(const BenchCommand& o) {
    const auto list = [](const std::vector<int>& values) {
        std::string text;
        for (const int v : values)
            text += (text.empty() ? "" : ",") + std::to_string(v);
        return text;
    };
    std::string line = "recto-cli bench";
    if (!o.common.model.empty())
        line += " --model " + std::filesystem::path(o.common.model).filename().string();
    line += " --prompt-tokens " + std::to_string(o.bench.prompt_tokens) + " --output-tokens " +
            std::to_string(o.bench.output_tokens) + " --sequences " + list(o.bench.sequences) + " --depth " +
            list(o.bench.depths) + " --repeats " + std::to_string(o.bench.repeats);
    if (o.common.threads > 0) line += " --threads " + std::to_string(o.common.threads);
    if (o.common.dtype != "auto") line += " --dtype " + o.common.dtype;
    if (o.common.activations != "auto") line += " --activations " + o.common.activations;
    return line;
}

int run(BenchCommand& o) {
    install_interrupt_handler();
    o.bench.engine = engine_options(o.common);
    const auto model = load(o.common, make_backend(o.common));
    const bool show = isatty(STDERR_FILENO) != 0;
    const auto progress = [show](const BenchProgress& p) {
        if (show) std::fprintf(stderr, "\r%3.0f %%  %s\033[K", p.fraction * 100, p.what.c_str());
    };
    const BenchReport report = run_bench(model, o.bench, progress, interrupted);
    if (show) std::fputs("\r\033[K", stderr);
    const std::string json = report_json(report, command_line(o)).dump(2) + "\n";
    if (!o.json_file.empty()) write_file(o.json_file, json);
    if (!o.csv_file.empty()) write_file(o.csv_file, report_csv(report));
    const bool nothing_else = o.json_file.empty() && o.csv_file.empty();
    if (o.common.json)
        std::cout << json;
    else if (o.markdown || nothing_else)
        std::cout << report_markdown(report);
    return exit_done;
}

}  // namespace

void add_bench(CLI::App& app, int& code) {
    auto options = std::make_shared<BenchCommand>();
    CLI::App* command = app.add_subcommand(
        "bench", "Measure a model: first token, prefill, decode, total, by sequences and depth");
    // Here --json takes a file, as CLI.md has it; a bare --json prints to standard output.
    add_common_options(*command, options->common);
    command->remove_option(command->get_option("--json"));
    command
        ->add_option("--json", options->json_file,
                     "write the report as JSON; without a file, to standard output")
        ->expected(0, 1)
        ->default_str("-");
    command->add_option("--prompt-tokens", options->bench.prompt_tokens, "tokens a prompt (128)");
    command->add_option("--output-tokens", options->bench.output_tokens, "tokens an output (100)");
    command->add_option("--sequences", options->bench.sequences, "sequences at a time (1,8,64)")
        ->delimiter(',');
    command->add_option("--depth", options->bench.depths, "tokens of context before the prompt (0)")
        ->delimiter(',');
    command->add_option("--repeats", options->bench.repeats, "measured runs a row (6)");
    command->add_option("--seed", options->bench.seed, "of the random prompts");
    command->add_option("--csv", options->csv_file, "write the table as CSV");
    command->add_flag("--markdown", options->markdown, "print the table as Markdown");
    command->callback([options, command, &code] {
        if (command->get_option("--json")->count() > 0 &&
            (options->json_file.empty() || options->json_file == "-")) {
            options->common.json = true;
            options->json_file.clear();
        }
        code = run(*options);
    });
}

}  // namespace recto::cli
