# SPDX-License-Identifier: Apache-2.0
"""Possible mistakes of a reader of models, for make_family_models.py: each must change its logits."""
import math
import sys

import torch

import gemma4_models
import glm_models
import hybrid_models
import latent_models
import mamba_models
import nemotron_models
from changes import change, next_row, set_config, set_rope


def attentions(model):
    return [layer.self_attn for layer in model.model.layers]


def reset(name, value):
    """Every parameter whose name ends with this gets one value."""
    def wrong(_, state):
        found = [key for key in state if key.endswith(name)]
        assert found, name
        for key in found:
            state[key] = torch.full_like(state[key], value)
    return wrong


def interleave(config, state):
    """Rows of a head in the order of Llama's GGUF files: the rows of a rotation are adjacent."""
    for key, value in state.items():
        if key.endswith(("q_proj.weight", "k_proj.weight")):
            n, width = value.shape
            head = head_dim_of(config)
            state[key] = (value.reshape(n // head, 2, head // 2, width).transpose(1, 2)
                          .reshape(n, width).contiguous())


def is_gemma(config):
    """Gemma 2 and 3, whose norms are offsets from 1."""
    return config.model_type in ("gemma2", "gemma3_text")


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
    """Modules that return their input."""
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
    """One norm over all heads of a row, as in OLMo 2."""
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
    """Queries, keys and values of each head together, as in GPT-NeoX."""
    heads = config.num_attention_heads + 2 * config.num_key_value_heads
    for key, value in state.items():
        if key.endswith("qkv_proj.weight"):
            state[key] = value.unflatten(0, (heads, -1)).roll(1, 0).flatten(0, 1).contiguous()


def norms_of_heads(model):
    """A separate norm for each head, as in Qwen3."""
    for attention in attentions(model):
        for name in ("q_norm", "k_norm"):
            norm = getattr(attention, name)

            def forward(x, norm=norm, dim=attention.head_dim):
                heads = x.unflatten(-1, (-1, dim))
                scale = torch.rsqrt(heads.pow(2).mean(-1, keepdim=True) + 1e-6)
                return (heads * scale).flatten(-2) * norm.weight
            norm.forward = forward


def keep_means(model):
    """LayerNorms that do not subtract the mean."""
    for norm in model.modules():
        if isinstance(norm, torch.nn.LayerNorm):
            def forward(x, norm=norm):
                scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + norm.eps)
                return x * scale * norm.weight + norm.bias
            norm.forward = forward


def thirds(order):
    """The three products in GPT-2's one matrix in another order, by columns."""
    return lambda config, value: torch.cat(
        [value.chunk(3, dim=-1)[i] for i in order], dim=-1)


def first_third(config, value):
    n = config.hidden_size
    return torch.cat([torch.zeros_like(value[:n]), value[n:]])


def parts_together(config, value):
    """GPT-NeoX's rows in the order of the converter to GGUF: all queries, all keys, all values."""
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


def scale_queries(function):
    """Another scaling of queries by position: function(positions, beta, original)."""
    def wrong(model):
        for attention in attentions(model):
            module = sys.modules[type(attention).__module__]

            def forward(*args, inner=attention.forward, **kwargs):
                right = module.get_llama_4_attn_scale
                module.get_llama_4_attn_scale = (
                    lambda *at: function(*at)[:, None, :, None])
                try:
                    return inner(*args, **kwargs)
                finally:
                    module.get_llama_4_attn_scale = right
            attention.forward = forward
    return wrong


def swap_gate_and_up_of_experts(_, state):
    for key, value in state.items():
        if key.endswith("experts.gate_up_proj"):
            state[key] = torch.cat(value.chunk(2, dim=1)[::-1], dim=1)


def swap_gates_and_ups_in_turn(_, state):
    for key, value in state.items():
        if key.endswith(("experts.gate_up_proj", "experts.gate_up_proj_bias")):
            state[key] = value.unflatten(-1, (-1, 2)).flip(-1).flatten(-2).contiguous()


def gates_above_ups(_, state):
    """Gate and up rows of experts as halves, not alternating."""
    for key, value in state.items():
        if key.endswith(("experts.gate_up_proj", "experts.gate_up_proj_bias")):
            state[key] = value.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2).contiguous()


def change_experts(**changes):
    def wrong(model):
        for layer in model.model.layers:
            for key, value in changes.items():
                setattr(layer.mlp.experts, key, value)
    return wrong


def change_gate(function):
    """Experts that compute another function of (gate, up), unclamped."""
    def wrong(model):
        for layer in model.model.layers:
            layer.mlp.experts._apply_gate = (
                lambda both, experts=layer.mlp.experts: function(
                    both[..., ::2], both[..., 1::2], experts.limit))
    return wrong


def change_weights(function):
    """Replaces the weights of a row's experts, (rows, n_used)."""
    def wrong(model):
        for name, router in model.named_modules():
            if not type(router).__name__.endswith("TopKRouter"):
                continue

            def forward(x, inner=router.forward):
                logits, weights, ids = inner(x)
                return logits, function(logits, weights, ids), ids
            router.forward = forward
    return wrong


def not_renormalised(logits, _, ids):
    return torch.softmax(logits.float(), -1).gather(-1, ids)


def renormalised(_, weights, __):
    return weights / weights.sum(-1, keepdim=True)


def n_experts_of(config):
    return (getattr(config, "num_local_experts", None) or getattr(config, "num_experts", 0)
            or getattr(config, "n_routed_experts", 0))


def mistakes_of_experts(config):
    used, there = config.num_experts_per_tok, n_experts_of(config)
    is_gpt_oss = config.model_type == "gpt_oss"
    normed = config.model_type == "mixtral" or is_gpt_oss or getattr(config, "norm_topk_prob", True)
    swap = swap_gates_and_ups_in_turn if is_gpt_oss else swap_gate_and_up_of_experts
    cases = {"gate and up of experts the other way round": (swap, None),
             "experts in another order": (
                 change("experts.down_proj", next_row), None)}
    if used < there:
        cases["weights of other experts"] = (
            change("mlp.router.weight" if is_gpt_oss else "mlp.gate.weight",
                   next_row), None)
        cases["another expert more"] = (set_config(num_experts_per_tok=used + 1), None)
        cases["weights normalised otherwise"] = (
            None, change_weights(not_renormalised if normed else renormalised))
    if used > 1:
        cases["an expert less"] = (set_config(num_experts_per_tok=used - 1), None)
        cases["experts weighed alike"] = (
            None, change_weights(lambda _, w, __: w.mean(-1, keepdim=True).expand_as(w)))
    return cases


def shift_windows(by):
    """Convolutions that read tokens at an offset."""
    def wrong(model):
        for layer in model.model.layers:
            if hasattr(layer, "conv"):
                filters = layer.conv.conv.weight
                filters.data = torch.roll(filters.data, by, -1)
                filters.data[..., 0 if by > 0 else -1] = 0
    return wrong


def gates_swapped(_, state):
    for key, value in state.items():
        if key.endswith("conv.in_proj.weight") or key.endswith("conv.in_proj.bias"):
            before, behind, inputs = value.chunk(3)
            state[key] = torch.cat([behind, before, inputs])


def filters_reversed(_, state):
    for key, value in state.items():
        if key.endswith("conv.conv.weight"):
            state[key] = value.flip(-1)


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
    "llama": {
        "rows interleaved": (interleave, None),
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "mistral": {
        "rows interleaved": (interleave, None),
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "ministral3": {
        "rows interleaved": (interleave, None),
        "another rope base": (set_rope(rope_theta=2e5), None),
        "queries not scaled": (set_rope(llama_4_scaling_beta=0.0), None),
        "queries scaled otherwise": (set_rope(llama_4_scaling_beta=0.3), None),
        "queries scaled smoothly": (None, scale_queries(
            lambda at, beta, original: 1 + beta * torch.log1p(at / original))),
        "queries scaled one token early": (None, scale_queries(
            lambda at, beta, original: 1 + beta * torch.log1p((at + 1) // original))),
        "queries scaled by the square": (None, scale_queries(
            lambda at, beta, original: (1 + beta * torch.log1p(at // original)) ** 2)),
    },
    "mixtral": {
        "rows interleaved": (interleave, None),
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "qwen3_moe": {
        "no query norm": (None, without("q_norm")),
        "no key norm": (None, without("k_norm")),
        "rows interleaved": (interleave, None),
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "olmoe": {
        "norms of single heads": (None, norms_of_heads),
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
    "lfm2": {
        "a window one token late": (None, shift_windows(-1)),
        "a window one token early": (None, shift_windows(1)),
        "filters the other way round": (filters_reversed, None),
        "gates the other way round": (gates_swapped, None),
        "query norm of ones": (reset("q_layernorm.weight", 1), None),
        "key norm of ones": (reset("k_layernorm.weight", 1), None),
        "rows interleaved": (interleave, None),
        "another rope base": (set_rope(rope_theta=2e5), None),
    },
    "gpt_oss": {
        "no sinks": (reset("self_attn.sinks", -1e4), None),
        "sinks of other heads": (change("self_attn.sinks", next_row), None),
        "no bias of routers": (reset("mlp.router.bias", 0), None),
        "no bias of gates and ups": (reset("gate_up_proj_bias", 0), None),
        "no bias of downs": (reset("down_proj_bias", 0), None),
        "no bias of attention's output": (reset("o_proj.bias", 0), None),
        "no query bias": (reset("q_proj.bias", 0), None),
        "no limit": (None, change_experts(limit=1e4)),
        "another slope": (None, change_experts(alpha=1.0)),
        "ups clamped from above alone": (None, change_gate(
            lambda gate, up, limit: (up.clamp(max=limit) + 1) * gate.clamp(max=limit)
            * torch.sigmoid(1.702 * gate.clamp(max=limit)))),
        "one not added to ups": (None, change_gate(
            lambda gate, up, limit: up.clamp(-limit, limit) * gate.clamp(max=limit)
            * torch.sigmoid(1.702 * gate.clamp(max=limit)))),
        "gates above ups": (gates_above_ups, None),
        "the other layers": (swap_layers, None),
        "rows interleaved": (interleave, None),
        "another rope base": (set_rope(rope_theta=3e3), None),
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
    if gemma4_models.is_gemma4(config):
        return gemma4_models.mistakes(config)
    if latent_models.is_latent(config):
        return latent_models.mistakes(config)
    if glm_models.is_glm(config):
        return glm_models.mistakes(config)
    if nemotron_models.is_nemotron(config):
        return nemotron_models.mistakes(config)
    cases = dict(hybrid_models.mistakes(config) if hybrid_models.is_hybrid(config) else
                 mamba_models.mistakes(config) if mamba_models.is_mamba(config) else
                 WRONG[config.model_type])
    if n_experts_of(config) and not mamba_models.is_mamba(config):
        cases |= mistakes_of_experts(config)
    if is_gemma(config):
        for key, what in (("attn_logit_softcapping", "scores"),
                          ("final_logit_softcapping", "logits")):
            cap = getattr(config, key)
            if cap:
                cases[f"no cap of {what}"] = (set_config(**{key: None}), None)
                cases[f"another cap of {what}"] = (set_config(**{key: 1.05 * cap}), None)
            elif (config.model_type, what) != ("gemma3_text", "scores"):  # not read there
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
    elif config.rope_parameters["rope_type"] == "llama3":
        cases["no rope scaling"] = (set_rope(rope_type="default"), None)
        cases["a linear factor"] = (set_rope(rope_type="linear"), None)
        cases["another lower bound"] = (set_rope(low_freq_factor=2.0), None)
        cases["another upper bound"] = (set_rope(high_freq_factor=3.0), None)
    elif config.rope_parameters["rope_type"] == "yarn":
        cases["no yarn"] = (set_rope(rope_type="default"), None)
        cases["a linear factor"] = (set_rope(rope_type="linear"), None)
        of_paper = 0.1 * math.log(config.rope_parameters["factor"]) + 1
        if config.rope_parameters.get("mscale_all_dim"):
            cases["the paper's factor of attention"] = (set_rope(attention_factor=of_paper), None)
        if config.model_type == "gpt_oss":
            whole = config.rope_parameters.get("truncate", True)
            cases["the other bounds"] = (set_rope(truncate=not whole), None)
        if config.rope_parameters.get("mscale_all_dim") != 1:
            cases["no factor of attention"] = (set_rope(attention_factor=1.0), None)
    elif config.rope_parameters["rope_type"] == "longrope":
        rope = config.rope_parameters
        cases["no longrope"] = (set_rope(rope_type="default"), None)
        cases["the other factors"] = (set_rope(short_factor=rope["long_factor"],
                                               long_factor=rope["short_factor"]), None)
        cases["no magnitude"] = (set_rope(attention_factor=1.0), None)
    if config.model_type == "gpt_oss" and config.swiglu_limit < 4:  # with a smaller limit no signal is left
        cases["gates clamped from below, too"] = (None, change_gate(
            lambda gate, up, limit: (up.clamp(-limit, limit) + 1) * gate.clamp(-limit, limit)
            * torch.sigmoid(1.702 * gate.clamp(-limit, limit))))
    if config.model_type == "lfm2" and config.conv_bias:
        for name in ("conv.conv.bias", "conv.in_proj.bias", "conv.out_proj.bias"):
            cases[f"no {name}"] = (reset(name, 0), None)
    if config.model_type == "llama" and config.attention_bias:
        for part in "qkvo":
            cases[f"no bias of {part}_proj"] = (reset(f"{part}_proj.bias", 0), None)
    if config.model_type == "llama" and config.mlp_bias:
        for part in ("gate", "up", "down"):
            cases[f"no bias of {part}_proj"] = (reset(f"{part}_proj.bias", 0), None)
    if config.model_type == "phi3" and config.rope_parameters["partial_rotary_factor"] != 1:
        cases["another part turned"] = (turn_all, None)
    if config.model_type == "gpt_neox" and config.attention_bias:
        cases["no query bias"] = (change("query_key_value.bias", queries_without_bias), None)
    if getattr(config, "sliding_window", None) and config.model_type in ("mistral", "ministral3", "mixtral",
                                                                         "smollm3", "phi3", "gpt_oss"):
        cases["no window"] = (set_config(sliding_window=4096), None)
        cases["a window less by one"] = (shift_window(-1), None)
    return cases
