# SPDX-License-Identifier: Apache-2.0
"""DeepSeek-V2 and V3, Kimi K2 and GLM-4.7-Flash for make_family_models.py: their cases
(family_cases.py), weights and GGUF files, and the possible mistakes of a reader."""
import math

import gguf
import torch

from changes import change, next_row, set_config, set_rope, zero

TYPES = ("deepseek_v2", "deepseek_v3", "glm4_moe_lite")

CASES = {
    # As DeepSeek-V2-Lite without its context scaling, in the spelling of its file.
    "deepseek_v2_plain": dict(
        model_type="deepseek_v2", hidden_size=32, intermediate_size=44, moe_intermediate_size=12,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=None,
        kv_lora_rank=20, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=10,
        n_routed_experts=6, num_experts_per_tok=3, n_shared_experts=2, first_k_dense_replace=1,
        routed_scaling_factor=1.0, topk_method="greedy", n_group=1, topk_group=1,
        tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=1e4),
        gguf=True,
        old=dict(rope_theta=1e4, rope_scaling=None, aux_loss_alpha=0.001, seq_aux=True, ep_size=1,
                 moe_layer_freq=1, scoring_func="softmax", pretraining_tp=1)),
    # As DeepSeek-V2: low-rank queries, experts of the best groups.
    "deepseek_v2_grouped": dict(
        model_type="deepseek_v2", hidden_size=30, intermediate_size=40, moe_intermediate_size=10,
        num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3, q_lora_rank=18,
        kv_lora_rank=16, qk_nope_head_dim=10, qk_rope_head_dim=6, v_head_dim=14,
        n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1, first_k_dense_replace=0,
        routed_scaling_factor=4.0, topk_method="group_limited_greedy", n_group=4, topk_group=2,
        tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1e4)),
    # With YaRN, as all of V2: scores are multiplied by the square of mscale. Tensors as
    # transformers 5 holds them; the GGUF file follows the first ones, with both halves of kv_b_proj
    # in one tensor.
    "deepseek_v2_yarn": dict(
        model_type="deepseek_v2", hidden_size=32, intermediate_size=36, moe_intermediate_size=14,
        num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, q_lora_rank=12,
        kv_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16,
        n_routed_experts=5, num_experts_per_tok=2, n_shared_experts=2, first_k_dense_replace=1,
        routed_scaling_factor=1.0, topk_method="greedy", tie_word_embeddings=False, stacked=True,
        gguf=True, joined=True,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0, mscale=0.5,
                             mscale_all_dim=0.5, original_max_position_embeddings=64)),
    # As DeepSeek-V3, in the spelling of its file.
    "deepseek_v3_plain": dict(
        model_type="deepseek_v3", hidden_size=32, intermediate_size=40, moe_intermediate_size=12,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=16,
        kv_lora_rank=20, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=12,
        n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1, first_k_dense_replace=1,
        routed_scaling_factor=2.5, n_group=4, topk_group=2, norm_topk_prob=True,
        tie_word_embeddings=False,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0, beta_fast=32.0,
                             beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
                             original_max_position_embeddings=64), gguf=True,
        old=dict(rope_theta=1e4, rope_scaling=dict(
            type="yarn", factor=4.0, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0,
            original_max_position_embeddings=64), topk_method="noaux_tc", scoring_func="sigmoid",
            moe_layer_freq=1, ep_size=1, num_nextn_predict_layers=1)),
    # As Moonlight: one group, queries by a single product.
    "deepseek_v3_ungrouped": dict(
        model_type="deepseek_v3", hidden_size=30, intermediate_size=36, moe_intermediate_size=14,
        num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3, q_lora_rank=None,
        kv_lora_rank=18, qk_nope_head_dim=10, qk_rope_head_dim=6, v_head_dim=16,
        n_routed_experts=5, num_experts_per_tok=2, n_shared_experts=2, first_k_dense_replace=1,
        routed_scaling_factor=2.446, n_group=1, topk_group=1, norm_topk_prob=True,
        tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=5e4)),
    # Weights without normalisation; factors of YaRN that do not cancel; many heads.
    "deepseek_v3_stacked": dict(
        model_type="deepseek_v3", hidden_size=36, intermediate_size=40, moe_intermediate_size=10,
        num_hidden_layers=2, num_attention_heads=10, num_key_value_heads=10, q_lora_rank=14,
        kv_lora_rank=22, qk_nope_head_dim=8, qk_rope_head_dim=10, v_head_dim=6,
        n_routed_experts=9, num_experts_per_tok=4, n_shared_experts=1, first_k_dense_replace=0,
        routed_scaling_factor=1.5, n_group=3, topk_group=2, norm_topk_prob=False,
        tie_word_embeddings=False, stacked=True,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0, mscale=1.0,
                             mscale_all_dim=0.4, original_max_position_embeddings=64)),
    # DeepSeek-V3 under another name, in the spelling of its file; both bounds of YaRN are equal.
    "kimi_k2_plain": dict(
        model_type="deepseek_v3", renamed="kimi_k2", hidden_size=24, intermediate_size=32,
        moe_intermediate_size=8, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3,
        q_lora_rank=12, kv_lora_rank=16, qk_nope_head_dim=10, qk_rope_head_dim=12, v_head_dim=10,
        n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1, first_k_dense_replace=1,
        routed_scaling_factor=2.827, n_group=1, topk_group=1, norm_topk_prob=True,
        tie_word_embeddings=False,
        rope_parameters=dict(rope_type="yarn", rope_theta=5e4, factor=4.0, beta_fast=1.0,
                             beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
                             original_max_position_embeddings=64), gguf=True,
        old=dict(rope_theta=5e4, rope_scaling=dict(
            type="yarn", factor=4.0, beta_fast=1.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
            original_max_position_embeddings=64), topk_method="noaux_tc", scoring_func="sigmoid",
            moe_layer_freq=1, ep_size=1, seq_aux=True, aux_loss_alpha=0.001, pretraining_tp=1,
            num_nextn_predict_layers=0)),
    # As GLM-4.7-Flash, in the spelling of its file.
    "glm4_moe_lite_plain": dict(
        model_type="glm4_moe_lite", hidden_size=24, intermediate_size=32, moe_intermediate_size=8,
        num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3, rms_norm_eps=1e-5,
        q_lora_rank=12, kv_lora_rank=16, qk_nope_head_dim=10, qk_rope_head_dim=6, v_head_dim=14,
        n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=1, n_group=1, topk_group=1,
        routed_scaling_factor=1.8, norm_topk_prob=True, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=1e6), gguf=True,
        old=dict(rope_theta=1e6, rope_scaling=None, partial_rotary_factor=1.0,
                 topk_method="noaux_tc", first_k_dense_replace=1, mlp_layer_types=None,
                 num_nextn_predict_layers=1)),
    # A list of dense layers, queries by a single product, groups, weights without normalisation; an
    # epsilon that distinguishes the norms of latents from the others.
    "glm4_moe_lite_listed": dict(
        model_type="glm4_moe_lite", hidden_size=24, intermediate_size=28, moe_intermediate_size=10,
        num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=2, rms_norm_eps=1e-2,
        q_lora_rank=None, kv_lora_rank=14, qk_nope_head_dim=8, qk_rope_head_dim=10, v_head_dim=12,
        n_routed_experts=6, num_experts_per_tok=3, n_shared_experts=2, n_group=3, topk_group=2,
        mlp_layer_types=["dense", "dense", "sparse"], routed_scaling_factor=1.3,
        norm_topk_prob=False, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=1e4)),
    # Experts in all layers, as transformers 5 holds them; factors of YaRN that do not cancel.
    "glm4_moe_lite_stacked": dict(
        model_type="glm4_moe_lite", hidden_size=20, intermediate_size=24, moe_intermediate_size=8,
        num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5, q_lora_rank=10,
        kv_lora_rank=12, qk_nope_head_dim=6, qk_rope_head_dim=8, v_head_dim=6, n_routed_experts=5,
        num_experts_per_tok=2, n_shared_experts=1, n_group=1, topk_group=1,
        mlp_layer_types=["sparse", "sparse"], routed_scaling_factor=1.0, norm_topk_prob=True,
        tie_word_embeddings=False, stacked=True,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0, mscale=1.0,
                             mscale_all_dim=0.4, original_max_position_embeddings=64)),
}


def is_latent(config):
    return config.model_type in TYPES


def by_sigmoid(config):
    return config.model_type != "deepseek_v2"


def attentions(model):
    return [layer.self_attn for layer in model.model.layers]


def mixtures(model):
    return [layer.mlp for layer in model.model.layers if hasattr(layer.mlp, "experts")]


def mscale(rope):
    """For YaRN: 1 + mscale_all_dim log(factor) / 10."""
    if rope["rope_type"] != "yarn" or rope["factor"] <= 1:
        return 1.0
    return 0.1 * rope.get("mscale_all_dim", 0) * math.log(rope["factor"]) + 1


def finish(model):
    """Two things that transformers 5.12.1 lacks for V2: mscale of scores, as in DeepSeek's own
    code, and a number that its choice of groups needs."""
    if model.config.model_type == "deepseek_v2":
        for attention in attentions(model):
            attention.scaling *= mscale(model.config.rope_parameters) ** 2
        for mixture in mixtures(model):
            mixture.num_experts = model.config.n_routed_experts


def fill_buffers(model, generator):
    """Biases of expert selection, which are no parameters: a few tenths, like the differences of sigmoids."""
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            buffer.normal_(0, 0.2, generator=generator)
            buffer.copy_(buffer.bfloat16().float())


# --- GGUF ---


def write_keys(writer, config, joined):
    """joined: as in the first files, which have the two halves of kv_b_proj in one tensor."""
    head_dim = config.qk_nope_head_dim + config.qk_rope_head_dim
    if joined:
        writer.add_key_length(head_dim)
        writer.add_value_length(config.v_head_dim)
    else:
        writer.add_key_length(config.kv_lora_rank + config.qk_rope_head_dim)
        writer.add_value_length(config.kv_lora_rank)
        writer.add_key_length_mla(head_dim)
        writer.add_value_length_mla(config.v_head_dim)
    writer.add_vocab_size(config.vocab_size)
    is_lite = config.model_type == "glm4_moe_lite"
    writer.add_leading_dense_block_count(
        config.mlp_layer_types.count("dense") if is_lite else config.first_k_dense_replace)
    if config.q_lora_rank is not None:
        writer.add_q_lora_rank(config.q_lora_rank)
    writer.add_kv_lora_rank(config.kv_lora_rank)
    writer.add_rope_dimension_count(config.qk_rope_head_dim)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    if by_sigmoid(config):
        writer.add_expert_weights_norm(config.norm_topk_prob)
        writer.add_expert_group_count(config.n_group)
        writer.add_expert_group_used_count(config.topk_group)
        if not is_lite:  # its file does not name the function
            writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    rope = config.rope_parameters
    if rope.get("mscale_all_dim"):
        writer.add_rope_scaling_yarn_log_mul(0.1 * rope["mscale_all_dim"])


def tensors_of(config, name, value, joined):
    """The converter's output for a tensor: names of transformers, and values."""
    if name.endswith("e_score_correction_bias"):
        yield name.replace("_bias", ".bias"), value
    elif name.endswith("kv_b_proj.weight") and not joined:
        heads = value.unflatten(0, (config.num_attention_heads, -1))
        keys, values = heads.split([config.qk_nope_head_dim, config.v_head_dim], dim=1)
        yield name.replace("kv_b_proj", "k_b_proj"), keys.transpose(1, 2)
        yield name.replace("kv_b_proj", "v_b_proj"), values
    else:
        yield name, value


# --- mistakes ---


def halves_apart(rows):
    """Rows 2i and 2i + 1 move to i and i + n / 2, in the last dimension but one."""
    return torch.cat((rows[..., ::2, :], rows[..., 1::2, :]), dim=-2)


def pairs_not_side_by_side(config, state):
    rope = config.qk_rope_head_dim
    for key, value in state.items():
        if key.endswith(("self_attn.q_proj.weight", "self_attn.q_b_proj.weight")):
            heads = value.unflatten(0, (config.num_attention_heads, -1)).clone()
            heads[:, -rope:] = halves_apart(heads[:, -rope:])
            state[key] = heads.flatten(0, 1)
        elif key.endswith("kv_a_proj_with_mqa.weight"):
            value = value.clone()
            value[-rope:] = halves_apart(value[-rope:])
            state[key] = value


def without(name):
    def wrong(model):
        for attention in attentions(model):
            setattr(attention, name, torch.nn.Identity())
    return wrong


def set_scaling(function):
    def wrong(model):
        for attention in attentions(model):
            attention.scaling = function(attention)
    return wrong


def norms_by_the_models_epsilon(model):
    for attention in attentions(model):
        for name in ("q_a_layernorm", "kv_a_layernorm"):
            if hasattr(attention, name):
                getattr(attention, name).variance_epsilon = model.config.rms_norm_eps


def weights_of_biased(logits, weights, ids, mixture):
    biased = logits.float().sigmoid() + mixture.gate.e_score_correction_bias
    chosen = biased.gather(-1, ids)
    return chosen / chosen.sum(-1, keepdim=True) * mixture.routed_scaling_factor


def change_weights(function):
    """Replaces the weights of a row's experts: function(logits, weights, ids, mixture)."""
    def wrong(model):
        for mixture in mixtures(model):
            def route(logits, inner=mixture.route_tokens_to_experts, mixture=mixture):
                ids, weights = inner(logits)
                rows = logits.reshape(-1, logits.shape[-1])
                return ids, function(rows, weights, ids, mixture)
            mixture.route_tokens_to_experts = route
    return wrong


def worth_by_best(model):
    """Groups by their best expert (for V3), by their two best (for V2)."""
    for mixture in mixtures(model):
        n = mixture.n_group if hasattr(mixture, "n_group") else mixture.num_group
        is_v3 = hasattr(mixture, "n_group")

        def route(logits, mixture=mixture, n=n, is_v3=is_v3):
            rows = logits.reshape(-1, logits.shape[-1]).float()
            scores = rows.sigmoid() if is_v3 else rows.softmax(-1)
            merit = scores + mixture.gate.e_score_correction_bias if is_v3 else scores
            groups = merit.unflatten(-1, (n, -1))
            worth = groups.amax(-1) if is_v3 else groups.topk(2, dim=-1)[0].sum(-1)
            used = worth.topk(mixture.topk_group, dim=-1)[1]
            mask = torch.zeros_like(worth).scatter(1, used, 1).bool()
            masked = groups.masked_fill(~mask.unsqueeze(-1), -math.inf).flatten(-2)
            ids = masked.topk(mixture.top_k, dim=-1)[1]
            weights = scores.gather(-1, ids)
            if is_v3 and mixture.norm_topk_prob:
                weights = weights / weights.sum(-1, keepdim=True)
            return ids, weights * mixture.routed_scaling_factor
        mixture.topk_group = getattr(mixture, "topk_group", model.config.topk_group)
        mixture.route_tokens_to_experts = route


def mistakes_of_routing(config):
    """For experts in groups, by sigmoids or a softmax."""
    cases = {
        "no shared experts": (change("shared_experts.down_proj.weight", zero), None),
        "experts in another order": (
            change("experts.down_proj", next_row), None),
        "weights of other experts": (
            change("mlp.gate.weight", next_row), None),
        "an expert less": (set_config(num_experts_per_tok=config.num_experts_per_tok - 1), None),
        "experts weighed alike": (None, change_weights(
            lambda _, w, __, ___: w.mean(-1, keepdim=True).expand_as(w))),
    }
    if config.routed_scaling_factor != 1:
        cases["no scale of weights"] = (set_config(routed_scaling_factor=1.0), None)
    n_groups = config.n_group or 1
    has_groups = n_groups > 1 and (by_sigmoid(config) or config.topk_method != "greedy")
    if has_groups and config.topk_group < n_groups:
        cases["no groups"] = (set_config(topk_group=n_groups), None)
        cases["groups by another worth"] = (None, worth_by_best)
    if by_sigmoid(config):
        cases["no bias of choices"] = (
            change("e_score_correction_bias", zero), None)
        cases["the bias in weights, too"] = (None, change_weights(weights_of_biased))
        cases["weights by softmax"] = (None, change_weights(
            lambda logits, w, ids, m: logits.float().softmax(-1).gather(-1, ids)
            * m.routed_scaling_factor))
        cases["the other sum"] = (set_config(norm_topk_prob=not config.norm_topk_prob), None)
    return cases


def mistakes(config):
    rope = config.rope_parameters
    head_dim = config.qk_nope_head_dim + config.qk_rope_head_dim
    cases = {
        "another rope base": (set_rope(rope_theta=2e3), None),
        "pairs not side by side": (pairs_not_side_by_side, None),
        "no norm of latents": (None, without("kv_a_layernorm")),
        "scaled by the latent's width": (None, set_scaling(
            lambda a: (config.kv_lora_rank + config.qk_rope_head_dim) ** -0.5)),
        "heads of latents in another order": (
            change("kv_b_proj.weight", lambda c, v: v.roll(v.shape[0] // c.num_attention_heads,
                                                           0)), None),
        **mistakes_of_routing(config),
    }
    if config.q_lora_rank is not None:
        cases["no norm of queries"] = (None, without("q_a_layernorm"))
    if config.rms_norm_eps > 1e-3:
        cases["norms of latents by the model's epsilon"] = (None, norms_by_the_models_epsilon)
    if mscale(rope) != 1:
        cases["no mscale"] = (None, set_scaling(lambda a: head_dim ** -0.5))
        cases["mscale once"] = (None, set_scaling(lambda a: head_dim ** -0.5 * mscale(rope)))
    if rope["rope_type"] == "yarn":
        cases["no yarn"] = (set_rope(rope_type="default"), None)
    if rope.get("beta_fast", 32) != 32:
        cases["the usual bounds of yarn"] = (set_rope(beta_fast=32.0), None)
    if rope.get("mscale_all_dim", 0) != rope.get("mscale", 0):
        cases["no factor of what turns"] = (set_rope(attention_factor=1.0), None)
    return cases
