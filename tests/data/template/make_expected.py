"""Writes the expected texts of this folder with Python's jinja2 under Hugging Face's settings.

Reads cases.json (families: templates in *.jinja, message sets, variables), expressions.txt and, for the starter
model's own template, a GGUF file named on the command line. Writes expected.json and expressions.json.
"""
import datetime
import json
import re
import sys
from pathlib import Path

import jinja2
import jinja2.ext
import jinja2.sandbox

HERE = Path(__file__).parent
NOW = 1750000000  # 2025-06-15 15:06:40 UTC


class Generation(jinja2.ext.Extension):
    """{% generation %}: a block that prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(format):
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).replace(tzinfo=None).strftime(format)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


def render(source, messages, variables):
    """The text, or None when jinja2 (or Python) refuses, and for what no prompt can hold: addresses, surrogates."""
    messages = [{k: v for k, v in m.items() if v is not None} if isinstance(m, dict) else m for m in messages]
    values = {"tools": None, "documents": None, "add_generation_prompt": True, "bos_token": "", "eos_token": ""}
    values.update(variables)
    try:
        text = environment().from_string(source).render(messages=messages, **values)
        text.encode()
    except (Exception, RecursionError):
        return None
    return None if re.search(r" at 0x[0-9a-f]+>", text) else text


def starter_template(path):
    import gguf

    field = gguf.GGUFReader(path).fields["tokenizer.chat_template"]
    return bytes(field.parts[field.data[0]]).decode()


def families(starter):
    cases = json.loads((HERE / "cases.json").read_text())
    out = []
    for family in cases["families"]:
        source = (HERE / f"{family['name']}.jinja").read_text()
        for set_name in family["sets"]:
            for prompt in (True, False):
                variables = {**family["variables"], **cases["sets"][set_name].get("variables", {})}
                variables["add_generation_prompt"] = prompt
                messages = cases["sets"][set_name]["messages"]
                out.append(
                    {"family": family["name"], "set": set_name, "prompt": prompt,
                     "expected": render(source, messages, variables)}
                )
                if family["name"] == "chatml_default_system":
                    own = render(starter, messages, variables)
                    assert own == out[-1]["expected"], "the starter model's template differs from " + family["name"]
    return out


def expressions():
    """expressions.txt: blocks of template text separated by lines of '%%'; values come from expressions_data.json."""
    data = json.loads((HERE / "expressions_data.json").read_text())
    blocks = (HERE / "expressions.txt").read_text().split("\n%%\n")
    out = []
    for block in blocks:
        out.append({"source": block, "expected": render(block, data["messages"], data["variables"])})
    return out


def main():
    starter = starter_template(sys.argv[1])
    write("expected.json", families(starter))
    write("expressions.json", expressions())


def write(name, value):
    (HERE / name).write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


main()
