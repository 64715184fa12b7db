"""Writes starter.json: what llama.cpp (through llama-cpp-python) makes of hard texts with the starter model's vocabulary.

Usage: make_starter.py MODEL.gguf. Text that is not UTF-8 is given to llama.cpp with U+FFFD for each maximal bad part,
by Python's decoder.
"""
import json
import pathlib
import sys

import llama_cpp

from hard_texts import HARD, INVALID, LONG, run_lengths

llama = llama_cpp.Llama(sys.argv[1], vocab_only=True, verbose=False)


def ids(text, special):
    return llama.tokenize(text.encode(), add_bos=False, special=special)


cases = [{"text": t, "ids": ids(t, False)} for t in HARD]
cases += [{"text": t, "special": True, "ids": ids(t, True)} for t in HARD if "<" in t]
cases += [{"hex": b.hex(), "ids": ids(b.decode(errors="replace"), False)} for b in INVALID]
long = [{"unit": u, "count": n, "runs": run_lengths(ids(u * n, False))} for u, n in LONG]
long = [c if len(c["runs"]) < 400 else {**c, "runs": c["runs"][:200], "partial": True} for c in long]
out = {"source": f"llama-cpp-python {llama_cpp.__version__}", "cases": cases, "long": long}
path = pathlib.Path(__file__).parent / "starter.json"
path.write_text(json.dumps(out, separators=(",", ":")) + "\n")
print(path, path.stat().st_size)
