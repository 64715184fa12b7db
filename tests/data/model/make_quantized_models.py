#!/usr/bin/env python3
"""Makes quantized/NAME: tiny random models whose linears are quantized, one for each packing, with the logits of
transformers in float64 over the weights as ../load/quantized_formats.py dequantizes them.

Usage: make_quantized_models.py          (writes beside itself)
Versions used for the stored files: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, safetensors 0.8.0.
"""
import json
import os
import sys

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "load"))
import quantized_formats as f  # noqa: E402

TOKENS = 40
SIZES = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, vocab_size=128, max_position_embeddings=128, tie_word_embeddings=True)


def llama(**changes):
    return transformers.LlamaForCausalLM, transformers.LlamaConfig(**{**SIZES, **changes})


def mistral():
    return transformers.MistralForCausalLM, transformers.MistralConfig(**SIZES, sliding_window=16)


def qwen2():
    return transformers.Qwen2ForCausalLM, transformers.Qwen2Config(**SIZES)


def awq(version, g):
    def pack(w, name, rng):
        size = w.shape[1] if g == -1 else g
        q, z, s = f.quantize(w, size, 4, False, np.float16)
        t = {"gemm": f.pack_gemm, "gemv": lambda *a: f.pack_gemv(*a, size),
             "gemv_fast": lambda *a: f.pack_fast(*a, size)}[version](q, z, s)
        undo = {"gemm": f.dequantize_gemm, "gemv": f.dequantize_gemv, "gemv_fast": f.dequantize_fast}[version]
        return t, undo(t, *w.shape, size)
    return pack, {"quant_method": "awq", "bits": 4, "group_size": g, "zero_point": True, "version": version}


def gptq(bits, v1, symmetric, g, order=False, head=False):
    indices = {}

    def pack(w, name, rng):
        cols = w.shape[1]
        index = np.arange(cols) // g
        if order:  # q has its own permutation, k and v, gate and up share theirs
            key = name if "q_proj" in name else name.rsplit(".", 1)[0] + str(cols)
            index = indices.setdefault(key, f.scattered(cols, g, rng))
        q, z, s = f.quantize(w, g, bits, symmetric, np.float16, index)
        t = f.pack_gptq(q, z, s, bits, v1, index)
        return t, f.dequantize_gptq(t, *w.shape, g, bits, v1)
    return pack, {"quant_method": "gptq", "bits": bits, "group_size": g, "desc_act": order, "sym": symmetric,
                  "lm_head": head, "checkpoint_format": "gptq" if v1 else "gptq_v2",
                  "meta": {"quantizer": ["gptqmodel:7.7.0"]}}


def compressed(bits, symmetric, g, order=False, zeros="packed", embedding=False):
    def pack(w, name, rng):
        cols = w.shape[1]
        size = cols if g == -1 else g
        index = f.scattered(cols, size, rng) if order and "embed" not in name else None
        q, z, s = f.quantize(w, size, bits, symmetric, np.float32, index)
        s = torch.tensor(s).to(torch.bfloat16).to(torch.float32).numpy()  # still the nearest values, nearly
        t = f.pack_compressed(q, z, s, bits, None if symmetric else zeros, index)
        return t, f.dequantize_compressed(t, *w.shape, size, bits)
    weights = {"num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": "channel" if g == -1 else "group",
               "group_size": None if g == -1 else g, "actorder": "group" if order else None}
    targets = ["Linear", "model.embed_tokens"] if embedding else ["Linear"]
    return pack, {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
                  "config_groups": {"group_0": {"targets": targets, "weights": weights, "input_activations": None,
                                                "output_activations": None}},
                  "ignore": [] if embedding else ["lm_head"]}


ODD = dict(hidden_size=72, intermediate_size=100, num_attention_heads=3, num_key_value_heads=3, head_dim=24)
MODELS = {
    "awq-gemm-llama": (llama(), awq("gemm", 32)),
    "awq-gemv-llama": (llama(), awq("gemv", 64)),
    "awq-gemv-fast-llama": (llama(), awq("gemv_fast", 64)),
    "awq-gemm-mistral": (mistral(), awq("gemm", 64)),
    "awq-gemm-qwen2": (qwen2(), awq("gemm", -1)),
    "gptq-v1-llama": (llama(), gptq(4, True, False, 32)),
    "gptq-v2-8bit-qwen2": (qwen2(), gptq(8, False, True, 64)),
    "gptq-order-head-llama": (llama(tie_word_embeddings=False), gptq(4, True, True, 32, order=True, head=True)),
    "ct-w4a16-llama": (llama(), compressed(4, True, 32)),
    "ct-w4a16-order-embedding-llama": (llama(tie_word_embeddings=False), compressed(4, False, 32, True, "packed", True)),
    "ct-w4a16-rows-odd-llama": (llama(**ODD), compressed(4, False, -1, zeros="int8")),
    "ct-w8a16-mistral": (mistral(), compressed(8, True, -1)),
}


def is_quantized(name, settings):
    if "layers." in name:
        return True
    if "lm_head" in name:
        return settings.get("lm_head") or settings.get("ignore") == []
    return "embed" in name and settings.get("ignore") == []


def to_torch(name, array):
    t = torch.tensor(np.ascontiguousarray(array))
    return t.to(torch.bfloat16) if name.endswith("weight_scale") else t


def main():
    print("transformers", transformers.__version__, "torch", torch.__version__)
    for index, (name, ((cls, config), (pack, settings))) in enumerate(MODELS.items()):
        torch.manual_seed(2000 + index)
        rng = np.random.default_rng(index)
        model = cls(config)
        tensors = {}
        with torch.no_grad():
            for key, p in model.named_parameters():
                if key == "lm_head.weight" and config.tie_word_embeddings:
                    continue
                values = torch.randn_like(p) * (0.1 if p.ndim == 1 else 1.5 / p.shape[-1] ** 0.5)
                p.copy_((values + (1.0 if "norm" in key else 0.0)).to(torch.float16))
        model = model.to(torch.float64)
        with torch.no_grad():
            for key, p in model.named_parameters():
                module = key.rsplit(".", 1)[0]
                if p.ndim == 2 and is_quantized(module, settings):
                    packed, exact = pack(p.to(torch.float32).numpy(), module, rng)
                    p.copy_(torch.tensor(exact.astype(np.float64)))
                    tensors.update({f"{module}.{part}": to_torch(part, a) for part, a in packed.items()})
                else:
                    tensors[key] = p.to(torch.float16).clone()
            ids = torch.randint(3, config.vocab_size, (1, TOKENS), generator=torch.Generator().manual_seed(index))
            logits = model(ids).logits[0]
        folder = os.path.join(HERE, "quantized", name)
        os.makedirs(folder, exist_ok=True)
        save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
        stored = {**json.loads(config.to_json_string()), "architectures": [cls.__name__], "quantization_config": settings}
        json.dump(stored, open(os.path.join(folder, "config.json"), "w"), indent=1)
        logits.to(torch.float32).numpy().astype("<f4").tofile(os.path.join(folder, "logits.f32"))
        json.dump(ids[0].tolist(), open(os.path.join(folder, "ids.json"), "w"))
        print(name, "std", float(logits.std()), sum(os.path.getsize(os.path.join(folder, n)) for n in os.listdir(folder)))


if __name__ == "__main__":
    main()
