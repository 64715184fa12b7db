// kernels: which kernel serves which shape, how fast each is, and whether each computes what the reference
// does.
#include <iostream>

#include "app/cli/check_model.h"
#include "app/cli/common.h"
#include "kernels/bench.h"

namespace recto::cli {
namespace {

struct KernelsCommand {
    CommonOptions common;
    bool list = false, check = false, bench = false, check_weights = false, check_memory = false;
    int rounds = 20;     // of --check-memory
    std::string filter;  // of --bench and --check; empty: every case
};

int run(const KernelsCommand& o) {
    if (int(o.list) + int(o.check) + int(o.bench) + int(o.check_weights) + int(o.check_memory) != 1)
        throw Error(
            ErrorKind::argument,
            "kernels needs one of --list, --check, --bench [NAME], --check-weights and --check-memory");
    if (o.list) {
        CpuOptions cpu;
        cpu.threads = o.common.threads;
        const DeviceInfo device = make_backend(o.common)->device();
        if (device.kind == "cuda")
            list_card_variants(device, std::cout);
        else
            list_variants(cpu, std::cout);
        return exit_done;
    }
    if (o.check_weights) return check_weights(o.common);
    if (o.check_memory) return check_memory(o.common, o.rounds);
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
    auto* check = command->add_option(
        "--check", options->filter,
        "every case against the scalar reference; with a name, the cases that contain it");
    check->expected(0, 1);
    auto* bench = command->add_option("--bench", options->filter,
                                      "time, GB/s or TFLOP/s and share of the measured ceiling; with a name, "
                                      "the cases that contain it");
    bench->expected(0, 1);
    command->add_flag("--check-weights", options->check_weights,
                      "every weight of the model: what the device unpacks against what the reader says");
    command->add_flag(
        "--check-memory", options->check_memory,
        "load and unload the model, and give up loads on the way: the device's free memory must return");
    command->add_option("--rounds", options->rounds, "of --check-memory")->check(CLI::Range(2, 10000));
    command->add_option(
        "--max-arch", options->common.max_arch,
        "a card's kernels of this compute capability, e.g. sm_80, although it may know newer ones");
    add_common_options(*command, options->common);
    command->remove_option(command->get_option("--json"));  // there are tables only
    command->callback([options, bench, check, &code] {
        options->check = check->count() > 0;
        options->bench = bench->count() > 0;
        code = run(*options);
    });
}

}  // namespace recto::cli
