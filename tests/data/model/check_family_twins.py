#!/usr/bin/env python3
"""Runs the twin.gguf files of make_tiny_families.py in llama.cpp and compares with transformers' stored logits.

  check_family_twins.py DIR      (llama-cpp-python, numpy)

The bound is llama.cpp's own rounding: it narrows activations to the type of the weights (FP16, BF16) and the cache to FP16.
"""
import json
import os
import sys

import numpy as np
from llama_cpp import Llama

worst = 0
for name in sorted(os.listdir(sys.argv[1])):
    folder = os.path.join(sys.argv[1], name)
    twin = os.path.join(folder, "twin.gguf")
    if not os.path.exists(twin):
        continue
    ids = json.load(open(os.path.join(folder, "ids.json")))
    expected = np.fromfile(os.path.join(folder, "logits.f32"), "<f4").reshape(-1, 128)
    model = Llama(twin, n_ctx=512, n_batch=512, logits_all=True, verbose=False, n_threads=1)
    model.eval(ids)
    found = model.scores[:len(ids):3]
    error = float(np.abs(found - expected).max() / expected.std())
    worst = max(worst, error)
    print(f"{name:20} largest error {error:.4f} standard deviations of the logits")
sys.exit(worst > 0.15)
