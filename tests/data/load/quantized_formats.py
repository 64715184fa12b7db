"""The packings of quantized Hugging Face folders, in numpy: one packer and one dequantizer each.

The dequantizers are written from the formulas of the formats (element by element, with index arrays) and share
nothing with the packers; make_quantized.py holds the packers against those of AutoAWQ, GPTQModel and
compressed-tensors. Conventions: q [rows, cols] and zero points z [rows, groups] are integers, scales s [rows, groups]
floats, w = s (q - z); tensors are named as in the files, without the module's name.
"""
import numpy as np

GEMM_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # column of nibble 0 ... 7


def words(values, bits):
    """[..., n / bits per word, values per word] -> int32: value i in bits i * bits and up."""
    shifts = np.arange(values.shape[-1], dtype=np.uint64) * np.uint64(bits)
    return np.ascontiguousarray((values.astype(np.uint64) << shifts).sum(-1).astype(np.uint32)).view(np.int32)


def pack_along(values, bits, axis):
    """Plain order along `axis`, padded with zeros to whole words."""
    v = np.moveaxis(np.asarray(values), axis, -1)
    per = 32 // bits
    v = np.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, -v.shape[-1] % per)])
    return np.ascontiguousarray(np.moveaxis(words(v.reshape(*v.shape[:-1], -1, per), bits), -1, axis))


def nibble(array, word_index, position, bits):
    """Value `position` of the words array[word_index]; all arguments broadcast."""
    w = array[word_index].astype(np.int64) & (0xFFFF if array.dtype == np.int16 else 0xFFFFFFFF)
    return (w >> (bits * position)) & ((1 << bits) - 1)


def grid(rows, cols):
    return np.arange(rows)[:, None], np.arange(cols)[None, :]


# --- AWQ gemm
def pack_gemm(q, z, s):
    def pack(v):  # [n, outputs] -> [n, outputs / 8]
        return words(v.reshape(v.shape[0], -1, 8)[..., GEMM_ORDER], 4)
    return {"qweight": pack(q.T), "qzeros": pack(z.T), "scales": np.ascontiguousarray(s.T)}


def dequantize_gemm(t, rows, cols, g):
    o, k = grid(rows, cols)
    position = np.array([0, 4, 1, 5, 2, 6, 3, 7])[o % 8]
    q = nibble(t["qweight"], (k, o // 8), position, 4)
    z = nibble(t["qzeros"], (k // g, o // 8), position, 4) if "qzeros" in t else 8
    return product(t["scales"][k // g, o], q - z)


# --- AWQ gemv
def zero_words(cols, g):
    multiple = 1 if g >= 128 else {64: 2, 32: 4}[g]
    return -(-(-(-(cols // g) // 8)) // multiple) * multiple


def pack_gemv(q, z, s, g):
    width = zero_words(q.shape[1], g) * 8
    pad = [(0, 0), (0, width - z.shape[1])]
    return {"qweight": pack_along(q, 4, 1), "qzeros": pack_along(np.pad(z, pad), 4, 1), "scales": np.pad(s, pad)}


def dequantize_gemv(t, rows, cols, g):
    o, k = grid(rows, cols)
    q = nibble(t["qweight"], (o, k // 8), k % 8, 4)
    z = nibble(t["qzeros"], (o, k // g // 8), k // g % 8, 4)
    return product(t["scales"][o, k // g], q - z)


# --- AWQ gemv_fast and llm-awq
def pack_fast(q, z, s, g, zeros="qzeros"):
    rows, cols = q.shape
    width = zero_words(cols, g) * 8
    o, k = grid(rows, cols)
    w = np.zeros((rows // 4, cols), np.int64)
    at = 64 * (k // 64) + 16 * (o % 4) + 8 * (k // 32 % 2) + k % 8
    np.add.at(w, (np.broadcast_to(o // 4, q.shape), at), q.astype(np.int64) << (4 * (k // 8 % 4)))
    pad = [(0, width - s.shape[1]), (0, 0)]
    minus = -(s.astype(np.float32) * z).T
    return {"qweight": w.astype(np.uint16).view(np.int16), "scales": np.pad(s.T, pad),
            zeros: np.pad(minus.astype(s.dtype), pad)}


def dequantize_fast(t, rows, cols, g):
    o, k = grid(rows, cols)
    at = 64 * (k // 64) + 16 * (o % 4) + 8 * (k // 32 % 2) + k % 8
    q = nibble(t["qweight"], (o // 4, at), k // 8 % 4, 4)
    m = t["scaled_zeros" if "scaled_zeros" in t else "qzeros"]
    return (t["scales"][k // g, o].astype(np.float32) * q.astype(np.float32)
            + m[k // g, o].astype(np.float32)).astype(np.float32)


# --- GPTQ; g_idx [cols] is the group of each input
ONES = {4: 0x11111111, 8: 0x01010101}


def pack_gptq(q, z, s, bits, v1, g_idx=None):
    zeros = pack_along(z.T, bits, 1)
    if v1:  # from the whole word, so that a zero point of 0 borrows from its neighbour
        zeros = (zeros.view(np.uint32) - np.uint32(ONES[bits])).view(np.int32)
    t = {"qweight": pack_along(q.T, bits, 0), "qzeros": zeros, "scales": np.ascontiguousarray(s.T)}
    if g_idx is not None:
        t["g_idx"] = g_idx.astype(np.int32)
    return t


def dequantize_gptq(t, rows, cols, g, bits, v1):
    o, k = grid(rows, cols)
    per = 32 // bits
    group = t["g_idx"][k] if "g_idx" in t else k // g
    zeros = t["qzeros"].view(np.uint32)
    if v1:
        zeros = zeros + np.uint32(ONES[bits])
    q = nibble(t["qweight"], (k // per, o), k % per, bits)
    z = nibble(zeros, (group, o // per), o % per, bits)
    return product(t["scales"][group, o], q - z)


# --- compressed-tensors pack-quantized; zeros: None, "packed" or "int8"
def pack_compressed(q, z, s, bits, zeros, g_idx=None, shape_dtype=np.int64):
    t = {"weight_packed": pack_along(q, bits, 1), "weight_scale": s, "weight_shape": np.array(q.shape, shape_dtype)}
    if zeros == "packed":
        t["weight_zero_point"] = pack_along(z, bits, 0)
    if zeros == "int8":
        t["weight_zero_point"] = (z.astype(np.int64) - (1 << (bits - 1))).astype(np.int8)
    if g_idx is not None:
        t["weight_g_idx"] = g_idx.astype(np.int32)
    return t


def dequantize_compressed(t, rows, cols, g, bits):
    o, k = grid(rows, cols)
    per = 32 // bits
    group = k // g
    if "weight_g_idx" in t and t["weight_g_idx"].min() >= 0:
        group = t["weight_g_idx"][k]
    v = nibble(t["weight_packed"], (o, k // per), k % per, bits) - (1 << (bits - 1))
    z = t.get("weight_zero_point")
    if z is None:
        z = 0
    elif z.dtype == np.int8:
        z = z[o, group].astype(np.int64)
    else:
        z = nibble(z, (o // per, group), o % per, bits) - (1 << (bits - 1))
    return product(t["weight_scale"][o, group], v - z)


def product(s, difference):
    return s.astype(np.float32) * difference.astype(np.float32)


def quantize(w, g, bits, symmetric, dtype, g_idx=None):
    """Round to nearest, by groups of g inputs (or by g_idx): q, z, s."""
    rows, cols = w.shape
    groups = -(-cols // g)
    index = np.arange(cols) // g if g_idx is None else g_idx
    top = (1 << bits) - 1
    q, z, s = np.zeros(w.shape, np.int64), np.zeros((rows, groups), np.int64), np.zeros((rows, groups), np.float32)
    for j in range(groups):
        part = w[:, index == j]
        low, high = np.minimum(part.min(1), 0), np.maximum(part.max(1), 0)
        if symmetric:
            high = np.maximum(-low, high)
            low = -high
        s[:, j] = np.maximum((high - low) / top, 1e-6)
        scale = s[:, j].astype(dtype).astype(np.float32)
        s[:, j] = scale
        z[:, j] = (1 << (bits - 1)) if symmetric else np.clip(np.round(-low / scale), 0, top)
        q[:, index == j] = np.clip(np.round(part / scale[:, None]) + z[:, j:j + 1], 0, top)
    return q, z, s.astype(dtype)


def scattered(cols, g, rng):
    """The groups of inputs of an act-order file: as many members each as without."""
    index = np.arange(cols) // g
    return rng.permutation(index)
