// SamplingParams as JSON, by vLLM's names. Only known keys count; a value of a wrong type is Error(argument)
// that names it.
#pragma once
#include <QJsonObject>

#include "engine/sample/sampling_params.h"

namespace recto::ui {

// A chat's answer: temperature 0.8, top_p 0.95, max_tokens: the rest of the context.
SamplingParams chat_sampling_defaults();
// Later objects win. `layers`: model's defaults, settings, chat.
SamplingParams sampling_from_json(const QJsonObject& json, SamplingParams base = chat_sampling_defaults());
QJsonObject sampling_to_json(const SamplingParams& params);  // what differs from chat_sampling_defaults()
// One sentence naming parameter, range and value; empty: all good.
QString sampling_problem(const QJsonObject& json);

}  // namespace recto::ui
