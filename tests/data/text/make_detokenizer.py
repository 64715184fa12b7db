"""Writes detokenizer.json: bytes, and what Python's bytes.decode(errors="replace") makes of them."""
import json
import pathlib
import platform
import random

from hard_texts import INVALID

random.seed(11)
cases = list(INVALID)
for lead in range(0x80, 0x100):
    for second in (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0):
        cases.append(bytes([lead, second, 0x80, 0x41]))
for _ in range(300):
    cases.append(b"".join(random.choice([bytes([random.randrange(256)]), "é漢😀a"[random.randrange(4)].encode()]) for _ in range(random.randrange(12))))
out = {"source": f"Python {platform.python_version()}", "cases": [[b.hex(), b.decode(errors="replace")] for b in cases]}
path = pathlib.Path(__file__).parent / "detokenizer.json"
path.write_text(json.dumps(out, separators=(",", ":")) + "\n")
print(path, path.stat().st_size)
