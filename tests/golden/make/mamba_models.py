# SPDX-License-Identifier: Apache-2.0
"""Granite 4 hybrids for make_family_models.py: their cases (family_cases.py), weights and GGUF
files, and the possible mistakes of a reader."""
import torch

from changes import backwards, change, next_row, one_token_early, set_config, zero

CASES = {
    # As Granite 4.0 H Micro and 1B: no experts, no RoPE.
    "granite_hybrid_plain": dict(
        model_type="granitemoehybrid", hidden_size=24, intermediate_size=40,
        shared_intermediate_size=40, num_hidden_layers=4, num_attention_heads=3,
        num_key_value_heads=1, mamba_n_heads=6, mamba_d_head=8, mamba_d_state=16, mamba_expand=2,
        num_local_experts=0, num_experts_per_tok=0, position_embedding_type="nope",
        layer_types=["mamba", "mamba", "attention", "mamba"], tie_word_embeddings=True,
        embedding_multiplier=3.0, attention_multiplier=0.3, residual_multiplier=0.6,
        logits_scaling=0.5, gguf=True),
    # As Granite 4.0 H Tiny and Small, in the old spelling.
    "granite_hybrid_moe": dict(
        model_type="granitemoehybrid", hidden_size=24, intermediate_size=12,
        shared_intermediate_size=20, num_hidden_layers=4, num_attention_heads=3,
        num_key_value_heads=1, mamba_n_heads=3, mamba_d_head=16, mamba_d_state=12, mamba_expand=2,
        num_local_experts=6, num_experts_per_tok=2, position_embedding_type="nope",
        layer_types=["mamba", "attention", "mamba", "mamba"], tie_word_embeddings=True,
        embedding_multiplier=2.0, attention_multiplier=0.4, residual_multiplier=0.8,
        logits_scaling=0.6, gguf=True,
        old=dict(rope_theta=10000, rope_scaling=None, normalization_function="rmsnorm",
                 init_method="mup", layer_types=["mamba", "attention", "mamba", "mamba"])),
    # Groups, RoPE, limits of time steps, biases of all products, a convolution over three tokens.
    "granite_hybrid_mixed": dict(
        model_type="granitemoehybrid", hidden_size=32, intermediate_size=14,
        shared_intermediate_size=18, num_hidden_layers=5, num_attention_heads=4,
        num_key_value_heads=2, mamba_n_heads=6, mamba_d_head=16, mamba_d_state=10, mamba_expand=3,
        mamba_n_groups=2, mamba_d_conv=3, mamba_proj_bias=True, attention_bias=True,
        num_local_experts=4, num_experts_per_tok=2, position_embedding_type="rope",
        time_step_limit=(0.15, 0.6),
        layer_types=["attention", "mamba", "mamba", "attention", "mamba"],
        tie_word_embeddings=False, embedding_multiplier=1.5, attention_multiplier=0.3,
        residual_multiplier=0.7, logits_scaling=0.8,
        rope_parameters=dict(rope_type="default", rope_theta=1e4)),
    # A prompt over many pages; a convolution over two tokens, without a bias.
    "granite_hybrid_long": dict(
        model_type="granitemoehybrid", hidden_size=20, intermediate_size=30,
        shared_intermediate_size=30, num_hidden_layers=3, num_attention_heads=2,
        num_key_value_heads=2, mamba_n_heads=5, mamba_d_head=8, mamba_d_state=9, mamba_expand=2,
        mamba_d_conv=2, mamba_conv_bias=False, num_local_experts=0, num_experts_per_tok=0, n=610,
        max_position_embeddings=1024, position_embedding_type="nope",
        layer_types=["mamba", "attention", "mamba"], tie_word_embeddings=True,
        embedding_multiplier=3.0, attention_multiplier=0.3, residual_multiplier=0.6,
        logits_scaling=0.5),
}


def is_mamba(config):
    return config.model_type == "granitemoehybrid"


def spread_of(name):
    """Mean and standard deviation of parameters which make a state last for some tokens; None for others."""
    if ".mamba." not in name:
        return None
    return {"A_log": (-0.5, 0.5), "dt_bias": (-1.0, 0.5)}.get(name.rsplit(".", 1)[-1])


# --- GGUF ---


def write_keys(writer, config):
    """As the converter, except for the context length, for which it writes 2^20."""
    attends = [kind == "attention" for kind in config.layer_types]
    writer.add_head_count_kv([config.num_key_value_heads if attend else 0 for attend in attends])
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_expert_shared_feed_forward_length(config.shared_intermediate_size)
    writer.add_embedding_scale(config.embedding_multiplier)
    writer.add_attention_scale(config.attention_multiplier)
    writer.add_residual_scale(config.residual_multiplier)
    writer.add_logit_scale(config.logits_scaling)
    writer.add_ssm_conv_kernel(config.mamba_d_conv)
    writer.add_ssm_state_size(config.mamba_d_state)
    writer.add_ssm_group_count(config.mamba_n_groups)
    writer.add_ssm_inner_size(config.mamba_d_head * config.mamba_n_heads)
    writer.add_ssm_time_step_rank(config.mamba_n_heads)
    writer.add_rope_scaling_finetuned(config.position_embedding_type == "rope")


def tensors_of(config, name, value):
    """The converter's output for a tensor: names of transformers (those of GGUF if there is none)
    and values."""
    block = "".join(name.split(".")[2:3])
    shared = "_shexp" if config.num_local_experts else ""
    if name.endswith("A_log"):
        # The converter computes exp in f32, where the last bit sometimes differs.
        value = -torch.exp(value.double()).float().unsqueeze(1)
    elif name.endswith("mamba.D"):
        value = value.unsqueeze(1)
    elif name.endswith("dt_bias"):
        name = name.replace("dt_bias", "dt_proj.bias")
    elif name.endswith("conv1d.weight"):
        value = value.squeeze(1)
    elif name.endswith("mamba.norm.weight"):
        value = value.unflatten(0, (config.mamba_n_groups, -1))
    elif name.endswith("shared_mlp.input_linear.weight"):
        for part, half in zip(("gate", "up"), value.chunk(2)):
            yield f"blk.{block}.ffn_{part}{shared}.weight", half
        return
    elif name.endswith("shared_mlp.output_linear.weight"):
        name = f"blk.{block}.ffn_down{shared}.weight"
    elif name.endswith("block_sparse_moe.input_linear.weight"):
        for part, half in zip(("gate", "up"), value.chunk(2, dim=1)):
            yield f"blk.{block}.ffn_{part}_exps.weight", half
        return
    yield name, value


# --- mistakes ---


def mamba_layers(model):
    return [layer.mamba for layer in model.model.layers if layer.mamba is not None]


def sizes(config):
    """Heads, their width, groups and the state's size, by the names of Granite 4 or Nemotron-H."""
    if hasattr(config, "mamba_n_heads"):
        return (config.mamba_n_heads, config.mamba_d_head, config.mamba_n_groups,
                config.mamba_d_state)
    return config.mamba_num_heads, config.mamba_head_dim, config.n_groups, config.ssm_state_size


def parts(config, value):
    """The parts of in_proj's rows: z, x, B, C, dt."""
    n_heads, head_dim, n_groups, n_states = sizes(config)
    inner, keys = n_heads * head_dim, n_groups * n_states
    return list(value.split([inner, inner, keys, keys, n_heads]))


def reordered(order):
    return lambda config, value: torch.cat([parts(config, value)[i] for i in order])


def heads_in_turns(config, value):
    """x of heads that take the groups in alternation."""
    rows = parts(config, value)
    for i in (0, 1):
        heads = rows[i].unflatten(0, (sizes(config)[2], -1, sizes(config)[1]))
        rows[i] = heads.transpose(0, 1).flatten(0, 2)
    return torch.cat(rows)


def norm(forward):
    """Another norm: a function of y, its gate, and the norm itself."""
    def wrong(model):
        for layer in mamba_layers(model):
            layer.norm.forward = lambda y, gate, inner=layer.norm: forward(y, gate, inner)
    return wrong


def rms(y, inner):
    return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + inner.variance_epsilon)


def gated(y, gate):
    return y * torch.nn.functional.silu(gate)


def mistakes(config):
    def value_of(key, value):
        return set_config(**{key: value}), None
    ropes = dict(nope="rope", rope="nope")
    cases = {
        "another scale of scores": value_of("attention_multiplier", 3 * config.attention_multiplier),
        "another scale of embeddings": value_of("embedding_multiplier",
                                                1.5 * config.embedding_multiplier),
        "another scale of what layers add": value_of("residual_multiplier",
                                                     1.2 * config.residual_multiplier),
        "another scale of logits": value_of("logits_scaling", 1.2 * config.logits_scaling),
        "the other positions": value_of("position_embedding_type",
                                        ropes[config.position_embedding_type]),
        "B and C swapped": (change("in_proj.weight", reordered((0, 1, 3, 2, 4))), None),
        "gate and x swapped": (change("in_proj.weight", reordered((1, 0, 2, 3, 4))), None),
        "filters the other way round": (change("conv1d.weight", backwards), None),
        "a window one token early": (change("conv1d.weight", one_token_early), None),
        "D left out": (change("mamba.D", zero), None),
        "no decay": (change("A_log", lambda _, v: v - 40), None),
        "a decay that is stored": (change("A_log", lambda _, v: torch.log(torch.exp(v).exp())),
                                   None),
        "no bias of steps": (change("dt_bias", zero), None),
        "the gate behind the norm": (None, norm(
            lambda y, gate, inner: gated(inner.weight * rms(y, inner), gate))),
        "no gate": (None, norm(lambda y, gate, inner: inner.weight * rms(y, inner))),
        "norms of single heads": (None, norm(lambda y, gate, inner: inner.weight * rms(
            gated(y, gate).unflatten(-1, (config.mamba_n_heads, -1)), inner).flatten(-2))),
        "gate and up the other way round": (change(
            "shared_mlp.input_linear.weight", lambda _, v: torch.cat(v.chunk(2)[::-1])), None),
    }
    if config.mamba_n_groups > 1:
        cases["groups in turns"] = (change("in_proj.weight", heads_in_turns), None)
        cases["norms of groups"] = (None, norm(lambda y, gate, inner: inner.weight * rms(
            gated(y, gate).unflatten(-1, (config.mamba_n_groups, -1)), inner).flatten(-2)))
    if config.mamba_conv_bias:
        cases["no bias of filters"] = (change("conv1d.bias", zero), None)
    if config.mamba_proj_bias:
        cases["no bias of in_proj"] = (change("in_proj.bias", zero), None)
        cases["no bias of out_proj"] = (change("out_proj.bias", zero), None)
    least, most = config.time_step_limit
    if most < 1e9:
        cases["steps not clamped"] = value_of("time_step_limit", (0.0, float("inf")))
        cases["steps clamped from below alone"] = value_of("time_step_limit",
                                                           (least, float("inf")))
        cases["steps clamped from above alone"] = value_of("time_step_limit", (0.0, most))
    if config.num_local_experts:
        used = config.num_experts_per_tok
        cases |= {
            "gate and up of experts the other way round": (change(
                "block_sparse_moe.input_linear.weight",
                lambda _, v: torch.cat(v.chunk(2, dim=1)[::-1], dim=1)), None),
            "experts in another order": (change(
                "block_sparse_moe.output_linear.weight", next_row), None),
            "weights of other experts": (change(
                "router.layer.weight", next_row), None),
            "an expert less": value_of("num_experts_per_tok", used - 1),
            "an expert more": value_of("num_experts_per_tok", used + 1),
            "no shared MLP": (change(
                "shared_mlp.output_linear.weight", zero), None),
        }
    return cases
