#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_pair_statistics.py DATA OUTPUT: how similar the two story models are, on 400 real stories.

DATA holds models/stories260K (target), models/weak260K (drafter) and text/tinystories_2MiB.txt. The
recipe is written into the output along with the figures, which Hugging Face transformers computes
twice: with float32 models and with their weights widened to float64 (the library keeps its norms
and rotary angles in float32 even then). Sums over tokens are float64 in both. Needs torch and
transformers.
"""

import json
import pathlib
import sys

import torch
import transformers

SEPARATOR = "<|endoftext|>"
N_STORIES = 400
CONTEXT = 256  # the drafter's context: the shorter of the two
BATCH = 16
TRANSFORMS = {"temperature": 0.7, "top_k": 20, "top_p": 0.9, "repetition_penalty": 1.2}
RECIPE = (
    "Decode the text as UTF-8 (what is no UTF-8 becomes U+FFFD), split it at every "
    "<|endoftext|>, strip white space from both ends of each part, take the first 400. Encode each "
    "with tokenizer.json and its special tokens (one <s> first, nothing behind) and keep the first "
    "256 tokens. Feed each alone from position 0; every token but the first is scored, given all "
    "before it: n_scored is the sum of (tokens kept - 1). NLL is the mean of -ln prob(token), "
    "overlap the mean over scored positions of the sum over the vocabulary of "
    "min(target_prob, draft_prob), agreement the share of positions where both argmaxes are the "
    "same id. overlap_transformed: both models' logits go through the processors generate() builds "
    "for these transforms, the penalty seeing the story's tokens up to the position, <s> included.")


def processors(model):
    config = transformers.GenerationConfig(do_sample=True, **TRANSFORMS)
    return model._get_logits_processor(generation_config=config, input_ids_seq_length=1,
                                       encoder_input_ids=None, prefix_allowed_tokens_fn=None,
                                       logits_processor=transformers.LogitsProcessorList())


def prefixes(ids):
    """(n - 1, n - 1): row j is ids[:j + 1], padded with the first token. The penalty has seen that
    token anyway, and counts it once, because it uses a set."""
    n = len(ids) - 1
    rows = torch.tensor(ids[:-1]).expand(n, n).clone()
    rows[torch.ones(n, n, dtype=torch.bool).triu(1)] = ids[0]
    return rows


def measure(target, drafter, stories):
    transform = processors(target)
    sums = torch.zeros(5, dtype=torch.float64)
    for first in range(0, len(stories), BATCH):
        batch = stories[first:first + BATCH]
        # Padding follows each story, where causal attention does not see it.
        padded = torch.tensor([ids + [0] * (CONTEXT - len(ids)) for ids in batch])
        with torch.no_grad():
            both = [model(padded).logits for model in (target, drafter)]
        for row, ids in enumerate(batch):
            n = len(ids) - 1
            following = torch.tensor(ids[1:])
            logits = [one[row, :n] for one in both]
            for index, one in enumerate(logits):
                log_prob = one.double().log_softmax(-1)
                sums[index] -= log_prob.gather(1, following[:, None]).sum()
            prob = [one.double().softmax(-1) for one in logits]
            sums[2] += torch.minimum(*prob).sum()
            sums[3] += (logits[0].argmax(-1) == logits[1].argmax(-1)).sum()
            seen = prefixes(ids)
            prob = [transform(seen, one.clone()).double().softmax(-1) for one in logits]
            sums[4] += torch.minimum(*prob).sum()
    n_scored = sum(len(ids) - 1 for ids in stories)
    names = ("nll_target", "nll_drafter", "overlap", "agreement", "overlap_transformed")
    return {name: round(float(value) / n_scored, 9) for name, value in zip(names, sums)}


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__.splitlines()[0])
    data, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(data / "models" / "stories260K" / "tokenizer.json"))
    text = (data / "text" / "tinystories_2MiB.txt").read_bytes().decode("utf-8", errors="replace")
    parts = [part.strip() for part in text.split(SEPARATOR)][:N_STORIES]
    encoded = [tokenizer(part)["input_ids"] for part in parts]
    stories = [ids[:CONTEXT] for ids in encoded]
    figures = {}
    for name, dtype in (("float32", torch.float32), ("float64", torch.float64)):
        models = [transformers.AutoModelForCausalLM.from_pretrained(
            data / "models" / folder, dtype=dtype).eval() for folder in ("stories260K", "weak260K")]
        figures[name] = measure(*models, stories)
        print(name, figures[name], file=sys.stderr)
    document = {
        "made_with": {"transformers": transformers.__version__, "torch": torch.__version__},
        "recipe": RECIPE, "transforms": TRANSFORMS,
        "n_stories": len(stories), "n_scored": sum(len(ids) - 1 for ids in stories), **figures,
        "check": "per story: tokens before truncation; tokens kept; "
                 "sum over the kept tokens of (index from 1) * id",
        "stories": [[len(whole), len(ids), sum(k * t for k, t in enumerate(ids, 1))]
                    for whole, ids in zip(encoded, stories)]}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in document.items()]
    output.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
