# SPDX-License-Identifier: Apache-2.0
"""Nemotron-H and Nemotron 3 for make_family_models.py: their cases (family_cases.py), weights and
GGUF files, and the possible mistakes of a reader."""
import types

import gguf
import torch
from safetensors.torch import load_file, save_file

from changes import backwards, change, next_row, one_token_early, set_config, zero
from mamba_models import gated, heads_in_turns, reordered, rms

# Keys of config.json that the hub's files have in place of transformers 5's list of layers; `...`
# removes a key.
HUB = dict(layers_block_type=..., mtp_layers_block_type=..., time_step_limit=[0.0, float("inf")],
           use_mamba_kernels=True, num_logits_to_keep=1, time_step_floor=1e-4, time_step_max=0.1,
           time_step_min=0.001, rescale_prenorm_residual=True)


def kinds(pattern):
    of = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}
    return [of[letter] for letter in pattern]


CASES = {
    # As Nemotron-H 8B and Nemotron Nano 2, in the spelling of their files.
    "nemotron_h_plain": dict(
        model_type="nemotron_h", hidden_size=24, intermediate_size=36, num_attention_heads=3,
        num_key_value_heads=1, head_dim=10, mamba_num_heads=6, mamba_head_dim=8, ssm_state_size=12,
        n_groups=2, layers_block_type=kinds("M-MM*-"), gguf=True,
        old=dict(HUB, hybrid_override_pattern="M-MM*-", num_hidden_layers=6,
                 attention_head_dim=10, rms_norm_eps=1e-6, time_step_rank=256,
                 residual_in_fp32=True)),
    # As Nemotron 3 Nano, in the spelling of its files.
    "nemotron_h_moe": dict(
        model_type="nemotron_h", hidden_size=24, intermediate_size=12, moe_intermediate_size=12,
        moe_shared_expert_intermediate_size=20, num_attention_heads=4, num_key_value_heads=2,
        head_dim=8, mamba_num_heads=4, mamba_head_dim=10, ssm_state_size=8, n_groups=2,
        layers_block_type=kinds("ME*EM"), n_routed_experts=6, num_experts_per_tok=2,
        routed_scaling_factor=2.5, gguf=True,
        old=dict(HUB, hybrid_override_pattern="ME*EM", num_hidden_layers=5, norm_eps=1e-6,
                 rope_theta=10000, partial_rotary_factor=1.0)),
    # As Nemotron 3 Super: experts on a narrower row, and modules after the layers that only the
    # configuration names.
    "nemotron_h_latent": dict(
        model_type="nemotron_h", hidden_size=20, intermediate_size=14, moe_intermediate_size=14,
        moe_shared_expert_intermediate_size=16, moe_latent_size=12, num_attention_heads=2,
        num_key_value_heads=1, head_dim=12, mamba_num_heads=3, mamba_head_dim=12, ssm_state_size=10,
        n_groups=1, layers_block_type=kinds("M*EE"), n_routed_experts=8, num_experts_per_tok=3,
        routed_scaling_factor=5.0, num_nextn_predict_layers=1, stacked=True, gguf=True),
    # Every kind of layer; groups of experts without normalised weights; biases of all products that
    # may have one; the shortest time step; a convolution over three tokens.
    "nemotron_h_mixed": dict(
        model_type="nemotron_h", hidden_size=22, intermediate_size=30, moe_intermediate_size=10,
        moe_shared_expert_intermediate_size=18, moe_latent_size=14, num_attention_heads=6,
        num_key_value_heads=3, head_dim=6, mamba_num_heads=6, mamba_head_dim=6, ssm_state_size=7,
        n_groups=3, conv_kernel=3, mlp_bias=True, use_bias=True,
        layers_block_type=kinds("*MEM-E"), n_routed_experts=8, num_experts_per_tok=3, n_group=4,
        topk_group=2, norm_topk_prob=False, routed_scaling_factor=1.5,
        time_step_limit=(0.25, float("inf"))),
    # A prompt over many pages; groups of one head; a convolution over two tokens, without a bias.
    # In one chunk: without mamba_ssm's kernels transformers 5.12.1 adds states of several chunks
    # over the wrong axis (decay_chunk's). Its result then depends on chunk_size, in f64, too.
    "nemotron_h_long": dict(
        model_type="nemotron_h", hidden_size=18, intermediate_size=26, num_attention_heads=2,
        num_key_value_heads=2, head_dim=8, mamba_num_heads=5, mamba_head_dim=6, ssm_state_size=9,
        n_groups=5, conv_kernel=2, use_conv_bias=False, n=610, max_position_embeddings=1024,
        chunk_size=1024, layers_block_type=kinds("M*-M")),
}
for case in CASES.values():
    case.update(use_mamba_kernels=False, tie_word_embeddings=False)


def is_nemotron(config):
    return config.model_type == "nemotron_h"


def has_experts(config):
    return "moe" in config.layers_block_type


def mixers(model, kind):
    return [layer.mixer for layer in model.model.layers if layer.block_type == kind]


def finish(model):
    """Without mamba_ssm's kernels, transformers 5.12.1 clamps time steps by time_step_min, a
    setting for training. With them, it clamps those of a prompt by time_step_limit."""
    if is_nemotron(model.config):
        for mixer in mixers(model, "mamba"):
            mixer.time_step_min = model.config.time_step_limit[0]


def spread_of(name):
    """As for Granite 4's layers, with norms for logits of a few units."""
    if name == "model.norm_f.weight":
        return 0.75, 0.3
    if name.endswith("proj.bias"):
        return 0, 0.2
    return {"A_log": (-0.5, 0.5), "dt_bias": (-1.0, 0.5)}.get(name.rsplit(".", 1)[-1])


def write_names_of_hub(directory):
    """The files of the hub and of transformers have different names for the embedding."""
    path = directory / "model.safetensors"
    state = load_file(path)
    state["backbone.embeddings.weight"] = state.pop("backbone.embedding.weight")
    save_file(state, path, metadata={"format": "pt"})


# --- GGUF ---


def architecture(config):
    return (("nemotron_h_moe", gguf.MODEL_ARCH.NEMOTRON_H_MOE) if has_experts(config) else
            ("nemotron_h", gguf.MODEL_ARCH.NEMOTRON_H))


def write_keys(writer, config):
    """As the converter, except for the context length, for which it writes 2^20."""
    wide = "moe" if has_experts(config) else "mlp"
    width = config.moe_intermediate_size if has_experts(config) else config.intermediate_size
    layers = config.layers_block_type
    writer.add_head_count_kv([config.num_key_value_heads if kind == "attention" else 0
                              for kind in layers])
    writer.add_feed_forward_length([width if kind == wide else 0 for kind in layers])
    writer.add_vocab_size(config.vocab_size)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_scaling_finetuned(False)
    writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)
    writer.add_layer_norm_eps(config.layer_norm_epsilon)
    writer.add_ssm_conv_kernel(config.conv_kernel)
    writer.add_ssm_state_size(config.ssm_state_size)
    writer.add_ssm_group_count(config.n_groups)
    writer.add_ssm_inner_size(config.mamba_head_dim * config.mamba_num_heads)
    writer.add_ssm_time_step_rank(config.mamba_num_heads)
    if not has_experts(config):
        return
    writer.add_expert_count(config.n_routed_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_shared_feed_forward_length(config.moe_shared_expert_intermediate_size)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_weights_norm(config.norm_topk_prob)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    writer.add_expert_group_count(config.n_group)
    if config.moe_latent_size is not None:
        writer.add_moe_latent_size(config.moe_latent_size)


def tensors_of(config, name, value):
    """The converter's output for a tensor: names of the hub and values."""
    name = name.replace("model.", "backbone.", 1)
    if name.endswith("A_log"):
        # The converter computes exp in f32, where the last bit sometimes differs.
        value = -torch.exp(value.double()).float().unsqueeze(1)
    elif name.endswith("mixer.D"):
        value = value.unsqueeze(1)
    elif name.endswith("dt_bias"):
        name = name.replace("dt_bias", "dt_proj.bias")
    elif name.endswith("conv1d.weight"):
        value = value.squeeze(1)
    elif name.endswith("mixer.norm.weight"):
        value = value.unflatten(0, (config.n_groups, -1))
    elif ".mixer.experts." in name:
        name = f"model.layers.{name.split('.')[2]}.mlp.experts.{name.rsplit('.', 1)[1]}.weight"
    yield name.replace("e_score_correction_bias", "e_score_correction.bias"), value


# --- mistakes ---


def norm(forward):
    """Another norm: a function of y, its gate, and the norm itself."""
    def wrong(model):
        for mixer in mixers(model, "mamba"):
            mixer.norm.forward = lambda y, gate, inner=mixer.norm: forward(y, gate, inner)
    return wrong


def norm_of(n_parts):
    return norm(lambda y, gate, inner: inner.weight * rms(
        gated(y, gate).unflatten(-1, (n_parts, -1)), inner).flatten(-2))


def gate_behind(n_groups):
    return norm(lambda y, gate, inner: gated(inner.weight * rms(
        y.unflatten(-1, (n_groups, -1)), inner).flatten(-2), gate))


def set_mixers(kind, **changes):
    def wrong(model):
        for mixer in mixers(model, kind):
            for key, value in changes.items():
                setattr(mixer, key, value)
    return wrong


def of_routes(function):
    """Replaces the weights of a row's experts: function(logits, weights, ids, mixer)."""
    def wrong(model):
        for mixer in mixers(model, "moe"):
            def route(self, logits, inner=mixer.route_tokens_to_experts):
                ids, weights = inner(logits)
                return ids, function(logits, weights, ids, self)
            mixer.route_tokens_to_experts = types.MethodType(route, mixer)
    return wrong


def weights_of_biased(logits, weights, ids, mixer):
    biased = (logits.sigmoid() + mixer.gate.e_score_correction_bias).gather(1, ids)
    if mixer.norm_topk_prob:
        biased = biased / biased.sum(-1, keepdim=True)
    return biased * mixer.routed_scaling_factor


def mistakes_of_experts(config):
    used = config.num_experts_per_tok
    cases = {
        "experts in another order": (change("experts.down_proj", next_row), None),
        "weights of other experts": (change("mixer.gate.weight", next_row), None),
        "an expert less": (set_config(num_experts_per_tok=used - 1), None),
        "an expert more": (set_config(num_experts_per_tok=used + 1), None),
        "no shared expert": (change("shared_experts.down_proj.weight", zero), None),
        "no scale of weights": (set_config(routed_scaling_factor=1.0), None),
        "the other sum": (set_config(norm_topk_prob=not config.norm_topk_prob), None),
        "no bias of choices": (change("e_score_correction_bias", zero), None),
        "the bias in weights, too": (None, of_routes(weights_of_biased)),
        "weights by softmax": (None, of_routes(
            lambda logits, w, ids, m: logits.softmax(-1).gather(-1, ids)
            * m.routed_scaling_factor)),
    }
    if config.n_group > 1:
        cases["no groups of experts"] = (set_config(topk_group=config.n_group), None)
    if config.moe_latent_size is not None:
        cases["latents in another order"] = (change("fc1_latent_proj.weight", next_row), None)
        cases["latents back in another order"] = (change("fc2_latent_proj.weight", next_row), None)
        if config.mlp_bias:
            cases["no bias of latents"] = (change("fc1_latent_proj.bias", zero), None)
            cases["no bias of what latents become"] = (change("fc2_latent_proj.bias", zero), None)
    return cases


def mistakes(config):
    groups, heads = config.n_groups, config.mamba_num_heads
    cases = {
        "relu alone": (set_config(mlp_hidden_act="relu"), None),
        "silu": (set_config(mlp_hidden_act="silu"), None),
        "another scale of scores": (
            None, set_mixers("attention", scaling=2 * config.head_dim ** -0.5)),
        "keys for values": (lambda _, state: state.update(
            {key: state[key.replace("v_proj", "k_proj")] for key in state if "v_proj" in key}),
                            None),
        "B and C swapped": (change("in_proj.weight", reordered((0, 1, 3, 2, 4))), None),
        "gate and x swapped": (change("in_proj.weight", reordered((1, 0, 2, 3, 4))), None),
        "filters the other way round": (change("conv1d.weight", backwards), None),
        "a window one token early": (change("conv1d.weight", one_token_early), None),
        "D left out": (change("mixer.D", zero), None),
        "no decay": (change("A_log", lambda _, v: v - 40), None),
        "a decay that is stored": (change("A_log", lambda _, v: torch.log(torch.exp(v).exp())),
                                   None),
        "no bias of steps": (change("dt_bias", zero), None),
        "the gate behind the norm": (None, gate_behind(groups)),
        "no gate": (None, norm(lambda y, gate, inner: inner.weight * rms(
            y.unflatten(-1, (groups, -1)), inner).flatten(-2))),
        "another epsilon": (set_config(layer_norm_epsilon=1e-2), None),
    }
    if groups > 1:
        cases["one norm of all channels"] = (None, norm_of(1))
    if groups < heads:
        cases["norms of single heads"] = (None, norm_of(heads))
    if 1 < groups < heads:
        cases["groups in turns"] = (change("in_proj.weight", heads_in_turns), None)
    if config.use_conv_bias:
        cases["no bias of filters"] = (change("conv1d.bias", zero), None)
    if config.use_bias:
        cases["no bias of in_proj"] = (change("in_proj.bias", zero), None)
        cases["no bias of out_proj"] = (change("out_proj.bias", zero), None)
    if config.mlp_bias:
        cases["no bias of ups"] = (change("up_proj.bias", zero), None)
        cases["no bias of downs"] = (change("down_proj.bias", zero), None)
    if config.time_step_limit[0] > 0:
        cases["steps not clamped"] = (set_config(time_step_limit=(0.0, float("inf"))), None)
    if has_experts(config):
        cases |= mistakes_of_experts(config)
    return cases
