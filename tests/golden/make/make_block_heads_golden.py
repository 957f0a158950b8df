#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/block_heads.json: the drafts of block heads on a tiny target, in plain Python.

Needs nothing but Python; it runs in about a second. Everything is computed place by place in f64. A
weight is a formula of its name, that of make_heads_golden.py and tests/support/models/tiny_heads.h: start
= sum of (i + 1) * code of character i, modulo 1000; wave j = sin(0.7 j + 0.01 j^2 + start), j
counting the weights row by row. A matrix of n columns holds 1.5 / sqrt(n) times the wave, a name
that ends in "norm.weight" 1 + 0.2 times it, another vector 0.3 times it, all rounded to f32. The
target is that file's, too; the heads have a RoPE base, an epsilon and groups of their own.

Facts from public programs, whose code is not used:

- DFlash (arXiv 2602.06036), github.com/z-lab/dflash at 44947fb, dflash/model.py. The features are
  those of extract_context_feature: outputs of decoder layers, counted from 0. fc and hidden_norm
  make one row of context of each token's features. Each layer makes keys and values of that row as
  it is, without its input norm (Qwen3DFlashAttention.forward). The block is the newest token and
  masks, at the positions that follow the context; no mask hides one row from another. Row i is
  at the place that it predicts; row 0 is not used (dflash_generate). Only context stays cached.
- Sliding layers: github.com/vllm-project/vllm at 036a00d, model_executor/models/qwen3_dflash.py,
  _dflash_layer_causal and _resolve_layer_attention, and github.com/sgl-project/sglang at 00731f0,
  speculative/dflash_utils.py: such a layer is causal if the config says nothing else, and its
  window includes the query itself. z-lab's own program passes is_causal=False to every layer, and
  only some of its attention functions look at the window.
- DSpark (arXiv 2607.05147), github.com/deepseek-ai/DeepSpec at afdfa7c. The backbone is DFlash's
  (deepspec/modeling/dspark/qwen3/modeling.py), but row i predicts the place after it, so all rows
  are used (deepspec/eval/dspark/draft_ops.py). The Markov heads: modeling/dspark/markov_head.py,
  sample_block_tokens. The confidence: AcceptRatePredictor in modeling/dspark/common.py, and
  predict_confidence_step; it reads the token before, never the one that it judges.
- "vanilla_own": rows predict their own places, as sample_from_anchor = false has it in
  github.com/vllm-project/speculators at c05b95b, models/dspark/core.py: the token before row 1 is
  the newest one.
- DDTree (arXiv 2604.12989), github.com/liranringel/ddtree at c96427a, ddtree.py, build_ddtree_tree.
  Its nodes are compared with the likeliest of all prefixes, found by trying every one.

The JSON:

- "config": shapes; "texts": two of 15 tokens; "growth": by how many tokens' features the context
  grows before each of three blocks (the prompt, then two rounds of verification).
- "context": of each text, the rows that fc and hidden_norm give for its 14 first places.
- "dflash": by variant ("full": layers see all; "sliding": layer 1 has a window of 3 and is causal;
  "causal": both layers are causal), text and block: "start" (the anchor's position), "anchor",
  "hidden" and "logits" of all five rows after the final norm, and "drafts", the likeliest tokens
  of rows 1 to 4. A block is the same if the context came at once; this is asserted.
- "dspark": by kind of Markov head, text and block: "drafts", the greedy chain; "logits", corrected,
  of each step; "confidence_logits" and "confidences". The hidden states are those of "full".
  "vanilla_plain" has a confidence head that reads no token.
- "runs": greedy generation after the first nine tokens of a text, by DFlash's "full" and by
  DSpark's "rnn": "tokens", twelve or more, and of each round "start", "drafts" and how many are
  "accepted".
- "ddtree": cases with "logits" of the slots and trees by "budget" (root not counted): "tokens",
  "parents" (0 is the root, node i of the list is i + 1) and "log_probs", likeliest first. The
  logits of "dflash_0_0" are those of "full" for text 0 and block 0, and so on; "sharp" has five
  times those of text 1 and block 1, for a deep tree.
"""
import functools
import heapq
import itertools
import json
import math
import pathlib
import struct
import typing

VOCABULARY, DIM = 23, 8
BLOCK, MASK, RANK = 5, 21, 4
N_LAYERS = 2
TARGET_LAYERS = [0, 1]  # outputs of decoder layers of the target, which has three
WINDOW = 3
GROWTH = [9, 2, 3]
TEXTS = [[(7 * i + 3 * i * i + 5 * s) % VOCABULARY for i in range(sum(GROWTH) + 1)]
         for s in range(2)]
N_NEW = 12  # tokens of a greedy run


class Shape(typing.NamedTuple):
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    theta: float
    epsilon: float
    head_norms: bool


TARGET = Shape(2, 1, 4, 12, 10000.0, 1e-5, False)
DRAFT = Shape(4, 2, 4, 12, 500.0, 1e-6, True)


def parameter(name, *shape):
    """A vector, or a matrix as the list of its rows."""
    start = sum((i + 1) * ord(c) for i, c in enumerate(name)) % 1000
    scale, shift = 0.3, 0.0
    if len(shape) > 1:
        scale = 1.5 / math.sqrt(shape[-1])
    elif name.endswith("norm.weight"):
        scale, shift = 0.2, 1.0
    waves = [math.sin(0.7 * j + 0.01 * j * j + start) for j in range(math.prod(shape))]
    flat = [struct.unpack("f", struct.pack("f", shift + scale * wave))[0] for wave in waves]
    if len(shape) == 1:
        return flat
    return [flat[i * shape[1]:(i + 1) * shape[1]] for i in range(shape[0])]


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def times(matrix, x):
    return [dot(row, x) for row in matrix]


def plus(a, b):
    return [x + y for x, y in zip(a, b, strict=True)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def rms(x, weight, epsilon):
    scale = 1 / math.sqrt(dot(x, x) / len(x) + epsilon)
    return [value * scale * w for value, w in zip(x, weight, strict=True)]


def rotated(x, position, theta):
    half = len(x) // 2
    angles = [position * theta ** (-2 * i / len(x)) for i in range(half)]
    pairs = [(x[i], x[i + half], math.cos(a), math.sin(a)) for i, a in enumerate(angles)]
    return [a * c - b * s for a, b, c, s in pairs] + [b * c + a * s for a, b, c, s in pairs]


def log_softmax(logits):
    top = max(logits)
    total = top + math.log(math.fsum(math.exp(x - top) for x in logits))
    return [x - total for x in logits]


def softmax(logits):
    return [math.exp(x) for x in log_softmax(logits)]


def likeliest(logits):
    best, second = sorted(logits, reverse=True)[:2]
    assert best - second > 1e-3  # f32 chooses the same one
    return logits.index(best)


class Entry(typing.NamedTuple):
    """The entry that a layer keeps for one row."""
    position: int
    keys: list
    values: list


class Layer:
    def __init__(self, prefix, shape):
        def matrix(name, rows, columns):
            return parameter(f"{prefix}{name}.weight", rows, columns)
        self.shape = shape
        self.q = matrix("self_attn.q_proj", shape.heads * shape.head_dim, DIM)
        self.k = matrix("self_attn.k_proj", shape.kv_heads * shape.head_dim, DIM)
        self.v = matrix("self_attn.v_proj", shape.kv_heads * shape.head_dim, DIM)
        self.o = matrix("self_attn.o_proj", DIM, shape.heads * shape.head_dim)
        self.gate = matrix("mlp.gate_proj", shape.hidden, DIM)
        self.up = matrix("mlp.up_proj", shape.hidden, DIM)
        self.down = matrix("mlp.down_proj", DIM, shape.hidden)
        self.before = parameter(prefix + "input_layernorm.weight", DIM)
        self.after = parameter(prefix + "post_attention_layernorm.weight", DIM)
        if shape.head_norms:
            self.q_norm = parameter(prefix + "self_attn.q_norm.weight", shape.head_dim)
            self.k_norm = parameter(prefix + "self_attn.k_norm.weight", shape.head_dim)

    def read(self, x):
        return rms(x, self.before, self.shape.epsilon)

    def heads_of(self, row):
        size = self.shape.head_dim
        return [row[i:i + size] for i in range(0, len(row), size)]

    def placed(self, row, norm, position):
        heads = self.heads_of(row)
        if self.shape.head_norms:
            heads = [rms(head, norm, self.shape.epsilon) for head in heads]
        return [rotated(head, position, self.shape.theta) for head in heads]

    def entry(self, read, position):
        norm = self.k_norm if self.shape.head_norms else None
        return Entry(position, self.placed(times(self.k, read), norm, position),
                     self.heads_of(times(self.v, read)))

    def run(self, residual, read, position, seen):
        """seen: the entries that the row may attend to, its own included."""
        norm = self.q_norm if self.shape.head_norms else None
        attended = []
        for head, query in enumerate(self.placed(times(self.q, read), norm, position)):
            group = head * self.shape.kv_heads // self.shape.heads
            shares = softmax([dot(query, entry.keys[group]) / math.sqrt(self.shape.head_dim)
                              for entry in seen])
            attended += [dot(shares, column)
                         for column in zip(*(entry.values[group] for entry in seen))]
        x = plus(residual, times(self.o, attended))
        y = rms(x, self.after, self.shape.epsilon)
        gates = [g * sigmoid(g) * u for g, u in zip(times(self.gate, y), times(self.up, y))]
        return plus(x, times(self.down, gates))


class Target:
    def __init__(self):
        self.embedding = parameter("model.embed_tokens.weight", VOCABULARY, DIM)
        self.layers = [Layer(f"model.layers.{i}.", TARGET) for i in range(3)]
        self.norm = parameter("model.norm.weight", DIM)
        self.head = parameter("lm_head.weight", VOCABULARY, DIM)

    @functools.cache
    def place(self, tokens):
        """The last place of a text: its entry in each layer, each layer's output, its logits."""
        x = self.embedding[tokens[-1]]
        earlier = [self.place(tokens[:i + 1])[0] for i in range(len(tokens) - 1)]
        entries, outputs = [], []
        for i, layer in enumerate(self.layers):
            read = layer.read(x)
            entries.append(layer.entry(read, len(tokens) - 1))
            seen = [kept[i] for kept in earlier] + [entries[-1]]
            x = layer.run(x, read, len(tokens) - 1, seen)
            outputs.append(x)
        return entries, outputs, times(self.head, rms(x, self.norm, TARGET.epsilon))

    def features(self, tokens):
        """For each place of a text: the concatenated outputs of the layers that heads read."""
        joined = []
        for i in range(len(tokens)):
            outputs = self.place(tuple(tokens[:i + 1]))[1]
            joined.append([x for layer in TARGET_LAYERS for x in outputs[layer]])
        return joined

    def likeliest_after(self, tokens):
        return likeliest(self.place(tuple(tokens))[2])


class Backbone:
    """A block head without its sampling part, and the context that it has seen."""

    def __init__(self, target, windows=(None, None), causal=(False, False)):
        self.target, self.windows, self.causal = target, windows, causal
        self.fc = parameter("fc.weight", DIM, len(TARGET_LAYERS) * DIM)
        self.hidden_norm = parameter("hidden_norm.weight", DIM)
        self.norm = parameter("norm.weight", DIM)
        self.layers = [Layer(f"layers.{i}.", DRAFT) for i in range(N_LAYERS)]
        self.context = [[] for _ in self.layers]

    def context_row(self, features):
        return rms(times(self.fc, features), self.hidden_norm, DRAFT.epsilon)

    def extend(self, features):
        for row in features:
            row = self.context_row(row)
            for layer, context in zip(self.layers, self.context):
                context.append(layer.entry(row, len(context)))

    def block(self, anchor):
        """The rows of a block after the final norm; the context is unchanged."""
        start = len(self.context[0])
        rows = [self.target.embedding[token] for token in [anchor] + [MASK] * (BLOCK - 1)]
        for layer, context, window, causal in zip(self.layers, self.context, self.windows,
                                                  self.causal):
            reads = [layer.read(x) for x in rows]
            entries = context + [layer.entry(x, start + i) for i, x in enumerate(reads)]

            def seen(position, entries=entries, window=window, causal=causal):
                return [entry for entry in entries
                        if not (causal and entry.position > position)
                        and not (window and position - entry.position >= window)]
            rows = [layer.run(x, reads[i], start + i, seen(start + i)) for i, x in enumerate(rows)]
        return [rms(x, self.norm, DRAFT.epsilon) for x in rows]

    def logits(self, hidden):
        return [times(self.target.head, x) for x in hidden]


class Markov:
    """The sequential part of DSpark."""

    def __init__(self, kind, confidence_reads_token=True):
        self.kind, self.confidence_reads_token = kind, confidence_reads_token
        self.w1 = parameter("markov_head.markov_w1.weight", VOCABULARY, RANK)
        self.w2 = parameter("markov_head.markov_w2.weight", VOCABULARY, RANK)
        name, rows, columns = {"vanilla": (None, 0, 0), "gated": ("gate", RANK, DIM + RANK),
                               "rnn": ("joint", 3 * RANK, 2 * RANK + DIM)}[kind]
        if name:
            self.weight = parameter(f"markov_head.{name}_proj.weight", rows, columns)
            self.bias = parameter(f"markov_head.{name}_proj.bias", rows)
        width = DIM + RANK if confidence_reads_token else DIM
        self.confidence_weight = parameter("confidence_head.proj.weight", 1, width)[0]
        self.confidence_bias = parameter("confidence_head.proj.bias", 1)[0]

    def step(self, state, token, hidden):
        """The state after a step, and the input of w2. token: the one before."""
        embedding = self.w1[token]
        if self.kind == "vanilla":
            return state, embedding
        if self.kind == "gated":
            gates = plus(times(self.weight, hidden + embedding), self.bias)
            return state, [sigmoid(g) * e for g, e in zip(gates, embedding)]
        joint = plus(times(self.weight, state + embedding + hidden), self.bias)
        gates = [sigmoid(g) for g in joint[:RANK]]
        state = [g * s + (1 - g) * math.tanh(c)
                 for g, s, c in zip(gates, state, joint[RANK:2 * RANK])]
        return state, [math.tanh(o) for o in joint[2 * RANK:]]

    def confidence_logit(self, token, hidden):
        read = hidden + self.w1[token] if self.confidence_reads_token else hidden
        return dot(self.confidence_weight, read) + self.confidence_bias

    def chain(self, anchor, hidden, logits):
        state, token = [0.0] * RANK, anchor
        drafts, corrected, confidence_logits = [], [], []
        for h, u in zip(hidden, logits, strict=True):
            confidence_logits.append(self.confidence_logit(token, h))
            state, read = self.step(state, token, h)
            corrected.append(plus(u, times(self.w2, read)))
            token = likeliest(corrected[-1])
            drafts.append(token)
        return {"drafts": drafts, "logits": corrected, "confidence_logits": confidence_logits,
                "confidences": [sigmoid(x) for x in confidence_logits]}


VARIANTS = {"full": {}, "sliding": {"windows": (None, WINDOW), "causal": (False, True)},
            "causal": {"causal": (True, True)}}
MARKOVS = {"vanilla": ("vanilla", True, 0), "gated": ("gated", True, 0), "rnn": ("rnn", True, 0),
           "vanilla_plain": ("vanilla", False, 0), "vanilla_own": ("vanilla", True, 1)}


def blocks(target, variant, text):
    """The blocks of a text whose context grows from round to round."""
    grown, start, found = Backbone(target, **VARIANTS[variant]), 0, []
    features = target.features(text)
    for n in GROWTH:
        grown.extend(features[start:start + n])
        start += n
        at_once = Backbone(target, **VARIANTS[variant])
        at_once.extend(features[:start])
        hidden = grown.block(text[start])
        assert hidden == at_once.block(text[start])
        logits = grown.logits(hidden)
        found.append({"start": start, "anchor": text[start], "hidden": hidden, "logits": logits,
                      "drafts": [likeliest(row) for row in logits[1:]]})
    return found


def run(target, prompt, draft):
    """Greedy generation: the part of a draft that equals the target's own tokens is accepted.

    draft(backbone, anchor): the tokens after the anchor.
    """
    backbone = Backbone(target)
    backbone.extend(target.features(prompt))
    text, rounds = prompt + [target.likeliest_after(prompt)], []
    while len(text) < len(prompt) + N_NEW:
        start = len(text) - 1
        drafts = draft(backbone, text[-1])
        n = 0
        while n < len(drafts) and target.likeliest_after(text + drafts[:n]) == drafts[n]:
            n += 1
        text += drafts[:n]
        text.append(target.likeliest_after(text))
        backbone.extend(target.features(text)[start:start + n + 1])
        rounds.append({"start": start, "drafts": drafts, "accepted": n})
    plain = list(prompt)
    while len(plain) < len(text):
        plain.append(target.likeliest_after(plain))
    assert text == plain
    return {"tokens": text[len(prompt):], "rounds": rounds}


def dflash_drafts(backbone, anchor):
    return [likeliest(row) for row in backbone.logits(backbone.block(anchor))[1:]]


def dspark_drafts(backbone, anchor):
    hidden = backbone.block(anchor)
    return Markov("rnn").chain(anchor, hidden, backbone.logits(hidden))["drafts"]


def grown_tree(log_probs, budget):
    """DDTree's nodes in the order in which it adds them: score, path of tokens."""
    ranked = [sorted(range(len(row)), key=lambda token, row=row: -row[token])
              for row in log_probs]

    def offer(ranks):
        path = [ranked[depth][rank] for depth, rank in enumerate(ranks)]
        score = math.fsum(log_probs[depth][token] for depth, token in enumerate(path))
        heapq.heappush(heap, (-score, ranks, path))

    heap, nodes = [], []
    offer((0,))
    while heap and len(nodes) < budget:
        score, ranks, path = heapq.heappop(heap)
        nodes.append((-score, path))
        if ranks[-1] + 1 < min(budget, len(log_probs[0])):
            offer(ranks[:-1] + (ranks[-1] + 1,))
        if len(ranks) < len(log_probs):
            offer(ranks + (0,))
    return nodes


def likeliest_prefixes(log_probs, n):
    """The same by trying every prefix."""
    tokens = range(len(log_probs[0]))
    scored = ((math.fsum(log_probs[depth][token] for depth, token in enumerate(path)), list(path))
              for length in range(1, len(log_probs) + 1)
              for path in itertools.product(tokens, repeat=length))
    return heapq.nlargest(n, scored)


def tree_case(logits, budgets):
    log_probs = [log_softmax(row) for row in logits]
    best = likeliest_prefixes(log_probs, max(budgets) + 1)
    trees = []
    for budget in budgets:
        nodes = grown_tree(log_probs, budget)
        # The choice must not depend on ties, or on what f32 may round to ties.
        steps = [a[0] - b[0] for a, b in zip(best[:budget], best[1:])]
        assert min(steps) > 1e-4, (budget, min(steps))
        assert [path for _, path in nodes] == [path for _, path in best[:budget]]
        numbers = {(): 0} | {tuple(path): i + 1 for i, (_, path) in enumerate(nodes)}
        trees.append({"budget": budget, "tokens": [path[-1] for _, path in nodes],
                      "parents": [numbers[tuple(path[:-1])] for _, path in nodes],
                      "log_probs": [score for score, _ in nodes]})
    return {"logits": logits, "trees": trees}


def tree_cases(of_texts):
    worked = [[0.3, 0.6, 0.1], [0.1, 0.2, 0.7], [0.6, 0.1, 0.3]]
    small = [[math.sin(1.3 * (5 * d + t)) for t in range(5)] for d in range(2)]
    sharp = [[5 * x for x in row] for row in of_texts[1][1]["logits"][1:]]
    return {
        "worked": tree_case([[math.log(x) for x in row] for row in worked], [1, 2, 3, 4, 5]),
        "exhausted": tree_case(small, [7, 29, 30, 40]),  # 30 prefixes
        "sharp": tree_case(sharp, [2, 8, 32]),
        "dflash_0_0": tree_case(of_texts[0][0]["logits"][1:], [1, 3, 4, 16, 64]),
        "dflash_1_2": tree_case(of_texts[1][2]["logits"][1:], [7, 40]),
    }


def rounded(x):
    """Floats with eight significant digits."""
    if isinstance(x, dict):
        return {key: rounded(value) for key, value in x.items()}
    if isinstance(x, list):
        return [rounded(value) for value in x]
    return float(f"{x:.8g}") if isinstance(x, float) else x


def main():
    target = Target()
    dflash = {variant: [blocks(target, variant, text) for text in TEXTS] for variant in VARIANTS}

    def dspark(kind, reads_token, first):
        markov = Markov(kind, reads_token)
        return [[markov.chain(block["anchor"], block["hidden"][first:], block["logits"][first:])
                 for block in of_text] for of_text in dflash["full"]]

    golden = {
        "config": {"block": BLOCK, "mask": MASK, "rank": RANK, "target_layers": TARGET_LAYERS,
                   "window": WINDOW, "layers": N_LAYERS, "vocabulary": VOCABULARY, "dim": DIM,
                   **DRAFT._asdict()},
        "texts": TEXTS,
        "growth": GROWTH,
        "context": [[Backbone(target).context_row(row) for row in target.features(text[:-1])]
                    for text in TEXTS],
        "dflash": dflash,
        "dspark": {name: dspark(*form) for name, form in MARKOVS.items()},
        "runs": {name: [run(target, text[:GROWTH[0]], draft) for text in TEXTS]
                 for name, draft in (("dflash", dflash_drafts), ("dspark", dspark_drafts))},
        "ddtree": tree_cases(dflash["full"]),
    }
    path = pathlib.Path(__file__).resolve().parents[1] / "block_heads.json"
    path.write_text(json.dumps(rounded(golden)) + "\n")


if __name__ == "__main__":
    main()
