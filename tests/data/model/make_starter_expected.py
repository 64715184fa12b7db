#!/usr/bin/env python3
"""Logits and greedy text of the starter model from numpy_llama.py, stored small enough to keep.

  make_starter_expected.py STARTER.gguf OUT_DIR

starter_ids.json      token ids of text.txt (by llama.cpp's tokenizer), at least 512
starter_logits.bin    for each position: float32 log-sum-exp, then the 64 largest logits as (int32 id, float32 logit)
starter_greedy.json   10 prompts: ids and 64 greedy tokens each, with the smallest gap between best and second best
"""
import json
import struct
import sys

import numpy as np

from numpy_llama import Model

PROMPTS = [
    "The capital of France is", "Once upon a time there was a", "def fibonacci(n):", "Water boils at a temperature of",
    "The three primary colours are", "In 1969, the first humans", "A good recipe for bread begins with", "Q: What is 12 times 12? A:",
    "The largest planet in the solar system", "Dear John, I am writing to you because",
]
KEPT = 64


def main(path, out):
    from llama_cpp import Llama
    tokenizer = Llama(path, vocab_only=True, verbose=False)
    model = Model(path, np.float64)
    ids = tokenizer.tokenize(open(sys.path[0] + "/text.txt", "rb").read(), add_bos=False)
    assert len(ids) >= 512, len(ids)
    json.dump(ids, open(out + "/starter_ids.json", "w"))
    logits = model.forward(ids)
    with open(out + "/starter_logits.bin", "wb") as f:
        for row in logits:
            best = np.argsort(-row)[:KEPT]
            f.write(struct.pack("<f", row.max() + np.log(np.exp(row - row.max()).sum())))
            for i in best:
                f.write(struct.pack("<if", i, row[i]))
    print(len(ids), "positions, logits' std", logits.std())
    np.save("/tmp/starter_logits_full.npy", logits.astype(np.float32))
    answers = []
    for prompt in PROMPTS:
        prompt_ids = tokenizer.tokenize(prompt.encode(), add_bos=False)
        model.reset()
        row, tokens, gap = model.forward(prompt_ids)[-1], [], np.inf
        for _ in range(64):
            best = np.argsort(-row)[:2]
            gap = min(gap, row[best[0]] - row[best[1]])
            tokens.append(int(best[0]))
            row = model.forward([tokens[-1]])[-1]
        answers.append({"prompt": prompt, "ids": prompt_ids, "greedy": tokens, "smallest_gap": float(gap)})
        print(prompt, "→", tokenizer.detokenize(tokens).decode(errors="replace")[:60], gap)
    json.dump(answers, open(out + "/starter_greedy.json", "w"))


if __name__ == "__main__":
    main(*sys.argv[1:])
