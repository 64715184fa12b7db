#!/usr/bin/env python3
"""Makes tiny random mixtures of experts (Mixtral, Qwen3-MoE), with logits from transformers in float64.

Each is a folder NAME/ as make_tiny_models.py writes it: config.json, safetensors, ids.json, logits.f32, greedy.json.
Some have a twin NAME/twin.gguf with the same numbers. "mixtral-quantized" is a GGUF file only (twin.gguf, quantized by
llama.cpp to Q4_K and Q6_K), and its logits are those of transformers with the weights that the gguf package dequantizes.

Run with transformers (5.x), torch, gguf and llama-cpp-python: make_tiny_mixtures.py OUT_DIR
"""
import json
import os
import shutil
import sys
import tempfile

import gguf
import numpy as np
import torch
import transformers
from transformers import MixtralConfig, MixtralForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

TOKENS = 160
COMMON = dict(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, vocab_size=259, max_position_embeddings=512,
              bos_token_id=1, eos_token_id=2)


def mixtral(**changes):
    base = dict(COMMON, intermediate_size=96, num_hidden_layers=2, num_local_experts=4, num_experts_per_tok=2, head_dim=16)
    base.update(changes)
    return MixtralForCausalLM, MixtralConfig(**base)


def qwen3(**changes):
    base = dict(COMMON, intermediate_size=96, moe_intermediate_size=40, num_hidden_layers=3, num_experts=8,
                num_experts_per_tok=3, head_dim=24, norm_topk_prob=True, tie_word_embeddings=True)
    base.update(changes)
    return Qwen3MoeForCausalLM, Qwen3MoeConfig(**base)


MODELS = {
    # name: ((class, config), dtype on disk, one tensor for all experts of a layer, GGUF twin)
    "mixtral": (mixtral(), torch.float32, False, True),
    "mixtral-stacked": (mixtral(num_local_experts=5, sliding_window=50), torch.bfloat16, True, False),
    "qwen3-moe": (qwen3(decoder_sparse_step=2, num_hidden_layers=4), torch.float16, False, True),
    "qwen3-moe-biases": (qwen3(num_experts=16, num_experts_per_tok=5, norm_topk_prob=False, attention_bias=True,
                               mlp_only_layers=[1], tie_word_embeddings=False), torch.float32, False, False),
}
QUANTIZED = mixtral(hidden_size=256, intermediate_size=256, head_dim=64, num_local_experts=3, num_hidden_layers=1)


def fill(model):
    with torch.no_grad():
        for key, p in model.named_parameters():
            if p.ndim == 1:  # norms near one, biases near zero: all of them visible in the output
                p.copy_(torch.randn_like(p) * 0.1 + (1.0 if "norm" in key else 0.0))
            else:
                p.copy_(torch.randn_like(p) * (1.5 / p.shape[-1] ** 0.5))
    return model


def expect(model, vocab, seed, folder):
    ids = torch.randint(3, vocab, (1, TOKENS), generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        model.set_experts_implementation("eager")  # the others have no float64
        logits = model(ids).logits[0]
        greedy = model.generate(ids[:, :16], max_new_tokens=64, min_new_tokens=64, do_sample=False, pad_token_id=0)[0, 16:]
    logits.to(torch.float32).numpy().astype("<f4").tofile(os.path.join(folder, "logits.f32"))
    json.dump(ids[0].tolist(), open(os.path.join(folder, "ids.json"), "w"))
    json.dump(greedy.tolist(), open(os.path.join(folder, "greedy.json"), "w"))
    print(os.path.basename(folder), "std", float(logits.std()), "shape", tuple(logits.shape), sorted(os.listdir(folder)))


GGUF_NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
              "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm",
              "post_attention_layernorm": "ffn_norm", "mlp.gate": "ffn_gate_inp", "mlp.gate_proj": "ffn_gate",
              "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def gguf_tensors(model, config, arch):
    """(name in the file, float array) of every parameter, as llama.cpp's converter lays them out."""
    state = {k: v.detach().to(torch.float32).numpy() for k, v in model.state_dict().items()}
    yield "token_embd.weight", state["model.embed_tokens.weight"]
    yield "output_norm.weight", state["model.norm.weight"]
    if not config.tie_word_embeddings:
        yield "output.weight", state["lm_head.weight"]
    for layer in range(config.num_hidden_layers):
        prefix = f"model.layers.{layer}."
        for key, value in state.items():
            if not key.startswith(prefix):
                continue
            name = key[len(prefix):].removesuffix(".weight")
            to = f"blk.{layer}."
            if name == "mlp.experts.gate_up_proj":
                half = value.shape[1] // 2
                yield to + "ffn_gate_exps.weight", value[:, :half]
                yield to + "ffn_up_exps.weight", value[:, half:]
            elif name == "mlp.experts.down_proj":
                yield to + "ffn_down_exps.weight", value
            else:
                if arch == "llama" and name in ("self_attn.q_proj", "self_attn.k_proj"):  # neighbouring pairs rotate
                    heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
                    value = value.reshape(heads, 2, -1, value.shape[-1]).swapaxes(1, 2).reshape(value.shape)
                yield to + GGUF_NAMES[name] + ".weight", value


def write_gguf(path, model, config, arch, dtype):
    w = gguf.GGUFWriter(path, arch)
    w.add_name("tiny mixture")
    w.add_block_count(config.num_hidden_layers)
    w.add_context_length(config.max_position_embeddings)
    w.add_embedding_length(config.hidden_size)
    w.add_feed_forward_length(config.intermediate_size)
    w.add_head_count(config.num_attention_heads)
    w.add_head_count_kv(config.num_key_value_heads)
    w.add_key_length(config.head_dim)
    w.add_value_length(config.head_dim)
    w.add_rope_dimension_count(config.head_dim)
    w.add_rope_freq_base(config.rope_parameters["rope_theta"])
    w.add_layer_norm_rms_eps(config.rms_norm_eps)
    w.add_vocab_size(config.vocab_size)
    w.add_expert_count(config.num_local_experts)
    w.add_expert_used_count(config.num_experts_per_tok)
    if arch == "qwen3moe":
        w.add_expert_feed_forward_length(config.moe_intermediate_size)
    w.add_tokenizer_model("none")
    for name, value in gguf_tensors(model, config, arch):
        small = value.ndim == 1 or "ffn_gate_inp" in name  # the converter keeps routers in float32
        w.add_tensor(name, np.ascontiguousarray(value, np.float32 if small else dtype))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def load_gguf(path, model, config):
    """Puts a GGUF file's dequantized weights into the model."""
    found = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).reshape(t.shape[::-1].tolist()) for t in gguf.GGUFReader(path).tensors}
    print({t.name: t.tensor_type.name for t in gguf.GGUFReader(path).tensors})
    names = [name for name, _ in gguf_tensors(model, config, "llama")]
    assert sorted(names) == sorted(found), (names, list(found))
    state = {"model.embed_tokens.weight": found["token_embd.weight"], "model.norm.weight": found["output_norm.weight"],
             "lm_head.weight": found["output.weight"]}
    for layer in range(config.num_hidden_layers):
        to, blk = f"model.layers.{layer}.", f"blk.{layer}."
        for key, name in GGUF_NAMES.items():
            if blk + name + ".weight" not in found:
                continue
            value = found[blk + name + ".weight"]
            if name in ("attn_q", "attn_k"):
                heads = config.num_attention_heads if name == "attn_q" else config.num_key_value_heads
                value = value.reshape(heads, -1, 2, value.shape[-1]).swapaxes(1, 2).reshape(value.shape)
            state[to + key + ".weight"] = value
        state[to + "mlp.experts.gate_up_proj"] = np.concatenate([found[blk + "ffn_gate_exps.weight"], found[blk + "ffn_up_exps.weight"]], 1)
        state[to + "mlp.experts.down_proj"] = found[blk + "ffn_down_exps.weight"]
    model.load_state_dict({k: torch.tensor(v, dtype=torch.float64) for k, v in state.items()})


def quantized(out):
    import llama_cpp
    folder = os.path.join(out, "mixtral-quantized")
    os.makedirs(folder, exist_ok=True)
    cls, config = QUANTIZED
    torch.manual_seed(2100)
    model = fill(cls(config))
    with tempfile.TemporaryDirectory() as temporary:
        exact = os.path.join(temporary, "exact.gguf")
        write_gguf(exact, model, config, "llama", np.float32)
        params = llama_cpp.llama_model_quantize_default_params()
        params.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M
        path = os.path.join(folder, "twin.gguf")
        assert llama_cpp.llama_model_quantize(exact.encode(), path.encode(), params) == 0
    model = cls(config).to(torch.float64)
    load_gguf(path, model, config)
    expect(model, config.vocab_size, 100, folder)


def main(out):
    print("transformers", transformers.__version__, "torch", torch.__version__)
    for index, (name, ((cls, config), dtype, stacked, twin)) in enumerate(MODELS.items()):
        torch.manual_seed(2000 + index)
        model = fill(cls(config)).to(dtype)
        folder = os.path.join(out, name)
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder, save_original_format=not stacked)
        # Loading casts the stored weights to float64: the reference is exact for what is on disk.
        exact = cls.from_pretrained(folder, dtype=torch.float64)
        if twin:
            write_gguf(os.path.join(folder, "twin.gguf"), exact, config, "llama" if cls is MixtralForCausalLM else "qwen3moe",
                       np.float16 if dtype == torch.float16 else np.float32)
        expect(exact, config.vocab_size, index, folder)
    quantized(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
