#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes story_likelihood.json in the folder above: log-likelihoods of some texts by Hugging Face
transformers' Llama, for stories260K.

    make_story_likelihood.py MODEL_DIRECTORY

Token by token in float64, each given all before it. The second text is longer than a window of 64
tokens: its windows are made by hand here, as eval/along_texts/text_likelihood.h describes.
"""

import json
import pathlib
import sys

import torch
import transformers

TEXTS = [
    "Tom had a small blue boat. He took it to the pond, and the boat went far away.",
    "One morning, a little bird sat on the window. \"Are you cold?\" asked Mia. The bird did not "
    "say a word. Mia gave it some bread, and the bird was happy. Every day it came back, and every "
    "day Mia had some bread for it. When the spring came, the bird had a nest in the big tree, and "
    "three small birds were in it. Mia could hear them sing.",
]


def nll(logits, ids, row, token):
    return -torch.log_softmax(logits[row].double(), -1)[ids[token]].item()


def windowed(model, ids, context):
    total, scored, begin = 0.0, 1, 0
    while scored < len(ids):
        end = min(len(ids), begin + context)
        with torch.no_grad():
            logits = model(torch.tensor([ids[begin:end]])).logits[0]
        total += sum(nll(logits, ids, token - 1 - begin, token) for token in range(scored, end))
        scored, begin = max(scored, end), begin + context // 2
    return total


def main():
    directory = sys.argv[1]
    model = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float64, attn_implementation="eager")
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    out = []
    for text in TEXTS:
        ids = tokenizer(text)["input_ids"]
        out.append({"text": text, "n_tokens": len(ids) - 1, "nll": windowed(model, ids, 1 << 20),
                    "nll_windows_of_64": windowed(model, ids, 64)})
    file = pathlib.Path(__file__).resolve().parents[1] / "story_likelihood.json"
    file.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
