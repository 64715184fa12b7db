"""Recto beside its peers on this machine, in one run; prints one table. Started by tests/peers/run.

Sides take turns measure by measure, each while the others sleep, and the middle of the repeats counts.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = [
    ("decode_1", "decode, 1 sequence (128 in, 64 out), tok/s"),
    ("decode_8", "decode, 8 sequences, tok/s"),
    ("total_8", "8 x (128 in, 64 out), tok/s over all"),
    ("prefill_512", "prefill of 512, tok/s"),
    ("depth", "decode at depth 4,096, tok/s"),
    ("first_token", "start to first token, s"),
]


class Recto:
    def __init__(self, cli, model, threads):
        self.command = [cli, "bench", "--model", model, "--threads", str(threads), "--repeats", "2"]
        self.first = [cli, "generate", "--model", model, "--threads", str(threads), "--prompt", "Say hello to me, please.",
                      "--max-tokens", "1"]
        self.header = None
        self.name = "Recto"

    def bench(self, seed, *shape):
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            subprocess.run([*self.command, "--seed", str(seed), *shape, "--json", out.name], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            report = json.load(open(out.name))
        self.header = report["header"]
        return {k: v["median"] for k, v in report["rows"][0].items() if isinstance(v, dict) and "median" in v}

    def measure(self, name, seed):
        shape = lambda n, prompt, output: ("--sequences", n, "--prompt-tokens", prompt, "--output-tokens", output)
        if name == "decode_1":
            return {"decode_1": self.bench(seed, *shape("1", "128", "64"))["decode_tok_s"]}
        if name == "prefill_512":
            return {"prefill_512": self.bench(seed, *shape("1", "512", "2"))["prefill_tok_s"]}
        if name == "depth":
            return {"depth": self.bench(seed, *shape("1", "1", "24"), "--depth", "4096")["decode_tok_s"]}
        row = self.bench(seed, *shape("8", "128", "64"))
        return {"decode_8": row["total_decode_tok_s"], "total_8": row["total_tok_s"]}

    def first_token(self):
        start = time.perf_counter()
        subprocess.run(self.first, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return time.perf_counter() - start


class Peer:
    """A process of sides.py. A peer that cannot read the model drops out with its last words."""

    def __init__(self, script, model, threads):
        self.command = [sys.executable, os.path.join(HERE, script), model, str(threads)]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        self.name = self.answer()["name"]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            words = [w for w in self.errors.read().splitlines() if w.strip()]
            raise RuntimeError(words[-1] if words else "ended without an answer")
        return json.loads(line)

    def measure(self, name, seed):
        self.process.stdin.write(f"{name} {seed}\n")
        self.process.stdin.flush()
        return self.answer()

    def first_token(self):
        done = subprocess.run([*self.command, "first_token"], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)["first_token"]

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def start_sides(cli, model, threads):
    sides, absent = [Recto(cli, model, threads)], []
    for script in ("llamacpp_peer.py", "openvino_peer.py"):
        try:
            sides.append(Peer(script, model, threads))
        except RuntimeError as error:
            absent.append(f"{script.split('_')[0]}: {error}")
    return sides, absent


def compare(sides, measures, repeats):
    """{row: [values a side]}; a side that fails in one measure has None there."""
    found = {}
    for repeat in range(repeats):
        for name in measures:
            for i, side in enumerate(sides):
                values = {"first_token": side.first_token()} if name == "first_token" else side.measure(name, 1 + repeat)
                for row, value in values.items():
                    found.setdefault(row, [[] for _ in sides])[i].append(value)
    return {row: [statistics.median(v) if v else None for v in values] for row, values in found.items()}


def print_table(title, sides, rows, absent):
    print(f"\n{title}")
    print(f"{'':44}" + "".join(f"{s.name:>26}" for s in sides) + f"{'to the better':>15}")
    for key, label in ROWS:
        if key not in rows:
            continue
        values = rows[key]
        others = [v for v in values[1:] if v]
        seconds = key == "first_token"
        ratio = ""
        if others:
            ratio = f"{min(others) / values[0] if seconds else values[0] / max(others):.2f}"
        print(f"{label:44}" + "".join(f"{v:26.3f}" if seconds else f"{v:26.1f}" for v in values) + f"{ratio:>15}")
    for line in absent:
        print(f"not measured: {line}")


def read_ceiling(cli, threads):
    """Bytes a second that all cores read, as `kernels --bench` measures it."""
    out = subprocess.run([cli, "kernels", "--bench", "ceilings only", "--threads", str(threads)], check=True,
                         capture_output=True, text=True).stdout
    words = next(line for line in out.splitlines() if line.startswith("measured ceilings")).split()
    return float(words[words.index("GB/s") - 1]) * 1e9


def weight_bytes(model):
    """What a token reads where the embedding is the output matrix too: all of the file, or of the folder's tensors."""
    if os.path.isfile(model):
        return os.path.getsize(model)
    return sum(os.path.getsize(os.path.join(model, f)) for f in os.listdir(model) if f.endswith(".safetensors"))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--threads", type=int, required=True)
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--model", required=True)
    p.add_argument("--large", nargs="*", default=[], help="1B-class models: decode of one sequence only")
    o = p.parse_args()
    sides, absent = start_sides(o.cli, o.model, o.threads)
    rows = compare(sides, ["decode_1", "eight", "prefill_512", "depth", "first_token"], o.repeats)
    h = sides[0].header
    print(f"{h['model']} on {h['device']}, {h['threads']} threads, {h['kernels']}; median of {o.repeats} runs a side")
    print_table("", sides, rows, absent)
    print("Peers' first token is counted from the loading of the model; ours from the start of the process.")
    for side in sides[1:]:
        side.stop()
    for model in o.large:
        sides, absent = start_sides(o.cli, model, o.threads)
        rows = compare(sides, ["decode_1"], o.repeats)
        print_table(os.path.basename(model.rstrip("/")), sides, rows, absent)
        ceiling = read_ceiling(o.cli, o.threads)
        limit = ceiling / weight_bytes(model)
        print(f"memory reads {ceiling * 1e-9:.1f} GB/s, so at most {limit:.1f} tok/s; "
              f"Recto reaches {100 * rows['decode_1'][0] / limit:.0f} %")
        for side in sides[1:]:
            side.stop()


if __name__ == "__main__":
    main()
