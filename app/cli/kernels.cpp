// kernels: which kernel serves which shape, how fast each is, and whether each computes what the reference
// does.
#include <iostream>

#include "app/cli/common.h"
#include "kernels/bench.h"

namespace recto::cli {
namespace {

struct KernelsCommand {
    CommonOptions common;
    bool list = false, check = false, bench = false;
    std::string filter;  // of --bench and --check; empty: every case
};

int run(const KernelsCommand& o) {
    if (int(o.list) + int(o.check) + int(o.bench) != 1)
        throw Error(ErrorKind::argument, "kernels needs --list, --check or --bench [NAME], one of the three");
    if (o.list) {
        CpuOptions cpu;
        cpu.threads = o.common.threads;
        list_variants(cpu, std::cout);
        return exit_done;
    }
    const auto backend = make_backend(o.common);
    if (o.bench) {
        run_bench(*backend, o.filter, std::cout);
        return exit_done;
    }
    const int failures = run_check(*backend, std::cout, o.filter);
    if (failures == 0) return exit_done;
    throw Error(ErrorKind::runtime, "kernels --check: expected every case within its tolerance, found " +
                                        std::to_string(failures) + " outside it (listed above)");
}

}  // namespace

void add_kernels(CLI::App& app, int& code) {
    auto options = std::make_shared<KernelsCommand>();
    CLI::App* command =
        app.add_subcommand("kernels", "The compute kernels: which is chosen, how fast, and whether right");
    command->add_flag("--list", options->list, "each operation's variants and which serves a shape");
    auto* check = command->add_option("--check", options->filter,
                                      "every case against the scalar reference; with a name, the cases that contain it");
    check->expected(0, 1);
    auto* bench = command->add_option("--bench", options->filter,
                                      "time, GB/s or TFLOP/s and share of the measured ceiling; with a name, "
                                      "the cases that contain it");
    bench->expected(0, 1);
    add_common_options(*command, options->common);
    command->remove_option(command->get_option("--json"));  // there are tables only
    command->callback([options, bench, check, &code] {
        options->check = check->count() > 0;
        options->bench = bench->count() > 0;
        code = run(*options);
    });
}

}  // namespace recto::cli
