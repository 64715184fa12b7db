#!/usr/bin/env python3
"""Makes the expected values of tests/load with implementations that are not Recto's.

Versions used for the stored files: gguf 0.19.0, safetensors 0.8.0, numpy 2.3.5.

gguf_types.safetensors
    For every GGUF tensor type T: "T.blocks", U8 [rows, row bytes], random blocks with finite scales, and
    "T.expected", F32 [rows, columns], what gguf.quants.dequantize makes of them.
tiny_llama.gguf, tiny_llama_expected.safetensors
    A random Llama of two layers, written by gguf.GGUFWriter as llama.cpp's converter does it (q and k rows permuted
    as its permute() does), and the same weights under Hugging Face's names and row order.
"""
import os

import gguf
import numpy as np
from gguf.quants import dequantize
from safetensors.numpy import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(20240229)

# Byte offsets of the FP16 fields in a block.
HALVES = {
    "F32": [], "F16": [], "BF16": [],
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "IQ4_NL": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_XS": [0],
}


def random_blocks(name, rows, columns):
    if name in ("F32", "F16", "BF16"):
        values = rng.standard_normal((rows, columns)).astype(np.float32)
        if name == "F16":
            return values.astype(np.float16).view(np.uint8).reshape(rows, -1)
        if name == "BF16":
            return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8).reshape(rows, -1)
        return values.view(np.uint8).reshape(rows, -1)
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    count = rows * columns // elements
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in HALVES[name]:
        half = (rng.standard_normal(count) * 0.02).astype(np.float16)
        half[0] = np.float16(3e-6)  # subnormal
        blocks[:, at:at + 2] = half.view(np.uint8).reshape(count, 2)
    return blocks.reshape(rows, -1)


def make_types():
    tensors = {}
    for name in HALVES:
        kind = gguf.GGMLQuantizationType[name]
        elements, _ = gguf.GGML_QUANT_SIZES[kind]
        blocks = random_blocks(name, 3, 256 if elements == 256 else 96)
        tensors[name + ".blocks"] = blocks
        raw = blocks.view(np.float32 if name == "F32" else np.float16) if name in ("F32", "F16") else blocks
        tensors[name + ".expected"] = np.ascontiguousarray(dequantize(raw, kind), dtype=np.float32)
    save_file(tensors, os.path.join(HERE, "gguf_types.safetensors"))


def permute(w, heads):
    """Row 2i of a head becomes its row i, row 2i + 1 its row i + size / 2 (llama.cpp conversion/llama.py)."""
    size = w.shape[0] // heads
    within = [i // 2 + (i % 2) * (size // 2) for i in range(size)]
    return w[[head * size + i for head in range(heads) for i in within]]


def make_llama():
    hidden, heads, kv_heads, size, ffn, vocab, layers = 32, 4, 2, 8, 40, 19, 2
    expected = {}
    writer = gguf.GGUFWriter(os.path.join(HERE, "tiny_llama.gguf"), "llama")
    writer.add_name("Tiny Llama")
    writer.add_block_count(layers)
    writer.add_context_length(128)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(ffn)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([f"token{i}" for i in range(vocab)])
    writer.add_token_types([3, 3] + [1] * (vocab - 2))
    writer.add_token_merges(["a b", "c d"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template("{{ messages }}")

    def add(name, hf, shape, order=lambda w: w, kind=np.float16):
        w = rng.standard_normal(shape).astype(kind)
        expected[hf] = w.astype(np.float32)
        writer.add_tensor(name, np.ascontiguousarray(order(w)))

    add("token_embd.weight", "model.embed_tokens.weight", (vocab, hidden))
    add("output_norm.weight", "model.norm.weight", (hidden,), kind=np.float32)
    for i in range(layers):
        g, h = f"blk.{i}.", f"model.layers.{i}."
        q, k = lambda w: permute(w, heads), lambda w: permute(w, kv_heads)
        add(g + "attn_norm.weight", h + "input_layernorm.weight", (hidden,), kind=np.float32)
        add(g + "attn_q.weight", h + "self_attn.q_proj.weight", (heads * size, hidden), q)
        add(g + "attn_k.weight", h + "self_attn.k_proj.weight", (kv_heads * size, hidden), k)
        add(g + "attn_v.weight", h + "self_attn.v_proj.weight", (kv_heads * size, hidden))
        add(g + "attn_output.weight", h + "self_attn.o_proj.weight", (hidden, heads * size))
        add(g + "attn_q.bias", h + "self_attn.q_proj.bias", (heads * size,), q, np.float32)
        add(g + "attn_k.bias", h + "self_attn.k_proj.bias", (kv_heads * size,), k, np.float32)
        add(g + "ffn_norm.weight", h + "post_attention_layernorm.weight", (hidden,), kind=np.float32)
        add(g + "ffn_gate.weight", h + "mlp.gate_proj.weight", (ffn, hidden))
        add(g + "ffn_up.weight", h + "mlp.up_proj.weight", (ffn, hidden))
        add(g + "ffn_down.weight", h + "mlp.down_proj.weight", (hidden, ffn))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(expected, os.path.join(HERE, "tiny_llama_expected.safetensors"))


make_types()
make_llama()
