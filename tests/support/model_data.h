// Stored expectations of models: ids, logits, greedy tokens; and engine runs to hold against them.
#pragma once
// clang-format off: the engine comes before Qt, whose keyword macros would rewrite StepBatch::slots
#include "engine/engine.h"
#include "engine/model/sequence_logits.h"
// clang-format on
#include <QByteArray>
#include <QFile>
#include <QString>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace recto::test {

inline QByteArray read_bytes(const QString& path) {
    QFile f(path);
    if (!f.open(QIODevice::ReadOnly)) throw std::runtime_error("cannot read " + path.toStdString());
    return f.readAll();
}

inline nlohmann::json read_json(const QString& path) {
    return nlohmann::json::parse(read_bytes(path).toStdString());
}

inline std::vector<float> read_floats(const QString& path) {
    const QByteArray bytes = read_bytes(path);
    std::vector<float> values(std::size_t(bytes.size()) / sizeof(float));
    std::memcpy(values.data(), bytes.constData(), values.size() * sizeof(float));
    return values;
}

// The starter model is fetched by tests/run; without it the test fails, it never skips.
inline std::string starter_path() {
    const QByteArray path = qgetenv("RECTO_STARTER_MODEL");
    if (path.isEmpty())
        throw std::runtime_error("RECTO_STARTER_MODEL is not set: run the tests by tests/run");
    return path.toStdString();
}

inline double standard_deviation(const std::vector<float>& values) {
    double sum = 0;
    double squares = 0;
    for (const float v : values) {
        sum += v;
        squares += double(v) * v;
    }
    const double mean = sum / double(values.size());
    return std::sqrt(squares / double(values.size()) - mean * mean);
}

// All logits of a sequence, [tokens × vocab].
inline std::vector<float> all_logits(const std::shared_ptr<const Model>& model,
                                     const std::vector<std::int32_t>& ids,
                                     const SequenceLogitsOptions& options) {
    std::vector<float> logits;
    logits.reserve(ids.size() * std::size_t(model->config.vocab));
    sequence_logits(model, ids, options, [&](std::int64_t, std::span<const float> row) {
        logits.insert(logits.end(), row.begin(), row.end());
    });
    return logits;
}

// The engine promises on the CPU that a row's bits depend neither on the block size nor on the chunk that it is
// computed in. Empty, or the first pair that breaks it.
inline QString broken_invariance(const std::shared_ptr<const Model>& model,
                                 const std::vector<std::int32_t>& ids, std::initializer_list<int> chunks) {
    SequenceLogitsOptions options;
    options.kv_dtype = model->kv_dtype;
    const std::vector<float> reference = all_logits(model, ids, options);
    for (const int block_size : {8, 16, 32}) {
        for (const int chunk : chunks) {
            options.block_size = block_size;
            options.chunk_tokens = chunk;
            const std::vector<float> found = all_logits(model, ids, options);
            if (found.size() != reference.size() ||
                std::memcmp(found.data(), reference.data(), reference.size() * sizeof(float)) != 0)
                return QStringLiteral("block size %1, chunk %2").arg(block_size).arg(chunk);
        }
    }
    return {};
}

inline Request greedy_request(const std::vector<std::int32_t>& prompt, int tokens) {
    Request request;
    request.prompt = prompt;
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = tokens;
    return request;
}

struct Answer {
    std::vector<std::int32_t> tokens;
    std::string text;
    RequestMetrics metrics;
    FinishReason finish = FinishReason::none;
};

// Runs until everything submitted is answered. Answers of output 0, by request.
inline std::map<RequestId, Answer> run_to_end(Engine& engine) {
    std::map<RequestId, Answer> answers;
    while (engine.has_work()) {
        for (const RequestEvent& e : engine.step()) {
            if (e.output != 0) continue;
            Answer& a = answers[e.request];
            a.tokens.insert(a.tokens.end(), e.token_ids.begin(), e.token_ids.end());
            a.text += e.text;
            if (e.finish != FinishReason::none) a.finish = e.finish;
            if (e.request_finished) a.metrics = e.metrics;
        }
    }
    return answers;
}

inline std::shared_ptr<Backend> cpu_backend(int threads = 2) {
    CpuOptions options;
    options.threads = threads;
    return make_cpu_backend(options);
}

}  // namespace recto::test
