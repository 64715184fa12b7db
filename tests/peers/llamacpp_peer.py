"""llama.cpp (PyPI llama-cpp-python) as a side of the comparison; see sides.py for the protocol.

Through the low-level API, greedy: tokenizing and Python's own work stay outside the timed calls.
"""
import ctypes
import time

import sides

with sides.imports():
    import llama_cpp


class Context:
    def __init__(self, model, threads, sequences, tokens):
        p = llama_cpp.llama_context_default_params()
        p.n_ctx, p.n_batch, p.n_ubatch, p.n_seq_max = tokens * sequences, 2048, 512, sequences
        p.n_threads = p.n_threads_batch = threads
        self.ctx = llama_cpp.llama_new_context_with_model(model, p)
        self.vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
        self.batch = llama_cpp.llama_batch_init(4096, 0, sequences)

    def step(self, rows):
        """rows: (token, position, sequence, wants logits)"""
        b = self.batch
        b.n_tokens = len(rows)
        for i, (token, position, sequence, logits) in enumerate(rows):
            b.token[i], b.pos[i] = token, position
            b.n_seq_id[i], b.seq_id[i][0], b.logits[i] = 1, sequence, logits
        if llama_cpp.llama_decode(self.ctx, b) != 0:
            raise RuntimeError("llama_decode failed")
        llama_cpp.llama_synchronize(self.ctx)

    def run(self, sequences, prompt, output, seed):
        """Seconds of prefill (all prompts) and of `output` decode steps."""
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.ctx), True)
        start = time.perf_counter()
        for s in range(sequences):
            ids = [(1000 + 37 * s + 11 * i + 101 * seed) % self.vocab for i in range(prompt)]
            for first in range(0, prompt, 512):
                part = range(first, min(first + 512, prompt))
                self.step([(ids[i], i, s, i == prompt - 1) for i in part])
        prefill = time.perf_counter() - start
        token = 1000 + seed  # any will do: the arithmetic is the same
        start = time.perf_counter()
        for n in range(output):
            self.step([(token, prompt + n, s, True) for s in range(sequences)])
            token = (token * 31 + 7) % self.vocab
        return prefill, time.perf_counter() - start


class LlamaCpp:
    name = "llama.cpp " + llama_cpp.__version__

    def __init__(self, model, threads):
        llama_cpp.llama_log_set(ctypes.cast(None, llama_cpp.llama_log_callback), None)
        self.model = llama_cpp.llama_load_model_from_file(model.encode(), llama_cpp.llama_model_default_params())
        if not self.model:
            raise RuntimeError("cannot read " + model)
        self.threads = threads
        self.contexts = {}

    def context(self, sequences, tokens):
        key = sequences, tokens
        if key not in self.contexts:
            self.contexts[key] = Context(self.model, self.threads, sequences, tokens)
            self.contexts[key].run(sequences, 32, 4, 0)
        return self.contexts[key]

    def first_token(self):
        Context(self.model, self.threads, 1, 512).run(1, 16, 0, 0)

    def decode_1(self, seed):
        return {"decode_1": 64 / self.context(1, 4400).run(1, 128, 64, seed)[1]}

    def prefill_512(self, seed):
        return {"prefill_512": 512 / self.context(1, 4400).run(1, 512, 0, seed)[0]}

    def eight(self, seed):
        prefill, decode = self.context(8, 256).run(8, 128, 64, seed)
        return {"decode_8": 8 * 64 / decode, "total_8": 8 * 64 / (prefill + decode)}

    def depth(self, seed):
        return {"depth": 24 / self.context(1, 4400).run(1, 4096, 24, seed)[1]}


sides.serve(LlamaCpp)
