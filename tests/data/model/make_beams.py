"""Beam searches of transformers' generate() on the tiny models, for tests/model or tests/engine to compare with.

    python make_beams.py        (needs torch and transformers; writes tiny/NAME/beams.json)

Without an EOS and with equal lengths the two conventions agree: transformers divides a score by the output's
length ^ length_penalty, vLLM by that of prompt and output, and neither changes the order of equally long answers.
The models run in float64, so that near ties fall the same way.
"""
import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

here = Path(__file__).parent
for name in ["llama-gqa-tied", "qwen2-biases"]:
    folder = here / "tiny" / name
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    ids = json.loads((folder / "ids.json").read_text())
    searches = []
    for width, prompt_tokens, new_tokens in [(2, 5, 12), (4, 17, 20), (5, 40, 9), (3, 1, 15)]:
        prompt = torch.tensor([ids[:prompt_tokens]])
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), num_beams=width, num_return_sequences=width, max_new_tokens=new_tokens, do_sample=False,
                             eos_token_id=None, pad_token_id=0, length_penalty=1.0, early_stopping=False,
                             return_dict_in_generate=True, output_scores=True)
        searches.append({
            "width": width,
            "prompt": ids[:prompt_tokens],
            "outputs": [s[prompt_tokens:].tolist() for s in out.sequences],
            "cumulative": [float(s) * new_tokens for s in out.sequences_scores],
        })
    (folder / "beams.json").write_text(json.dumps(searches) + "\n")
