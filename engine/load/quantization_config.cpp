#include "engine/load/quantization_config.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "engine/load/config_checks.h"
#include "engine/load/json_reader.h"
#include "engine/load/refuse.h"
#include "engine/text/regex.h"
#include "kernels/error.h"

namespace recto {

namespace {

using Json = nlohmann::ordered_json;

// What to do with a folder that is refused.
const char* const instead =
    "supported are AWQ (gemm, gemv, gemv_fast, llm-awq), GPTQ of 4 and 8 bits and compressed-tensors "
    "pack-quantized of 4 and 8 bits; choose such a copy of the model, one without quantization, or a GGUF "
    "file";

[[noreturn]] void unsupported(const std::string& label, const std::string& what) {
    refuse(label, what + " is not supported; " + instead);
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

bool one_of(const std::string& text, std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return text == name; });
}

void set_bits(QuantizationConfig& q, const std::optional<std::int64_t>& bits, bool eight, const char* what) {
    if (!bits) return;
    if (*bits != 4 && !(eight && *bits == 8))
        unsupported(q.label, std::string(what) + " of " + std::to_string(*bits) + " bits");
    q.bits = int(*bits);
}

void set_group_size(QuantizationConfig& q, const std::optional<std::int64_t>& size) {
    if (!size) return;
    if (*size != -1 && *size < 1)
        refuse(q.label, "\"group_size\" should be -1 (whole rows) or a positive number, found " +
                            std::to_string(*size));
    q.group_size = *size == -1 ? -1 : checked_int(*size, 1, max_width, "\"group_size\"", q.label);
}

std::optional<std::int64_t> either(const JsonObject& object, const char* key, const char* other) {
    const auto value = object.integer(key);
    return value ? value : object.integer(other);
}

void add_pattern(QuantizationConfig& q, std::vector<ModulePattern>& list, const std::string& text,
                 ModulePattern::Kind kind) {
    ModulePattern pattern{kind, text, nullptr};
    if (kind == ModulePattern::Kind::regex) {
        try {
            pattern.regex = std::make_shared<const Regex>(text, q.label);
        } catch (const Error&) {
            q.warnings.push_back(q.label + ": the pattern " + shown(text) +
                                 " is not understood, so what it says of modules is not checked");
            return;
        }
    }
    list.push_back(std::move(pattern));
}

void read_awq(const JsonObject& object, QuantizationConfig& q) {
    using quantized::Layout;
    set_bits(q, either(object, "bits", "w_bit"), false, "AWQ");
    set_group_size(q, either(object, "group_size", "q_group_size"));
    if (const auto zero_point = object.boolean("zero_point")) q.symmetric = !*zero_point;
    if (const auto skipped = object.texts("modules_to_not_convert"))
        for (const auto& name : *skipped)
            if (!name.empty()) add_pattern(q, q.ignored, name, ModulePattern::Kind::substring);
    const auto version = lower(object.text("version").value_or(object.text("format").value_or("")));
    if (one_of(version, {"gemm", "exllama", "ipex"})) {  // the latter two are kernels over the same files
        q.awq_layout = Layout::awq_gemm;
    } else if (version == "gemv") {
        q.awq_layout = Layout::awq_gemv;
    } else if (one_of(version, {"gemv_fast", "llm-awq"})) {
        q.awq_layout = Layout::awq_gemv_fast;
    } else if (!version.empty()) {
        unsupported(q.label, "the AWQ version " + shown(version));
    }
    if (lower(object.text("backend").value_or("")) == "llm-awq") q.awq_layout = Layout::awq_gemv_fast;
}

// "gptqmodel:1.0.8", or a list of such: does one of them, from 0.9 on, keep a zero point of 0 from its
// neighbours?
bool packs_soundly(const Json& quantizer) {
    if (quantizer.is_array()) return std::any_of(quantizer.begin(), quantizer.end(), packs_soundly);
    if (!quantizer.is_string()) return false;
    int major = 0, minor = 0;
    const auto text = lower(quantizer.get<std::string>());
    return std::sscanf(text.c_str(), "gptqmodel:%d.%d", &major, &minor) == 2 && (major > 0 || minor >= 9);
}

void read_dynamic(const JsonObject& dynamic, const Json& members, QuantizationConfig& q) {
    for (const auto& [key, value] : members.items()) {
        if (key.starts_with("-:")) {
            add_pattern(q, q.ignored, key.substr(2), ModulePattern::Kind::regex);
            continue;
        }
        const auto bits = dynamic.object(key.c_str());
        const auto changed = bits ? bits->integer("bits") : std::nullopt;
        if (changed && *changed != 4 && *changed != 8)
            unsupported(q.label, "the override " + shown(key) + " of \"dynamic\" with " +
                                     std::to_string(*changed) + " bits");
    }
}

void read_gptq(const JsonObject& object, QuantizationConfig& q) {
    set_bits(q, object.integer("bits"), true, "GPTQ");
    set_group_size(q, object.integer("group_size"));
    q.symmetric = object.boolean("sym");
    q.act_order = object.boolean("desc_act").value_or(false);
    q.quantized_head = object.boolean("lm_head").value_or(false);
    const auto format = lower(object.text("checkpoint_format").value_or(object.text("format").value_or("")));
    if (!format.empty() && !one_of(format, {"gptq", "gptq_v2"}))
        unsupported(q.label, "the GPTQ format " + shown(format));
    q.gptq_v2 = format == "gptq_v2";
    if (object.boolean("is_marlin_format").value_or(false))
        unsupported(q.label, "the GPTQ format \"marlin\"");
    if (const auto dtype = object.text("pack_dtype"); dtype && *dtype != "int32")
        unsupported(q.label, "GPTQ packed in " + shown(*dtype) + " words");
    if (const auto dynamic = object.object("dynamic")) read_dynamic(*dynamic, *object.find("dynamic"), q);
    const auto meta = object.object("meta");
    const Json* quantizer = meta ? meta->find("quantizer") : nullptr;
    q.sound_zero_points = quantizer != nullptr && packs_soundly(*quantizer);
}

std::vector<std::string> target_list(const Json& list, const std::string& label) {
    std::vector<std::string> targets;
    if (!list.is_array()) refuse(label, "the targets of \"config_groups\" should be a list of strings");
    for (const auto& target : list) {
        if (!target.is_string())
            refuse(label, "the targets of \"config_groups\" should be a list of strings");
        targets.push_back(target.get<std::string>());
    }
    return targets;
}

void add_names(QuantizationConfig& q, std::vector<ModulePattern>& list,
               const std::vector<std::string>& names) {
    for (const auto& name : names) {
        if (name.starts_with("re:"))
            add_pattern(q, list, name.substr(3), ModulePattern::Kind::regex);
        else if (name == "Linear")
            add_pattern(q, list, name, ModulePattern::Kind::layer_class);
        else
            add_pattern(q, list, name, ModulePattern::Kind::exact);
    }
}

// What the groups of one configuration have in common; they may differ, and the tensors say how.
struct GroupSettings {
    std::optional<std::int64_t> bits, group_size;
    std::optional<bool> symmetric;
    bool act_order = false;
};

GroupSettings preset(const std::string& name, const std::string& label) {
    if (name == "W4A16") return {4, 128, true};
    if (name == "W4A16_ASYM") return {4, 128, false};
    if (name == "W8A16") return {8, -1, true};
    unsupported(label, "the compressed-tensors preset " + shown(name));
}

// Whether inputs are put into groups in another order than theirs, so that a tensor must say which. "weight"
// and "static" only order the quantizer's work.
bool scatters_groups(const JsonObject& weights, const std::string& label) {
    const Json* order = weights.find("actorder");
    if (order == nullptr) return false;
    if (order->is_boolean()) return order->get<bool>();
    const auto said = lower(weights.text("actorder").value_or(""));
    if (one_of(said, {"group", "dynamic"})) return true;
    if (!one_of(said, {"weight", "static"}))
        unsupported(label, "the compressed-tensors actorder " + shown(said));
    return false;
}

GroupSettings read_group(const std::string& name, const JsonObject& group, QuantizationConfig& q) {
    for (const char* activations : {"input_activations", "output_activations"})
        if (group.has(activations))
            unsupported(q.label, "compressed-tensors with quantized activations (" + shown(activations) +
                                     " of the group " + shown(name) + ")");
    if (const auto format = group.text("format"); format && *format != "pack-quantized")
        unsupported(q.label,
                    "the compressed-tensors format " + shown(*format) + " of the group " + shown(name));
    const auto weights = group.object("weights");
    if (!weights)
        unsupported(q.label, "the compressed-tensors group " + shown(name) + " without \"weights\"");
    if (const auto type = weights->text("type").value_or("int"); type != "int")
        unsupported(q.label, "the compressed-tensors type " + shown(type));
    const auto strategy = weights->text("strategy");
    if (strategy && !one_of(*strategy, {"group", "channel"}))
        unsupported(q.label, "the compressed-tensors strategy " + shown(*strategy));
    if (const Json* targets = group.find("targets")) add_names(q, q.targets, target_list(*targets, q.label));
    GroupSettings settings{weights->integer("num_bits").value_or(8), weights->integer("group_size"),
                           weights->boolean("symmetric").value_or(true), scatters_groups(*weights, q.label)};
    if (strategy && *strategy == "channel") settings.group_size = -1;
    return settings;
}

void read_compressed(const JsonObject& object, QuantizationConfig& q) {
    const auto format = object.text("format");
    if (format && *format != "pack-quantized")
        unsupported(q.label, "the compressed-tensors format " + shown(*format));
    if (const auto sparsity = object.object("sparsity_config"))
        if (const auto sparse = sparsity->text("format"); sparse && *sparse != "dense")
            unsupported(q.label, "the sparse compressed-tensors format " + shown(*sparse));
    if (const auto transform = object.object("transform_config");
        transform && transform->has("config_groups"))
        if (!transform->find("config_groups")->empty())
            unsupported(q.label, "compressed-tensors with a \"transform_config\"");
    if (object.has("kv_cache_scheme"))
        q.warnings.push_back(
            q.label + ": \"kv_cache_scheme\" is not followed; the cache holds what --kv-cache-dtype says");
    if (const auto ignored = object.texts("ignore")) add_names(q, q.ignored, *ignored);
    const auto groups = object.object("config_groups");
    if (!groups) return;
    std::optional<GroupSettings> all;
    for (const auto& [name, value] : object.find("config_groups")->items()) {
        GroupSettings one;
        if (value.is_array()) {
            one = preset(name, q.label);
            add_names(q, q.targets, target_list(value, q.label));
        } else {
            one = read_group(name, JsonObject(value, q.label), q);
        }
        set_bits(q, one.bits, true, "compressed-tensors");
        set_group_size(q, one.group_size);
        if (!all) all = one;
        if (all->bits != one.bits) all->bits.reset();
        if (all->group_size != one.group_size) all->group_size.reset();
        if (all->symmetric != one.symmetric) all->symmetric.reset();
        all->act_order = all->act_order && one.act_order;
    }
    q.bits.reset();
    q.group_size.reset();
    if (!all) return;
    set_bits(q, all->bits, true, "compressed-tensors");
    set_group_size(q, all->group_size);
    q.symmetric = all->symmetric;
    q.act_order = all->act_order;
}

QuantizationConfig read_object(const JsonObject& object) {
    QuantizationConfig q;
    q.label = object.label();
    // Read whatever the method: where the tensors turn out to be GPTQ's, they count, and so does their
    // version.
    q.gptq_v2 = lower(object.text("checkpoint_format").value_or("")) == "gptq_v2";
    auto method = object.text("quant_method");
    if (!method) method = object.text("method");
    if (!method) {
        // Files from before "quant_method".
        if (object.has("w_bit") || object.has("zero_point")) method = "awq";
        if (object.has("desc_act") || object.has("damp_percent")) method = "gptq";
        if (object.has("config_groups")) method = "compressed-tensors";
    }
    if (!method) {
        set_bits(q, object.integer("bits"), true, "quantization");
        set_group_size(q, object.integer("group_size"));
        return q;
    }
    const std::string name = lower(*method);
    if (one_of(name, {"awq", "llm-awq"})) {
        q.method = QuantMethod::awq;
        read_awq(object, q);
        if (name == "llm-awq") q.awq_layout = quantized::Layout::awq_gemv_fast;
    } else if (name == "gptq") {
        q.method = QuantMethod::gptq;
        read_gptq(object, q);
    } else if (name == "compressed-tensors") {
        q.method = QuantMethod::compressed_tensors;
        read_compressed(object, q);
    } else {
        refuse(q.label, "weights quantized with " + shown(*method) + " are not supported; " + instead);
    }
    return q;
}

bool may_match(const ModulePattern& pattern, const std::string& module) {
    return pattern.kind == ModulePattern::Kind::substring && module.find(pattern.text) != std::string::npos;
}

bool matches(const ModulePattern& pattern, const std::string& module, const std::string& label) {
    switch (pattern.kind) {
        case ModulePattern::Kind::exact:
            return module == pattern.text;
        case ModulePattern::Kind::substring: {
            // AutoAWQ's "gate" also names "gate_proj", transformers' does not; only what both mean is
            // certain.
            const std::string dotted = "." + module + ".";
            return dotted.find("." + pattern.text + ".") != std::string::npos;
        }
        case ModulePattern::Kind::layer_class:
            return module.find("embed") == std::string::npos;  // the others are all linears
        case ModulePattern::Kind::regex:
            break;
    }
    Regex::Matcher matcher(*pattern.regex);
    try {
        return matcher.find(module, 0) && matcher.begin == 0;
    } catch (const Error&) {
        refuse(label, "the pattern " + shown(pattern.text) + " takes too long to match the names of modules");
    }
}

}  // namespace

const char* method_name(QuantMethod method) {
    switch (method) {
        case QuantMethod::none:
            return "none";
        case QuantMethod::awq:
            return "awq";
        case QuantMethod::gptq:
            return "gptq";
        case QuantMethod::compressed_tensors:
            return "compressed-tensors";
    }
    return "";
}

std::optional<bool> QuantizationConfig::expects_quantized(const std::string& module) const {
    if (!method) return std::nullopt;
    const auto listed = [&](const std::vector<ModulePattern>& list) {
        return std::any_of(list.begin(), list.end(),
                           [&](const ModulePattern& pattern) { return matches(pattern, module, label); });
    };
    if (listed(ignored)) return false;
    if (std::any_of(ignored.begin(), ignored.end(), [&](const auto& p) { return may_match(p, module); }))
        return std::nullopt;
    if (*method == QuantMethod::compressed_tensors)
        return targets.empty() ? std::nullopt : std::optional(listed(targets));
    if (module.ends_with("lm_head")) return *method == QuantMethod::gptq && quantized_head;
    if (module.find("layers.") != std::string::npos) return true;
    return std::nullopt;
}

QuantizationConfig read_quantization_config(std::string_view config_json, const std::string& label) {
    const auto json = parse_json(config_json, label);
    const JsonObject config(json, label);
    for (const char* key : {"quantization_config", "compression_config"})
        if (const auto object = config.object(key)) return read_object(*object);
    return {};
}

QuantizationConfig read_separate_quantization_config(std::string_view text, const std::string& label) {
    const auto json = parse_json(text, label);
    return read_object(JsonObject(json, label));
}

}  // namespace recto
