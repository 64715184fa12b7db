"""Trains small tokenizer.json files of the shapes that models use, and writes what the tokenizers library makes of hard
texts: json_NAME.json (the tokenizer) and json_NAME.expected.json (ids). Texts: hard.json.
"""
import json
import pathlib

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from hard_texts import HARD

HERE = pathlib.Path(__file__).parent
# Without "<": a merge through a control token's spelling is one that Recto refuses by design.
CORPUS = [t for t in HARD if len(t) > 1 and "<" not in t] * 3
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTION + "?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTION + "?"
         r"|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
BYTES = [f"<0x{b:02X}>" for b in range(256)]


def byte_level(steps, normalizer=None, size=700):
    tok = Tokenizer(models.BPE())
    if normalizer:
        tok.normalizer = normalizer
    tok.pre_tokenizer = steps
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=SPECIAL, show_progress=False))
    return tok


def byte_fallback(normalizer, steps, decoder, size=700):
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.normalizer = normalizer
    if steps:
        tok.pre_tokenizer = steps
    tok.decoder = decoder
    # A small alphabet, so that most scripts fall back to bytes.
    tok.train_from_iterator([t for t in CORPUS if t.isascii() or "é" in t or "é" in t], trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL + BYTES, limit_alphabet=90, show_progress=False))
    data = json.loads(tok.to_str())
    data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] not in BYTES]
    return Tokenizer.from_str(json.dumps(data))


def bos(tok, then=None):
    template = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", tok.token_to_id("<s>"))])
    tok.post_processor = processors.Sequence([then, template]) if then else template
    return tok


def variants():
    split = pre_tokenizers.Split
    level = pre_tokenizers.ByteLevel
    seq = pre_tokenizers.Sequence
    yield "gpt2", byte_level(level(add_prefix_space=False))
    yield "prefix", byte_level(level(add_prefix_space=True))
    llama3 = byte_level(seq([split(Regex(LLAMA3), "isolated"), level(add_prefix_space=False, use_regex=False)]))
    data = json.loads(llama3.to_str())
    data["model"]["ignore_merges"] = True
    # A word that no merge reaches: only ignore_merges finds it.
    data["model"]["vocab"]["Ġsupercali"] = len(data["model"]["vocab"])
    data["model"]["vocab"]["Hello"] = len(data["model"]["vocab"])
    data["model"]["merges"] = [m for m in data["model"]["merges"] if "".join(m) != "Hello"]
    yield "llama3", bos(Tokenizer.from_str(json.dumps(data)), processors.ByteLevel(trim_offsets=False))
    yield "qwen2", byte_level(seq([split(Regex(QWEN2), "isolated"), level(add_prefix_space=False, use_regex=False)]), normalizers.NFC())
    yield "smollm", byte_level(seq([pre_tokenizers.Digits(individual_digits=True), level(add_prefix_space=False)]))
    yield "falcon", byte_level(seq([pre_tokenizers.Punctuation("contiguous"), level(add_prefix_space=False),
                                    pre_tokenizers.Digits(individual_digits=False), split(Regex("[0-9][0-9][0-9]"), "isolated")]))
    yield "cased", byte_level(seq([split(Regex(CASED), "removed", invert=True), level(add_prefix_space=False, use_regex=False)]))
    yield "splits", byte_level(seq([split(Regex(r"[\r\n]"), "merged_with_previous"), split(",", "merged_with_next"), split(Regex(r"\s+$"), "contiguous"),
                                    pre_tokenizers.Punctuation("isolated"), level(add_prefix_space=False, use_regex=False)]))
    llama_decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    yield "llama2", bos(byte_fallback(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None, llama_decoder))
    yield "metaspace_first", bos(byte_fallback(normalizers.Sequence([]), pre_tokenizers.Metaspace(prepend_scheme="first", split=False), llama_decoder))
    yield "metaspace_always", byte_fallback(normalizers.NFKC(), pre_tokenizers.Metaspace(prepend_scheme="always", split=True), decoders.Metaspace(prepend_scheme="always"))
    gemma = byte_fallback(normalizers.Replace(" ", "▁"), split(" ", "merged_with_previous"),
                          decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]))
    gemma.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("\n\n\n", normalized=False), AddedToken("<unused0>", normalized=False)])
    yield "gemma", gemma
    words = byte_fallback(normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip(), normalizers.Replace(Regex(r"\d+"), "#")]),
                          seq([pre_tokenizers.Whitespace()]), llama_decoder)
    words.add_tokens([AddedToken("hello", single_word=True, normalized=True), AddedToken("world", normalized=False, rstrip=True),
                      AddedToken("over", normalized=False, lstrip=True, rstrip=True), AddedToken("two", normalized=False, single_word=True, lstrip=True)])
    yield "rules", words


def expected(tok):
    out = {"source": f"tokenizers {tokenizers.__version__}", "size": max(tok.get_vocab().values()) + 1, "plain": [], "special": [], "with_bos": [], "decoded": []}
    for text in HARD:
        tok.encode_special_tokens = True
        plain = tok.encode(text, add_special_tokens=False).ids
        tok.encode_special_tokens = False
        out["plain"].append(plain)
        out["decoded"].append(tok.decode(plain, skip_special_tokens=False))
        if "<" in text:
            out["special"].append([text, tok.encode(text, add_special_tokens=False).ids])
    out["with_bos"] = tok.encode("Hello world", add_special_tokens=True).ids
    return out


(HERE / "hard.json").write_text(json.dumps(HARD, separators=(",", ":")) + "\n")
for name, tok in variants():
    data = json.loads(tok.to_str())
    exp = expected(tok)
    # Where the decoded text is the text itself, say so briefly.
    exp["decoded"] = [None if d == t else d for d, t in zip(exp["decoded"], HARD)]
    (HERE / f"json_{name}.json").write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")
    (HERE / f"json_{name}.expected.json").write_text(json.dumps(exp, separators=(",", ":")) + "\n")
    print(name, exp["size"], (HERE / f"json_{name}.json").stat().st_size, (HERE / f"json_{name}.expected.json").stat().st_size)
