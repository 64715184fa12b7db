#include "app/cli/check_model.h"

#include <iostream>

namespace recto::cli {
namespace {

// Calls `visit` with every weight of the model and its name.
template <class Visit>
void for_each_weight(const ModelSource& source, const Visit& visit) {
    const ModelConfig& c = source.config();
    const auto one = [&](TensorRole role, int layer = 0, int expert = 0) {
        if (const auto rows = source.weight(role, layer, expert))
            visit(*rows, source.tensor_name(role, layer, expert));
    };
    one(TensorRole::embedding);
    one(TensorRole::lm_head);
    for (int layer = 0; layer < c.layers; ++layer) {
        for (const auto role :
             {TensorRole::attn_q, TensorRole::attn_k, TensorRole::attn_v, TensorRole::attn_o})
            one(role, layer);
        if (!c.is_mixture(layer)) {
            for (const auto role : {TensorRole::ffn_gate, TensorRole::ffn_up, TensorRole::ffn_down})
                one(role, layer);
            continue;
        }
        one(TensorRole::ffn_router, layer);
        for (int e = 0; e < c.experts.count; ++e)
            for (const auto role : {TensorRole::expert_gate, TensorRole::expert_up, TensorRole::expert_down})
                one(role, layer, e);
    }
}

enum class RoundKind { whole, cancelled, failed };
constexpr const char* round_name[] = {"loaded and run", "cancelled", "failed"};

// A token through the engine, so that whatever only a step allocates is counted too.
void run_one_token(std::shared_ptr<const Model> model, const EngineOptions& options) {
    Engine engine(std::move(model), options);
    Request request;
    request.prompt = {1, 2, 3};
    request.sampling.max_tokens = 2;
    request.sampling.ignore_eos = true;
    engine.submit(std::move(request));
    while (engine.has_work())
        for (const RequestEvent& event : engine.step())
            if (!event.error.empty()) throw Error(ErrorKind::runtime, event.error);
}

void run_round(RoundKind kind, const std::filesystem::path& path, const CommonOptions& options) {
    auto cancel = std::make_shared<std::atomic<bool>>(false);
    const auto progress = [&](const LoadProgress& p) {
        if (interrupted()) throw Error(ErrorKind::cancelled, "interrupted");
        if (p.fraction < 0.5) return;
        if (kind == RoundKind::cancelled) cancel->store(true);
        if (kind == RoundKind::failed) throw Error(ErrorKind::runtime, "a failure half way, for the check");
    };
    try {
        auto model = load_model(path, make_backend(options), load_options(options), progress, cancel);
        if (kind == RoundKind::whole) run_one_token(std::move(model), engine_options(options));
    } catch (const Error&) {
        if (kind == RoundKind::whole || interrupted()) throw;
    }
}

}  // namespace

int check_weights(const CommonOptions& options) {
    const auto source = open_model(model_path(options));
    const auto backend = make_backend(options);
    int checked = 0, unpacked = 0, wrong = 0;
    for_each_weight(*source, [&](const WeightRows& rows, const std::string& name) {
        ++checked;
        unpacked += rows.raw().has_value();
        const std::string difference = backend->compare_weight(rows);
        if (difference.empty()) return;
        ++wrong;
        std::cout << name << " (" << rows.form().source_name << "): " << difference << "\n";
    });
    std::cout << checked << " weights, " << unpacked << " of them from raw bytes, " << wrong << " wrong\n";
    if (wrong == 0) return exit_done;
    throw Error(ErrorKind::runtime,
                "kernels --check-weights: expected every weight as its reader gives it, found " +
                    std::to_string(wrong) + " that differ (listed above)");
}

int check_memory(const CommonOptions& options, int rounds) {
    constexpr int kinds = 3;
    constexpr std::size_t tolerance = std::size_t(4) << 20;  // the driver frees in pieces of 2 MiB
    const std::filesystem::path path = model_path(options);
    const auto counter = make_backend(options);  // its own memory stays; each round has a backend of its own
    if (counter->device().kind == "cpu")
        throw Error(ErrorKind::argument,
                    "kernels --check-memory asks a card's driver for its free memory; this run uses the CPU, "
                    "whose free memory other programs move");
    std::size_t at_first = 0;
    for (int round = 0; round < rounds; ++round) {
        const int kind = round % kinds;
        run_round(RoundKind(kind), path, options);
        const std::size_t free = counter->device().memory_free;
        std::cout << "round " << round + 1 << ", " << round_name[kind] << ": " << free << " bytes free\n"
                  << std::flush;
        // The first rounds load kernels and libraries, which stay as long as the process.
        if (round < kinds) at_first = free;
        if (free + tolerance < at_first)
            throw Error(ErrorKind::runtime, "kernels --check-memory: expected " + std::to_string(at_first) +
                                                " bytes free as after the first rounds, found " +
                                                std::to_string(free));
    }
    return exit_done;
}

}  // namespace recto::cli
