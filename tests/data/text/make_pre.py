"""Writes pre.json: for each pre-tokenizer name, a short hash of the ids that llama.cpp gives for each hard text, with the
starter model's vocabulary under that name. Qwen2's own tokenizer normalizes to NFC first, which llama.cpp leaves out:
its texts are normalized here, by Python.

Usage: make_pre.py MODEL.gguf
"""
import json
import pathlib
import sys
import tempfile
import unicodedata

import gguf
import llama_cpp

from hard_texts import HARD

NAMES = ["default", "llama-bpe", "falcon3", "dbrx", "smaug-bpe", "qwen2", "deepseek-r1-qwen", "megrez", "stablelm2", "smollm", "starcoder", "refact",
         "command-r", "codeshell", "minerva-7b", "exaone", "gpt-2", "phi-2", "mpt", "olmo", "jais", "gpt-4o", "llama4", "tekken", "deepseek-llm",
         "deepseek-coder", "deepseek-v3", "falcon"]


def fnv(ids):
    h = 0xCBF29CE484222325
    for b in ",".join(map(str, ids)).encode():
        h = ((h ^ b) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h & 0xFFFFFFFF


def with_pre(model, name, path):
    reader = gguf.GGUFReader(model)
    writer = gguf.GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        value = name if field.name == "tokenizer.ggml.pre" else field.contents()
        kind = field.types[0]
        writer.add_key_value(field.name, value, kind, field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


out = {"source": f"llama-cpp-python {llama_cpp.__version__}", "names": {}}
for name in NAMES:
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/vocab.gguf"
        with_pre(sys.argv[1], name, path)
        llama = llama_cpp.Llama(path, vocab_only=True, verbose=False)
        texts = [unicodedata.normalize("NFC", t) if name == "qwen2" else t for t in HARD]
        out["names"][name] = [fnv(llama.tokenize(t.encode(), add_bos=False, special=False)) for t in texts]
path = pathlib.Path(__file__).parent / "pre.json"
path.write_text(json.dumps(out, separators=(",", ":")) + "\n")
print(path, path.stat().st_size)
