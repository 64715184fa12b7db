#!/usr/bin/env python3
"""Makes tiny random models of the Llama family in odd shapes, with logits from transformers in float64.

Each becomes a folder NAME/ with config.json, safetensors and expected.npz-free raw files:
  ids.json            the token ids of one sequence
  logits.f32          float32 [tokens, vocab], row-major, computed by transformers in float64
  greedy.json         64 greedy tokens after the first 16 ids

Run with transformers (5.x) and torch: make_tiny_models.py OUT_DIR
"""
import json
import os
import sys

import numpy as np
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

TOKENS = 160
ROPE_LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                   original_max_position_embeddings=64)


def llama(**changes):
    base = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                vocab_size=259, max_position_embeddings=512, rms_norm_eps=1e-5, tie_word_embeddings=True,
                bos_token_id=1, eos_token_id=2)
    base.update(changes)
    return LlamaForCausalLM, LlamaConfig(**base)


def qwen2(**changes):
    base = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                vocab_size=259, max_position_embeddings=512, rms_norm_eps=1e-6, tie_word_embeddings=True,
                bos_token_id=1, eos_token_id=2)
    base.update(changes)
    return Qwen2ForCausalLM, Qwen2Config(**base)


MODELS = {
    # name: ((class, config), dtype on disk, largest shard)
    "llama-gqa-tied": (llama(), torch.float32, "1GB"),
    "llama-mqa-head48": (llama(num_attention_heads=3, num_key_value_heads=1, head_dim=48, hidden_size=96), torch.float32, "1GB"),
    "llama-untied-bf16": (llama(tie_word_embeddings=False, vocab_size=301), torch.bfloat16, "1GB"),
    "llama-biases-f16": (llama(attention_bias=True, mlp_bias=True), torch.float16, "1GB"),
    "llama-llama3-rope": (llama(rope_parameters=ROPE_LLAMA3, num_key_value_heads=4), torch.float32, "1GB"),
    "llama-linear-rope": (llama(rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0), head_dim=24), torch.float32, "1GB"),
    "llama-sharded": (llama(tie_word_embeddings=False, num_hidden_layers=3), torch.float32, "100KB"),
    "qwen2-biases": (qwen2(), torch.float32, "1GB"),
}


def main(out):
    print("transformers", transformers.__version__, "torch", torch.__version__)
    for index, (name, ((cls, config), dtype, shard)) in enumerate(MODELS.items()):
        torch.manual_seed(1000 + index)
        model = cls(config)
        with torch.no_grad():
            for key, p in model.named_parameters():
                if p.ndim == 1:  # norms near one, biases near zero: all of them visible in the output
                    p.copy_(torch.randn_like(p) * 0.1 + (1.0 if "norm" in key else 0.0))
                else:
                    p.copy_(torch.randn_like(p) * (1.5 / p.shape[-1] ** 0.5))
        folder = os.path.join(out, name)
        model = model.to(dtype)
        model.save_pretrained(folder, max_shard_size=shard)
        ids = torch.randint(3, config.vocab_size, (1, TOKENS), generator=torch.Generator().manual_seed(index))
        exact = cls.from_pretrained(folder, dtype=torch.float64)
        # Loading casts the stored weights to float64: the reference is exact for what is on disk.
        with torch.no_grad():
            logits = exact(ids).logits[0]
            greedy = exact.generate(ids[:, :16], max_new_tokens=64, min_new_tokens=64, do_sample=False, pad_token_id=0)[0, 16:]
        logits.to(torch.float32).numpy().astype("<f4").tofile(os.path.join(folder, "logits.f32"))
        json.dump(ids[0].tolist(), open(os.path.join(folder, "ids.json"), "w"))
        json.dump(greedy.tolist(), open(os.path.join(folder, "greedy.json"), "w"))
        print(name, "std", float(logits.std()), "shape", tuple(logits.shape), sorted(os.listdir(folder)))


if __name__ == "__main__":
    main(sys.argv[1])
