#!/usr/bin/env python3
"""Makes tests/golden/{qwen2,qwen3,gemma2,gemma3,mistral,smollm3,olmo2,granite,gpt2,gpt_neox,phi3}_*:
tiny random models of these families, with logits and greedy continuations from Hugging Face
transformers.

Needs torch, transformers, safetensors, gguf. Writes beside itself; run it again only to change the
cases (those named, or all). Each folder is what save_pretrained writes, and beside it

    golden.json          ids (the prompt), greedy (the 32 ids behind it; an end token ends nothing)
    golden.safetensors   logits (len(ids), vocabulary), f32
    model.gguf           one case a family: the same numbers as f32, as llama.cpp's converter names
                         and transforms them

The GGUF files equal the converter's in every tensor, and in every key outside general.* and
tokenizer.*, but that new converters also write gemma3.rope.freq_base_swa. llama.cpp gives the last
rows of the prompts within 5e-6 (Qwen) and 5e-3 (Gemma: its GELU is a table of f16).

Weights are bf16 (small files); logits are those of the same numbers in f32 with eager attention.
For each case the script asserts that its logits move when one thing is done wrong: see `WRONG`.
"""
import copy
import json
import math
import pathlib
import shutil
import sys

import gguf
import numpy
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

VOCABULARY = 97
N_GREEDY = 32
# Largest error of a logit in f32, against the same model in f64 (but for RoPE's angles).
ROUNDING = 3e-5
# A test allows for 5e-5 of rounding. A mistake must move some logit by 20 times that.
VISIBLE = 1e-3
# Two best logits of a greedy step differ at least by this: no rounding turns a step.
CLEAR = 2e-3

# `old` replaces keys of config.json by the spelling of transformers 4, in which most models of the
# hub are written. `n` is the prompt's length. Windows are shorter than every prompt.
CASES = {
    # As Qwen2.5-0.5B. A window is named there and not in use.
    "qwen2_tied": dict(
        model_type="qwen2", hidden_size=30, intermediate_size=44, num_hidden_layers=2,
        num_attention_heads=5, num_key_value_heads=1, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=1e6), gguf=True,
        old=dict(rope_theta=1e6, use_sliding_window=False, sliding_window=16, max_window_layers=1)),
    "qwen2_untied": dict(
        model_type="qwen2", hidden_size=32, intermediate_size=50, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    "qwen2_linear": dict(
        model_type="qwen2", hidden_size=42, intermediate_size=36, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.5)),
    # As Qwen3-0.6B: n_heads * head_dim is more than the model's width.
    "qwen3_tied": dict(
        model_type="qwen3", hidden_size=24, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=1e6), gguf=True,
        old=dict(rope_theta=1e6, rope_scaling=None, use_sliding_window=False, sliding_window=None,
                 max_window_layers=2)),
    # Less than the width, and one head of keys and values.
    "qwen3_untied": dict(
        model_type="qwen3", hidden_size=42, intermediate_size=38, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=1, head_dim=6, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    "qwen3_linear": dict(
        model_type="qwen3", hidden_size=36, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, head_dim=22, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="linear", rope_theta=1e6, factor=4.0)),
    # As Gemma 3 4B: five layers with a window before each one without, whose rope is scaled. GGUF
    # can say nothing else than this pattern and query_pre_attn_scalar = head_dim.
    "gemma3_scaled": dict(
        model_type="gemma3_text", hidden_size=24, intermediate_size=32, num_hidden_layers=7,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, query_pre_attn_scalar=8,
        sliding_window=16, layer_types=["sliding_attention"] * 5 + ["full_attention",
                                                                    "sliding_attention"],
        rope_parameters=dict(
            full_attention=dict(rope_type="linear", rope_theta=1e6, factor=8.0),
            sliding_attention=dict(rope_type="default", rope_theta=1e4)), gguf=True,
        old=dict(rope_theta=1e6, rope_local_base_freq=1e4, sliding_window_pattern=6,
                 rope_scaling=dict(rope_type="linear", factor=8.0))),
    # Another pattern, another scale; a prompt that leaves a page of 64 tokens behind its window.
    "gemma3_mixed": dict(
        model_type="gemma3_text", hidden_size=32, intermediate_size=44, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=1, head_dim=10, query_pre_attn_scalar=24,
        sliding_window=20, layer_types=["full_attention", "sliding_attention", "sliding_attention",
                                        "full_attention"], n=150,
        rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=1e6),
            sliding_attention=dict(rope_type="default", rope_theta=1e4))),
    # As Gemma 3 270M: layer_types beside the old spelling of the ropes; one layer in three whole.
    "gemma3_one_in_three": dict(
        model_type="gemma3_text", hidden_size=24, intermediate_size=30, num_hidden_layers=6,
        num_attention_heads=3, num_key_value_heads=3, head_dim=8, query_pre_attn_scalar=8,
        sliding_window=9, layer_types=["sliding_attention", "sliding_attention",
                                       "full_attention"] * 2,
        rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=1e6),
            sliding_attention=dict(rope_type="default", rope_theta=1e4)),
        old=dict(rope_theta=1e6, rope_local_base_freq=1e4, rope_scaling=None)),
}

CASES |= {
    # As Mistral 7B v0.1, with its window; v0.2 and later say null.
    "mistral_window": dict(
        model_type="mistral", hidden_size=32, intermediate_size=44, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False, sliding_window=20,
        rope_parameters=dict(rope_type="default", rope_theta=1e4),
        old=dict(rope_theta=1e4)),
    # As NeMo: n_heads * head_dim is not the width.
    "mistral_whole": dict(
        model_type="mistral", hidden_size=30, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=1, head_dim=8, tie_word_embeddings=True,
        sliding_window=None, rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    "mistral_yarn": dict(
        model_type="mistral", hidden_size=24, intermediate_size=36, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, head_dim=16, tie_word_embeddings=False,
        sliding_window=None,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=8.0, beta_fast=4.0,
                             beta_slow=1.0, original_max_position_embeddings=32)),
    # As Qwen2.5 with the scaling that its card recommends, in the old spelling.
    "qwen2_yarn": dict(
        model_type="qwen2", hidden_size=32, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0,
                             original_max_position_embeddings=64), gguf=True,
        old=dict(rope_theta=1e4, rope_scaling=dict(
            type="yarn", factor=4.0, original_max_position_embeddings=64))),
    # As SmolLM3-3B: every fourth layer without RoPE.
    "smollm3_fourth": dict(
        model_type="smollm3", hidden_size=32, intermediate_size=40, num_hidden_layers=5,
        num_attention_heads=4, num_key_value_heads=1, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=5e4), gguf=True,
        old=dict(rope_theta=5e4, no_rope_layers=[1, 1, 1, 0, 1], no_rope_layer_interval=4)),
    "smollm3_listed": dict(
        model_type="smollm3", hidden_size=24, intermediate_size=44, num_hidden_layers=3,
        num_attention_heads=3, num_key_value_heads=3, tie_word_embeddings=False,
        no_rope_layers=[0, 1, 0], attention_bias=True,
        rope_parameters=dict(rope_type="default", rope_theta=2e6)),
    "smollm3_window": dict(
        model_type="smollm3", hidden_size=32, intermediate_size=36, num_hidden_layers=4,
        num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
        no_rope_layer_interval=2, use_sliding_window=True, sliding_window=12,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0,
                             original_max_position_embeddings=64)),
    "olmo2_plain": dict(
        model_type="olmo2", hidden_size=32, intermediate_size=44, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=4, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=5e5), gguf=True,
        old=dict(rope_theta=5e5, rope_scaling=None)),
    "olmo2_grouped": dict(
        model_type="olmo2", hidden_size=40, intermediate_size=36, num_hidden_layers=3,
        num_attention_heads=5, num_key_value_heads=1, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=5e5)),
    "olmo2_biased": dict(
        model_type="olmo2", hidden_size=24, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, tie_word_embeddings=False,
        attention_bias=True,
        rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.0)),
    # As Granite 3: all four multipliers.
    "granite_tied": dict(
        model_type="granite", hidden_size=32, intermediate_size=44, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
        embedding_multiplier=0.4, attention_multiplier=0.2, residual_multiplier=0.7,
        logits_scaling=3.0, rope_parameters=dict(rope_type="default", rope_theta=1e4), gguf=True,
        old=dict(rope_theta=1e4, rope_scaling=None)),
    "granite_untied": dict(
        model_type="granite", hidden_size=30, intermediate_size=36, num_hidden_layers=2,
        num_attention_heads=5, num_key_value_heads=1, tie_word_embeddings=False,
        embedding_multiplier=6.0, attention_multiplier=0.5, residual_multiplier=0.22,
        logits_scaling=0.5, rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    "granite_biased": dict(
        model_type="granite", hidden_size=24, intermediate_size=30, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, tie_word_embeddings=True,
        attention_bias=True, mlp_bias=True, attention_multiplier=0.3,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0,
                             original_max_position_embeddings=64)),
}

SHORT = [1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0]
LONG = [1.1, 2.0, 3.5, 6.0, 9.0, 14.0, 20.0, 30.0]

CASES |= {
    # As Phi-3-mini-4k: a window, no scaling, as many heads of keys as of queries.
    "phi3_window": dict(
        model_type="phi3", hidden_size=36, intermediate_size=44, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, tie_word_embeddings=False, sliding_window=20,
        original_max_position_embeddings=256,
        rope_parameters=dict(rope_type="default", rope_theta=1e4),
        old=dict(rope_theta=1e4, rope_scaling=None, full_attn_mod=1, interpolate_factor=1)),
    # As Phi-4-mini: a part of each head turns, by longrope; the text behind the prompt grows beyond
    # the original context.
    "phi3_crossing": dict(
        model_type="phi3", hidden_size=64, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
        sliding_window=None, original_max_position_embeddings=80,
        rope_parameters=dict(rope_type="longrope", rope_theta=1e4, partial_rotary_factor=0.75,
                             short_factor=SHORT[:6], long_factor=LONG[:6],
                             original_max_position_embeddings=80), gguf=True),
    # As Phi-3.5-mini: whole heads; a prompt beyond the original context, in the old spelling.
    "phi3_long": dict(
        model_type="phi3", hidden_size=48, intermediate_size=36, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=1, tie_word_embeddings=False,
        sliding_window=None, original_max_position_embeddings=48,
        rope_parameters=dict(rope_type="longrope", rope_theta=1e4, short_factor=SHORT,
                             long_factor=LONG, original_max_position_embeddings=48),
        old=dict(rope_theta=1e4, original_max_position_embeddings=48,
                 rope_scaling=dict(type="longrope", short_factor=SHORT, long_factor=LONG))),
}

CASES |= {
    # As GPT-2: everything by default.
    "gpt2_plain": dict(
        model_type="gpt2", n_embd=32, n_layer=3, n_head=4, gguf=True,
        old=dict(n_ctx=256, n_inner=None, task_specific_params=dict())),
    # Not four times as wide; heads of another number than a power of two; the exact GELU.
    "gpt2_odd": dict(
        model_type="gpt2", n_embd=30, n_layer=2, n_head=5, n_inner=44, activation_function="gelu",
        layer_norm_epsilon=1e-4),
    # A context that the text nearly fills; scores scaled by layer, as in CRFM's models.
    "gpt2_short": dict(
        model_type="gpt2", n_embd=24, n_layer=3, n_head=3, n_positions=100,
        scale_attn_by_inverse_layer_idx=True, reorder_and_upcast_attn=False),
    # As Pythia.
    "gpt_neox_parallel": dict(
        model_type="gpt_neox", hidden_size=48, intermediate_size=60, num_hidden_layers=3,
        num_attention_heads=3, hidden_act="gelu", tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.25),
        gguf=True, old=dict(rotary_pct=0.25, rotary_emb_base=10000)),
    # As StableLM's first models: one branch after the other.
    "gpt_neox_sequential": dict(
        model_type="gpt_neox", hidden_size=32, intermediate_size=44, num_hidden_layers=2,
        num_attention_heads=4, hidden_act="gelu_new", tie_word_embeddings=True,
        use_parallel_residual=False,
        rope_parameters=dict(rope_type="linear", rope_theta=2e4, factor=2.0,
                             partial_rotary_factor=0.5)),
    "gpt_neox_whole": dict(
        model_type="gpt_neox", hidden_size=40, intermediate_size=36, num_hidden_layers=2,
        num_attention_heads=5, hidden_act="gelu_fast", tie_word_embeddings=False,
        attention_bias=False, layer_norm_eps=1e-4,
        rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=1.0)),
}

# Caps are small, so that they bite: scores are some units, and uncapped logits too.
CASES |= {
    # As Gemma 2 2B, whose config.json names the activation twice. GGUF can say nothing else than
    # this order of layers, this rope and query_pre_attn_scalar = head_dim.
    "gemma2_capped": dict(
        model_type="gemma2", hidden_size=24, intermediate_size=36, num_hidden_layers=5,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, query_pre_attn_scalar=8,
        sliding_window=16, attn_logit_softcapping=0.75, final_logit_softcapping=4.0,
        rope_parameters=dict(rope_type="default", rope_theta=1e4), gguf=True,
        old=dict(rope_theta=1e4, cache_implementation="hybrid", hidden_act="gelu_pytorch_tanh",
                 sliding_window_size=16)),
    # Other layers, and no cap of scores.
    "gemma2_uncapped_scores": dict(
        model_type="gemma2", hidden_size=30, intermediate_size=44, num_hidden_layers=3,
        num_attention_heads=5, num_key_value_heads=5, head_dim=6, query_pre_attn_scalar=3,
        sliding_window=20, layer_types=["full_attention", "sliding_attention",
                                        "sliding_attention"],
        attn_logit_softcapping=None, final_logit_softcapping=3.0, attention_bias=True,
        rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    # As Gemma 2 27B: another scale than the heads'. A prompt that leaves a page of 64 tokens behind
    # its window.
    "gemma2_wide": dict(
        model_type="gemma2", hidden_size=32, intermediate_size=40, num_hidden_layers=4,
        num_attention_heads=2, num_key_value_heads=1, head_dim=40, query_pre_attn_scalar=16,
        sliding_window=20, attn_logit_softcapping=2.0, final_logit_softcapping=None, n=150,
        rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.0)),
    "gemma3_capped": dict(
        model_type="gemma3_text", hidden_size=24, intermediate_size=32, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, query_pre_attn_scalar=8,
        sliding_window=16, layer_types=["sliding_attention", "sliding_attention",
                                        "full_attention"],
        final_logit_softcapping=4.0,
        rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=1e6),
            sliding_attention=dict(rope_type="default", rope_theta=1e4))),
}

# --- what a test must notice ---


def attentions(model):
    return [layer.self_attn for layer in model.model.layers]


def set_config(**changes):
    def wrong(config, _):
        for key, value in changes.items():
            setattr(config, key, value)
    return wrong


def set_rope(layer_type=None, **changes):
    def wrong(config, _):
        rope = config.rope_parameters
        (rope[layer_type] if layer_type else rope).update(changes)
    return wrong


def reset(name, value):
    """Every parameter whose name ends so gets one value."""
    def wrong(_, state):
        found = [key for key in state if key.endswith(name)]
        assert found, name
        for key in found:
            state[key] = torch.full_like(state[key], value)
    return wrong


def interleave(config, state):
    """Rows of a head as Llama's GGUF files have them: pairs of a rotation side by side."""
    for key, value in state.items():
        if key.endswith(("q_proj.weight", "k_proj.weight")):
            n, width = value.shape
            head = head_dim_of(config)
            state[key] = (value.reshape(n // head, 2, head // 2, width).transpose(1, 2)
                          .reshape(n, width).contiguous())


def is_gemma(config):
    return config.model_type.startswith("gemma")


def head_dim_of(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def shift_window(by):
    def wrong(config, _):
        config.sliding_window += by
    return wrong


def swap_layers(config, _):
    other = {"full_attention": "sliding_attention", "sliding_attention": "full_attention"}
    config.layer_types = [other[kind] for kind in config.layer_types]


def without(*names):
    """Modules that hand on what they get."""
    def wrong(model):
        for layer in model.model.layers:
            for owner in (layer, layer.self_attn):
                for name in names:
                    if hasattr(owner, name):
                        setattr(owner, name, torch.nn.Identity())
    return wrong


def no_embedding_scale(model):
    model.model.embed_tokens.embed_scale = torch.tensor(1.0)


def norms_of_whole_rows(model):
    """One norm over all heads of a row, as OLMo 2 has it."""
    for attention in attentions(model):
        for name in ("q_norm", "k_norm"):
            norm = getattr(attention, name)

            def forward(x, norm=norm):
                scale = torch.rsqrt(x.pow(2).mean((-2, -1), keepdim=True) + 1e-6)
                return x * scale * norm.weight
            norm.forward = forward


def toggle_rope(config, _):
    config.no_rope_layers = [1 - turned for turned in config.no_rope_layers]


def turn_all(config, _):
    rope = config.rope_parameters
    rope["partial_rotary_factor"] = 1.0
    for key in ("short_factor", "long_factor"):
        rope[key] = (rope[key] * 2)[: head_dim_of(config) // 2]


def swap_gate_and_up(_, state):
    for key, value in state.items():
        if key.endswith("gate_up_proj.weight"):
            state[key] = torch.cat(value.chunk(2)[::-1])


def keys_of_other_heads(config, state):
    """Queries, keys and values of each head together, as GPT-NeoX has them."""
    heads = config.num_attention_heads + 2 * config.num_key_value_heads
    for key, value in state.items():
        if key.endswith("qkv_proj.weight"):
            state[key] = value.unflatten(0, (heads, -1)).roll(1, 0).flatten(0, 1).contiguous()


def norms_of_heads(model):
    """A norm of each head by itself, as Qwen3 has it."""
    for attention in attentions(model):
        for name in ("q_norm", "k_norm"):
            norm = getattr(attention, name)

            def forward(x, norm=norm, dim=attention.head_dim):
                heads = x.unflatten(-1, (-1, dim))
                scale = torch.rsqrt(heads.pow(2).mean(-1, keepdim=True) + 1e-6)
                return (heads * scale).flatten(-2) * norm.weight
            norm.forward = forward


def keep_means(model):
    """LayerNorms without the mean's removal."""
    for norm in model.modules():
        if isinstance(norm, torch.nn.LayerNorm):
            def forward(x, norm=norm):
                scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + norm.eps)
                return x * scale * norm.weight + norm.bias
            norm.forward = forward


def change(ending, function):
    def wrong(config, state):
        found = [key for key in state if key.endswith(ending)]
        assert found, ending
        for key in found:
            state[key] = function(config, state[key]).contiguous()
    return wrong


def thirds(order):
    """The three products of GPT-2's one matrix in another order, by columns."""
    return lambda config, value: torch.cat(
        [value.chunk(3, dim=-1)[i] for i in order], dim=-1)


def first_third(config, value):
    n = config.hidden_size
    return torch.cat([torch.zeros_like(value[:n]), value[n:]])


def parts_together(config, value):
    """GPT-NeoX's rows as the converter to GGUF orders them: all queries, all keys, all values."""
    heads = value.unflatten(0, (config.num_attention_heads, 3, -1))
    return heads.transpose(0, 1).flatten(0, 2)


def queries_without_bias(config, value):
    heads = value.unflatten(0, (config.num_attention_heads, 3, -1)).clone()
    heads[:, 0] = 0
    return heads.flatten()


def toggle(name, *values):
    def wrong(config, _):
        others = [value for value in values if value != getattr(config, name)]
        setattr(config, name, others[0])
    return wrong


# name: (config and tensors changed before the model is made, the model changed afterwards)
OF_GEMMA = {
    "no window": (set_config(sliding_window=4096), None),
    "a window less by one": (shift_window(-1), None),
    "a window more by one": (shift_window(1), None),
    "the other layers": (swap_layers, None),
    "another scale": (set_config(query_pre_attn_scalar=20), None),
    "silu": (set_config(hidden_activation="silu"), None),
    "gelu by erf": (set_config(hidden_activation="gelu"), None),
    "no norm behind attention": (None, without("post_attention_layernorm")),
    "no norm behind the feed-forward layer": (None, without("post_feedforward_layernorm")),
    "embeddings not scaled": (None, no_embedding_scale),
    "rows interleaved": (interleave, None),
}
WRONG = {
    "mistral": {
        "rows interleaved": (interleave, None),
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "smollm3": {
        "rope on the other layers": (toggle_rope, None),
        "rows interleaved": (interleave, None),
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "olmo2": {
        "query norm of ones": (reset("q_norm.weight", 1), None),
        "key norm of ones": (reset("k_norm.weight", 1), None),
        "norms of single heads": (None, norms_of_heads),
        "no norm behind attention": (None, without("post_attention_layernorm")),
        "no norm behind the feed-forward layer": (None, without("post_feedforward_layernorm")),
        "rows interleaved": (interleave, None),
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "granite": {
        "another scale of scores": (set_config(attention_multiplier=0.7), None),
        "another scale of embeddings": (set_config(embedding_multiplier=3.0), None),
        "another scale of what layers add": (set_config(residual_multiplier=0.9), None),
        "another scale of logits": (set_config(logits_scaling=2.0), None),
        "rows interleaved": (interleave, None),
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "phi3": {
        "gate and up the other way round": (swap_gate_and_up, None),
        "rows of other heads": (keys_of_other_heads, None),
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "qwen2": {
        "no query bias": (reset("q_proj.bias", 0), None),
        "no key bias": (reset("k_proj.bias", 0), None),
        "no value bias": (reset("v_proj.bias", 0), None),
        "rows interleaved": (interleave, None),
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "qwen3": {
        "query norm of ones": (reset("q_norm.weight", 1), None),
        "key norm of ones": (reset("k_norm.weight", 1), None),
        "no query norm": (None, without("q_norm")),
        "no key norm": (None, without("k_norm")),
        "norms of whole rows": (None, norms_of_whole_rows),
        "rows interleaved": (interleave, None),
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "gpt2": {
        "no positions": (reset("wpe.weight", 0), None),
        "positions one further": (change("wpe.weight", lambda _, v: v.roll(-1, 0)), None),
        "a square matrix turned": (change("attn.c_proj.weight", lambda _, v: v.T), None),
        "keys before queries": (change("c_attn.weight", thirds((1, 0, 2))), None),
        "values before keys": (change("c_attn.weight", thirds((0, 2, 1))), None),
        "no query bias": (change("c_attn.bias", first_third), None),
        "no output bias": (reset("attn.c_proj.bias", 0), None),
        "no bias of the feed-forward layer": (reset("mlp.c_proj.bias", 0), None),
        "no bias of norms": (reset("ln_1.bias", 0), None),
        "no bias of the last norm": (reset("ln_f.bias", 0), None),
        "means kept": (None, keep_means),
        "another epsilon": (set_config(layer_norm_epsilon=3e-4), None),
        "the other gelu": (toggle("activation_function", "gelu_new", "gelu"), None),
        "scores scaled otherwise": (
            toggle("scale_attn_by_inverse_layer_idx", False, True), None),
    },
    "gpt_neox": {
        "parts together": (change("query_key_value.weight", parts_together), None),
        "no bias of the feed-forward layer": (reset("mlp.dense_4h_to_h.bias", 0), None),
        "no bias of norms": (reset("input_layernorm.bias", 0), None),
        "no bias of the last norm": (reset("final_layer_norm.bias", 0), None),
        "means kept": (None, keep_means),
        "another epsilon": (set_config(layer_norm_eps=3e-4), None),
        "the other gelu": (toggle("hidden_act", "gelu", "gelu_new"), None),
        "the other residual": (toggle("use_parallel_residual", False, True), None),
        "another part of heads turned": (set_rope(partial_rotary_factor=0.75), None),
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "gemma2": {
        **OF_GEMMA,
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "gemma3_text": {
        **OF_GEMMA,
        "the local rope base globally": (set_rope("full_attention", rope_theta=1e4), None),
        "the global rope base locally": (set_rope("sliding_attention", rope_theta=1e6), None),
        "no query norm": (None, without("q_norm")),
        "no key norm": (None, without("k_norm")),
    },
}


def wrong_cases(config):
    cases = dict(WRONG[config.model_type])
    if is_gemma(config):
        for key, what in (("attn_logit_softcapping", "scores"),
                          ("final_logit_softcapping", "logits")):
            cap = getattr(config, key)
            if cap:
                cases[f"no cap of {what}"] = (set_config(**{key: None}), None)
                cases[f"another cap of {what}"] = (set_config(**{key: 1.05 * cap}), None)
            elif (config.model_type, what) != ("gemma3_text", "scores"):  # not looked at there
                cases[f"a cap of {what}"] = (set_config(**{key: 30.0}), None)
        if config.query_pre_attn_scalar != config.head_dim:
            cases["scaled by head_dim"] = (
                set_config(query_pre_attn_scalar=config.head_dim), None)
    if config.model_type == "gemma3_text":
        if config.rope_parameters["full_attention"]["rope_type"] == "linear":
            cases["no rope factor"] = (set_rope("full_attention", rope_type="default"), None)
            cases["a rope factor on all layers"] = (
                set_rope("sliding_attention", rope_type="linear", factor=8.0), None)
    elif config.model_type == "gpt2":
        pass
    elif config.rope_parameters["rope_type"] == "linear":
        cases["no rope factor"] = (set_rope(rope_type="default"), None)
    elif config.rope_parameters["rope_type"] == "yarn":
        cases["no yarn"] = (set_rope(rope_type="default"), None)
        cases["a linear factor"] = (set_rope(rope_type="linear"), None)
        cases["no factor of attention"] = (set_rope(attention_factor=1.0), None)
    elif config.rope_parameters["rope_type"] == "longrope":
        rope = config.rope_parameters
        cases["no longrope"] = (set_rope(rope_type="default"), None)
        cases["the other factors"] = (set_rope(short_factor=rope["long_factor"],
                                               long_factor=rope["short_factor"]), None)
        cases["no magnitude"] = (set_rope(attention_factor=1.0), None)
    if config.model_type == "phi3" and config.rope_parameters["partial_rotary_factor"] != 1:
        cases["another part turned"] = (turn_all, None)
    if config.model_type == "gpt_neox" and config.attention_bias:
        cases["no query bias"] = (change("query_key_value.bias", queries_without_bias), None)
    if getattr(config, "sliding_window", None) and config.model_type in ("mistral", "smollm3",
                                                                         "phi3"):
        cases["no window"] = (set_config(sliding_window=4096), None)
        cases["a window less by one"] = (shift_window(-1), None)
    return cases


# --- models ---


def make_model(config, state=None):
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager",
                                             dtype=torch.float32).eval()
    if state is not None:
        model.load_state_dict(state)
    return model


# Stored (in, out).
CONV1D = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
LAST_NORMS = ("model.norm.weight", "transformer.ln_f.weight", "gpt_neox.final_layer_norm.weight")


def fill(model, generator):
    config = model.config
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and name.endswith(CONV1D):
            mean, deviation = 0, parameter.shape[0] ** -0.5
        elif parameter.dim() == 2:
            mean, deviation = 0, parameter.shape[1] ** -0.5
        elif name.endswith("bias"):
            # Where every product has one, larger ones would drown the tokens.
            mean, deviation = 0, 0.1 if config.model_type in ("gpt2", "gpt_neox") else 0.5
        elif name in LAST_NORMS:  # logits of some units
            mean, deviation = 3, 0.3
        elif name.endswith(("q_norm.weight", "k_norm.weight")):  # attention that tells tokens apart
            mean, deviation = 1.25, 0.3
        else:
            mean, deviation = 1, 0.3
        # Gemma's norms multiply by 1 + weight.
        mean -= is_gemma(config) and parameter.dim() == 1 and name.endswith("norm.weight")
        parameter.normal_(mean, deviation, generator=generator)
        parameter.copy_(parameter.bfloat16().float())


@torch.no_grad()
def logits_of(model, ids):
    return model(torch.tensor([ids]), use_cache=False).logits[0]


def greedy(model, ids):
    """The ids behind a prompt, or None where two logits come too near each other."""
    ids = list(ids)
    for _ in range(N_GREEDY):
        best = logits_of(model, ids)[-1].topk(2)
        if best.values[0] - best.values[1] < CLEAR:
            return None
        ids.append(int(best.indices[0]))
    return ids[-N_GREEDY:]


def make_case(options):
    """A model whose continuation is clear and of several ids (8, or fewer if 20 have less)."""
    n = options.get("n", 64)
    options = {key: value for key, value in options.items() if key not in ("old", "gguf", "n")}
    shape = {"gpt2": dict(n_positions=256), "gpt_neox": dict(max_position_embeddings=256)}.get(
        options["model_type"], dict(max_position_embeddings=256, rms_norm_eps=1e-6))
    config = AutoConfig.for_model(
        **{**shape, **options}, vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2,
        pad_token_id=0)
    for seed in range(100):
        generator = torch.Generator().manual_seed(seed)
        model = make_model(config)
        with torch.no_grad():
            fill(model, generator)
        ids = torch.randint(3, VOCABULARY, (n,), generator=generator).tolist()
        behind = greedy(model, ids)
        if behind is not None and len(set(behind)) >= 8 - seed // 20:
            return model, ids, behind
    raise AssertionError("no clear continuation in 100 models")


def check_wrong(model, ids, expected):
    for name, (before, after) in wrong_cases(model.config).items():
        config = copy.deepcopy(model.config)
        state = {key: value.clone() for key, value in model.state_dict().items()}
        if before is not None:
            before(config, state)
        other = make_model(config, state)
        if after is not None:
            after(other)
        difference = float((logits_of(other, ids) - expected).abs().max())
        print(f"    {name}: {difference:.2g}")
        assert difference > VISIBLE, name


# --- files ---


def write_old_spelling(directory, keys):
    path = directory / "config.json"
    config = json.loads(path.read_text())
    config.pop("rope_parameters", None)
    if "sliding_window_pattern" in keys or config["model_type"] != "gemma3_text":
        config.pop("layer_types", None)
    config["torch_dtype"] = config.pop("dtype")
    config.update(keys)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def pieces():
    """Printable characters, blank and line end in the byte-level alphabet; three that end a text or
    fill it; a merge, since a reader may want one."""
    printable = [chr(code) for code in range(33, 127)][: VOCABULARY - 6]
    return ["<pad>", "<bos>", "<eos>", *printable, "\u0120", "\u010a", "th"]


LAYER_NORMED = ("gpt2", "gptneox")


def write_gguf(model, path):
    """As convert_hf_to_gguf.py --outtype f32: Gemma's norms as 1 + weight; of SmolLM3 and Granite
    the rows of queries and keys interleaved; GPT-2's matrices turned; GPT-NeoX's queries, keys and
    values one behind the other; of the others no rows moved."""
    config = model.config
    architecture, arch = {
        "qwen2": ("qwen2", gguf.MODEL_ARCH.QWEN2), "qwen3": ("qwen3", gguf.MODEL_ARCH.QWEN3),
        "gemma2": ("gemma2", gguf.MODEL_ARCH.GEMMA2),
        "gemma3_text": ("gemma3", gguf.MODEL_ARCH.GEMMA3),
        "smollm3": ("smollm3", gguf.MODEL_ARCH.SMOLLM3),
        "olmo2": ("olmo2", gguf.MODEL_ARCH.OLMO2),
        "granite": ("granite", gguf.MODEL_ARCH.GRANITE),
        "gpt2": ("gpt2", gguf.MODEL_ARCH.GPT2),
        "gpt_neox": ("gptneox", gguf.MODEL_ARCH.GPTNEOX),
        "phi3": ("phi3", gguf.MODEL_ARCH.PHI3)}[config.model_type]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(
        4 * config.n_embd if architecture == "gpt2" else config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    if architecture not in LAYER_NORMED:
        writer.add_head_count_kv(config.num_key_value_heads)
    if architecture == "gpt2":
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
        rope = dict(rope_type="none")
    elif architecture == "gptneox":
        # The converter writes no base, and readers take 10000.
        rope = config.rope_parameters
        assert rope["rope_theta"] == 1e4
        writer.add_rope_dimension_count(int(rope["partial_rotary_factor"] * head_dim_of(config)))
        writer.add_parallel_residual(config.use_parallel_residual)
        writer.add_layer_norm_eps(config.layer_norm_eps)
    else:
        rope = config.rope_parameters
        rope = rope["full_attention"] if architecture == "gemma3" else rope
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    elif rope["rope_type"] == "longrope":
        original = rope["original_max_position_embeddings"]
        ratio = config.max_position_embeddings / original
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(ratio) / math.log(original)))
        for kind in ("short", "long"):
            writer.add_tensor(f"rope_factors_{kind}.weight",
                              numpy.array(rope[f"{kind}_factor"], dtype=numpy.float32))
    if architecture == "phi3":
        share = rope.get("partial_rotary_factor", 1.0)
        writer.add_rope_dimension_count(int(share * head_dim_of(config)))
        writer.add_sliding_window(config.sliding_window or 0)
    if architecture == "granite":
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if architecture == "gemma2":  # the converter leaves the base out, and readers take this one
        assert rope == dict(rope_type="default", rope_theta=1e4)
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    elif architecture not in LAYER_NORMED:
        writer.add_rope_freq_base(rope["rope_theta"])
    if architecture not in LAYER_NORMED:
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if architecture in ("qwen3", "gemma2", "gemma3"):
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    if architecture == "gemma3":
        # The second base of rope is in new files alone: readers take 10000 where there is none.
        assert config.rope_parameters["sliding_attention"]["rope_theta"] == 1e4
    if is_gemma(config):
        writer.add_sliding_window(config.sliding_window)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)

    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default" if is_gemma(config) else
                             "gpt-2" if architecture in LAYER_NORMED else "qwen2")
    writer.add_token_list(pieces())
    types = [gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL] * (VOCABULARY - 3)
    writer.add_token_types(types)
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(config.eos_token_id)
    writer.add_pad_token_id(config.pad_token_id)
    writer.add_add_bos_token(False)

    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    state = dict(model.state_dict())
    if architecture in ("smollm3", "granite"):
        interleave(config, state)
    for name, value in state.items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if is_gemma(config) and name.endswith("norm.weight"):
            value = value + 1
        if architecture == "gpt2" and name.endswith(CONV1D):
            value = value.T
        if ".query_key_value." in name:
            value = parts_together(config, value)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")),
                          numpy.ascontiguousarray(value.numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    here = pathlib.Path(__file__).resolve().parent
    for name, options in CASES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        print(name)
        model, ids, behind = make_case(options)
        logits = logits_of(model, ids)
        check_wrong(model, ids, logits)
        exact = logits_of(copy.deepcopy(model).double(), ids)
        rounding = float((exact - logits).abs().max())
        print(f"    rounding: {rounding:.2g}, {len(set(behind))} ids in {behind}")
        assert rounding < ROUNDING
        directory = here / name
        shutil.rmtree(directory, ignore_errors=True)
        # A copy: this rounds the frequencies of RoPE too, which a loaded model does not.
        copy.deepcopy(model).to(torch.bfloat16).save_pretrained(directory)
        if "old" in options:
            write_old_spelling(directory, options["old"])
        loaded = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32,
                                                      attn_implementation="eager").eval()
        assert torch.equal(logits_of(loaded, ids), logits), "the files say something else"
        save_file({"logits": logits.contiguous()}, directory / "golden.safetensors")
        (directory / "golden.json").write_text(json.dumps({"ids": ids, "greedy": behind}) + "\n")
        if options.get("gguf"):
            write_gguf(model, directory / "model.gguf")


if __name__ == "__main__":
    main()
