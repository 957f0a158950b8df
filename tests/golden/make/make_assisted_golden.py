#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_assisted_golden.py MODELS OUTPUT: the rounds of Hugging Face assisted generation.

MODELS holds the folders stories260K (target) and weak260K (assistant). Greedy, 96 new tokens, the
assistant drafting a constant K = 1..8 tokens a round with its confidence stop off, and again with
the schedule "heuristic" that begins with K. OUTPUT gets, once per prompt, the prompt's and the
generated ids, and per K and schedule the accepted draft tokens of every round. Needs torch and
transformers.

How the library counts (transformers 5.x, the class AssistedCandidateGenerator and the method
_assisted_decoding), and how that maps to Outrider's rounds:

- A round here is one pass of the library's loop: the assistant proposes n tokens, the target
  judges them in one pass, accepts num_matches of them and adds one token of its own. It
  proposes min(K, max_length - length - 1), length being all tokens so far: Outrider's
  min(K, remaining - 1). With one token left both run a last pass without any draft.
- The library's first pass holds the whole prompt and the first draft. Outrider prefills all of the
  prompt but its last token, and that token roots round one. The passes differ in shape, but both
  judge the same draft after the same prompt, so the rounds correspond one to one from the first.
- The end token differs. If the assistant proposes it and everything is accepted, the library takes
  one off num_matches and uses the target's own pick, which is the same token, instead;
  Outrider counts it as an accepted draft token and emits nothing after it. Such a last round is
  one lower here. None of these texts reaches the models' own end token, so "ending" repeats the
  run with the line feed as the end token; end_token_drafted names the K with such a last round.
- The library keeps both models in a growing cache, so arithmetic differs in the last bits between
  K, and counts are a reference only where no argmax is nearly a tie: every gap between the two
  highest logits of either model, over the generated text, must exceed 2e-4 (an engine whose logits
  are within 1e-4 must then choose alike). Prompts below that are refused; the smallest gaps are
  recorded.

The script checks itself. It predicts every count from plain passes of the two models over the
finished text: while committed text and draft agree, the draft is the assistant's argmax after the
true text. A round therefore accepts the run of positions at which both argmaxes agree, limited by
the proposal. Any round in which library and prediction differ is listed on standard error and in
the output ("differences").
"""

import json
import pathlib
import sys

import torch
import transformers
from transformers.generation.candidate_generator import AssistedCandidateGenerator

NEW_TOKENS = 96
SMALLEST_GAP = 2e-4
LINE_FEED = 13  # the token of byte 0x0A in both models' vocabulary
DRAFT_LENGTHS = range(1, 9)
# Openings in the style of the models' training text, of several lengths and moods: high and low
# acceptance, dialogue, lists, one word, a word that the training text hardly contains.
MORE_PROMPTS = [
    "Tom had a red ball",
    "One day, a little dog went to the beach with his mom.",
    "\"Can I have a cookie?\" asked Ben. His mom said",
    "The sun was hot and the bird was thirsty. It flew to the",
    "She",
    "Sam and Mia were best friends. They liked to run and jump and sing together.",
    "The old astronomer polished his telescope and",
    "It was raining. Max was sad because",
]


class Rounds:
    """Records, for every pass of the target, how many tokens were proposed and how many were accepted."""

    def __init__(self):
        self.proposed = []
        self.matched = []

    def __enter__(self):
        self.original = AssistedCandidateGenerator.update_candidate_strategy

        def note(generator, input_ids, scores, num_matches):
            self.proposed.append(scores.shape[1] - 1)
            self.matched.append(int(num_matches))
            return self.original(generator, input_ids, scores, num_matches)

        AssistedCandidateGenerator.update_candidate_strategy = note
        return self

    def __exit__(self, *_):
        AssistedCandidateGenerator.update_candidate_strategy = self.original


def load(path):
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    return model.eval()


def assisted(target, assistant, prompt, draft_length, end_token, schedule="constant"):
    config = assistant.generation_config
    config.assistant_confidence_threshold = 0
    config.num_assistant_tokens = draft_length
    config.num_assistant_tokens_schedule = schedule
    with Rounds() as rounds:
        ids = target.generate(torch.tensor([prompt]), assistant_model=assistant, do_sample=False,
                              max_new_tokens=NEW_TOKENS, pad_token_id=0, eos_token_id=end_token)
    generated = ids[0, len(prompt):].tolist()
    if sum(rounds.matched) + len(rounds.matched) != len(generated):
        raise SystemExit("rounds and generated tokens do not add up")
    return generated, rounds


def plain_choices(model, prompt, generated):
    """The argmax before each generated token (one pass, no cache), and the smallest gap."""
    with torch.no_grad():
        logits = model(torch.tensor([prompt + generated])).logits[0, len(prompt) - 1:-1]
    top = logits.topk(2, dim=-1)
    return top.indices[:, 0].tolist(), float((top.values[:, 0] - top.values[:, 1]).min())


def predicted_rounds(agree, draft_length, ends, schedule="constant"):
    """[(proposed, accepted)] by the library's count, derived from where the two models' choices
    agree.

    With `ends` the last token is an end token, after which no draft continues. The second value
    says whether that token was drafted and accepted.
    """
    rounds = []
    done = 0
    while done < len(agree):
        budget = min(draft_length, NEW_TOKENS - done - 1)
        n = 0
        while n < budget and done + n < len(agree) and agree[done + n]:
            n += 1
        if ends and n > 0 and done + n == len(agree):
            rounds.append((n, n - 1))
            return rounds, True
        rounds.append((budget, n))
        done += n + 1
        if schedule == "heuristic":
            draft_length = draft_length + 2 if n == budget else max(1, draft_length - 1)
    return rounds, False


def compare(what, models, prompt, expected_ids, agree, end_token, ends, differences):
    """Accepted counts per K; the K whose last round accepts a drafted end token."""
    accepted, drafted_end = {}, []
    for draft_length in DRAFT_LENGTHS:
        generated, rounds = assisted(*models, prompt, draft_length, end_token)
        if generated != expected_ids:
            differences.append({**what, "draft_length": draft_length, "what": "ids"})
        expected, drafted = predicted_rounds(agree, draft_length, ends)
        seen = list(zip(rounds.proposed, rounds.matched))
        # A rejected draft may have proposed an end token and stopped there, which the prediction
        # cannot know: for such rounds only accepted counts are compared.
        shorter = [p < q and m < p for (p, m), (q, _) in zip(seen, expected)]
        same = len(seen) == len(expected) and all(
            a == b or (short and a[1] == b[1]) for a, b, short in zip(seen, expected, shorter))
        if not same:
            differences.append({**what, "draft_length": draft_length, "what": "rounds",
                                "seen": seen, "predicted": expected})
        accepted[str(draft_length)] = rounds.matched
        if drafted:
            drafted_end.append(draft_length)
    return accepted, drafted_end


def heuristic_rounds(what, models, prompt, expected_ids, agree, end_token, differences):
    """Accepted counts per K with the schedule "heuristic"."""
    accepted = {}
    for first_length in DRAFT_LENGTHS:
        generated, rounds = assisted(*models, prompt, first_length, end_token, "heuristic")
        expected, _ = predicted_rounds(agree, first_length, False, "heuristic")
        seen = list(zip(rounds.proposed, rounds.matched))
        if generated != expected_ids or seen != expected:
            differences.append({**what, "first_length": first_length, "what": "heuristic",
                                "seen": seen, "predicted": expected})
        accepted[str(first_length)] = rounds.matched
    return accepted


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__.splitlines()[0])
    models, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    transformers.logging.set_verbosity_error()
    target, assistant = load(models / "stories260K"), load(models / "weak260K")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(models / "stories260K" / "tokenizer.json"))
    golden = json.loads((models / "stories260K" / "golden.json").read_text())
    texts = [(entry["prompt"], entry["prompt_ids"]) for entry in golden]
    texts += [(text, tokenizer(text)["input_ids"]) for text in MORE_PROMPTS]
    for text, ids in texts:
        if tokenizer(text)["input_ids"] != ids:
            raise SystemExit(f"golden.json tokenises {text!r} differently")

    end_token = target.generation_config.eos_token_id
    prompts, ending, differences = [], [], []
    for index, (text, prompt) in enumerate(texts):
        plain = target.generate(torch.tensor([prompt]), do_sample=False,
                                max_new_tokens=NEW_TOKENS, pad_token_id=0)[0, len(prompt):].tolist()
        if index < len(golden) and plain != golden[index]["greedy_ids"]:
            raise SystemExit(f"golden.json continues {text!r} differently")
        if end_token in plain:
            raise SystemExit(f"{text!r} ends early; choose another prompt")
        target_choice, target_gap = plain_choices(target, prompt, plain)
        draft_choice, draft_gap = plain_choices(assistant, prompt, plain)
        if target_choice != plain:
            raise SystemExit(f"{text!r}: a plain pass and plain generation choose differently")
        if min(target_gap, draft_gap) <= SMALLEST_GAP:
            raise SystemExit(f"{text!r} meets a near tie: {target_gap}, {draft_gap}")
        agree = [a == b for a, b in zip(plain, draft_choice)]
        accepted, _ = compare({"prompt": index}, (target, assistant), prompt, plain, agree,
                              end_token, False, differences)
        prompts.append({"prompt": text, "prompt_ids": prompt, "generated_ids": plain,
                        "smallest_gap_target": round(target_gap, 6),
                        "smallest_gap_assistant": round(draft_gap, 6), "accepted": accepted,
                        "accepted_heuristic": heuristic_rounds(
                            {"prompt": index}, (target, assistant), prompt, plain, agree,
                            end_token, differences)})
        if LINE_FEED in plain:
            n = plain.index(LINE_FEED) + 1
            accepted, drafted_end = compare(
                {"ending": len(ending)}, (target, assistant), prompt, plain[:n], agree[:n],
                LINE_FEED, True, differences)
            ending.append({"prompt": index, "n_generated": n, "accepted": accepted,
                           "end_token_drafted": drafted_end})
        print(f"{index + 1}/{len(texts)} {text!r}", file=sys.stderr)
    for difference in differences:
        print("difference:", json.dumps(difference), file=sys.stderr)

    head = {"made_with": {"transformers": transformers.__version__, "torch": torch.__version__},
            "target": "stories260K", "assistant": "weak260K", "max_new_tokens": NEW_TOKENS,
            "ending_token": LINE_FEED, "differences": differences}
    lists = [json.dumps(name) + ": [\n" + ",\n".join(map(json.dumps, entries)) + "\n]"
             for name, entries in (("prompts", prompts), ("ending", ending))]
    output.write_text(json.dumps(head)[:-1] + ",\n" + ",\n".join(lists) + "}\n")


if __name__ == "__main__":
    main()
