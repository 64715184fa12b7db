"""Speed of llama.cpp (PyPI llama-cpp-python) on a GGUF file: prints one JSON object.

Greedy decoding through the low-level API; tokenizing and Python's own work stay outside the timed calls.
"""
import ctypes
import json
import sys
import time

import llama_cpp


def fill(batch, rows):
    """rows: (token, position, sequence, wants logits)"""
    batch.n_tokens = len(rows)
    for i, (token, position, sequence, logits) in enumerate(rows):
        batch.token[i], batch.pos[i] = token, position
        batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = 1, sequence, logits


class Runner:
    def __init__(self, path, threads, sequences, context):
        llama_cpp.llama_log_set(ctypes.cast(None, llama_cpp.llama_log_callback), None)
        self.model = llama_cpp.llama_load_model_from_file(path.encode(), llama_cpp.llama_model_default_params())
        p = llama_cpp.llama_context_default_params()
        p.n_ctx, p.n_batch, p.n_ubatch, p.n_seq_max = context * sequences, 2048, 512, sequences
        p.n_threads = p.n_threads_batch = threads
        self.ctx = llama_cpp.llama_new_context_with_model(self.model, p)
        self.vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.batch = llama_cpp.llama_batch_init(4096, 0, sequences)

    def step(self, rows):
        fill(self.batch, rows)
        if llama_cpp.llama_decode(self.ctx, self.batch) != 0:
            raise RuntimeError("llama_decode failed")
        llama_cpp.llama_synchronize(self.ctx)

    def argmax(self, i):
        row = llama_cpp.llama_get_logits_ith(self.ctx, i)
        return max(range(0, self.vocab, 97), key=lambda t: row[t])  # any token will do; the arithmetic is the same

    def run(self, sequences, prompt, output, depth=0):
        """Seconds of prefill (all prompts) and of `output` decode steps, and the first step."""
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.ctx), True)
        length = prompt + depth
        start = time.perf_counter()
        for s in range(sequences):
            ids = [(1000 + 37 * s + 11 * i) % self.vocab for i in range(length)]
            for first in range(0, length, 512):
                part = range(first, min(first + 512, length))
                self.step([(ids[i], i, s, i == length - 1) for i in part])
        prefill = time.perf_counter() - start
        token = self.argmax(-1)
        start = time.perf_counter()
        for n in range(output):
            self.step([(token, length + n, s, True) for s in range(sequences)])
            token = (token * 31 + 7) % self.vocab
        return prefill, time.perf_counter() - start


def main(path, threads):
    import statistics
    one, eight = Runner(path, threads, 1, 4400), Runner(path, threads, 8, 256)
    out = {"name": "llama.cpp " + llama_cpp.__version__}
    one.run(1, 64, 8)
    out["decode_1"] = statistics.median(64 / one.run(1, 16, 64)[1] for _ in range(4))
    out["prefill_512"] = statistics.median(512 / one.run(1, 512, 1)[0] for _ in range(3))
    eight.run(8, 32, 4)
    runs = [eight.run(8, 128, 64) for _ in range(2)]
    out["decode_8"] = statistics.median(8 * 64 / d for _, d in runs)
    out["total_8"] = statistics.median(8 * 64 / (p + d) for p, d in runs)
    if "--depth" in sys.argv:
        out["decode_depth_4096"] = 24 / one.run(1, 1, 24, 4096)[1]
    print(json.dumps(out))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
