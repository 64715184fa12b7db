// logits: the model's raw logits at every position of a token sequence, for comparing with other
// implementations.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include "app/cli/common.h"
#include "app/cli/npy.h"
#include "app/cli/sequence_limit.h"
#include "engine/json_text.h"
#include "engine/model/sequence_logits.h"
#include "kernels/error.h"

namespace recto::cli {
namespace {

struct LogitsCommand {
    CommonOptions common;
    std::string ids, ids_file, out;
};

std::vector<std::int32_t> read_ids(const LogitsCommand& o) {
    if (o.ids.empty() == o.ids_file.empty())
        throw Error(ErrorKind::argument, "logits needs --ids 1,2,… or --ids-file F.json, one of the two");
    const bool from_file = o.ids.empty();
    const std::string where = from_file ? o.ids_file : "--ids";
    const ErrorKind kind = from_file ? ErrorKind::input : ErrorKind::argument;
    const std::string list = from_file ? read_file(o.ids_file) : "[" + o.ids + "]";
    std::vector<std::int32_t> ids = token_ids(parse_value(list), where, kind);
    if (ids.empty()) throw Error(kind, where + ": expected at least one token id, found none");
    return ids;
}

int run(const LogitsCommand& o) {
    install_interrupt_handler();
    const std::vector<std::int32_t> ids = read_ids(o);
    refuse_model_file(o.out, model_path(o.common));
    const EngineOptions engine = engine_options(o.common);
    const auto model = load(o.common, make_backend(o.common));
    if (const SequenceLimit limit = sequence_limit(o.common, *model);
        !limit.option.empty() && std::int64_t(ids.size()) > limit.tokens)
        throw Error(ErrorKind::argument, limit.option + " holds " + std::to_string(limit.tokens) +
                                             " tokens, but the ids are " + std::to_string(ids.size()) +
                                             "; give it more");
    std::optional<NpyWriter> out;  // made with the first row: refused ids leave no file behind
    SequenceLogitsOptions options;
    options.block_size = engine.block_size;
    options.chunk_tokens = engine.max_num_batched_tokens > 0 ? engine.max_num_batched_tokens : 64;
    options.kv_dtype = engine.kv_dtype;
    std::int64_t damaged = 0, first_damaged = 0;
    sequence_logits(model, ids, options, [&](std::int64_t position, std::span<const float> row) {
        if (interrupted()) throw Error(ErrorKind::cancelled, "interrupted");
        if (!out) out.emplace(o.out, std::int64_t(ids.size()), model->config.vocab);
        out->write(row);
        if (!std::all_of(row.begin(), row.end(), [](float value) { return std::isfinite(value); }) &&
            damaged++ == 0)
            first_damaged = position;
    });
    out->close();
    if (o.common.json)
        std::cout << json_text(Json{{"tokens", ids.size()}, {"vocab", model->config.vocab}, {"file", o.out}})
                  << '\n';
    if (damaged > 0)  // written all the same: where they begin tells what is damaged
        throw Error(ErrorKind::runtime, o.out + ": expected finite logits, found " + std::to_string(damaged) +
                                            " of " + std::to_string(ids.size()) +
                                            " rows with a NaN or an infinity, the first at position " +
                                            std::to_string(first_damaged) +
                                            "; the model's weights or their scales are damaged");
    return exit_done;
}

}  // namespace

void add_logits(CLI::App& app, int& code) {
    auto options = std::make_shared<LogitsCommand>();
    CLI::App* command = app.add_subcommand(
        "logits", "Raw logits at every position, as float32 [tokens, vocab] in a .npy file");
    command->add_option("--ids", options->ids, "token ids as 1,2,3");
    command->add_option("--ids-file", options->ids_file, "a JSON array of token ids");
    command->add_option("--out", options->out, "the .npy file")->required()->check(named_place());
    add_common_options(*command, options->common);
    command->callback([options, &code] { code = run(*options); });
}

}  // namespace recto::cli
