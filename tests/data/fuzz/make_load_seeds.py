#!/usr/bin/env python3
"""Makes the small valid files that the fuzz targets of the model readers start from.

Versions used for the stored files: gguf 0.19.0, safetensors 0.8.0, numpy 2.3.5.
"""
import json
import os
import sys

import gguf
import numpy as np
from safetensors.numpy import save, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "load"))
import quantized_formats as q  # noqa: E402


def path(target, name):
    folder = os.path.join(HERE, target)
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, name)


def model(name, architecture, kind):
    """One layer, one head of 8 (hidden 32 where the type has blocks of 32), 3 tokens."""
    kind = gguf.GGMLQuantizationType[kind]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    hidden = max(8, elements)
    writer = gguf.GGUFWriter(path("fuzz_gguf", name), architecture)
    writer.add_block_count(1)
    writer.add_context_length(16)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(1)
    writer.add_key_length(8)
    writer.add_value_length(8)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(2.0)
    writer.add_rope_scaling_orig_ctx_len(8)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["a", "b", "ab"])
    writer.add_token_types([1, 1, 3])
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(2)

    def matrix(tensor, rows, columns):
        if columns % elements != 0:
            writer.add_tensor(tensor, np.ones((rows, columns), np.float16))
            return
        data = np.full((rows, columns // elements * size), 60, np.uint8)
        writer.add_tensor(tensor, data, raw_dtype=kind)

    norm = np.ones(hidden, np.float32)
    matrix("token_embd.weight", 3, hidden)
    writer.add_tensor("output_norm.weight", norm)
    writer.add_tensor("blk.0.attn_norm.weight", norm)
    for projection in ("attn_q", "attn_k", "attn_v"):
        matrix(f"blk.0.{projection}.weight", 8, hidden)
    writer.add_tensor("blk.0.attn_q.bias", np.ones(8, np.float32))
    matrix("blk.0.attn_output.weight", hidden, 8)
    writer.add_tensor("blk.0.ffn_norm.weight", norm)
    for projection in ("ffn_gate", "ffn_up", "ffn_down"):
        matrix(f"blk.0.{projection}.weight", hidden, hidden)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def family(name, architecture, tensors, numbers=()):
    """One layer of F32 numbers, hidden 8, two heads of 8, with what is the architecture's own."""
    writer = gguf.GGUFWriter(path("fuzz_gguf", name), architecture)
    writer.add_block_count(1)
    writer.add_context_length(16)
    writer.add_embedding_length(8)
    writer.add_feed_forward_length(8)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_key_length(8)
    writer.add_value_length(8)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_sliding_window(4)
    for key, value in numbers:
        writer.add_float32(f"{architecture}.{key}", value)
    shapes = {"token_embd": (3, 8), "output_norm": (8,), "blk.0.attn_output": (8, 16), "blk.0.ffn_down": (8, 8),
              "blk.0.attn_norm": (8,), "blk.0.ffn_norm": (8,), **tensors}
    for tensor, shape in shapes.items():
        writer.add_tensor(tensor + ".weight", np.ones(shape, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


apart = {"blk.0.attn_q": (16, 8), "blk.0.attn_k": (8, 8), "blk.0.attn_v": (8, 8), "blk.0.ffn_gate": (8, 8), "blk.0.ffn_up": (8, 8)}
family("gemma3", "gemma3", {**apart, "blk.0.attn_q_norm": (8,), "blk.0.attn_k_norm": (8,), "blk.0.post_attention_norm": (8,),
                            "blk.0.post_ffw_norm": (8,)}, [("final_logit_softcapping", 30.0), ("rope.freq_base_swa", 1e4)])
family("phi3", "phi3", {"blk.0.attn_qkv": (32, 8), "blk.0.ffn_up": (16, 8), "rope_factors_long": (4,), "rope_factors_short": (4,)},
       [("rope.scaling.attn_factor", 1.2)])
family("granite", "granite", apart, [("embedding_scale", 12.0), ("residual_scale", 0.22), ("logit_scale", 6.0),
                                     ("attention.scale", 0.1)])
model("llama_f16", "llama", "F16")
model("llama_q4_1", "llama", "Q4_1")
model("qwen2_q8_0", "qwen2", "Q8_0")

save_file({"a": np.ones((2, 3), np.float32), "b": np.ones(5, np.float16), "c": np.zeros((0, 4), np.int8)},
          path("fuzz_safetensors", "three"), metadata={"format": "pt"})
save_file({"s": np.array(1, np.int64)}, path("fuzz_safetensors", "scalar"))

sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
         "num_key_value_heads": 1, "vocab_size": 9, "rms_norm_eps": 1e-5, "max_position_embeddings": 64}
scalings = {
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 32},
    "yarn": {"type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 0.5, "beta_fast": 32},
    "longrope": {"type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4,
                 "original_max_position_embeddings": 32},
    "dynamic": {"type": "dynamic", "factor": 2.0},
}
for name, scaling in scalings.items():
    config = {"architectures": ["LlamaForCausalLM"], **sizes, "rope_theta": 10000.0, "rope_scaling": scaling,
              "attention_bias": True, "eos_token_id": [1, 2]}
    with open(path("fuzz_config", name), "w") as f:
        json.dump(config, f)
others = {
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], **sizes, "use_sliding_window": True, "sliding_window": 8,
              "layer_types": ["full_attention", "sliding_attention"], "rope_parameters": {"rope_theta": 1e6}},
    "gemma3": {"architectures": ["Gemma3ForConditionalGeneration"], "dtype": "bfloat16",
               "text_config": {**sizes, "head_dim": 8, "sliding_window": 8, "sliding_window_pattern": 2,
                               "final_logit_softcapping": 30.0, "query_pre_attn_scalar": 8,
                               "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0},
                                                   "sliding_attention": {"rope_theta": 1e4}}}},
    "gemma2": {"architectures": ["Gemma2ForCausalLM"], **sizes, "head_dim": 8},
    "phi3": {"architectures": ["Phi3ForCausalLM"], **sizes, "original_max_position_embeddings": 32, "sliding_window": 8,
             "partial_rotary_factor": 0.75, "num_attention_heads": 1,
             "rope_scaling": {"type": "su", "short_factor": [1.0] * 6, "long_factor": [2.0] * 6}},
    "olmo2": {"architectures": ["Olmo2ForCausalLM"], **sizes},
    "granite": {"architectures": ["GraniteForCausalLM"], **sizes, "embedding_multiplier": 12, "logits_scaling": 8,
                "residual_multiplier": 0.22, "attention_multiplier": 0.1},
    "smollm3": {"architectures": ["SmolLM3ForCausalLM"], **sizes, "no_rope_layers": [1, 0], "use_sliding_window": True,
                "sliding_window": 8},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], **sizes, "head_dim": 8, "max_window_layers": 1,
              "use_sliding_window": True},
    "generation": {"eos_token_id": [2, 7], "temperature": 0.6, "top_p": 0.9, "top_k": 20},
    "index": {"metadata": {"total_size": 4}, "weight_map": {"a": "model-00001-of-00001.safetensors"}},
    "quantized": {"architectures": ["MistralForCausalLM"], **sizes, "quantization_config": {"quant_method": "awq"}},
}
for name, content in others.items():
    with open(path("fuzz_config", name), "w") as f:
        json.dump(content, f)


def module(name, tensors, rows, cols, config):
    """What fuzz_quantized.cpp takes apart."""
    file = save({f"layers.0.m.{part}": np.ascontiguousarray(t) for part, t in tensors.items()})
    with open(path("fuzz_quantized", name), "wb") as f:
        f.write(bytes([rows - 1, cols - 1]) + json.dumps(config).encode() + b"\0" + file)


rng = np.random.default_rng(4)
for bits, rows, cols, group in ((4, 16, 64, 32), (8, 8, 32, 32)):
    groups = cols // group
    codes, zeros = rng.integers(0, 1 << bits, (rows, cols)), rng.integers(0, 1 << bits, (rows, groups))
    scales = rng.uniform(0.01, 0.1, (rows, groups)).astype(np.float16)
    gptq = {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": True, "sym": False,
            "dynamic": {"-:.*head": {}, "+:.*down": {"bits": 8}}, "meta": {"quantizer": ["gptqmodel:1.0.0"]}}
    module(f"gptq{bits}", q.pack_gptq(codes, zeros, scales, bits, True, q.scattered(cols, group, rng)), rows, cols, gptq)
    ct = {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["re:.*head", "lm_head"],
          "config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": bits, "group_size": group}}}}
    module(f"ct{bits}", q.pack_compressed(codes, zeros, scales, bits, "packed", q.scattered(cols, group, rng)), rows, cols,
           ct)
    module(f"ct{bits}_int8", q.pack_compressed(codes, zeros, scales, bits, "int8"), rows, cols, ct)
    if bits == 8:
        continue
    for version, tensors in (("gemm", q.pack_gemm(codes, zeros, scales)), ("gemv", q.pack_gemv(codes, zeros, scales, group)),
                             ("gemv_fast", q.pack_fast(codes, zeros, scales, group))):
        module(f"awq_{version}", tensors, rows, cols,
               {"quant_method": "awq", "bits": 4, "group_size": group, "version": version,
                "modules_to_not_convert": ["gate"]})
