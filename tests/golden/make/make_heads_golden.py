#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/heads.json: losses of heads on a tiny target, from the papers' equations.

Needs torch. Everything is computed place by place in f64, from weights that are a formula of their
names; tests/support/models/tiny_heads.h has the same formula. Chains of predictions are drafted one by
one, each with the list of keys to which it may attend, as a drafter would.

EAGLE: arXiv 2401.15077. EAGLE-3: arXiv 2503.01840. Medusa: arXiv 2401.10774, section 2.2.1.
Multi-token prediction: arXiv 2412.19437, section 2.2.
"""
import json
import math
import pathlib

import torch
from torch.nn import functional as F

VOCABULARY, DIM, HEADS, KV_HEADS, HEAD_DIM, HIDDEN, LAYERS = 23, 8, 2, 1, 4, 12, 3
THETA, EPSILON = 10000.0, 1e-5
LENGTH = 9
TOKENS = [[(7 * i + 3 * i * i + 5 * s) % VOCABULARY for i in range(LENGTH)] for s in range(2)]
# The first place is never predicted; another one has no weight.
WEIGHTS = [[0.0 if i == 0 or (s == 1 and i == 4) else 1.0 for i in range(LENGTH)]
           for s in range(2)]
DRAFT_VOCABULARY = [0, 2, 3, 5, 8, 9, 11, 12, 14, 17, 20, 22]
torch.set_default_dtype(torch.float64)


def parameter(name, *shape):
    start = sum((i + 1) * ord(c) for i, c in enumerate(name)) % 1000
    n = math.prod(shape)
    waves = torch.tensor([math.sin(0.7 * j + 0.01 * j * j + start) for j in range(n)])
    if len(shape) > 1:
        waves = 1.5 / math.sqrt(shape[-1]) * waves
    elif name.endswith("norm.weight"):
        waves = 1 + 0.2 * waves
    else:
        waves = 0.3 * waves
    return waves.to(torch.float32).to(torch.float64).reshape(shape)


def rms(x, weight):
    return x * torch.rsqrt((x * x).mean() + EPSILON) * weight


def rotated(x, position):
    half = HEAD_DIM // 2
    angle = torch.tensor([position * THETA ** (-2 * i / HEAD_DIM) for i in range(half)])
    a, b = x[:half], x[half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()])


class Layer:
    def __init__(self, prefix, width=DIM, input_norm=True):
        def matrix(name, rows, columns):
            return parameter(f"{prefix}{name}.weight", rows, columns)
        self.q = matrix("self_attn.q_proj", HEADS * HEAD_DIM, width)
        self.k = matrix("self_attn.k_proj", KV_HEADS * HEAD_DIM, width)
        self.v = matrix("self_attn.v_proj", KV_HEADS * HEAD_DIM, width)
        self.o = matrix("self_attn.o_proj", DIM, HEADS * HEAD_DIM)
        self.gate = matrix("mlp.gate_proj", HIDDEN, DIM)
        self.up = matrix("mlp.up_proj", HIDDEN, DIM)
        self.down = matrix("mlp.down_proj", DIM, HIDDEN)
        self.after = parameter(prefix + "post_attention_layernorm.weight", DIM)
        self.before = parameter(prefix + "input_layernorm.weight", DIM) if input_norm else None

    def cached(self, read, position):
        key, value = self.k @ read, self.v @ read
        keys = [rotated(key[i * HEAD_DIM:(i + 1) * HEAD_DIM], position) for i in range(KV_HEADS)]
        return keys, value.reshape(KV_HEADS, HEAD_DIM)

    def run(self, residual, read, position, seen):
        """seen: the results of cached() for everything to which the query may attend, itself included."""
        query = self.q @ read
        heads = []
        for head in range(HEADS):
            q = rotated(query[head * HEAD_DIM:(head + 1) * HEAD_DIM], position)
            group = head * KV_HEADS // HEADS
            scores = torch.stack([q @ keys[group] / math.sqrt(HEAD_DIM) for keys, _ in seen])
            shares = F.softmax(scores, 0)
            heads.append(sum(share * values[group] for share, (_, values) in zip(shares, seen)))
        x = residual + self.o @ torch.cat(heads)
        y = rms(x, self.after)
        return x + self.down @ (F.silu(self.gate @ y) * (self.up @ y))

    def plain(self, rows):
        """A causal pass over a text, with the layer's own input norm."""
        read = [rms(x, self.before) for x in rows]
        seen = [self.cached(x, i) for i, x in enumerate(read)]
        return [self.run(rows[i], read[i], i, seen[:i + 1]) for i in range(len(rows))]


class Model:
    def __init__(self, prefix=""):
        self.embedding = parameter(prefix + "model.embed_tokens.weight", VOCABULARY, DIM)
        self.layers = [Layer(f"{prefix}model.layers.{i}.") for i in range(LAYERS)]
        self.norm = parameter(prefix + "model.norm.weight", DIM)
        self.head = parameter(prefix + "lm_head.weight", VOCABULARY, DIM)

    def states(self, tokens):
        """After 0, 1, ... layers; the last with the final norm."""
        states = [[self.embedding[token] for token in tokens]]
        for layer in self.layers:
            states.append(layer.plain(states[-1]))
        states[-1] = [rms(x, self.norm) for x in states[-1]]
        return states


class Means:
    """Weighted means of rows."""
    def __init__(self):
        self.sums = {}

    def add(self, name, value, weight):
        total, weights = self.sums.get(name, (0.0, 0.0))
        self.sums[name] = (total + float(value) * weight, weights + weight)

    def get(self):
        return {name: total / weights for name, (total, weights) in self.sums.items()}


def compare(means, suffix, logits, target_logits, weight):
    draft, target = F.softmax(logits, 0), F.softmax(target_logits, 0)
    means.add("overlap" + suffix, torch.minimum(draft, target).sum(), weight)
    means.add("agreement" + suffix, float(logits.argmax() == target_logits.argmax()), weight)


def soft_cross_entropy(logits, target_prob):
    return F.cross_entropy(logits[None], target_prob[None])


def eagle(model, inputs, n_deepest=4):
    width = 2 * DIM if inputs.startswith("feature+") else DIM
    fc, bias = parameter("fc.weight", DIM, width), parameter("fc.bias", DIM)
    layer = Layer("layers.0.", input_norm=False)

    def read(feature, token):
        embedding = model.embedding[token]
        parts = {"token": [embedding], "feature": [feature]}.get(inputs, [embedding, feature])
        return fc @ torch.cat(parts) + bias

    shift = 0 if inputs == "feature+token" else 1
    means = Means()
    for tokens, weights in zip(TOKENS, WEIGHTS):
        features = model.states(tokens)[-1]
        rows = [read(features[i], tokens[i + shift]) for i in range(LENGTH - 1)]
        true_keys = [layer.cached(x, i) for i, x in enumerate(rows)]
        for start in range(LENGTH - 1):
            seen = true_keys[:start + 1]
            x = rows[start]
            for n in range(n_deepest + 1):
                place = start + n  # predicts the feature of place + 1
                if place + 2 >= LENGTH:
                    break
                if n > 0:
                    x = read(predicted, tokens[place + shift])
                    seen = seen + [layer.cached(x, place)]
                predicted = layer.run(x, x, place, seen)
                logits = model.head @ predicted
                target_logits = model.head @ features[place + 1]
                weight = weights[place + 2]
                if n == 0:
                    regression = F.smooth_l1_loss(predicted, features[place + 1])
                    means.add("feature_loss", regression, weight)
                    means.add("token_loss",
                              soft_cross_entropy(logits, F.softmax(target_logits, 0)), weight)
                compare(means, f"_{n}", logits, target_logits, weight)
    figures = means.get()
    figures["loss"] = figures["feature_loss"] + 0.1 * figures["token_loss"]
    return figures


def eagle3(model, vocabulary, n_steps):
    fc = parameter("fc.weight", DIM, 3 * DIM)
    layer = Layer("midlayer.", width=2 * DIM)
    hidden_norm = parameter("midlayer.hidden_norm.weight", DIM)
    norm = parameter("norm.weight", DIM)
    head = parameter("lm_head.weight", len(vocabulary), DIM)
    chosen = torch.tensor(vocabulary)

    def read(hidden, token):
        return torch.cat([rms(model.embedding[token], layer.before), rms(hidden, hidden_norm)])

    means = Means()
    for tokens, weights in zip(TOKENS, WEIGHTS):
        states = model.states(tokens)
        fused = [fc @ torch.cat([states[depth][i] for depth in (0, 1, 2)])
                 for i in range(LENGTH - 1)]
        true_keys = [layer.cached(read(fused[i], tokens[i + 1]), i) for i in range(LENGTH - 1)]
        for start in range(LENGTH - 1):
            hidden, seen = fused[start], true_keys[:start + 1]
            for step in range(n_steps):
                place = start + step
                if place + 2 >= LENGTH:
                    break
                x = read(hidden, tokens[place + 1])
                if step > 0:
                    seen = seen + [layer.cached(x, place)]
                hidden = layer.run(hidden, x, place, seen)
                logits = head @ rms(hidden, norm)
                target_logits = model.head @ states[-1][place + 1]
                weight = weights[place + 2]
                counts = 1.0 if int(target_logits.argmax()) in vocabulary else 0.0
                loss = soft_cross_entropy(logits, F.softmax(target_logits[chosen], 0))
                means.add(f"loss_{step}", counts * loss, weight)
                everywhere = torch.full((VOCABULARY,), -torch.inf)
                everywhere[chosen] = logits
                compare(means, f"_{step}", everywhere, target_logits, weight)
    figures = means.get()
    figures["loss"] = sum(0.8 ** i * figures[f"loss_{i}"] for i in range(n_steps))
    return figures


def medusa(model, n_heads, own):
    means = Means()
    for tokens, weights in zip(TOKENS, WEIGHTS):
        features = model.states(tokens)[-1]
        for k in range(1, n_heads + 1):
            w = parameter(f"{k - 1}.0.linear.weight", DIM, DIM)
            b = parameter(f"{k - 1}.0.linear.bias", DIM)
            head = parameter(f"{k - 1}.1.weight", VOCABULARY, DIM) if own else model.head
            for i in range(LENGTH - 1 - k):
                logits = head @ (features[i] + F.silu(w @ features[i] + b))
                weight = weights[i + k + 1]
                expected = torch.tensor([tokens[i + k + 1]])
                means.add(f"loss_{k}", F.cross_entropy(logits[None], expected), weight)
                compare(means, f"_{k}", logits, model.head @ features[i + k], weight)
    figures = means.get()
    figures["loss"] = sum(0.8 ** k * figures[f"loss_{k}"] for k in range(1, n_heads + 1))
    return figures


def mtp(model, n_modules, prefix=""):
    means = Means()
    for tokens, weights in zip(TOKENS, WEIGHTS):
        features = model.states(tokens)[-1]
        for i in range(LENGTH - 1):
            means.add("lm_loss", F.cross_entropy((model.head @ features[i])[None],
                                                 torch.tensor([tokens[i + 1]])), weights[i + 1])
        hidden = features
        for k in range(1, n_modules + 1):
            name = f"{prefix}{k - 1}."
            join = parameter(name + "eh_proj.weight", DIM, 2 * DIM)
            enorm = parameter(name + "enorm.weight", DIM)
            hnorm = parameter(name + "hnorm.weight", DIM)
            norm = parameter(name + "shared_head.norm.weight", DIM)
            hidden = Layer(name).plain([
                join @ torch.cat([rms(model.embedding[tokens[i + k]], enorm),
                                  rms(hidden[i], hnorm)])
                for i in range(LENGTH - k)])
            for i in range(LENGTH - 1 - k):
                logits = model.head @ rms(hidden[i], norm)
                weight = weights[i + k + 1]
                expected = torch.tensor([tokens[i + k + 1]])
                means.add(f"loss_{k}", F.cross_entropy(logits[None], expected), weight)
                compare(means, f"_{k}", logits, model.head @ features[i + k], weight)
    figures = means.get()
    figures["loss"] = sum(figures[f"loss_{k}"] for k in range(1, n_modules + 1)) / n_modules
    return figures


def main():
    target = Model()
    joint = mtp(Model("lm."), 2, "mtp.")
    golden = {
        "tokens": TOKENS,
        "weights": WEIGHTS,
        "draft_vocabulary": DRAFT_VOCABULARY,
        "eagle": {inputs: eagle(target, inputs) for inputs in
                  ("feature+shifted-token", "feature+token", "token", "feature")},
        "eagle3": {"whole": eagle3(target, list(range(VOCABULARY)), 4),
                   "reduced": eagle3(target, DRAFT_VOCABULARY, 4)},
        "medusa": {"own": medusa(target, 3, True), "shared": medusa(target, 3, False)},
        "mtp": mtp(target, 2),
        "lm": {**joint, "loss": joint["lm_loss"] + 0.3 * joint["loss"]},
    }
    path = pathlib.Path(__file__).resolve().parents[1] / "heads.json"
    path.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
