"""DeepSeek-V2 and V3 for make_family_models.py: their weights, GGUF files, and what a reader of them
may get wrong."""
import math

import gguf
import torch

TYPES = ("deepseek_v2", "deepseek_v3")


def is_latent(config):
    return config.model_type in TYPES


def attentions(model):
    return [layer.self_attn for layer in model.model.layers]


def mixtures(model):
    return [layer.mlp for layer in model.model.layers if hasattr(layer.mlp, "experts")]


def mscale(rope):
    """Of YaRN: 1 + mscale_all_dim log(factor) / 10."""
    if rope["rope_type"] != "yarn" or rope["factor"] <= 1:
        return 1.0
    return 0.1 * rope.get("mscale_all_dim", 0) * math.log(rope["factor"]) + 1


def finish(model):
    """What transformers 5.12.1 leaves out of V2: mscale of scores, as DeepSeek's own code has it, and
    a number that its choice of groups asks for."""
    if model.config.model_type == "deepseek_v2":
        for attention in attentions(model):
            attention.scaling *= mscale(model.config.rope_parameters) ** 2
        for mixture in mixtures(model):
            mixture.num_experts = model.config.n_routed_experts


def fill_buffers(model, generator):
    """Biases of choices, which are no parameters: a few tenths, as sigmoids differ by."""
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            buffer.normal_(0, 0.2, generator=generator)
            buffer.copy_(buffer.bfloat16().float())


# --- GGUF ---


def write_keys(writer, config, joined):
    """joined: as the first files, which have the two halves of kv_b_proj in one tensor."""
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
    writer.add_leading_dense_block_count(config.first_k_dense_replace)
    if config.q_lora_rank is not None:
        writer.add_q_lora_rank(config.q_lora_rank)
    writer.add_kv_lora_rank(config.kv_lora_rank)
    writer.add_rope_dimension_count(config.qk_rope_head_dim)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    is_v3 = config.model_type == "deepseek_v3"
    if is_v3:
        writer.add_expert_weights_norm(config.norm_topk_prob)
        writer.add_expert_group_count(config.n_group)
        writer.add_expert_group_used_count(config.topk_group)
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    rope = config.rope_parameters
    if rope.get("mscale_all_dim"):
        writer.add_rope_scaling_yarn_log_mul(0.1 * rope["mscale_all_dim"])


def tensors_of(config, name, value, joined):
    """What the converter to GGUF makes of a tensor: names of transformers, and values."""
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


def change(ending, function):
    def wrong(config, state):
        found = [key for key in state if key.endswith(ending)]
        assert found, ending
        for key in found:
            state[key] = function(config, state[key]).contiguous()
    return wrong


def set_rope(**changes):
    def wrong(config, _):
        config.rope_parameters.update(changes)
    return wrong


def set_config(**changes):
    def wrong(config, _):
        for key, value in changes.items():
            setattr(config, key, value)
    return wrong


def halves_apart(rows):
    """Rows 2i and 2i + 1 at i and i + n / 2, of the last dimension but one."""
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


def weights_of_biased(logits, weights, ids, mixture):
    biased = logits.float().sigmoid() + mixture.gate.e_score_correction_bias
    chosen = biased.gather(-1, ids)
    return chosen / chosen.sum(-1, keepdim=True) * mixture.routed_scaling_factor


def change_weights(function):
    """The weights of a row's experts are others: function(logits, weights, ids, mixture)."""
    def wrong(model):
        for mixture in mixtures(model):
            def route(logits, inner=mixture.route_tokens_to_experts, mixture=mixture):
                ids, weights = inner(logits)
                rows = logits.reshape(-1, logits.shape[-1])
                return ids, function(rows, weights, ids, mixture)
            mixture.route_tokens_to_experts = route
    return wrong


def zero(_, value):
    return torch.zeros_like(value)


def worth_by_best(model):
    """Groups by their best expert (of V3), by their two best (of V2)."""
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


def mistakes(config):
    is_v3 = config.model_type == "deepseek_v3"
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
        "no shared experts": (change("shared_experts.down_proj.weight", zero), None),
        "experts in another order": (
            change("experts.down_proj", lambda _, v: v.roll(1, 0)), None),
        "weights of other experts": (
            change("mlp.gate.weight", lambda _, v: v.roll(1, 0)), None),
        "an expert less": (set_config(num_experts_per_tok=config.num_experts_per_tok - 1), None),
        "experts weighed alike": (None, change_weights(
            lambda _, w, __, ___: w.mean(-1, keepdim=True).expand_as(w))),
    }
    if config.routed_scaling_factor != 1:
        cases["no scale of weights"] = (set_config(routed_scaling_factor=1.0), None)
    if config.q_lora_rank is not None:
        cases["no norm of queries"] = (None, without("q_a_layernorm"))
    if mscale(rope) != 1:
        cases["no mscale"] = (None, set_scaling(lambda a: head_dim ** -0.5))
        cases["mscale once"] = (None, set_scaling(lambda a: head_dim ** -0.5 * mscale(rope)))
    if rope["rope_type"] == "yarn":
        cases["no yarn"] = (set_rope(rope_type="default"), None)
    if rope.get("mscale_all_dim", 0) != rope.get("mscale", 0):
        cases["no factor of what turns"] = (set_rope(attention_factor=1.0), None)
    n_groups = config.n_group or 1
    has_groups = n_groups > 1 and (is_v3 or config.topk_method != "greedy")
    if has_groups and config.topk_group < n_groups:
        cases["no groups"] = (set_config(topk_group=n_groups), None)
        cases["groups by another worth"] = (None, worth_by_best)
    if is_v3:
        cases["no bias of choices"] = (
            change("e_score_correction_bias", zero), None)
        cases["the bias in weights, too"] = (None, change_weights(weights_of_biased))
        cases["weights by softmax"] = (None, change_weights(
            lambda logits, w, ids, m: logits.float().softmax(-1).gather(-1, ids)
            * m.routed_scaling_factor))
        cases["the other sum"] = (set_config(norm_topk_prob=not config.norm_topk_prob), None)
    return cases
