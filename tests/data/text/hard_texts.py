"""Texts that tokenizers get wrong: every script, joined emoji, combining marks, blanks, digits, control spellings."""

import unicodedata

HARD = [
    "", " ", "  ", "   a", "a   ", "\n", "\r\n", "\r", "\t", "\n\n\n", " \n \n", "a\r\nb\r\n\r\nc", "\t\tif (x) {\n\t\t\treturn;\n\t\t}\n",
    "Hello", " Hello", "Hello world", "Hello, world! How are you?", "I'm sure they'll say we've won; he'd DON'T YOU'RE it's",
    "I’m ‘quoted’ “text” — dash … ellipsis", "'s 't 're 've 'm 'll 'd 'S 'T 'RE", "a'ſ b'K",
    "0", "1234567890", "3.14159", "1,000,000.00", "12 345 6789", "v1.2.3-rc4", "1a2b3c", "٠١٢٣٤٥٦٧٨٩", "½ ² ³ ¹ Ⅷ ① 〇 一二三",
    "CamelCaseWord snake_case_word kebab-case SCREAMING_CASE iPhone XMLHttpRequest",
    "def f(x: int) -> str:\n    return f\"{x!r}\"  # done\n", "#include <stdio.h>\nint main(void){return 0;}\n",
    "https://example.org/a?b=c&d=%20#frag user@example.com", "<html><body class=\"x\">&nbsp;</body></html>",
    "E = mc² ∑ ∫ √ ∞ ≠ ≤ ≥ ± × ÷ ∂ ∇ ∈ ∀ ∃", "$100 €50 £20 ¥1000 ₹5 ₿1", "!!! ??? ... --- ___ *** ### @@@ ~~~ ``` ||| \\\\\\ ///",
    "Größe façade naïve coöperate Ærøskøbing Łódź Şırnak İstanbul ıI ẞß ﬁ ﬂ Ǆ", "Привет, как дела? Съешь ещё этих мягких французских булок",
    "Γειά σου Κόσμε· τι κάνεις;", "שלום עולם", "שָׁלוֹם", "مرحبا بالعالم", "اَلسَّلَامُ عَلَيْكُمْ", "سلام دنیا می‌خواهم",
    "नमस्ते दुनिया", "क्षत्रिय ज्ञान", "বাংলা ভাষা", "தமிழ் மொழி", "తెలుగు", "ಕನ್ನಡ", "മലയാളം", "ગુજરાતી", "ਪੰਜਾਬੀ", "ଓଡ଼ିଆ", "සිංහල",
    "สวัสดีชาวโลก", "ລາວ", "မြန်မာဘာသာ", "ភាសាខ្មែរ", "བོད་སྐད།", "ქართული", "հայերեն", "አማርኛ", "ᏣᎳᎩ", "ᐃᓄᒃᑎᑐᑦ", "ᚠᚢᚦᚨᚱᚲ", "𐌰𐌱𐌲", "𓀀𓀁", "𒀀𒀁",
    "你好，世界！", "漢字かな交じり文。カタカナ", "ｶﾀｶﾅ ＡＢＣ１２３　全角", "안녕하세요 세계", "한글 자모", "𠮷野家 𪚥", "中文English混合123文字",
    "é é Å Å ñ ñ", "Z̷a̷l̷g̷o̷ t̴̡̢e̵̛x̶̧t̸", "a\u0301\u0302\u0303\u0304b", "\u0301start", "क\u093c \u0958", "\uac00 \u1100\u1161",
    "😀", "😀😃😄", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈 🏴‍☠️", "🇹🇼🇯🇵🇰🇷", "❤️ ☺︎", "🧑🏿‍🚀x👩‍❤️‍💋‍👨", "1️⃣2️⃣", "text😀text", " 😀 ",
    "\u00a0nbsp\u00a0", "\u2003em\u2003\u2003space", "\u200bzero\u200bwidth", "\ufeffbom", "\u3000ideographic", "a\u2028b\u2029c", "a\u0085b", "\u00ad soft", "‏rtl‎ltr",
    "\u0000nul\u0000", "\u0001\u0002\u001b[31mred\u001b[0m\u007f", "\ufffd\ufffe\uffff", "\U0010ffff", "a\u180eb \u180e", "ⓐⓑ a_b‿c क\u093fम", "\ue000 private",
    "<|im_start|>user\nHi<|im_end|>\n", "<|endoftext|>", "<|im_end|", "<|im_start|><|im_end|>", "x<|im_end|>y", " <|im_end|> ",
    "<s>", "</s>", "<s>[INST] Hi [/INST]</s>", "[INST]", "<unk>", "<pad>", "<0x41>", "▁", "▁▁a", "a▁b", "Ġa Ċ", "<|eot_id|>", "<repo_name>", "<empty_output>",
    "a" * 100, "ab" * 100, " " * 100, " " * 31 + "x", "\n" * 50, "\t" * 33, "1" * 100, "!" * 100, "=" * 77, "ä" * 60, "漢" * 60, "😀" * 40, "A" * 70, "aA" * 50,
    "the the the the", "The quick brown fox jumps over the lazy dog. " * 3,
    "word " * 50, "  two  spaces  between  words  ", "trailing newline\n", " leading", "mixed \t \n whitespace \r\n end \t",
    "Antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "supercalifragilisticexpialidocious" * 4,
]
# Code points of every block, so that no script is missed. Left out: surrogates, and characters newer than the Unicode
# tables of one of the libraries (tokenizers' normalizers; PCRE2 10.42 and Python 3.11 know Unicode 14).
NEWER = (0x1ABF, 0x1079D, 0x11A06, 0x11D97, 0x1CF09)


def known(c):
    return c not in NEWER and unicodedata.category(chr(c)) not in ("Cn", "Cs")


HARD += ["".join(chr(c) for c in range(b, b + 0x400, 0x25) if known(c)) for b in range(0, 0x20000, 0x400)]
HARD = [t for i, t in enumerate(HARD) if t or i == 0] + ["\u0378\u0379 \U0001ffff"]
HARD += [chr(b) for b in range(256)]

INVALID = [bytes([b]) for b in range(128, 256)] + [
    b"a\xffb", b"\xe4\xbd", b"\xe4\xbd\xa0\xe5", b"\xf0\x9f\x98", b"\xf0\x9f\x98a", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80",
    b"\xe0\x80\x80", b"\x80\x80\x80", b"ok \xf0\x9f\x98\x80 \xf0\x28\x8c\x28 end", b"\xfe\xff", b"\xef\xbb", b" \xc3",
]

LONG = [("a", 1_000_000), (" ", 1_000_000), ("😀", 250_000), ("\n", 100_000), ("1", 100_000), ("ab", 200_000), ("é", 100_000), ("word ", 100_000)]


def run_lengths(ids):
    out = []
    for i in ids:
        if out and out[-1][0] == i:
            out[-1][1] += 1
        else:
            out.append([int(i), 1])
    return out
