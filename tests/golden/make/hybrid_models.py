# SPDX-License-Identifier: Apache-2.0
"""Qwen3-Next and Qwen3.5 for make_family_models.py: their cases (family_cases.py), weights and GGUF
files, and the possible mistakes of a reader."""
import torch

from changes import backwards, change, one_token_early, set_rope, zero

TYPES = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")

# llama.cpp assumes that keys and values have one width.
CASES = {
    # As Qwen3-Next-80B-A3B, in the spelling of its files.
    "qwen3_next_plain": dict(
        model_type="qwen3_next", hidden_size=24, intermediate_size=40, moe_intermediate_size=12,
        shared_expert_intermediate_size=16, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=8, linear_value_head_dim=8, tie_word_embeddings=False, num_experts=6,
        num_experts_per_tok=2, norm_topk_prob=True,
        rope_parameters=dict(rope_type="default", rope_theta=1e7, partial_rotary_factor=0.25),
        gguf=True,
        old=dict(rope_theta=1e7, rope_scaling=None, partial_rotary_factor=0.25, num_experts=6,
                 full_attention_interval=4, use_sliding_window=False, decoder_sparse_step=1,
                 mlp_only_layers=[])),
    # Layers without experts, another rotated share of heads, a convolution over three tokens,
    # biases of attention, expert weights without normalisation.
    "qwen3_next_mixed": dict(
        model_type="qwen3_next", hidden_size=32, intermediate_size=28, moe_intermediate_size=14,
        shared_expert_intermediate_size=10, num_hidden_layers=5, num_attention_heads=3,
        num_key_value_heads=1, head_dim=12, linear_num_key_heads=3, linear_num_value_heads=3,
        linear_key_head_dim=10, linear_value_head_dim=20, linear_conv_kernel_dim=3,
        tie_word_embeddings=True, num_experts=4, num_experts_per_tok=3, norm_topk_prob=False,
        decoder_sparse_step=2, mlp_only_layers=[1], attention_bias=True,
        layer_types=["full_attention", "linear_attention", "linear_attention", "full_attention",
                     "linear_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)),
    # One key head for three value heads, a convolution over two tokens.
    "qwen3_next_stacked": dict(
        model_type="qwen3_next", hidden_size=30, intermediate_size=20, moe_intermediate_size=10,
        shared_expert_intermediate_size=12, num_hidden_layers=3, num_attention_heads=2,
        num_key_value_heads=2, head_dim=16, linear_num_key_heads=1, linear_num_value_heads=3,
        linear_key_head_dim=16, linear_value_head_dim=8, linear_conv_kernel_dim=2,
        tie_word_embeddings=True, num_experts=3, num_experts_per_tok=3, norm_topk_prob=True,
        stacked=True, layer_types=["linear_attention", "full_attention", "linear_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.25)),
    # As Qwen3.5-0.8B: as many value heads as key heads.
    "qwen3_5_plain": dict(
        model_type="qwen3_5_text", hidden_size=24, intermediate_size=40, num_hidden_layers=4,
        num_attention_heads=3, num_key_value_heads=1, head_dim=16, linear_num_key_heads=2,
        linear_num_value_heads=2, linear_key_head_dim=8, linear_value_head_dim=8,
        tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=1e7, partial_rotary_factor=0.25,
                             mrope_section=[1, 1, 0], mrope_interleaved=True), gguf=True),
    # As Qwen3.5-9B: twice as many, which GGUF has in another order.
    "qwen3_5_grouped": dict(
        model_type="qwen3_5_text", hidden_size=32, intermediate_size=36, num_hidden_layers=5,
        num_attention_heads=2, num_key_value_heads=1, head_dim=24, linear_num_key_heads=2,
        linear_num_value_heads=4, linear_key_head_dim=12, linear_value_head_dim=12,
        tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=1e6, partial_rotary_factor=0.5,
                             mrope_section=[2, 2, 2], mrope_interleaved=True), gguf="tiled.gguf"),
    # States wider than the block of columns that is processed together, and not a multiple of it.
    "qwen3_5_wide": dict(
        model_type="qwen3_5_text", hidden_size=24, intermediate_size=28, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=16, linear_num_key_heads=1,
        linear_num_value_heads=2, linear_key_head_dim=72, linear_value_head_dim=144,
        tie_word_embeddings=True, layer_types=["linear_attention", "full_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.25,
                             mrope_section=[1, 1, 0], mrope_interleaved=True)),
    # A prompt over many pages.
    "qwen3_5_long": dict(
        model_type="qwen3_5_text", hidden_size=24, intermediate_size=32, num_hidden_layers=3,
        num_attention_heads=2, num_key_value_heads=2, head_dim=16, linear_num_key_heads=2,
        linear_num_value_heads=6, linear_key_head_dim=8, linear_value_head_dim=5, n=610,
        max_position_embeddings=1024, tie_word_embeddings=True,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.25,
                             mrope_section=[1, 1, 0], mrope_interleaved=True)),
    "qwen3_5_moe_plain": dict(
        model_type="qwen3_5_moe_text", hidden_size=24, moe_intermediate_size=12,
        shared_expert_intermediate_size=20, num_hidden_layers=4, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, linear_num_key_heads=2, linear_num_value_heads=2,
        linear_key_head_dim=8, linear_value_head_dim=8, tie_word_embeddings=False, num_experts=6,
        num_experts_per_tok=2,
        rope_parameters=dict(rope_type="default", rope_theta=1e7, partial_rotary_factor=0.25,
                             mrope_section=[1, 1, 0], mrope_interleaved=True), gguf=True),
    # As Qwen3.5-35B-A3B.
    "qwen3_5_moe_grouped": dict(
        model_type="qwen3_5_moe_text", hidden_size=28, moe_intermediate_size=10,
        shared_expert_intermediate_size=10, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=8, linear_value_head_dim=8, tie_word_embeddings=False, num_experts=5,
        num_experts_per_tok=2,
        rope_parameters=dict(rope_type="default", rope_theta=1e6, partial_rotary_factor=0.25,
                             mrope_section=[1, 1, 0], mrope_interleaved=True)),
    "qwen3_5_moe_stacked": dict(
        model_type="qwen3_5_moe_text", hidden_size=30, moe_intermediate_size=16,
        shared_expert_intermediate_size=8, num_hidden_layers=3, num_attention_heads=3,
        num_key_value_heads=3, head_dim=12, linear_num_key_heads=3, linear_num_value_heads=6,
        linear_key_head_dim=6, linear_value_head_dim=7, tie_word_embeddings=True, num_experts=3,
        num_experts_per_tok=1, stacked=True,
        layer_types=["full_attention", "linear_attention", "linear_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5,
                             mrope_section=[1, 1, 1], mrope_interleaved=True)),
}


def is_hybrid(config):
    return config.model_type in TYPES


def is_offset(name):
    """Norms that multiply by 1 + weight."""
    return name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight")


def spread_of(name):
    """Mean and standard deviation of parameters which make a state last for some tokens; None for others."""
    return {"A_log": (-1.5, 0.5), "dt_bias": (-1.0, 0.5)}.get(name.rsplit(".", 1)[-1])


# --- GGUF ---


def write_keys(writer, config):
    if hasattr(config, "shared_expert_intermediate_size"):
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
    writer.add_ssm_state_size(config.linear_key_head_dim)
    writer.add_ssm_group_count(config.linear_num_key_heads)
    writer.add_ssm_time_step_rank(config.linear_num_value_heads)
    writer.add_ssm_inner_size(config.linear_value_head_dim * config.linear_num_value_heads)
    writer.add_recurrent_layers([kind == "linear_attention" for kind in config.layer_types])
    writer.add_full_attention_interval(4)
    rope = config.rope_parameters
    writer.add_rope_dimension_count(int(config.head_dim * rope["partial_rotary_factor"]))
    if config.model_type != "qwen3_next":
        writer.add_rope_dimension_sections((rope["mrope_section"] + [0])[:4])


def parts_of_joined(config):
    """The rows of a key head in in_proj_qkvz: query, key, values, gates."""
    group = config.linear_num_value_heads // config.linear_num_key_heads
    return [config.linear_key_head_dim] * 2 + [group * config.linear_value_head_dim] * 2


def tiled(config, value, first, dim):
    """Value heads from row (or, for dim 1, column) `first` on, in GGUF's order for Qwen3.5."""
    if config.model_type == "qwen3_next":
        return value
    heads, parts = value.tensor_split([first], dim=dim)[::-1]
    n_keys, n_values = config.linear_num_key_heads, config.linear_num_value_heads
    heads = heads.unflatten(dim, (n_keys, n_values // n_keys, -1)).transpose(dim, dim + 1)
    return torch.cat([parts, heads.flatten(dim, dim + 2)], dim=dim)


def tensors_of(config, name, value):
    """The converter's output for a tensor: names of transformers (those of GGUF if there is none)
    and values."""
    keys = 2 * config.linear_num_key_heads * config.linear_key_head_dim
    if is_offset(name):
        value = value + 1
    if name.endswith("A_log"):
        value = tiled(config, -torch.exp(value), 0, 0)
    elif name.endswith("dt_bias"):
        name = name.replace("dt_bias", "dt_proj.bias")
        value = tiled(config, value, 0, 0)
    elif name.endswith("conv1d.weight"):
        value = tiled(config, value.squeeze(1), keys, 0)
    elif name.endswith("in_proj_qkv.weight"):
        value = tiled(config, value, keys, 0)
    elif name.endswith(("in_proj_z.weight", "in_proj_b.weight", "in_proj_a.weight")):
        value = tiled(config, value, 0, 0)
    elif name.endswith("linear_attn.out_proj.weight"):
        value = tiled(config, value, 0, 1)
    elif name.endswith("in_proj_qkvz.weight"):
        heads = value.unflatten(0, (config.linear_num_key_heads, -1))
        parts = [part.flatten(0, 1) for part in heads.split(parts_of_joined(config), dim=1)]
        block = name.split(".")[2]
        yield f"blk.{block}.attn_qkv.weight", torch.cat(parts[:3])
        yield f"blk.{block}.attn_gate.weight", parts[3]
        return
    yield name, value


# --- mistakes ---

# States that grow with every token: their logits may be NaN or infinite.
MAY_OVERFLOW = ("a decay that is stored", "no length of queries and keys")


def recurrent_layers(model):
    return [layer.linear_attn for layer in model.model.layers if hasattr(layer, "linear_attn")]


def rule(change_arguments):
    """Calls the delta rule with other arguments."""
    def wrong(model):
        for layer in recurrent_layers(model):
            def other(query, key, value, inner=layer.chunk_gated_delta_rule, **rest):
                return inner(**change_arguments(dict(query=query, key=key, value=value, **rest)))
            layer.chunk_gated_delta_rule = other
    return wrong


def late_decay(arguments):
    """A state that decays after its update: by the next token's decay, one token late."""
    g = arguments["g"]
    return {**arguments, "g": torch.cat([torch.zeros_like(g[:, :1]), g[:, :-1]], dim=1)}


def repeated_otherwise(arguments):
    """Key heads repeated in alternation."""
    def turns(x):
        n = len({tuple(x[0, 0, i].tolist()) for i in range(x.shape[2])})
        return x[:, :, ::x.shape[2] // n].repeat(1, 1, x.shape[2] // n, 1)
    return {**arguments, "query": turns(arguments["query"]), "key": turns(arguments["key"])}


def gates_of_queries(function):
    """Rows of queries and gates, (n_heads, 2, head_dim)."""
    def changed(config, value):
        rows = value.unflatten(0, (config.num_attention_heads, 2, config.head_dim))
        return function(rows).flatten(0, 2)
    return change("q_proj.weight", changed)


def without_gates(rows):
    rows = rows.clone()
    rows[:, 1] = 0
    return rows


def gated_before_norm(model):
    for layer in recurrent_layers(model):
        norm = layer.norm

        def forward(x, gate, norm=norm):
            x = x * torch.nn.functional.silu(gate)
            return norm.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        norm.forward = forward


def beta_and_decay_swapped(config, state):
    for key in list(state):
        if key.endswith("in_proj_ba.weight"):
            heads = state[key].unflatten(0, (config.linear_num_key_heads, 2, -1))
            state[key] = heads.flip(1).flatten(0, 2).contiguous()
        if key.endswith("in_proj_b.weight"):
            other = key.replace("in_proj_b", "in_proj_a")
            state[key], state[other] = state[other], state[key]


def mistakes(config):
    cases = {
        "another rope base": (set_rope(rope_theta=2e3), None),
        "whole heads turned": (set_rope(partial_rotary_factor=1.0), None),
        "query norm one less": (change("q_norm.weight", lambda _, v: v - 1), None),
        "key norm one less": (change("k_norm.weight", lambda _, v: v - 1), None),
        "norms as they are stored": (change("input_layernorm.weight", lambda _, v: v - 1), None),
        "the state's norm one more": (change("linear_attn.norm.weight", lambda _, v: v + 1), None),
        "no gate of attention": (gates_of_queries(without_gates), None),
        "gates before queries": (gates_of_queries(lambda rows: rows.flip(1)), None),
        "all queries, then all gates": (gates_of_queries(
            lambda rows: rows.flatten(0, 1).unflatten(0, (2, -1)).transpose(0, 1)), None),
        "filters the other way round": (change("conv1d.weight", backwards), None),
        "a window one token early": (change("conv1d.weight", one_token_early), None),
        "no decay": (change("A_log", lambda _, v: v - 40), None),
        "a decay that is stored": (change("A_log", lambda _, v: torch.log(torch.exp(v).exp())),
                                   None),
        "no bias of decays": (change("dt_bias", zero), None),
        "beta and decay swapped": (beta_and_decay_swapped, None),
        "decay one token late": (None, rule(late_decay)),
        "no length of queries and keys": (None, rule(
            lambda a: {**a, "use_qk_l2norm_in_kernel": False})),
        "a state without beta": (None, rule(
            lambda a: {**a, "beta": torch.ones_like(a["beta"])})),
        "the gate before the norm": (None, gated_before_norm),
    }
    if 1 < config.linear_num_key_heads < config.linear_num_value_heads:
        cases["key heads in turns"] = (None, rule(repeated_otherwise))
    if getattr(config, "shared_expert_intermediate_size", 0):
        cases["no shared expert"] = (
            change("shared_expert.down_proj.weight", zero), None)
        cases["a shared expert without its gate"] = (
            change("shared_expert_gate.weight", zero), None)
    return cases

