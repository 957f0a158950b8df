#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/drafts.json: the drafts of heads on a tiny target, from the papers' equations.

Needs torch. Target, heads and their weights are those of make_heads_golden.py, place by place in
f64. A draft has the two likeliest tokens after the text, each continued by its likeliest one.
"probs" are the head's distributions at nodes with children, in the order of nodes (breadth first).
There are two texts: one of two tokens, of which the head sees one, and a longer one.
"""
import json
import pathlib

import torch
from torch.nn import functional as F

from make_heads_golden import (DIM, DRAFT_VOCABULARY, LENGTH, TOKENS, VOCABULARY, Layer, Model,
                               parameter, rms)

WIDTHS = [2, 1, 1]
TEXTS = [TOKENS[0][:2], TOKENS[1][:LENGTH]]


class Draft:
    """Grows a tree: logits_at(node) is called for every node that gets children."""

    def __init__(self, root, depth, logits_at):
        self.tokens, self.parents, self.probs = [root], [-1], []
        level = [0]
        for width in WIDTHS[:depth]:
            following = []
            for node in level:
                prob = F.softmax(logits_at(self, node), 0)
                self.probs.append([round(float(p), 10) for p in prob])
                for token in prob.argsort(descending=True)[:width]:
                    self.tokens.append(int(token))
                    self.parents.append(node)
                    following.append(len(self.tokens) - 1)
            level = following

    def depth(self, node):
        return 0 if node == 0 else 1 + self.depth(self.parents[node])

    def as_json(self):
        return {"tokens": self.tokens[1:], "parents": self.parents[1:], "probs": self.probs}


def chained(tokens, states, layer, read, logits_of, give=lambda state: state):
    """Heads that run on their own states: EAGLE, EAGLE-3, a single module.

    states: for each place of the text except the last. read(state, token): the input of the layer's
    attention and the start of its residual stream. give(state): the next row's input, from the
    layer's output.
    """
    rows = [read(states[i], tokens[i + 1]) for i in range(len(tokens) - 1)]
    seen = [layer.cached(x, i) for i, (x, _) in enumerate(rows)]
    given, keys = {}, {0: seen}

    def logits_at(draft, node):
        if node == 0:
            place, (x, residual), visible = len(tokens) - 2, rows[-1], seen
        else:
            parent = draft.parents[node]
            place = len(tokens) - 2 + draft.depth(node)
            x, residual = read(given[parent], draft.tokens[node])
            visible = keys[parent] + [layer.cached(x, place)]
        keys[node] = visible
        given[node] = give(layer.run(residual, x, place, visible))
        return logits_of(given[node])

    return Draft(tokens[-1], len(WIDTHS), logits_at).as_json()


def eagle(model, inputs, tokens, own_embedding=False):
    width = 2 * DIM if "+" in inputs else DIM
    fc, bias = parameter("fc.weight", DIM, width), parameter("fc.bias", DIM)
    layer = Layer("layers.0.", input_norm=False)
    embeddings = embeddings_of(model, own_embedding)

    def read(state, token):
        embedding = embeddings[token]
        parts = {"token": [embedding], "feature": [state]}.get(inputs, [embedding, state])
        x = fc @ torch.cat(parts) + bias
        return x, x

    return chained(tokens, model.states(tokens)[-1], layer, read, lambda state: model.head @ state)


# Differences between public EAGLE-3 heads. layers: the residual streams read, 0 being the
# embedding. The norms: as in vLLM and speculators, which serve such heads.
PLAIN = {"prefix": "midlayer.", "layers": (0, 1, 2), "own_embedding": False,
         "norm_before_residual": False, "norm_before_fc": False, "fc_norm": False,
         "norm_output": False}
EAGLE3_FORMS = {
    "authors": {"layers": (2, 1, 0)},  # 2, n/2 and n - 3 of three layers
    "specforge": {"layers": (1, 2), "norm_before_residual": True},
    "deepspec": {"layers": (1, 2, 1, 2), "fc_norm": True},
    "speculators": {"prefix": "layers.0.", "layers": (0, 2, 1), "own_embedding": True,
                    "norm_before_residual": True, "norm_before_fc": True, "norm_output": True},
}


def embeddings_of(model, own):
    return parameter("embed_tokens.weight", VOCABULARY, DIM) if own else model.embedding


def eagle3(model, vocabulary, tokens, **form):
    form = PLAIN | form
    n = len(form["layers"])
    fc = parameter("fc.weight", DIM, n * DIM)
    layer = Layer(form["prefix"], width=2 * DIM)
    hidden_norm = parameter(form["prefix"] + "hidden_norm.weight", DIM)
    norm = parameter("norm.weight", DIM)
    head = parameter("lm_head.weight", len(vocabulary), DIM)
    embeddings = embeddings_of(model, form["own_embedding"])
    all_states = model.states(tokens)

    def fused(i):
        parts = [all_states[depth][i] for depth in form["layers"]]
        if form["fc_norm"]:
            parts = [rms(part, parameter(f"fc_norm.{k}.weight", DIM))
                     for k, part in enumerate(parts)]
        joined = torch.cat(parts)
        if form["norm_before_fc"]:
            joined = rms(joined, parameter("input_norm.weight", n * DIM))
        return fc @ joined

    def read(state, token):
        normed = rms(state, hidden_norm)
        residual = normed if form["norm_before_residual"] else state
        return torch.cat([rms(embeddings[token], layer.before), normed]), residual

    def logits_of(state):
        everywhere = torch.full((VOCABULARY,), -torch.inf)
        normed = state if form["norm_output"] else rms(state, norm)
        everywhere[torch.tensor(vocabulary)] = head @ normed
        return everywhere

    return chained(tokens, [fused(i) for i in range(len(tokens))], layer, read, logits_of,
                   (lambda state: rms(state, norm)) if form["norm_output"] else (lambda state: state))


def medusa(model, n_heads, own, tokens):
    state = model.states(tokens)[-1][len(tokens) - 2]

    def logits_at(draft, node):
        k = draft.depth(node)
        w = parameter(f"{k}.0.linear.weight", DIM, DIM)
        b = parameter(f"{k}.0.linear.bias", DIM)
        head = parameter(f"{k}.1.weight", VOCABULARY, DIM) if own else model.head
        return head @ (state + F.silu(w @ state + b))

    return Draft(tokens[-1], n_heads, logits_at).as_json()


def mtp(model, n_modules, tokens):
    last = len(tokens) - 2  # the place at which every module drafts

    def module(k, given, following):
        """The output of module k, from 0, at every place: given[i] is the output of the module
        before, following[i] the token k + 1 places later."""
        name = f"{k}."
        join = parameter(name + "eh_proj.weight", DIM, 2 * DIM)
        enorm = parameter(name + "enorm.weight", DIM)
        hnorm = parameter(name + "hnorm.weight", DIM)
        return Layer(name).plain([
            join @ torch.cat([rms(model.embedding[token], enorm), rms(state, hnorm)])
            for state, token in zip(given, following)])

    def logits_at(draft, node):
        path = []
        at = node
        while at > 0:
            path.insert(0, draft.tokens[at])
            at = draft.parents[at]
        text = tokens + path
        given = model.states(tokens)[-1][:last + 1]
        for k in range(len(path) + 1):
            given = module(k, given, [text[i + k + 1] for i in range(last + 1)])
        norm = parameter(f"{len(path)}.shared_head.norm.weight", DIM)
        return model.head @ rms(given[last], norm)

    return Draft(tokens[-1], n_modules, logits_at).as_json()


def single_module(model, tokens):
    """It continues on the output of its own norm, as it does on the target's states."""
    join = parameter("0.eh_proj.weight", DIM, 2 * DIM)
    enorm, hnorm, norm = (parameter(f"0.{name}.weight", DIM)
                          for name in ("enorm", "hnorm", "shared_head.norm"))
    layer = Layer("0.")

    def read(state, token):
        x = join @ torch.cat([rms(model.embedding[token], enorm), rms(state, hnorm)])
        return rms(x, layer.before), x

    return chained(tokens, model.states(tokens)[-1], layer, read, lambda state: model.head @ state,
                   lambda state: rms(state, norm))


def main():
    model = Model()

    def of_texts(draft):
        return [draft(list(tokens)) for tokens in TEXTS]

    golden = {
        "texts": TEXTS,
        "draft_vocabulary": DRAFT_VOCABULARY,
        "eagle": {inputs: of_texts(lambda tokens, inputs=inputs: eagle(model, inputs, tokens))
                  for inputs in ("feature+shifted-token", "token", "feature")},
        "eagle_own_embedding": of_texts(
            lambda tokens: eagle(model, "feature+shifted-token", tokens, True)),
        "eagle3": {
            "whole": of_texts(lambda tokens: eagle3(model, list(range(VOCABULARY)), tokens)),
            "reduced": of_texts(lambda tokens: eagle3(model, DRAFT_VOCABULARY, tokens))},
        "eagle3_forms": {
            name: of_texts(lambda tokens, form=form: eagle3(model, list(range(VOCABULARY)), tokens,
                                                            **form))
            for name, form in EAGLE3_FORMS.items()},
        "medusa": {"own": of_texts(lambda tokens: medusa(model, 3, True, tokens)),
                   "shared": of_texts(lambda tokens: medusa(model, 3, False, tokens))},
        "mtp": {"1": of_texts(lambda tokens: single_module(model, tokens))} |
               {str(n): of_texts(lambda tokens, n=n: mtp(model, n, tokens)) for n in (2, 3)},
    }
    path = pathlib.Path(__file__).resolve().parents[1] / "drafts.json"
    path.write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
