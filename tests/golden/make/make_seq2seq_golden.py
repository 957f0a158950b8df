# SPDX-License-Identifier: Apache-2.0
"""Makes seq2seq.json: the results of Hugging Face transformers with a tiny T5 v1.1 model, for the
trainer's tests. Weights and tokens come from formulas, so that the tests can make the same ones.

    python3 make_seq2seq_golden.py > ../seq2seq.json

The weights of the ordinal-th parameter, in alphabetical order of names and counted from 0, are
wave(ordinal): sin(0.7 i + 0.01 i^2 + 1.3 ordinal), 0.3 times that for matrices and 1 + 0.1 times
that for norms. Two pairs: sources of 30 and 17 tokens, targets of 26 and 11, padded with 0, the
decoder begins with 0. A source's tokens are 2 + (7 i + 11 s + i^2) mod 38, a target's the same with
5 i + 3 s + i^3, s the pair's number, and both end with token 1.

- "buckets": of T5Attention, a list for each (both_ways, n_buckets, max_distance) of the keys at
  distances -140 to 140.
- "loss": mean cross-entropy of the targets' tokens; "smoothed_loss": with a tenth of every token's
  distribution spread over the vocabulary.
- "logits": of each pair's last target token that is not padding.
- "gradients": by parameter, of "loss": "norm", and "wave", its product with wave(ordinal + 50).
- "answers": the greedy results of generate(), at most 12 tokens, the end token left out.
"""
import json
import math

import torch
import transformers
from transformers import T5Config, T5ForConditionalGeneration
from transformers.models.t5.modeling_t5 import T5Attention

torch.set_num_threads(1)
VOCABULARY, N_ANSWER = 40, 12
config = T5Config(
    vocab_size=VOCABULARY, d_model=16, d_kv=6, d_ff=24, num_heads=3, num_layers=2,
    num_decoder_layers=3, relative_attention_num_buckets=8, relative_attention_max_distance=20,
    dropout_rate=0.0, layer_norm_epsilon=1e-6, feed_forward_proj="gated-gelu",
    tie_word_embeddings=False, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config).float()
# transformers 5 ties the output matrix in memory, whatever the configuration is.
model.lm_head.weight = torch.nn.Parameter(torch.empty(VOCABULARY, 16))
model.train()


def wave(ordinal, n):
    return torch.tensor([math.sin(0.7 * i + 0.01 * i * i + 1.3 * ordinal) for i in range(n)],
                        dtype=torch.float64)


parameters = sorted(model.named_parameters())
with torch.no_grad():
    for ordinal, (name, parameter) in enumerate(parameters):
        values = wave(ordinal, parameter.numel()).reshape(parameter.shape)
        parameter.copy_(1 + 0.1 * values if name.endswith("norm.weight") else 0.3 * values)


def text(n, number):
    return [2 + number(i) % (VOCABULARY - 2) for i in range(n - 1)] + [1]


sources = [text(n, lambda i: 7 * i + 11 * s + i * i) for s, n in enumerate((30, 17))]
targets = [text(n, lambda i: 5 * i + 3 * s + i ** 3) for s, n in enumerate((26, 11))]


def padded(texts, value):
    width = max(map(len, texts))
    return torch.tensor([t + [value] * (width - len(t)) for t in texts])


inputs, labels = padded(sources, 0), padded(targets, -100)
mask = padded([[1] * len(t) for t in sources], 0)
output = model(input_ids=inputs, attention_mask=mask, labels=labels)
output.loss.backward()
rows = output.logits.detach()
smoothed = torch.nn.functional.cross_entropy(
    rows.flatten(0, 1), labels.flatten(), ignore_index=-100, label_smoothing=0.1)
model.eval()
said = model.generate(input_ids=inputs, attention_mask=mask, do_sample=False, num_beams=1,
                      max_new_tokens=N_ANSWER, use_cache=False)
answers = []
for row in said.tolist():
    row = row[1:]
    answers.append(row[:row.index(1)] if 1 in row else row)

distances = torch.arange(-140, 141)
buckets = [{"both_ways": both, "n_buckets": n, "max_distance": far,
            "buckets": T5Attention._relative_position_bucket(distances, both, n, far).tolist()}
           for both in (True, False) for n, far in ((32, 128), (8, 20), (12, 32))]
print(json.dumps({
    "made_with": {"transformers": transformers.__version__, "torch": torch.__version__},
    "buckets": buckets,
    "loss": output.loss.item(),
    "smoothed_loss": smoothed.item(),
    "logits": [rows[s, len(t) - 1].tolist() for s, t in enumerate(targets)],
    "gradients": {name: {"norm": parameter.grad.double().norm().item(),
                         "wave": (parameter.grad.double().flatten()
                                  * wave(ordinal + 50, parameter.numel())).sum().item()}
                  for ordinal, (name, parameter) in enumerate(parameters)},
    "answers": answers}))
