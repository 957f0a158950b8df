#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_family_golden.py MODELS OUTPUT: the results of Hugging Face transformers with the family's
models.

MODELS is the project's models/. Target and drafter, in f32, continue prompts greedily by 48 tokens.
OUTPUT gets the prompts' and the generated ids. Other programs' logits differ in the last bits (from
Outrider's by 2e-5 here), so ids are a reference only if no argmax is nearly a tie. Prompts along
which the two highest logits come closer than 2e-3 are left out, and at least three must remain.
Needs torch and transformers.
"""
import json
import pathlib
import sys

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

NEW_TOKENS = 48
SMALLEST_GAP = 2e-3
FEWEST_PROMPTS = 3
PROMPTS = [
    "The old gentleman looked at her for a moment, and then",
    "It was a dark evening in November, when the coach",
    "“My dear,” said his mother,",
    "She opened the letter, and",
    "In the year 1851 the town of",
    "Nobody in the village knew why",
]


def continuation(model, prompt):
    """The greedy ids after the prompt's, and the smallest gap between two highest logits."""
    ids = list(prompt)
    least_gap = float("inf")
    for _ in range(NEW_TOKENS):
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, -1]
        best = torch.topk(logits, 2).values
        least_gap = min(least_gap, float(best[0] - best[1]))
        ids.append(int(logits.argmax()))
    return ids[len(prompt):], least_gap


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    models, output = map(pathlib.Path, sys.argv[1:])
    golden = {"transformers": transformers.__version__, "torch": torch.__version__, "models": {}}
    for name in ("target", "drafter"):
        tokenizer = AutoTokenizer.from_pretrained(models / name)
        model = AutoModelForCausalLM.from_pretrained(
            models / name, dtype=torch.float32, attn_implementation="eager").eval()
        texts = []
        for text in PROMPTS:
            prompt = tokenizer(text)["input_ids"]
            ids, gap = continuation(model, prompt)
            print(f"{name}: {text!r}: least gap {gap:.2g}", file=sys.stderr)
            if gap >= SMALLEST_GAP:
                texts.append({"prompt": text, "prompt_ids": prompt, "ids": ids})
        if len(texts) < FEWEST_PROMPTS:
            sys.exit(f"{name}: only {len(texts)} prompts without near ties")
        golden["models"][name] = texts
    output.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")


main()
