# SPDX-License-Identifier: Apache-2.0
"""Losses of a tiny Llama model and of its first training steps, by PyTorch and Hugging Face
transformers. Weights, tokens and a teacher's logits come from formulas, so that the trainer's tests
can make the same ones.

    python3 make_training_losses.py > ../training_losses.json
"""
import json
import math

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

torch.set_num_threads(1)
VOCABULARY, LENGTH, SEQUENCES = 61, 12, 2
config = LlamaConfig(
    vocab_size=VOCABULARY, hidden_size=24, intermediate_size=40, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, head_dim=6, max_position_embeddings=64,
    rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False, attention_bias=False,
    mlp_bias=False, attn_implementation="eager")
model = LlamaForCausalLM(config).float()


def formula(ordinal, n):
    """The values of the ordinal-th parameter in alphabetical order of names."""
    return torch.tensor([math.sin(0.7 * i + 1.3 * ordinal) for i in range(n)], dtype=torch.float64)


with torch.no_grad():
    for ordinal, (name, parameter) in enumerate(sorted(model.named_parameters())):
        values = formula(ordinal, parameter.numel()).reshape(parameter.shape)
        parameter.copy_(1 + 0.1 * values if name.endswith("norm.weight") else 0.3 * values)

tokens = torch.tensor([[(7 * i + 11 * s + i * i) % VOCABULARY for i in range(LENGTH)]
                       for s in range(SEQUENCES)])
inputs, targets = tokens[:, :-1], tokens[:, 1:]
n_rows = targets.numel()
teacher = 2 * formula(99, n_rows * VOCABULARY).float().reshape(n_rows, VOCABULARY)


def logits():
    return model(inputs).logits.reshape(n_rows, VOCABULARY)


def lm_loss():
    return torch.nn.functional.cross_entropy(logits(), targets.reshape(-1))


result = {}
with torch.no_grad():
    d, t = torch.log_softmax(logits(), -1), torch.log_softmax(teacher, -1)
    mean = torch.log((d.exp() + t.exp()) / 2)
    kl = lambda a, b: (a.exp() * (a - b)).sum(-1).mean().item()
    result["forward_kl"], result["reverse_kl"] = kl(t, d), kl(d, t)
    result["jensen_shannon"] = (kl(t, mean) + kl(d, mean)) / 2
    result["total_variation"] = (t.exp() - d.exp()).abs().sum(-1).mean().item() / 2

matrices = [p for p in model.parameters() if p.dim() >= 2]
vectors = [p for p in model.parameters() if p.dim() < 2]
# With an epsilon of this size, the sign of a gradient that is only rounding cannot make a whole
# step.
optimizer = torch.optim.AdamW(
    [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
    lr=0.01, betas=(0.9, 0.95), eps=1e-3)
result["steps"] = []
for _ in range(4):
    optimizer.zero_grad()
    loss = lm_loss()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    result["steps"].append({"loss": loss.item(), "gradient_norm": norm.item()})
print(json.dumps({"made_with": {"transformers": transformers.__version__,
                                 "torch": torch.__version__}} | result, indent=2))
