#!/usr/bin/env python3
"""Makes quantized/model.safetensors and quantized/cases.json: modules in every packing, group size and option, with
the dequantized weights that numpy computes from the formats' formulas (quantized_formats.py).

Usage: make_quantized.py AUTOAWQ_SOURCE GPTQMODEL_SOURCE   (unpacked source archives, not installed)

The tensors are packed by the formats' own packages where these run without a card, and the packers of
quantized_formats.py must give the same bytes: AutoAWQ 0.2.9 (gemm, gemv, gemv_fast: WQLinear*.from_linear), GPTQModel
7.7.0 (BaseQuantLinear.pack_original, run by itself; version 1 zero points as its convert_gptq_v2_to_v1_format_module
makes them) and compressed-tensors 0.20.1 (pack_to_int32). Its dequantized weights, rounded to float16, must equal
AutoAWQ's dequantize_gemm. Also: numpy 2.4.6, torch 2.15.0, safetensors 0.8.0.
"""
import ast
import importlib.util
import json
import math
import os
import sys
import types

import numpy as np
import torch
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
from safetensors.torch import save_file

import quantized_formats as f

HERE = os.path.dirname(os.path.abspath(__file__))
AWQ, GPTQ = sys.argv[1:3]


def autoawq(path):
    """A module of AutoAWQ without the package around it, which would import what needs a card."""
    spec = importlib.util.spec_from_file_location(path.replace("/", "."), os.path.join(AWQ, path + ".py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


for package in ("awq", "awq.utils", "awq.modules", "awq.modules.linear"):
    sys.modules[package] = types.ModuleType(package)
sys.modules["awq.utils.module"] = types.ModuleType("awq.utils.module")
sys.modules["awq.utils.module"].try_import = lambda name: (None, "not built")
sys.modules["awq.utils.utils"] = types.ModuleType("awq.utils.utils")
sys.modules["awq.utils.utils"].get_best_device = lambda: "cpu"
packing = autoawq("awq/utils/packing_utils")
AUTOAWQ = {"gemm": autoawq("awq/modules/linear/gemm").WQLinear_GEMM,
           "gemv": autoawq("awq/modules/linear/gemv").WQLinear_GEMV,
           "gemv_fast": autoawq("awq/modules/linear/gemv_fast").WQLinear_GEMVFast}


def autoawq_pack(version, q, z, s, g):
    linear = torch.nn.Linear(q.shape[1], q.shape[0], bias=False)
    linear.weight.data = torch.tensor(s.astype(np.float32)).repeat_interleave(g, 1) * torch.tensor(
        q - z.repeat(g, 1), dtype=torch.float32)
    scales, zeros = torch.tensor(s), torch.tensor(z.astype(np.float32))
    if version == "gemm":
        scales, zeros = scales.t().contiguous(), zeros.t().contiguous()
    made = AUTOAWQ[version].from_linear(linear, 4, g, False, scales, zeros)
    return {k: v.numpy() for k, v in made.state_dict().items()}


def gptqmodel_method(name):
    source = open(os.path.join(GPTQ, "gptqmodel/nn_modules/qlinear/__init__.py")).read()
    found = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == name]
    found[0].decorator_list = []

    class NoLimit:
        @staticmethod
        def threadpool_limits(n):
            import contextlib
            return contextlib.nullcontext()
    transformers = types.SimpleNamespace(pytorch_utils=types.SimpleNamespace(Conv1D=type(None)))
    space = {"t": torch, "np": np, "math": math, "nn": torch.nn, "_ConvNd": torch.nn.modules.conv._ConvNd,
             "transformers": transformers, "THREADPOOLCTL": NoLimit}
    exec(compile(ast.Module([found[0]], []), "gptqmodel", "exec"), space)
    return space[name]


def gptqmodel_pack(q, z, s, g_idx, bits):
    linear = torch.nn.Linear(q.shape[1], q.shape[0], bias=False)
    linear.weight.data = torch.tensor(s.astype(np.float32)[:, g_idx] * (q - z[:, g_idx]))
    layer = types.SimpleNamespace(bits=bits, maxq=2 ** bits - 1, pack_dtype_bits=32, pack_factor=32 // bits,
                                  planar=False, pack_dtype=torch.int32, pack_np_math_dtype=np.uint32,
                                  pack_np_dtype=np.int32, bias=None)
    layer.register_buffer = lambda name, value: setattr(layer, name, value)
    gptqmodel_method("pack_original")(layer, linear, torch.tensor(s.astype(np.float32)),
                                      torch.tensor(z.astype(np.float32)), torch.tensor(g_idx.astype(np.int32)))
    return {"qweight": layer.qweight.numpy(), "qzeros": layer.qzeros.numpy(), "scales": layer.scales.numpy()}


def same(a, b, what):
    for name in b:
        assert a[name].dtype == b[name].dtype and a[name].shape == b[name].shape, (what, name, a[name].shape, b[name].shape)
        assert a[name].tobytes() == b[name].tobytes(), (what, name)


tensors, cases = {}, []
BF16 = {}


def to_torch(array, bf16):
    t = torch.tensor(np.ascontiguousarray(array))
    return t.to(torch.bfloat16) if bf16 and t.is_floating_point() else t


def add(name, t, w, config, form, bf16=False):
    rows, cols = w.shape
    for part, array in t.items():
        tensors[f"{name}.{part}"] = to_torch(array, bf16)
    tensors[f"{name}.expected"] = torch.tensor(w.astype(np.float32))
    cases.append({"name": name, "rows": rows, "cols": cols, "config": config, "form": form})


def random(rows, cols, g, bits, rng, bf16=False, symmetric=False, zero=False, scales=None):
    groups = -(-cols // g)
    q = rng.integers(0, 1 << bits, (rows, cols))
    z = rng.integers(0, 1 << bits, (rows, groups))
    if symmetric:
        z[:] = 1 << (bits - 1)
    if zero:  # the words that borrow
        z[rng.random(z.shape) < 0.4] = 0
    s = rng.uniform(0.001, 0.02, (rows, groups))
    if bf16:  # exact in bfloat16, kept as float32 until it is written
        s = torch.tensor(s).to(torch.bfloat16).to(torch.float32).numpy()
    else:
        s = s.astype(np.float16)
    return q, z, s if scales is None else scales


def group_text(g, cols):
    return "whole rows" if g >= cols else f"group {g}"


def awq_config(g, cols, version, **more):
    return {"quant_method": "awq", "bits": 4, "group_size": -1 if g >= cols else g, "zero_point": True,
            "version": version, **more}


def awq(rng):
    for version, shapes in {"gemm": [(40, 96, 32), (24, 192, 64), (32, 256, 128), (16, 160, 160), (64, 64, 32), (8, 72, 72),
                                     (24, 96, 48)],
                            "gemv": [(40, 96, 32), (24, 192, 64), (32, 256, 128), (16, 256, 256), (64, 64, 32)],
                            "gemv_fast": [(40, 192, 32), (24, 128, 64), (32, 256, 128), (8, 192, 192), (64, 64, 32)]}.items():
        for rows, cols, g in shapes:
            q, z, s = random(rows, cols, g, 4, rng)
            pack = {"gemm": lambda: f.pack_gemm(q, z, s), "gemv": lambda: f.pack_gemv(q, z, s, g),
                    "gemv_fast": lambda: f.pack_fast(q, z, s, g)}[version]
            t = pack()
            if rows % 32 == 0 and cols % 32 == 0:  # its packers cut off what is left
                same(t, autoawq_pack(version, q, z, s, g), (version, rows, cols, g))
            w = {"gemm": f.dequantize_gemm, "gemv": f.dequantize_gemv, "gemv_fast": f.dequantize_fast}[version](
                t, rows, cols, g)
            if version == "gemm":
                theirs = packing.dequantize_gemm(torch.tensor(t["qweight"]), torch.tensor(t["qzeros"]),
                                                 torch.tensor(t["scales"]), 4, g)
                assert np.array_equal(theirs.numpy().T, w.astype(np.float16))
            if version != "gemv_fast":
                assert np.array_equal(w, f.product(s.repeat(g, 1), q - z.repeat(g, 1)))
            square = "_square" if rows == cols else ""
            add(f"awq_{version}_g{g}{square}", t, w, awq_config(g, cols, version),
                f"AWQ {version}, 4 bit, {group_text(g, cols)}")
    q, z, s = random(16, 128, 64, 4, rng)
    z[:] = 8
    t = f.pack_gemm(q, z, s)
    del t["qzeros"]
    add("awq_gemm_symmetric", t, f.dequantize_gemm(t, 16, 128, 64), awq_config(64, 128, "gemm", zero_point=False),
        "AWQ gemm, 4 bit, group 64")
    for version, g, cols in (("gemm", 64, 128), ("gemv", 128, 256), ("llm-awq", 64, 128)):
        q, z, s = random(16, cols, g, 4, rng, bf16=True)
        if version == "llm-awq":
            t = f.pack_fast(q, z, s, g, "scaled_zeros")
            t["scaled_zeros"] = torch.tensor(t["scaled_zeros"]).to(torch.bfloat16).to(torch.float32).numpy()
            w = f.dequantize_fast(t, 16, cols, g)
        elif version == "gemm":
            t = f.pack_gemm(q, z, s)
            w = f.dequantize_gemm(t, 16, cols, g)
        else:
            t = f.pack_gemv(q, z, s, g)
            w = f.dequantize_gemv(t, 16, cols, g)
        add(f"awq_{version}_bf16", t, w, awq_config(g, cols, version), f"AWQ {version}, 4 bit, group {g}", bf16=True)
    q, z, s = random(16, 128, 64, 4, rng)
    t = f.pack_fast(q, z, s, 64, "scaled_zeros")
    add("awq_llm-awq_separate", t, f.dequantize_fast(t, 16, 128, 64),
        {"w_bit": 4, "q_group_size": 64, "zero_point": True}, "AWQ llm-awq, 4 bit, group 64")


def gptq_config(bits, g, cols, v1, symmetric, act_order):
    return {"quant_method": "gptq", "bits": bits, "group_size": -1 if g >= cols else g, "desc_act": act_order,
            "sym": symmetric, "checkpoint_format": "gptq" if v1 else "gptq_v2",
            "meta": {"quantizer": ["gptqmodel:7.7.0"]}}


def gptq(rng):
    for bits in (4, 8):
        for v1 in (True, False):
            for symmetric in (True, False):
                for g, cols, act_order in ((32, 96, False), (64, 128, True), (128, 256, False), (128, 128, False),
                                           (32, 64, True)):
                    rows = 16
                    q, z, s = random(rows, cols, g, bits, rng, symmetric=symmetric, zero=not symmetric)
                    g_idx = f.scattered(cols, g, rng) if act_order else np.arange(cols) // g
                    theirs = gptqmodel_pack(q, z, s, g_idx, bits)
                    if v1:
                        theirs["qzeros"] = (torch.tensor(theirs["qzeros"]) - f.ONES[bits]).to(torch.int32).numpy()
                    t = f.pack_gptq(q, z, s, bits, v1, g_idx)
                    same(t, theirs, ("gptq", bits, v1, symmetric, g))
                    w = f.dequantize_gptq(t, rows, cols, g, bits, v1)
                    assert np.array_equal(w, f.product(s[:, g_idx], q - z[:, g_idx]))
                    name = f"gptq_{bits}bit_{'v1' if v1 else 'v2'}_{'sym' if symmetric else 'asym'}_g{g}" + (
                        "_order" if act_order else "") + ("_rows" if g == cols else "")
                    add(name, t, w, gptq_config(bits, g, cols, v1, symmetric, act_order),
                        f"GPTQ, {bits} bit, {group_text(g, cols)}")
    # desc_act with a plain g_idx; no g_idx; a last group that is shorter, in order and scattered; bfloat16 scales.
    for name, g, cols, index in (("plain", 32, 96, "plain"), ("none", 32, 96, None), ("short", 64, 160, "plain"),
                                 ("short_order", 64, 160, "scattered"), ("bf16", 32, 96, "plain")):
        q, z, s = random(16, cols, g, 4, rng, zero=True, bf16=name == "bf16")
        g_idx = None if index is None else np.arange(cols) // g if index == "plain" else f.scattered(cols, g, rng)
        t = f.pack_gptq(q, z, s, 4, True, g_idx)
        add(f"gptq_{name}", t, f.dequantize_gptq(t, 16, cols, g, 4, True),
            gptq_config(4, g, cols, True, False, name != "none"), f"GPTQ, 4 bit, group {g}", bf16=name == "bf16")


def compressed_config(bits, g, cols, symmetric):
    weights = {"num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": "channel" if g >= cols else "group",
               "group_size": None if g >= cols else g}
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None,
                                          "output_activations": None}}, "ignore": ["lm_head"]}


def compressed(rng):
    def case(name, rows, cols, g, bits, zeros, bf16, g_idx=None, shape_dtype=np.int64):
        symmetric = zeros is None or zeros == "zero"
        q, z, s = random(rows, cols, g, bits, rng, bf16=bf16, symmetric=symmetric)
        t = f.pack_compressed(q, z, s, bits, "int8" if zeros == "zero" else zeros, g_idx, shape_dtype)
        signed = torch.tensor(q - (1 << (bits - 1))).to(torch.int8)
        theirs = {"weight_packed": pack_to_int32(signed, bits).numpy()}
        if zeros == "packed":
            signed = torch.tensor(z - (1 << (bits - 1))).to(torch.int8)
            theirs["weight_zero_point"] = pack_to_int32(signed, bits, packed_dim=0).numpy()
        same(t, theirs, name)
        index = np.arange(cols) // g if g_idx is None or g_idx.min() < 0 else g_idx
        w = f.dequantize_compressed(t, rows, cols, g, bits)
        assert np.array_equal(w, f.product(s[:, index], q - z[:, index]))
        add(name, t, w, compressed_config(bits, g, cols, symmetric),
            f"compressed-tensors, {bits} bit, {group_text(g, cols)}", bf16=bf16)

    for bits in (4, 8):
        for zeros in (None, "packed", "int8"):
            for g, cols in ((32, 96), (64, 128), (128, 256), (96, 96)):
                case(f"ct_{bits}bit_{zeros or 'sym'}_g{g}" + ("_rows" if g == cols else ""), 20, cols, g, bits, zeros,
                     bf16=g != 64)
        case(f"ct_{bits}bit_padded", 13, 102, 102, bits, None, False)
        case(f"ct_{bits}bit_padded_zeros", 13, 102, 102, bits, "packed", True)
        case(f"ct_{bits}bit_order", 16, 128, 32, bits, None, True, f.scattered(128, 32, rng))
        case(f"ct_{bits}bit_order_zeros", 16, 128, 32, bits, "packed", False, f.scattered(128, 32, rng))
    case("ct_order_unset", 16, 128, 32, 4, None, True, np.full(128, -1))
    case("ct_symmetric_with_zeros", 16, 128, 32, 4, "zero", True)
    case("ct_shape_int32", 16, 128, 32, 4, None, True, None, np.int32)


def one_weight(rng):
    """One W through all packings. Scales of 7 bits, so that gemv_fast's -s z is exact in float16."""
    rows, cols, g = 16, 64, 32
    for symmetric in (False, True):
        s = (rng.integers(64, 128, (rows, cols // g)) / 8192).astype(np.float16)
        q, z, s = random(rows, cols, g, 4, rng, symmetric=symmetric, zero=not symmetric, scales=s)
        w = f.product(s.repeat(g, 1), q - z.repeat(g, 1))
        prefix = "same_sym_" if symmetric else "same_"
        add(prefix + "gemm", f.pack_gemm(q, z, s), w, awq_config(g, cols, "gemm"), "AWQ gemm, 4 bit, group 32")
        add(prefix + "gemv", f.pack_gemv(q, z, s, g), w, awq_config(g, cols, "gemv"), "AWQ gemv, 4 bit, group 32")
        add(prefix + "fast", f.pack_fast(q, z, s, g), w, awq_config(g, cols, "gemv_fast"), "AWQ gemv_fast, 4 bit, group 32")
        add(prefix + "gptq_v1", f.pack_gptq(q, z, s, 4, True), w, gptq_config(4, g, cols, True, symmetric, False),
            "GPTQ, 4 bit, group 32")
        add(prefix + "gptq_v2", f.pack_gptq(q, z, s, 4, False), w, gptq_config(4, g, cols, False, symmetric, False),
            "GPTQ, 4 bit, group 32")
        add(prefix + "ct", f.pack_compressed(q, z, s, 4, "packed"), w, compressed_config(4, g, cols, False),
            "compressed-tensors, 4 bit, group 32")
        if symmetric:
            add(prefix + "ct_sym", f.pack_compressed(q, z, s, 4, None), w, compressed_config(4, g, cols, True),
                "compressed-tensors, 4 bit, group 32")


def main():
    rng = np.random.default_rng(20)
    awq(rng)
    gptq(rng)
    compressed(rng)
    one_weight(rng)
    out = os.path.join(HERE, "quantized")
    os.makedirs(out, exist_ok=True)
    save_file(tensors, os.path.join(out, "model.safetensors"))
    with open(os.path.join(out, "cases.json"), "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
    print(len(cases), "cases,", os.path.getsize(os.path.join(out, "model.safetensors")), "bytes")


if __name__ == "__main__":
    main()
