#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/parallel_eagle.json: the drafts of P-EAGLE heads on a tiny target, in plain
Python.

Needs nothing but Python; it runs in a few seconds. Everything is computed row by row in f64, each
row with the list of all rows to which it may attend. Target, weights (a formula of their names) and
arithmetic are those of make_block_heads_golden.py.

P-EAGLE (arXiv 2602.01469). Facts from public programs, whose code is not used:
github.com/vllm-project/speculators at c05b95b, models/peagle/core.py and models/eagle3/core.py and
model_definitions.py; github.com/sgl-project/SpecForge at a6b6b02, modeling/draft/peagle.py.

- Row p reads the target's hidden states of place p, joined, and token p + 1. The states pass
  input_norm (one norm over all of them), then fc_norm (a norm for each), if the head has them,
  and then fc. The token is embedded by the head's own table.
- A mask row reads mask_hidden in place of the hidden states, after the same norms and fc, and the
  mask token. Mask rows follow the last row of the text at the next positions. All is causal.
- The first layer attends over [input_layernorm(embedding), hidden_norm(state)]; its residual begins
  as the state, or as hidden_norm(state) with norm_before_residual. Further layers are plain.
- lm_head(norm(.)) of the text's last row gives the first draft, of each mask row the next one. A
  head of fewer tokens has d2t: what to add to a draft id.
- norm_output says what a step-by-step head feeds back; here nothing is fed back, so that it changes
  nothing. "normed" says so to its file all the same.

EAGLE-3 and 3.1 (vllm.ai's blog of 2026-05-26; speculators, as above) continue step by step instead:
a drafted token's row reads the output of the row before, after the final norm with norm_output, and
lm_head reads it normed once either way. EAGLE-3.1 is fc_norm and norm_output. "layers" is a head of
two layers.

The mask token is never drafted: this is a rule of this project only.

The JSON: "texts"; "lengths" (how many tokens of a text are known, the last one without hidden
states); by form "mask", "vocabulary" and, of each text and length, "logits" of the rows, over
"vocabulary"; "runs": greedy generation after the first tokens of each text ("tokens" after the
prompt; for each round "start", its "drafts", how many are "accepted"). "chains": of the heads that
go step by step, by name, text and length, the greedy chain's "drafts" and each step's "logits".
"""
import json
import pathlib
import typing

from make_block_heads_golden import (DIM, TEXTS, VOCABULARY, Layer, Shape, Target, likeliest,
                                     parameter, rms, times)

HEAD = Shape(4, 2, 4, 12, 500.0, 1e-5, False)
N_DRAFTED = 5
LENGTHS = [2, 9, 14]
PROMPT = 11
N_NEW = 12  # tokens of a greedy run, at least


class Form(typing.NamedTuple):
    mask: int
    streams: list  # residual streams of the target that are read; 0 is the embedding
    n_layers: int
    first: str = "midlayer."
    own_embedding: bool = False
    input_norm: bool = False
    fc_norm: bool = False
    norm_before_residual: bool = False
    norm_output: bool = False
    vocabulary: list = list(range(VOCABULARY))


FORMS = {
    "plain": Form(8, [0, 1, 2], 2),
    "speculators": Form(22, [0, 2, 1], 3, first="layers.0.", own_embedding=True, input_norm=True,
                        norm_before_residual=True,
                        vocabulary=[0, 2, 3, 5, 8, 9, 11, 12, 14, 17, 20, 22]),
    "normed": Form(16, [1, 2], 1, fc_norm=True),
}


CHAINS = {
    "eagle31": Form(0, [0, 2, 1], 1, fc_norm=True, norm_output=True),
    "layers": Form(0, [1, 2, 0], 2, norm_before_residual=True),
}


class FirstLayer(Layer):
    """Its attention reads an embedding and a state, concatenated."""

    def __init__(self, prefix, shape):
        super().__init__(prefix, shape)
        for name in "qkv":
            rows = len(getattr(self, name))
            setattr(self, name, parameter(f"{prefix}self_attn.{name}_proj.weight", rows, 2 * DIM))
        self.hidden = parameter(prefix + "hidden_norm.weight", DIM)


class Head:
    def __init__(self, target, form):
        self.target, self.form = target, form
        n = len(form.streams)
        self.fc = parameter("fc.weight", DIM, n * DIM)
        self.mask_hidden = parameter("mask_hidden", 1, n * DIM)[0]
        self.input_norm = parameter("input_norm.weight", n * DIM)
        self.fc_norms = [parameter(f"fc_norm.{i}.weight", DIM) for i in range(n)]
        self.first = FirstLayer(form.first, HEAD)
        self.later = [Layer(f"layers.{i}.", HEAD) for i in range(1, form.n_layers)]
        self.norm = parameter("norm.weight", DIM)
        self.head = parameter("lm_head.weight", len(form.vocabulary), DIM)
        self.embedding = (parameter("embed_tokens.weight", VOCABULARY, DIM) if form.own_embedding
                          else target.embedding)

    def hidden_states(self, tokens):
        """For the last place of a text, concatenated."""
        streams = [self.target.embedding[tokens[-1]]] + self.target.place(tuple(tokens))[1]
        return [x for stream in self.form.streams for x in streams[stream]]

    def state(self, joined):
        if self.form.input_norm:
            joined = rms(joined, self.input_norm, HEAD.epsilon)
        if self.form.fc_norm:
            parts = [joined[i:i + DIM] for i in range(0, len(joined), DIM)]
            joined = [x for part, norm in zip(parts, self.fc_norms)
                      for x in rms(part, norm, HEAD.epsilon)]
        return times(self.fc, joined)

    def rows(self, tokens):
        """The inputs of the rows of a text and of the masks after it: (embedding, state)."""
        known = [(self.embedding[tokens[p + 1]], self.state(self.hidden_states(tokens[:p + 1])))
                 for p in range(len(tokens) - 1)]
        mask = (self.embedding[self.form.mask], self.state(self.mask_hidden))
        return known + [mask] * (N_DRAFTED - 1)

    def given(self, rows):
        """The outputs of all rows after the last layer."""
        residuals, reads = [], []
        for embedding, state in rows:
            normed = rms(state, self.first.hidden, HEAD.epsilon)
            residuals.append(normed if self.form.norm_before_residual else state)
            reads.append(rms(embedding, self.first.before, HEAD.epsilon) + normed)
        for layer in [self.first] + self.later:
            if layer is not self.first:
                reads = [layer.read(x) for x in residuals]
            entries = [layer.entry(read, position) for position, read in enumerate(reads)]
            residuals = [layer.run(residual, read, position, entries[:position + 1])
                         for position, (residual, read) in enumerate(zip(residuals, reads))]
        return residuals

    def said(self, given):
        return times(self.head, rms(given, self.norm, HEAD.epsilon))

    def logits(self, tokens):
        return [self.said(x) for x in self.given(self.rows(tokens))[len(tokens) - 2:]]

    def chain(self, tokens):
        rows = self.rows(tokens)[:len(tokens) - 1]
        drafts, logits = [], []
        for _ in range(N_DRAFTED):
            last = self.given(rows)[-1]
            logits.append([round(x, 10) for x in self.said(last)])
            drafts.append(likeliest(logits[-1]))
            if self.form.norm_output:
                last = rms(last, self.norm, HEAD.epsilon)
            rows.append((self.embedding[drafts[-1]], last))
        return {"drafts": drafts, "logits": logits}

    def drafts(self, tokens):
        drafts = []
        for row in self.logits(tokens):
            ranked = sorted(((logit, token) for logit, token in zip(row, self.form.vocabulary)
                             if token != self.form.mask), reverse=True)
            assert ranked[0][0] - ranked[1][0] > 1e-3  # f32 chooses the same one
            drafts.append(ranked[0][1])
        return drafts

    def run(self, text):
        text = list(text)
        n_prompt = len(text)
        text.append(self.target.likeliest_after(text))
        rounds = []
        while len(text) - n_prompt < N_NEW:
            drafts = self.drafts(text)
            accepted = 0
            rounds.append({"start": len(text), "drafts": drafts})
            while accepted < N_DRAFTED and drafts[accepted] == self.target.likeliest_after(text):
                text.append(drafts[accepted])
                accepted += 1
            text.append(self.target.likeliest_after(text))
            rounds[-1]["accepted"] = accepted
        return {"tokens": text[n_prompt:], "rounds": rounds}


def main():
    target = Target()
    golden = {"texts": TEXTS, "lengths": LENGTHS, "prompt": PROMPT, "forms": {}, "chains": {}}
    for name, form in FORMS.items():
        head = Head(target, form)
        golden["forms"][name] = {
            "mask": form.mask,
            "vocabulary": form.vocabulary,
            "logits": [[[[round(x, 10) for x in row] for row in head.logits(text[:n])]
                        for n in LENGTHS] for text in TEXTS],
            "runs": [head.run(text[:PROMPT]) for text in TEXTS]}
    for name, form in CHAINS.items():
        head = Head(target, form)
        golden["chains"][name] = [[head.chain(text[:n]) for n in LENGTHS] for text in TEXTS]
    path = pathlib.Path(__file__).resolve().parents[1] / "parallel_eagle.json"
    path.write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
