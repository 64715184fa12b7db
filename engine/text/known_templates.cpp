#include "engine/text/known_templates.h"

#include <algorithm>
#include <iterator>

namespace recto {
namespace {

constexpr std::string_view families[] = {"chatml", "llama3", "llama2", "mistral",
                                         "gemma",  "phi3",   "zephyr", "vicuna"};

// In the order of `families`. Spellings of bos_token and eos_token come from the model.
constexpr std::string_view sources[] = {
    // Qwen, OpenHermes, SmolLM2
    R"({%- for m in messages -%}
{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif -%})",

    R"({{- bos_token -}}
{%- for m in messages -%}
{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content | trim + '<|eot_id|>' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif -%})",

    // The system text stands inside the first [INST]; every turn begins with BOS.
    R"({%- set ns = namespace(system='') -%}
{%- for m in messages -%}
{%- if m.role == 'system' -%}
{%- set ns.system = '<<SYS>>\n' + m.content + '\n<</SYS>>\n\n' -%}
{%- elif m.role == 'user' -%}
{{ bos_token + '[INST] ' + ns.system + m.content + ' [/INST]' }}
{%- set ns.system = '' -%}
{%- else -%}
{{ ' ' + m.content + ' ' + eos_token }}
{%- endif -%}
{%- endfor -%})",

    // v3 spacing; the system text goes before the first user text
    R"({{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- for m in messages -%}
{%- if m.role == 'system' -%}
{%- set ns.system = m.content + '\n\n' -%}
{%- elif m.role == 'user' -%}
{{ '[INST] ' + ns.system + m.content + '[/INST]' }}
{%- set ns.system = '' -%}
{%- else -%}
{{ ' ' + m.content + eos_token }}
{%- endif -%}
{%- endfor -%})",

    R"({{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- for m in messages -%}
{%- if m.role == 'system' -%}
{%- set ns.system = m.content | trim + '\n\n' -%}
{%- else -%}
{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' }}
{{- (ns.system if m.role == 'user' else '') + m.content | trim + '<end_of_turn>\n' }}
{%- set ns.system = '' if m.role == 'user' else ns.system -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif -%})",

    R"({%- for m in messages -%}
{{ '<|' + m.role + '|>\n' + m.content + '<|end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif -%})",

    R"({%- for m in messages -%}
{{ '<|' + m.role + '|>\n' + m.content + eos_token + '\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif -%})",

    R"({{- bos_token -}}
{%- for m in messages -%}
{%- if m.role == 'system' -%}
{{ m.content + '\n\n' }}
{%- elif m.role == 'user' -%}
{{ 'USER: ' + m.content + '\n' }}
{%- else -%}
{{ 'ASSISTANT: ' + m.content + eos_token + '\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif -%})",
};
static_assert(std::size(families) == std::size(sources));

}  // namespace

std::span<const std::string_view> known_template_families() {
    return families;
}

std::optional<std::string> known_template(std::string_view family) {
    const auto place = std::find(std::begin(families), std::end(families), family);
    if (place == std::end(families)) return std::nullopt;
    return std::string(sources[place - std::begin(families)]);
}

}  // namespace recto
