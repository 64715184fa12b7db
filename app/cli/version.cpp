// version: what this build is and what it runs on.
#include <iostream>

#include "app/cli/common.h"
#include "engine/build_info.h"

namespace recto::cli {
namespace {

int run(bool json) {
    const DeviceInfo cpu = make_cpu_backend({})->device();
    std::string why;
    const auto card = make_cuda_backend({}, why);
    Json cuda = nullptr;
    if (card) {
        const DeviceInfo info = card->device();
        cuda = {{"name", info.name},
                {"kernels", info.kernels},
                {"memory_total", info.memory_total},
                {"memory_free", info.memory_free}};
    }
    if (json) {
        std::cout << Json{{"version", version()},
                          {"commit", commit()},
                          {"build", build_description()},
                          {"cpu",
                           {{"name", cpu.name},
                            {"kernels", cpu.kernels},
                            {"threads", cpu.threads},
                            {"memory_total", cpu.memory_total}}},
                          {"cuda", cuda},
                          {"cuda_missing", card ? Json() : Json(why)}}
                         .dump(2)
                  << '\n';
        return exit_done;
    }
    std::cout << "recto " << version() << " (" << commit() << ")\nbuild: " << build_description()
              << "\nCPU: " << cpu.name << ", " << cpu.threads << " threads, " << cpu.kernels << "\nCUDA: ";
    if (card) {
        const DeviceInfo info = card->device();
        std::cout << info.name << ", " << info.kernels << ", " << (info.memory_free >> 20) << " of "
                  << (info.memory_total >> 20) << " MiB free\n";
    } else {
        std::cout << "none (" << why << ")\n";
    }
    return exit_done;
}

}  // namespace

void add_version(CLI::App& app, int& code) {
    auto json = std::make_shared<bool>(false);
    CLI::App* command = app.add_subcommand("version", "Version, build options, processor features, cards");
    command->add_flag("--json", *json, "machine-readable");
    command->callback([json, &code] { code = run(*json); });
}

}  // namespace recto::cli
