#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_prompt_lookup_golden.py MODELS OUTPUT: the rounds of Hugging Face prompt lookup.

MODELS holds the folder stories260K. Greedy, 160 new tokens, drafts of 10 tokens at most, n-grams of
at most 1, 2, 3 and 5 tokens. OUTPUT gets, once per prompt, the prompt's and the generated ids, and
per n the accepted draft tokens of every round. Needs torch and transformers.

How the library drafts (transformers 5.x, the class PromptLookupCandidateGenerator): for n from the
largest down to 1 it looks for the text's last n tokens earlier in the text; of several places it
takes the first that is followed by a token, and proposes the tokens from there up to the text's
end. That is Outrider's ngram:min=1,max=N,length=10,match=first. A round is one pass of the target,
and rounds correspond one to one (make_assisted_golden.py says why), except at the very end: the
library does not shorten a draft to fit the token limit. Its last round may therefore accept tokens
beyond the limit (which are cut off here), or the very last token, which for Outrider is the
target's own. None of these texts reaches an end token.

Counts are a reference only if no argmax is nearly a tie: prompts with a gap of 2e-4 or less between
the two highest logits over the generated text are refused.
"""

import json
import pathlib
import sys

import torch
import transformers
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

NEW_TOKENS = 160
LENGTH = 10
LONGEST = (1, 2, 3, 5)
SMALLEST_GAP = 2e-4
# Openings that make the model repeat itself more or less.
MORE_PROMPTS = [
    "Tom had a red ball. Sue had a blue ball. Tom",
    "The cat sat. The cat ran. The cat sat. The",
    "She",
    "One day, a little dog went to the beach with his mom.",
    "\"Can I have a cookie?\" asked Ben. \"Can I have a cookie?\" asked Mia. His mom said",
    "It was raining. Max was sad because",
]


def plain(model, prompt):
    ids = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=NEW_TOKENS,
                         pad_token_id=0)[0, len(prompt):].tolist()
    with torch.no_grad():
        logits = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1:-1]
    top = logits.topk(2, dim=-1).values
    return ids, float((top[:, 0] - top[:, 1]).min())


def looked_up(model, prompt, longest):
    accepted = []
    original = PromptLookupCandidateGenerator.update_candidate_strategy

    def note(generator, input_ids, scores, num_matches):
        accepted.append(int(num_matches))
        return original(generator, input_ids, scores, num_matches)

    PromptLookupCandidateGenerator.update_candidate_strategy = note
    try:
        ids = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=NEW_TOKENS,
                             pad_token_id=0, prompt_lookup_num_tokens=LENGTH,
                             max_matching_ngram_size=longest)
    finally:
        PromptLookupCandidateGenerator.update_candidate_strategy = original
    return ids[0, len(prompt):].tolist(), accepted


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__.splitlines()[0])
    models, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    transformers.logging.set_verbosity_error()
    model = transformers.AutoModelForCausalLM.from_pretrained(models / "stories260K",
                                                              dtype=torch.float32).eval()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(models / "stories260K" / "tokenizer.json"))
    texts = [entry["prompt"] for entry in json.loads(
        (models / "stories260K" / "golden.json").read_text())] + MORE_PROMPTS
    prompts, refused = [], []
    for text in texts:
        prompt = tokenizer(text)["input_ids"]
        ids, gap = plain(model, prompt)
        if gap <= SMALLEST_GAP or model.generation_config.eos_token_id in ids:
            refused.append(text)
            continue
        accepted = {}
        for longest in LONGEST:
            drafted, rounds = looked_up(model, prompt, longest)
            if drafted[:NEW_TOKENS] != ids:
                raise SystemExit(f"{text!r}: prompt lookup writes something else")
            accepted[str(longest)] = rounds
        prompts.append({"prompt": text, "prompt_ids": prompt, "generated_ids": ids,
                        "smallest_gap": round(gap, 6), "accepted": accepted})
        print(len(prompts), repr(text), [len(rounds) for rounds in accepted.values()],
              file=sys.stderr)
    print("refused:", refused, file=sys.stderr)
    head = {"made_with": {"transformers": transformers.__version__, "torch": torch.__version__},
            "target": "stories260K", "max_new_tokens": NEW_TOKENS, "length": LENGTH}
    output.write_text(json.dumps(head)[:-1] + ',\n"prompts": [\n'
                      + ",\n".join(map(json.dumps, prompts)) + "\n]}\n")


if __name__ == "__main__":
    main()
