"""An independent forward of Llama and Qwen2 GGUF files in NumPy, written from the models' published definition.

Weights are dequantized by the `gguf` package; everything else is float64 (or float32 for speed).
"""
import gguf
import numpy as np


class Model:
    def __init__(self, path, dtype=np.float64):
        reader = gguf.GGUFReader(path)
        field = lambda key: reader.fields[key].contents()
        self.arch = arch = field("general.architecture")
        self.layers = field(f"{arch}.block_count")
        self.hidden = field(f"{arch}.embedding_length")
        self.heads = field(f"{arch}.attention.head_count")
        self.kv_heads = field(f"{arch}.attention.head_count_kv")
        self.eps = field(f"{arch}.attention.layer_norm_rms_epsilon")
        self.dim = self.hidden // self.heads
        theta = field(f"{arch}.rope.freq_base")
        self.inv_freq = theta ** (-np.arange(0, self.dim, 2, dtype=np.float64) / self.dim)
        self.w = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(dtype).reshape(t.shape[::-1]) for t in reader.tensors}
        self.dtype = dtype
        self.reset()

    def reset(self):
        self.k = [np.zeros((0, self.kv_heads, self.dim), self.dtype) for _ in range(self.layers)]
        self.v = [np.zeros((0, self.kv_heads, self.dim), self.dtype) for _ in range(self.layers)]

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * self.w[name]

    def linear(self, x, name):
        y = x @ self.w[name + ".weight"].T
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def rope(self, x, first):
        angle = (first + np.arange(x.shape[0]))[:, None] * self.inv_freq  # [n, d/2]
        c, s = np.cos(angle)[:, None].astype(self.dtype), np.sin(angle)[:, None].astype(self.dtype)
        if self.arch == "llama":  # the file's rows are ordered for neighbouring pairs
            a, b = x[..., 0::2], x[..., 1::2]
            out = np.empty_like(x)
            out[..., 0::2], out[..., 1::2] = a * c - b * s, a * s + b * c
            return out
        a, b = x[..., : self.dim // 2], x[..., self.dim // 2:]
        return np.concatenate([a * c - b * s, a * s + b * c], -1)

    def forward(self, ids):
        """Logits [n, vocab] of the next n tokens; keys and values are kept."""
        first, n = self.k[0].shape[0], len(ids)
        x = self.w["token_embd.weight"][ids]
        for i in range(self.layers):
            p = f"blk.{i}."
            h = self.norm(x, p + "attn_norm.weight")
            q = self.rope(self.linear(h, p + "attn_q").reshape(n, self.heads, self.dim), first)
            k = self.rope(self.linear(h, p + "attn_k").reshape(n, self.kv_heads, self.dim), first)
            v = self.linear(h, p + "attn_v").reshape(n, self.kv_heads, self.dim)
            self.k[i], self.v[i] = np.concatenate([self.k[i], k]), np.concatenate([self.v[i], v])
            group = self.heads // self.kv_heads
            kk, vv = np.repeat(self.k[i], group, 1), np.repeat(self.v[i], group, 1)
            scores = np.einsum("qhd,khd->hqk", q, kk) / np.sqrt(self.dim)
            mask = np.arange(first + n)[None] > (first + np.arange(n))[:, None]
            scores = np.where(mask, -np.inf, scores)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            x = x + self.linear(np.einsum("hqk,khd->qhd", scores, vv).reshape(n, -1), p + "attn_output")
            h = self.norm(x, p + "ffn_norm.weight")
            gate = self.linear(h, p + "ffn_gate")
            x = x + self.linear(gate / (1 + np.exp(-gate)) * self.linear(h, p + "ffn_up"), p + "ffn_down")
        h = self.norm(x, "output_norm.weight")
        head = "output" if "output.weight" in self.w else "token_embd"
        return h @ self.w[head + ".weight"].T
