#!/usr/bin/env python3
"""Perplexity of text.txt under the starter model, by numpy_llama.py in float64.

  make_perplexity_expected.py STARTER.gguf > starter_perplexity.json

Windows of N consecutive tokens that do not overlap; every token of a window but its first is scored. The ids are
those of starter_ids.json (llama.cpp's tokenizer). One entry a context: perplexity, standard error, tokens scored.
"""
import json
import sys

import numpy as np

from numpy_llama import Model

model = Model(sys.argv[1], np.float64)
ids = json.load(open(sys.path[0] + "/starter_ids.json"))
entries = []
for context in (64, 200, 2048):
    nll, windows = [], 0
    for first in range(0, len(ids), context):
        window = ids[first:first + context]
        if len(window) < 2:
            break
        windows += 1
        model.reset()
        logits = model.forward(window)[:-1]
        top = logits.max(-1, keepdims=True)
        log_sum = top[:, 0] + np.log(np.exp(logits - top).sum(-1))
        nll += list(log_sum - logits[np.arange(len(window) - 1), window[1:]])
    nll = np.array(nll)
    entries.append({"context": context, "windows": windows, "tokens": len(nll), "perplexity": float(np.exp(nll.mean())),
                    "standard_error": float(np.exp(nll.mean()) * nll.std(ddof=1) / np.sqrt(len(nll)))})
json.dump(entries, sys.stdout, indent=1)
print()
