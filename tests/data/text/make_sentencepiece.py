"""Trains small SentencePiece models (sp_NAME.model) and writes what the library makes of hard texts
(sp_NAME.expected.json). Texts: hard.json, and bytes that are no UTF-8.
"""
import json
import pathlib

import sentencepiece as spm

from hard_texts import HARD, INVALID

HERE = pathlib.Path(__file__).parent
LINES = [line for t in HARD for line in t.split("\n") if len(line) > 1 and "\0" not in line]
# English weighs most, so that the alphabet leaves most scripts to the bytes.
CORPUS = LINES + [line for line in LINES if line.isascii()] * 400
COMMON = dict(sentence_iterator=None, minloglevel=2, hard_vocab_limit=False, num_threads=1)
MODELS = {
    "llama": dict(model_type="bpe", vocab_size=900, byte_fallback=True, normalization_rule_name="identity", character_coverage=0.98,
                  remove_extra_whitespaces=False, control_symbols=["[INST]", "[/INST]"], user_defined_symbols=["<tool>", "▁▁▁"]),
    "gemma": dict(model_type="bpe", vocab_size=900, byte_fallback=True, normalization_rule_name="identity", character_coverage=0.98,
                  remove_extra_whitespaces=False, add_dummy_prefix=False, pad_id=3,
                  user_defined_symbols=["\n\n", "▁▁", "▁▁▁", "<start_of_turn>", "<end_of_turn>"]),
    "unigram": dict(model_type="unigram", vocab_size=900, normalization_rule_name="nmt_nfkc", character_coverage=0.98),
}

for name, options in MODELS.items():
    prefix = str(HERE / f"sp_{name}")
    spm.SentencePieceTrainer.train(**{**COMMON, **options, "sentence_iterator": iter(CORPUS), "model_prefix": prefix})
    (HERE / f"sp_{name}.vocab").unlink()
    sp = spm.SentencePieceProcessor(model_file=prefix + ".model")
    # The same model without the dummy prefix, for text behind a control token.
    inner = spm.SentencePieceProcessor(model_proto=(HERE / f"sp_{name}.model").read_bytes() + b"\x1a\x02\x18\x00")
    out = {
        "source": f"sentencepiece {spm.__version__}", "size": sp.get_piece_size(), "bos": sp.bos_id(), "eos": sp.eos_id(),
        "ids": [sp.encode(t) for t in HARD],
        "inner": [inner.encode(t) for t in HARD],
        "decoded": [sp.decode(sp.encode(t)) for t in HARD],
        "invalid": [[b.hex(), sp.encode(b)] for b in INVALID],
        "bytes": [[i, sp.id_to_piece(i)] for i in range(0, sp.get_piece_size(), 7)],
    }
    out["decoded"] = [None if d == t else d for d, t in zip(out["decoded"], HARD)]
    (HERE / f"sp_{name}.expected.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")
    print(name, out["size"], (HERE / f"sp_{name}.model").stat().st_size)
