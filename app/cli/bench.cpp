// bench: the benchmark's table from the command line, of one model or of A against B.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>

#include "app/cli/common.h"
#include "app/cli/other_side.h"
#include "app/cli/result_file.h"
#include "engine/bench/compare.h"
#include "engine/bench/compare_report.h"
#include "engine/choose_device.h"
#include "engine/json_text.h"
#include "kernels/error.h"

namespace recto::cli {
namespace {

namespace fs = std::filesystem;

struct BenchCommand {
    CommonOptions common;
    OtherSide against;
    BenchOptions bench;
    std::string json_file, csv_file;
    bool markdown = false;
    bool in_turn = false;
};

// Opened before the benchmark, so that a long one does not end with nowhere to write to.
struct ReportFiles {
    std::optional<ResultFile> json, csv;

    explicit ReportFiles(const BenchCommand& o) {
        if (!o.json_file.empty()) json.emplace(o.json_file);
        if (!o.csv_file.empty()) csv.emplace(o.csv_file);
    }
    // Each file on its own: one that fails does not take the other with it. The first failure.
    std::optional<Error> write(const std::string& as_json, const std::string& as_csv) {
        std::optional<Error> failure;
        const auto fill = [&failure](std::optional<ResultFile>& file, const std::string& text) {
            if (!file) return;
            try {
                file->write(text);
                file->close();
            } catch (const Error& error) {
                if (!failure) failure = error;
            }
        };
        fill(json, as_json);
        fill(csv, as_csv);
        return failure;
    }
};

BenchSide side_of(const CommonOptions& common) {
    BenchSide side;
    side.model = model_path(common);
    side.load = load_options(common);
    side.engine = engine_options(common);
    if (common.quantization != "auto") check_quantization(common, *open_model(side.model));
    return side;
}

CompareOptions compare_options(const BenchCommand& o) {
    CompareOptions options;
    options.workload = o.bench;
    options.stay_loaded = !o.in_turn;
    options.a = side_of(o.common);
    if (o.against.any()) options.b = side_of(options_of_b(o.common, o.against));
    options.make_backend = [&o] { return make_backend(o.common); };
    options.cuda_ordinal = parse_device(o.common.device, "--device").ordinal;
    options.command_line = repeat_command(options, o.common.device, o.common.threads);
    return options;
}

// Where a file of that name will be: also behind links that lead to nothing yet.
fs::path place_of(fs::path path) {
    std::error_code error;
    for (int links = 0; links < 40 && fs::is_symlink(fs::symlink_status(path, error)); ++links)
        path = path.parent_path() / fs::read_symlink(path, error);
    return fs::weakly_canonical(path, error);
}

void refuse_one_file_for_both(const BenchCommand& o) {
    if (o.json_file.empty() || o.csv_file.empty()) return;
    std::error_code error;
    const fs::path place = place_of(o.json_file);
    if (place != place_of(o.csv_file) || fs::is_character_file(place, error)) return;
    throw Error(ErrorKind::argument, "--json and --csv: expected two files, found " + place.string() +
                                         " for both; choose another name for one of them");
}

int run(BenchCommand& o) {
    install_interrupt_handler();
    check_other_side(o.against);
    refuse_one_file_for_both(o);
    const CompareOptions options = compare_options(o);
    for (const std::string* file : {&o.json_file, &o.csv_file}) {
        if (file->empty()) continue;
        refuse_model_file(*file, options.a.model);
        if (options.b) refuse_model_file(*file, options.b->model);
    }
    ReportFiles files(o);
    const bool show = isatty(STDERR_FILENO) != 0;
    const auto progress = [show](const CompareProgress& p) {
        if (show && !p.what.empty())
            std::fprintf(stderr, "\r%3.0f %%  %s\033[K", p.fraction * 100, p.what.c_str());
    };
    std::string stopped;  // why the report is not whole
    const CompareReport report = [&] {
        try {
            return run_compare(options, progress, interrupted);
        } catch (const CompareStopped& stop) {
            stopped = stop.what();
            return *stop.so_far;
        }
    }();
    if (show) std::fputs("\r\033[K", stderr);
    const std::string json = json_text(report_json(report), 2) + "\n";
    if (const auto failure = files.write(json, report_csv(report))) {
        std::cout << json;  // the measuring took long, and its result may have no other place
        throw Error(failure->kind(), failure->what() + std::string("; the report went to standard output"));
    }
    const bool nothing_else = o.json_file.empty() && o.csv_file.empty();
    if (o.common.json)
        std::cout << json;
    else if (o.markdown)
        std::cout << report_markdown(report);
    else if (nothing_else)
        std::cout << report_table(report);
    if (!stopped.empty()) throw Error(ErrorKind::cancelled, stopped + "; the report says so too");
    return exit_done;
}

}  // namespace

void add_bench(CLI::App& app, int& code) {
    auto options = std::make_shared<BenchCommand>();
    CLI::App* command = app.add_subcommand("bench",
                                           "Measure a model, or A against B: first token, prefill, decode, "
                                           "total, by sequences and depth");
    // Here --json takes a file, as CLI.md has it; a bare --json prints to standard output.
    add_common_options(*command, options->common);
    command->remove_option(command->get_option("--json"));
    command
        ->add_option("--json", options->json_file,
                     "write the report as JSON; without a file, to standard output")
        ->expected(0, 1)
        ->default_str("-");
    add_other_side_options(*command, options->against, "model B; runs go A B B A A B…");
    add_other_side_kv_option(*command, options->against);
    command->add_option("--prompt-tokens", options->bench.prompt_tokens, "tokens a prompt (128)");
    command->add_option("--output-tokens", options->bench.output_tokens, "tokens an output (100)");
    command->add_option("--sequences", options->bench.sequences, "sequences at a time (1,8,64)")
        ->delimiter(',');
    command->add_option("--depth", options->bench.depths, "tokens of context before the prompt (0)")
        ->delimiter(',');
    command->add_option("--repeats", options->bench.repeats, "timed runs a side and row (6)");
    command->add_option("--seed", options->bench.seed, "of the random prompts");
    command->add_option("--loads", options->bench.loads, "timed loads a side, where both stay loaded (1)")
        ->check(CLI::Range(1, 100));
    command
        ->add_option("--pause", options->bench.pause_s,
                     "seconds between runs (a card: 2; the CPU: as long as a run, at most 2)")
        ->check(number_in(0, 600, "in [0, 600]"));
    command->add_flag("--in-turn", options->in_turn, "load A and B in turn also where both fit");
    command->add_option("--csv", options->csv_file, "write the table as CSV")->check(named_place());
    command->add_flag("--markdown", options->markdown, "print the table and the header as Markdown");
    command->callback([options, command, &code] {
        if (command->get_option("--json")->count() > 0 &&
            (options->json_file.empty() || options->json_file == "-")) {
            // No word behind it, or "-"; an empty name is a slip, such as that of an unset variable.
            const auto given = command->get_option("--json")->results();
            if (given.size() == 1 && given.front().empty())
                throw CLI::ValidationError("--json", "must name a place for the result, got an empty name");
            options->common.json = true;
            options->json_file.clear();
        }
        code = run(*options);
    });
}

}  // namespace recto::cli
