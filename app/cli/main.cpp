// recto-cli: the engine without a window. Composition only; each command is a file of its own.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <new>

#include "app/cli/common.h"
#include "kernels/error.h"

namespace {

int exit_code(recto::ErrorKind kind) {
    switch (kind) {
        case recto::ErrorKind::argument:
            return recto::cli::exit_arguments;
        case recto::ErrorKind::input:
            return recto::cli::exit_input;
        case recto::ErrorKind::memory:
            return recto::cli::exit_memory;
        case recto::ErrorKind::cancelled:
            return recto::cli::exit_interrupted;
        case recto::ErrorKind::runtime:
            return recto::cli::exit_runtime;
    }
    return recto::cli::exit_runtime;
}

// A file opened later would get the number of a closed stream, and the results would go into it.
// Read-only: what is written to a stream that was closed fails, and is reported.
void hold_standard_streams() {
    for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(stream, F_GETFD) < 0) static_cast<void>(open("/dev/null", O_RDONLY));
}

int fail(const std::string& sentence, int code) {
    std::string line = sentence;
    for (char& c : line)
        if (c == '\n' || c == '\r') c = ' ';
    std::cout.flush();
    std::cerr << "recto-cli: " << line << '\n';
    return code;
}

// Results that did not arrive are a failure, whatever came before.
int finish(int code) {
    std::cout.flush();
    if (std::cout && std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
    return fail("standard output: expected to write all results, writing failed; is the disk full?",
                code == recto::cli::exit_done ? recto::cli::exit_runtime : code);
}

// CLI11 would say that a command is missing, not which word it did not know. Empty if the first word is fine.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
    if (argc < 2 || argv[1][0] == '-') return {};
    std::string names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (command->get_name() == argv[1]) return {};
        names += (names.empty() ? "" : ", ") + command->get_name();
    }
    return "expected a command (" + names + "), found " + argv[1];
}

}  // namespace

int main(int argc, char** argv) {
    using namespace recto::cli;
    hold_standard_streams();
    CLI::App app{"Recto: chat with language models on this machine, and measure them"};
    app.name("recto-cli");
    app.require_subcommand(1);
    app.set_help_all_flag("--help-all", "help of every command");
    int code = exit_done;
    add_generate(app, code);
    add_chat(app, code);
    add_tokenize(app, code);
    add_template(app, code);
    add_logits(app, code);
    add_perplexity(app, code);
    add_inspect(app, code);
    add_convert(app, code);
    add_make_model(app, code);
    add_bench(app, code);
    add_kernels(app, code);
    add_version(app, code);
    if (const std::string why = unknown_command(app, argc, argv); !why.empty())
        return fail(why, exit_arguments);
    try {
        app.parse(argc, argv);
        return finish(code);
    } catch (const CLI::Success& e) {  // --help
        return finish(app.exit(e));
    } catch (const CLI::ParseError& e) {
        // The options are in the help of the command that was named.
        const auto named = app.get_subcommands();
        const std::string command = named.empty() ? "" : named.front()->get_name() + " ";
        return fail(std::string(e.what()) + " (recto-cli " + command + "--help)", exit_arguments);
    } catch (const recto::Error& e) {
        return fail(e.what(), exit_code(e.kind()));
    } catch (const std::bad_alloc&) {
        return fail(
            "out of memory: the allocation that failed was on the host; choose a smaller --kv-blocks or "
            "--max-model-len",
            exit_memory);
    } catch (const std::exception& e) {
        return fail(e.what(), exit_runtime);
    }
}
