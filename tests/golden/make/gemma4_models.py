# SPDX-License-Identifier: Apache-2.0
"""Gemma 4 for make_family_models.py: its cases (family_cases.py), weights and GGUF files, and the
possible mistakes of a reader."""
import numpy
import torch

from changes import change, next_row, set_config, set_rope

CASES = {
    # As Gemma 4 E2B: per-layer inputs; the last layers, whose MLPs are twice as wide, read the keys
    # and values of earlier ones.
    "gemma4_shared": dict(
        model_type="gemma4_text", hidden_size=24, intermediate_size=28, num_hidden_layers=7,
        num_attention_heads=4, num_key_value_heads=1, head_dim=8, global_head_dim=16,
        sliding_window=16, num_kv_shared_layers=3, use_double_wide_mlp=True,
        layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention",
                     "sliding_attention", "sliding_attention", "full_attention"],
        hidden_size_per_layer_input=6, vocab_size_per_layer_input=97, final_logit_softcapping=3.0,
        rope_parameters=dict(
            full_attention=dict(rope_type="proportional", rope_theta=1e6,
                                partial_rotary_factor=0.25),
            sliding_attention=dict(rope_type="default", rope_theta=1e4)), gguf=True),
    # As Gemma 4 31B: layers without a window use their keys as values. The prompt is so long that a
    # page of 64 tokens falls out of the window.
    "gemma4_keys": dict(
        model_type="gemma4_text", hidden_size=32, intermediate_size=40, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, num_global_key_value_heads=1, head_dim=10,
        global_head_dim=20, attention_k_eq_v=True, sliding_window=20, n=150,
        layer_types=["sliding_attention", "full_attention", "sliding_attention",
                     "full_attention"], hidden_size_per_layer_input=0,
        use_bidirectional_attention="vision",
        rope_parameters=dict(
            full_attention=dict(rope_type="proportional", rope_theta=1e6,
                                partial_rotary_factor=0.5, factor=2.0),
            sliding_attention=dict(rope_type="default", rope_theta=1e4))),
    # As Gemma 4 26B-A4B except for a separate output matrix: experts beside each MLP.
    "gemma4_moe": dict(
        model_type="gemma4_text", hidden_size=24, intermediate_size=20, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, num_global_key_value_heads=1, head_dim=8,
        global_head_dim=12, attention_k_eq_v=True, sliding_window=16, enable_moe_block=True,
        num_experts=6, top_k_experts=2, moe_intermediate_size=12,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
        hidden_size_per_layer_input=0, final_logit_softcapping=3.0, tie_word_embeddings=False,
        rope_parameters=dict(
            full_attention=dict(rope_type="proportional", rope_theta=1e6,
                                partial_rotary_factor=0.5),
            sliding_attention=dict(rope_type="default", rope_theta=1e4)), gguf=True),
}


def is_gemma4(config):
    return config.model_type == "gemma4_text"


# (mean, standard deviation) by the ending of a name. Scores are not scaled, so that head norms are
# smaller; the router's input is divided by sqrt(dim). Branches and logits are smaller than in other
# families, because the many later branches amplify each branch and its rounding errors.
SPREADS = {"q_norm.weight": (0.6, 0.15), "k_norm.weight": (0.6, 0.15),
           "router.proj.weight": (0, 1), "post_attention_layernorm.weight": (0.4, 0.1),
           "post_feedforward_layernorm.weight": (0.4, 0.1),
           "post_per_layer_input_norm.weight": (0.4, 0.1), "model.norm.weight": (1, 0.3)}


def spread_of(config, name):
    if not is_gemma4(config):
        return None
    return next((spread for end, spread in SPREADS.items() if name.endswith(end)), None)


def fill_buffers(model, generator):
    for name, buffer in model.named_buffers():
        if name.endswith("layer_scalar"):
            buffer.normal_(0.8, 0.1, generator=generator)
            buffer.copy_(buffer.bfloat16().float())


# --- GGUF ---


def n_lenders(config):
    return config.num_hidden_layers - config.num_kv_shared_layers


def write_keys(writer, config):
    """As the converter does: one number per layer if layers differ."""
    local = [kind == "sliding_attention" for kind in config.layer_types]
    width = config.intermediate_size
    if config.use_double_wide_mlp:
        writer.add_feed_forward_length([width if i < n_lenders(config) else 2 * width
                                        for i in range(config.num_hidden_layers)])
    else:
        writer.add_feed_forward_length(width)
    heads = config.num_key_value_heads
    if config.num_global_key_value_heads:
        writer.add_head_count_kv([heads if is_local else config.num_global_key_value_heads
                                  for is_local in local])
    else:
        writer.add_head_count_kv(heads)
    writer.add_key_length(config.global_head_dim)
    writer.add_value_length(config.global_head_dim)
    writer.add_key_length_swa(config.head_dim)
    writer.add_value_length_swa(config.head_dim)
    writer.add_rope_dimension_count(config.global_head_dim)
    writer.add_rope_dimension_count_swa(config.head_dim)
    writer.add_rope_freq_base_swa(config.rope_parameters["sliding_attention"]["rope_theta"])
    writer.add_sliding_window(config.sliding_window)
    writer.add_sliding_window_pattern(local)
    writer.add_shared_kv_layers(config.num_kv_shared_layers)
    writer.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input)
    if config.final_logit_softcapping:
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if config.enable_moe_block:
        writer.add_expert_count(config.num_experts)
        writer.add_expert_used_count(config.top_k_experts)
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    rope = config.rope_parameters["full_attention"]
    n_turning = int(config.global_head_dim * rope["partial_rotary_factor"] / 2)
    still = config.global_head_dim // 2 - n_turning
    writer.add_tensor("rope_freqs.weight",
                      numpy.array([1.0] * n_turning + [1e30] * still, dtype=numpy.float32))


def tensors_of(name, value):
    """The converter's output for a tensor: names of transformers or GGUF, and values."""
    if name.endswith("layer_scalar"):
        name += ".weight"
    elif name.endswith("router.scale"):
        name = f"blk.{name.split('.')[2]}.ffn_gate_inp.scale"
    elif name.endswith("router.per_expert_scale"):
        name = f"blk.{name.split('.')[2]}.ffn_down_exps.scale"
    elif name.endswith("experts.gate_up_proj"):
        name = f"blk.{name.split('.')[2]}.ffn_gate_up_exps.weight"
    yield name, value


# --- mistakes ---


def reset(ending, value):
    return change(ending, lambda _, v: torch.full_like(v, value))


def modules_of(model, name):
    return [module for at, module in model.named_modules() if at.endswith(name)]


def without(name):
    """Norms that return their input."""
    def wrong(model):
        found = modules_of(model, name)
        assert found, name
        for module in found:
            module.forward = lambda x: x
    return wrong


def set_attribute(owner, **changes):
    def wrong(model):
        for module in modules_of(model, owner):
            for key, value in changes.items():
                setattr(module, key, value)
    return wrong


def scaled_by_heads(model):
    for attention in modules_of(model, "self_attn"):
        attention.scaling = attention.head_dim ** -0.5


def frequencies_among_what_turns(model):
    """By the rule of other families whose heads are rotated in part: by the width of the rotated part."""
    rotary = model.model.rotary_emb
    rope = model.config.rope_parameters["full_attention"]
    frequencies = rotary.full_attention_inv_freq
    n = int((frequencies > 0).sum())
    frequencies[:n] = rope["rope_theta"] ** (-torch.arange(n) / n) / rope.get("factor", 1.0)


def keys_of_an_earlier_layer(model):
    """The last layers read the keys and values of the last but one layer of their kind."""
    kinds = model.config.layer_types[:n_lenders(model.config)]
    for kind in set(kinds):
        places = [i for i, its in enumerate(kinds) if its == kind]
        if len(places) > 1:
            model.model.layers[places[-1]].self_attn.store_full_length_kv = False
            model.model.layers[places[-2]].self_attn.store_full_length_kv = True


def values_with_the_norm_of_keys(model):
    for attention in modules_of(model, "self_attn"):
        if attention.v_proj is None:
            attention.v_norm = attention.k_norm


def no_embedding_scale(model):
    model.model.embed_tokens.embed_scale = torch.tensor(1.0)


def mistakes(config):
    window = config.sliding_window
    cases = {
        "no window": (set_config(sliding_window=4096), None),
        "a window less by one": (set_config(sliding_window=window - 1), None),
        "a window more by one": (set_config(sliding_window=window + 1), None),
        "silu": (set_config(hidden_activation="silu"), None),
        "gelu by erf": (set_config(hidden_activation="gelu"), None),
        "no norm behind attention": (None, without("post_attention_layernorm")),
        "no norm behind the feed-forward layer": (None, without("post_feedforward_layernorm")),
        "norms of one more": (change("layernorm.weight", lambda _, v: v + 1), None),
        "no query norm": (None, without("q_norm")),
        "no key norm": (None, without("k_norm")),
        "no value norm": (None, without("v_norm")),
        "scaled by the width of heads": (None, scaled_by_heads),
        "embeddings not scaled": (None, no_embedding_scale),
        "no scale of layers": (reset("layer_scalar", 1), None),
        "the local rope base globally": (set_rope("full_attention", rope_theta=1e4), None),
        "the global rope base locally": (set_rope("sliding_attention", rope_theta=1e6), None),
        "whole heads turned": (set_rope("full_attention", partial_rotary_factor=1.0), None),
        "frequencies among what turns": (None, frequencies_among_what_turns),
    }
    if config.rope_parameters["full_attention"].get("factor"):
        cases["no rope factor"] = (set_rope("full_attention", factor=1.0), None)
    if cap := config.final_logit_softcapping:
        cases["no cap of logits"] = (set_config(final_logit_softcapping=None), None)
        cases["another cap of logits"] = (set_config(final_logit_softcapping=1.05 * cap), None)
    if config.num_kv_shared_layers:
        cases["keys of an earlier layer"] = (None, keys_of_an_earlier_layer)
    if width := config.hidden_size_per_layer_input:
        cases |= {
            "tokens' part of another layer": (
                change("embed_tokens_per_layer.weight", lambda _, v: v.roll(width, 1)), None),
            "the stream's part of another layer": (
                change("per_layer_model_projection.weight", lambda _, v: v.roll(width, 0)), None),
            "tokens' part not scaled": (
                None, set_attribute("embed_tokens_per_layer", embed_scale=torch.tensor(1.0))),
            "no norm of the stream's part": (None, without("per_layer_projection_norm")),
            "no norm behind layers' inputs": (None, without("post_per_layer_input_norm")),
        }
    if config.attention_k_eq_v:
        cases["values with the norm of keys"] = (None, values_with_the_norm_of_keys)
    if config.enable_moe_block:
        cases |= {
            "experts in another order": (
                change("experts.down_proj", next_row), None),
            "gate and up of experts the other way round": (
                change("experts.gate_up_proj",
                       lambda _, v: torch.cat(v.chunk(2, dim=1)[::-1], dim=1)), None),
            "no scale of experts": (reset("router.per_expert_scale", 1), None),
            "no scale of the router": (reset("router.scale", 1), None),
            "no norm of the router": (None, without("router.norm")),
            "an expert less": (set_config(top_k_experts=config.top_k_experts - 1), None),
            "no norm before experts": (None, without("pre_feedforward_layernorm_2")),
            "no norm behind the MLP": (None, without("post_feedforward_layernorm_1")),
            "no norm behind experts": (None, without("post_feedforward_layernorm_2")),
        }
    return cases
