// What a folder's configuration says about its quantization: "quantization_config" of config.json (older
// compressed-tensors: "compression_config"), or a separate quant_config.json or quantize_config.json. It
// names the method, what tensors alone cannot tell (GPTQ's version 1 or 2), and which modules are meant to be
// quantized; the tensors decide, and where they contradict this, the person is told.
//
// Sources: AutoAWQ awq/models/_config.py; GPTQModel quantization/config.py; compressed-tensors
// quantization/quant_config.py and utils/match.py.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/load/quantized_layout.h"

namespace recto {

class Regex;

enum class QuantMethod : std::uint8_t { none, awq, gptq, compressed_tensors };
const char* method_name(QuantMethod method);  // as `--quantization` spells it

// One entry of a list that names modules.
struct ModulePattern {
    enum class Kind : std::uint8_t {
        exact,        // the module's whole name
        substring,    // AutoAWQ and vLLM: anywhere in the name
        regex,        // anchored at the name's start
        layer_class,  // "Linear": every linear that nothing else names
    };
    Kind kind = Kind::exact;
    std::string text;
    std::shared_ptr<const Regex> regex;  // Kind::regex only
};

struct QuantizationConfig {
    std::string label;                  // the file that says so; empty if none does
    std::optional<QuantMethod> method;  // not said: the tensors tell
    std::optional<int> bits;            // 4 or 8
    std::optional<int> group_size;      // -1: the whole row
    std::optional<quantized::Layout> awq_layout;
    bool gptq_v2 = false;
    std::optional<bool> symmetric;
    bool act_order = false;         // of every group of settings: a tensor says which input is in which group
    bool quantized_head = false;    // GPTQ lm_head
    bool sound_zero_points = true;  // the packer is known to keep a zero point of 0 apart from its neighbours
    std::vector<ModulePattern> targets;  // compressed-tensors
    std::vector<ModulePattern> ignored;
    std::vector<std::string> warnings;

    // Whether it says that this linear is quantized; nothing where it says neither. `module` is the name in
    // the files.
    std::optional<bool> expects_quantized(const std::string& module) const;
};

// Of config.json; a default object if it says nothing. Error(input) names methods, formats and settings that
// are not supported, and says what is.
QuantizationConfig read_quantization_config(std::string_view config_json, const std::string& label);
// Of quant_config.json or quantize_config.json, which hold nothing else.
QuantizationConfig read_separate_quantization_config(std::string_view json, const std::string& label);

}  // namespace recto
