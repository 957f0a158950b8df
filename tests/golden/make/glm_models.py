# SPDX-License-Identifier: Apache-2.0
"""GLM-4.5 for make_family_models.py: its cases (family_cases.py) and GGUF files, and the possible
mistakes of a reader. Experts are DeepSeek-V3's (latent_models.py)."""
import gguf
import torch

import latent_models
from changes import change, set_rope, zero

# transformers 5.12.1 reads the rotated share of heads partly from outside rope_parameters, with a
# default of 0.5.
CASES = {
    # As GLM-4.5 and 4.6, in the spelling of their files.
    "glm4_moe_plain": dict(
        model_type="glm4_moe", hidden_size=24, intermediate_size=32, moe_intermediate_size=8,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=12,
        attention_bias=True, use_qk_norm=True, n_routed_experts=6, num_experts_per_tok=2,
        n_shared_experts=1, first_k_dense_replace=1, routed_scaling_factor=2.5, n_group=1,
        topk_group=1, norm_topk_prob=True, tie_word_embeddings=False, rms_norm_eps=1e-5,
        rope_parameters=dict(rope_type="default", rope_theta=1e6, partial_rotary_factor=0.5),
        gguf=True,
        old=dict(rope_theta=1e6, rope_scaling=None, partial_rotary_factor=0.5,
                 num_nextn_predict_layers=1)),
    # As GLM-4.5-Air, without norms of heads; two dense layers, two shared experts, groups.
    "glm4_moe_air": dict(
        model_type="glm4_moe", hidden_size=30, intermediate_size=28, moe_intermediate_size=10,
        num_hidden_layers=3, num_attention_heads=3, num_key_value_heads=1, head_dim=16,
        attention_bias=True, use_qk_norm=False, n_routed_experts=8, num_experts_per_tok=3,
        n_shared_experts=2, first_k_dense_replace=2, routed_scaling_factor=1.0, n_group=4,
        topk_group=2, norm_topk_prob=True, tie_word_embeddings=False, partial_rotary_factor=0.25,
        rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.0,
                             partial_rotary_factor=0.25)),
    # Experts in all layers, as transformers 5 holds them; weights without normalisation; no biases;
    # heads whose width is not in the configuration.
    "glm4_moe_stacked": dict(
        model_type="glm4_moe", hidden_size=30, intermediate_size=24, moe_intermediate_size=8,
        num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5, attention_bias=False,
        use_qk_norm=True, n_routed_experts=5, num_experts_per_tok=3, n_shared_experts=1,
        first_k_dense_replace=0, routed_scaling_factor=1.4, n_group=1, topk_group=1,
        norm_topk_prob=False, tie_word_embeddings=False, stacked=True, partial_rotary_factor=1.0,
        rope_parameters=dict(rope_type="default", rope_theta=5e3, partial_rotary_factor=1.0)),
}


def is_glm(config):
    return config.model_type == "glm4_moe"


def head_dim_of(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def write_keys(writer, config):
    head_dim = head_dim_of(config)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(
        int(config.rope_parameters["partial_rotary_factor"] * head_dim))
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_leading_dense_block_count(config.first_k_dense_replace)
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    writer.add_expert_weights_norm(config.norm_topk_prob)
    writer.add_expert_group_count(config.n_group)
    writer.add_expert_group_used_count(config.topk_group)


def tensors_of(name, value):
    yield name.replace("e_score_correction_bias", "e_score_correction.bias"), value


# --- mistakes ---


def pairs_side_by_side(config, state):
    """Rows of pairs are adjacent within the rotated part."""
    turned = int(config.rope_parameters["partial_rotary_factor"] * head_dim_of(config))
    for key, value in state.items():
        if ".self_attn." in key and key.rsplit(".", 2)[1] in ("q_proj", "k_proj"):
            heads = value.unflatten(0, (-1, head_dim_of(config))).clone()
            part = heads[:, :turned]
            heads[:, :turned] = torch.stack(part.chunk(2, dim=1), dim=2).flatten(1, 2)
            state[key] = heads.flatten(0, 1)


def without_norm(name):
    def wrong(model):
        for layer in model.model.layers:
            setattr(layer.self_attn, name, torch.nn.Identity())
    return wrong


def swap_norms(_, state):
    for key in [key for key in state if key.endswith("input_layernorm.weight")]:
        other = key.replace("input", "post_attention")
        state[key], state[other] = state[other], state[key]


def set_share(share):
    def wrong(config, state):
        config.partial_rotary_factor = share
        set_rope(partial_rotary_factor=share)(config, state)
    return wrong


def mistakes(config):
    rope = config.rope_parameters
    share = rope["partial_rotary_factor"]
    cases = {
        "another rope base": (set_rope(rope_theta=2e2), None),
        "another part of heads turned": (
            set_share(0.5 if share != 0.5 else 1.0), None),
        "pairs side by side": (pairs_side_by_side, None),
        "norms of layers swapped": (swap_norms, None),
        **latent_models.mistakes_of_routing(config),
    }
    if rope["rope_type"] == "linear":
        cases["no rope factor"] = (set_rope(rope_type="default"), None)
    if config.attention_bias:
        for part, what in (("q", "query"), ("k", "key"), ("v", "value")):
            cases[f"no {what} bias"] = (change(f"{part}_proj.bias", zero), None)
    if config.use_qk_norm:
        cases["no query norm"] = (None, without_norm("q_norm"))
        cases["no key norm"] = (None, without_norm("k_norm"))
    return cases
