// Numbers as people read them.
#pragma once
#include <QString>
#include <cstdint>

#include "ui/host/host_types.h"

namespace recto::ui {

QString format_bytes(std::uint64_t bytes);      // "93.8 MiB"
QString format_seconds(double seconds);         // "38 ms", "0.92 s" from half a second on
QString format_count(std::int64_t n);           // "2,048"
QString format_rate(double tokens_per_second);  // "61", "2,140", "4.2"
// The instruction set or architecture, without the processor's own list: "AVX-512".
QString kernels_title(const DeviceInfo& device);
// As the file calls itself; the starter's own name is that of its training run.
QString model_title(const LoadedModelInfo& model);
// The card's name, and where its products are of less than 16 bits: "NVIDIA H200, FP8 activations in prefill".
QString card_title(const LoadedModelInfo& model);
// "running on the CPU with AVX-512 VNNI, INT8 activations", or the card's title.
QString device_line(const LoadedModelInfo& model);

}  // namespace recto::ui
