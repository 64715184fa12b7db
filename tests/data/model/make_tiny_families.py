#!/usr/bin/env python3
"""Makes a tiny random model of each dense family and feature, with logits from transformers in float64.

  make_tiny_families.py OUT_DIR [NAME...]      (transformers 5.x, torch, gguf, safetensors)

OUT_DIR/NAME/
  config.json, model.safetensors    the model as transformers saves it, or as older files spell it (see `old`)
  twin.gguf                         the same weights under llama.cpp's conversion rules, where it has the architecture
  ids.json                          160 token ids
  logits.f32                        float32 [54, vocab]: positions 0, 3, 6, …, 159
  greedy.json                       64 greedy tokens after the first 16 ids
  logits_short.f32                  longrope: positions 0, 3, …, 63 of the first 64 ids alone, with the short factors

check_family_twins.py compares each twin's logits in llama.cpp with the stored ones.

transformers changes the frequencies of two rope types with the length of the text; Recto fixes them at load. The
reference is made with that fixed set: "dynamic" as a plain RoPE whose base is that of factor times the original length;
"longrope" with the long factors in the place of the short ones.
"""
import copy
import json
import os
import sys

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

TOKENS, STRIDE = 160, 3
SMALL = dict(hidden_size=64, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             vocab_size=128, max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0)
LONG = [1.0 + 0.25 * i for i in range(8)]
SHORT = [1.0 + 0.0625 * i for i in range(8)]


def rope(kind, **more):
    return dict(rope_type=kind, rope_theta=10000.0, **more)


YARN = rope("yarn", factor=4.0, original_max_position_embeddings=64)
LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
LONGROPE = rope("longrope", short_factor=SHORT, long_factor=LONG, original_max_position_embeddings=64)
PHI4 = rope("longrope", short_factor=SHORT[:6], long_factor=LONG[:6], original_max_position_embeddings=64,
            partial_rotary_factor=0.75)
GEMMA3_ROPE = dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1000000.0),
                   sliding_attention=dict(rope_type="default", rope_theta=10000.0))
GEMMA = dict(head_dim=16, query_pre_attn_scalar=16, sliding_window=24)

# name: (family, GGUF architecture or None, dtype on disk, settings)
MODELS = {
    "llama-yarn": ("Llama", "llama", "float16", dict(rope_parameters=YARN, tie_word_embeddings=True)),
    "llama-llama3": ("Llama", "llama", "bfloat16", dict(rope_parameters=LLAMA3)),
    "llama-dynamic": ("Llama", None, "float16", dict(rope_parameters=rope("dynamic", factor=4.0), max_position_embeddings=64)),
    "llama-head40-gqa5": ("Llama", "llama", "float32", dict(num_attention_heads=5, num_key_value_heads=1, head_dim=40,
                                                            hidden_size=40, num_hidden_layers=1, attention_bias=True)),
    "mistral-window-base": ("Mistral", None, "float16", dict(sliding_window=24, head_dim=24, tie_word_embeddings=True)),
    "qwen2-biases": ("Qwen2", "qwen2", "float16", dict(rope_parameters=YARN)),
    "qwen2-window": ("Qwen2", None, "float16", dict(use_sliding_window=True, sliding_window=24, max_window_layers=1,
                                                    tie_word_embeddings=True)),
    "qwen3": ("Qwen3", "qwen3", "float16", dict(head_dim=24, tie_word_embeddings=True)),
    "smollm3": ("SmolLM3", "smollm3", "float16", dict(num_hidden_layers=5, hidden_size=32, head_dim=8,
                                                      tie_word_embeddings=True)),
    "gemma2": ("Gemma2", "gemma2", "float16", dict(num_hidden_layers=3, attn_logit_softcapping=2.0,
                                                   final_logit_softcapping=3.0, **GEMMA)),
    "gemma3": ("Gemma3", "gemma3", "float16", dict(num_hidden_layers=7, num_attention_heads=2, num_key_value_heads=1,
                                                   rope_parameters=GEMMA3_ROPE, **GEMMA)),
    "gemma3-in-images": ("Gemma3", None, "bfloat16", dict(GEMMA, hidden_size=40, query_pre_attn_scalar=24, num_hidden_layers=3,
                                                          rope_parameters=GEMMA3_ROPE,
                                                          layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    "phi3-longrope": ("Phi3", "phi3", "float16", dict(rope_parameters=LONGROPE, original_max_position_embeddings=64)),
    "phi3-window": ("Phi3", None, "float16", dict(sliding_window=24, rope_parameters=rope("default"))),
    "phi4-partial": ("Phi3", "phi3", "float16", dict(rope_parameters=PHI4, original_max_position_embeddings=64,
                                                     tie_word_embeddings=True)),
    "olmo2": ("Olmo2", "olmo2", "float16", dict()),
    "granite": ("Granite", "granite", "float16", dict(embedding_multiplier=12.0, attention_multiplier=0.1875,
                                                      residual_multiplier=0.21875, logits_scaling=6.0,
                                                      tie_word_embeddings=True)),
}


def config_of(family, settings):
    return getattr(transformers, family + ("TextConfig" if family == "Gemma3" else "Config"))(**copy.deepcopy({**SMALL, **settings}))


def randomize(model, family):
    with torch.no_grad():
        for key, p in model.named_parameters():
            if p.ndim == 1:  # norms near one (Gemma: 1 + w), biases near zero: all of them visible in the output
                p.copy_(torch.randn_like(p) * 0.2 + (1.0 if "norm" in key and "Gemma" not in family else 0.0))
            else:
                p.copy_(torch.randn_like(p) * (1.5 / p.shape[-1] ** 0.5))


def reference_config(config):
    """What the logits are made with: `config`, with frequencies that do not depend on the text's length."""
    parameters = config.rope_parameters
    if parameters.get("rope_type") == "dynamic":
        f, d = parameters["factor"], config.head_dim
        config.rope_parameters = rope("default")
        config.rope_parameters["rope_theta"] = parameters["rope_theta"] * (f * f - f + 1) ** (d / (d - 2))
    elif parameters.get("rope_type") == "longrope":
        parameters["short_factor"] = parameters["long_factor"]
    return config


def old(name, folder, config):
    """Files as other or older programs spell them; the weights stay what they are."""
    path, weights = os.path.join(folder, "config.json"), os.path.join(folder, "model.safetensors")
    tensors, settings = load_file(weights), json.load(open(path))
    if name == "mistral-window-base":  # the base model saved alone: no "model." before the names
        tensors = {key.removeprefix("model."): t for key, t in tensors.items()}
    elif name == "gemma3-in-images":  # as gemma-3-4b-it: nested settings, old names for RoPE, a part of another model
        tensors = {"language_model." + key: t for key, t in tensors.items()}
        tensors["vision_tower.vision_model.post_layernorm.weight"] = torch.zeros(8, dtype=torch.bfloat16)
        text = {key: settings[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                               "num_key_value_heads", "vocab_size", "head_dim", "query_pre_attn_scalar",
                                               "sliding_window", "layer_types", "max_position_embeddings")}
        text.update(model_type="gemma3_text", rope_theta=1000000.0, rope_local_base_freq=10000.0,
                    rope_scaling=dict(rope_type="linear", factor=8.0))
        settings = dict(architectures=["Gemma3ForConditionalGeneration"], model_type="gemma3", text_config=text,
                        torch_dtype="bfloat16", eos_token_id=[2, 106])
    elif name == "phi4-partial":  # its first name for longrope, settings beside each other
        scaling = dict(type="yarn", short_factor=SHORT[:6], long_factor=LONG[:6])
        settings.pop("rope_parameters")
        settings.update(rope_theta=10000.0, partial_rotary_factor=0.75, rope_scaling=scaling)
    else:
        return
    save_file(tensors, weights, metadata={"format": "pt"})
    json.dump(settings, open(path, "w"), indent=2)


HF_TO_GGUF = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.qkv_proj": "attn_qkv", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "post_attention_layernorm": "ffn_norm",
}
WITH_POST_NORMS = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
                   "post_feedforward_layernorm": "post_ffw_norm"}
PAIRED = ("llama", "granite", "smollm3")  # q and k rows of these are stored for RoPE on neighbouring pairs


def paired_rows(heads, dim):
    return [h * dim + i + j * dim // 2 for h in range(heads) for i in range(dim // 2) for j in (0, 1)]


def gguf_name(key, arch):
    key = key.removeprefix("model.")
    tops = {"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}
    if key in tops:
        return tops[key]
    _, layer, rest = key.split(".", 2)
    module, kind = rest.rsplit(".", 1)
    names = {**HF_TO_GGUF, **(WITH_POST_NORMS if arch in ("gemma2", "gemma3", "olmo2") else {})}
    return f"blk.{layer}.{names[module]}.{kind}"


def write_twin(path, arch, config, tensors):
    """Keys and tensors after llama.cpp's conversion scripts; no vocabulary."""
    w = gguf.GGUFWriter(path, arch)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    own = config.rope_parameters.get("full_attention", config.rope_parameters)
    rotary = int(head_dim * own.get("partial_rotary_factor", 1.0))
    w.add_context_length(config.max_position_embeddings)
    w.add_embedding_length(config.hidden_size)
    w.add_block_count(config.num_hidden_layers)
    w.add_feed_forward_length(config.intermediate_size)
    w.add_head_count(config.num_attention_heads)
    w.add_head_count_kv(config.num_key_value_heads)
    w.add_layer_norm_rms_eps(config.rms_norm_eps)
    w.add_rope_freq_base(own["rope_theta"])
    w.add_rope_dimension_count(rotary)
    w.add_key_length(head_dim)
    w.add_value_length(head_dim)
    w.add_vocab_size(config.vocab_size)
    w.add_tokenizer_model("no_vocab")
    w.add_eos_token_id(config.eos_token_id)
    if arch in ("gemma2", "gemma3"):
        w.add_sliding_window(config.sliding_window)
    if arch == "gemma2":
        w.add_attn_logit_softcapping(config.attn_logit_softcapping)
        w.add_final_logit_softcapping(config.final_logit_softcapping)
    if arch == "granite":
        w.add_attention_scale(config.attention_multiplier)
        w.add_embedding_scale(config.embedding_multiplier)
        w.add_residual_scale(config.residual_multiplier)
        w.add_logit_scale(config.logits_scaling)
    kind = own["rope_type"]
    if kind in ("linear", "yarn"):
        w.add_rope_scaling_type(gguf.RopeScalingType(kind))
        w.add_rope_scaling_factor(own["factor"])
    if kind in ("yarn", "longrope"):
        w.add_rope_scaling_orig_ctx_len(own["original_max_position_embeddings"])
    if kind == "longrope":
        scale = config.max_position_embeddings / own["original_max_position_embeddings"]
        w.add_rope_scaling_attn_factors(float(np.sqrt(1 + np.log(scale) / np.log(own["original_max_position_embeddings"]))))
        w.add_tensor("rope_factors_long.weight", np.array(own["long_factor"], np.float32))
        w.add_tensor("rope_factors_short.weight", np.array(own["short_factor"], np.float32))
    if kind == "llama3":
        frequency = own["rope_theta"] ** -(np.arange(0, head_dim, 2) / head_dim)
        wavelength, original = 2 * np.pi / frequency, own["original_max_position_embeddings"]
        smooth = (original / wavelength - own["low_freq_factor"]) / (own["high_freq_factor"] - own["low_freq_factor"])
        divisor = np.where(wavelength < original / own["high_freq_factor"], 1.0,
                           np.where(wavelength > original / own["low_freq_factor"], own["factor"],
                                    1 / ((1 - smooth) / own["factor"] + smooth)))
        w.add_tensor("rope_freqs.weight", divisor.astype(np.float32))
    for key, t in tensors.items():
        values = t.to(torch.float32).numpy()
        if arch in PAIRED and ("q_proj" in key or "k_proj" in key):
            values = values[paired_rows(config.num_attention_heads if "q_proj" in key else config.num_key_value_heads, head_dim)]
        if arch.startswith("gemma") and key.endswith("norm.weight"):
            values = values + np.float32(1)
        if values.ndim == 2 and t.dtype == torch.float16:
            values = values.astype(np.float16)
        if values.ndim == 2 and t.dtype == torch.bfloat16:
            raw = gguf.quants.quantize(values, gguf.GGMLQuantizationType.BF16)
            w.add_tensor(gguf_name(key, arch), raw, raw_dtype=gguf.GGMLQuantizationType.BF16)
            continue
        w.add_tensor(gguf_name(key, arch), values)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def make(name, folder, seed):
    family, arch, dtype, settings = MODELS[name]
    cls = getattr(transformers, family + "ForCausalLM")
    torch.manual_seed(seed)
    model = cls(config_of(family, settings))
    randomize(model, family)
    model = model.to(getattr(torch, dtype))
    model.save_pretrained(folder)
    os.remove(os.path.join(folder, "generation_config.json"))
    exact = cls.from_pretrained(folder, config=reference_config(config_of(family, settings)), dtype=torch.float64)
    if "Gemma" in family:  # the original multiplies embeddings in the weights' type
        scale = exact.model.embed_tokens.embed_scale
        scale.copy_(scale.to(getattr(torch, dtype)))
    ids = torch.randint(3, 128, (1, TOKENS), generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        logits = exact(ids).logits[0]
        answer = exact.generate(ids[:, :16], max_new_tokens=64, min_new_tokens=64, do_sample=False, pad_token_id=0)
        along = exact(answer).logits[0, 15:-1].clone()
    along[:, 2] = -np.inf  # the end token, which min_new_tokens masks
    best = along.topk(2).values
    if (best[:, 0] - best[:, 1]).min() < 2e-3 * logits.std():
        return False  # FP32 could decide otherwise
    assert torch.equal(along.argmax(-1), answer[0, 16:])
    logits[::STRIDE].to(torch.float32).numpy().astype("<f4").tofile(os.path.join(folder, "logits.f32"))
    if model.config.rope_parameters.get("rope_type") == "longrope":
        as_it_is = cls.from_pretrained(folder, dtype=torch.float64)
        with torch.no_grad():
            short = as_it_is(ids[:, :64]).logits[0, ::STRIDE]
        short.to(torch.float32).numpy().astype("<f4").tofile(os.path.join(folder, "logits_short.f32"))
    json.dump(ids[0].tolist(), open(os.path.join(folder, "ids.json"), "w"))
    json.dump(answer[0, 16:].tolist(), open(os.path.join(folder, "greedy.json"), "w"))
    if arch:
        write_twin(os.path.join(folder, "twin.gguf"), arch, config_of(family, settings),
                   load_file(os.path.join(folder, "model.safetensors")))
    old(name, folder, model.config)
    print(name, "seed", seed, "std", float(logits.std()), sorted(os.listdir(folder)))
    return True


def main(out, *names):
    print("transformers", transformers.__version__, "torch", torch.__version__)
    for index, name in enumerate(MODELS):
        if names and name not in names:
            continue
        folder = os.path.join(out, name)
        os.makedirs(folder, exist_ok=True)
        assert any(make(name, folder, seed) for seed in range(100 * index, 100 * index + 20)), name


if __name__ == "__main__":
    main(*sys.argv[1:])
