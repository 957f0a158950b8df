#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/{llama,qwen2,qwen3,gemma2,gemma3,gemma4,mistral,ministral3,smollm3,olmo2,
granite,gpt2,gpt_neox,phi3,mixtral,qwen3_moe,olmoe,lfm2,gpt_oss,qwen3_next,qwen3_5,qwen3_5_moe,
granite_hybrid,nemotron_h,deepseek_v2,deepseek_v3,kimi_k2,glm4_moe,glm4_moe_lite}_*: tiny random
models of these families, with logits and greedy continuations from Hugging Face transformers.

Needs torch, transformers, safetensors, gguf. Writes into the folder above; run it again only to change the
cases (those named, or all). Each folder has the files of save_pretrained, and beside them

    golden.json          ids (the prompt), greedy (the 32 ids after it; an end token ends nothing)
    golden.safetensors   logits (len(ids), vocabulary), f32
    model.gguf           one or two cases per family: the same numbers as f32, as llama.cpp's
                         converter names and transforms them (tiled.gguf if value heads have
                         another order there, which changes the order of sums)

The GGUF files equal the converter's in every tensor, and in every key outside general.* and
tokenizer.*, except that new converters also write gemma3.rope.freq_base_swa. llama.cpp gives the
last rows of the prompts within 5e-6 (Qwen) and 5e-3 (Gemma: its GELU is a table of f16).

Weights are bf16 (small files); logits are those of the same numbers in f32 with eager attention.
For each case the script asserts that each mistake in `WRONG` of family_mistakes.py changes the
logits. The cases are in family_cases.py.
"""
import copy
import json
import math
import math
import pathlib
import shutil
import sys

import gguf
import numpy
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import gemma4_models
import glm_models
import hybrid_models
import latent_models
import mamba_models
import nemotron_models
from family_cases import CASES
from family_mistakes import (head_dim_of, interleave, is_gemma, n_experts_of, parts_together,
                             wrong_cases)

VOCABULARY = 97
N_GREEDY = 32
# Largest error of a logit in f32, compared with the same model in f64 (except RoPE's angles).
ROUNDING = 3e-5
# Tests allow 5e-5 for rounding. A mistake must change some logit by 20 times that.
VISIBLE = 1e-3
# The two best logits of a greedy step differ by at least this, so that rounding cannot change the
# choice.
CLEAR = 2e-3

# --- models ---


def eager(config):
    """Attention and experts in transformers' own operations, which also support f64."""
    has_choice = n_experts_of(config) and not mamba_models.is_mamba(config)
    experts = dict(experts_implementation="eager") if has_choice else {}
    return dict(attn_implementation="eager", **experts)


def limit_experts(model):
    """A constant in gpt-oss' code, which its kernels for MXFP4 read from the configuration."""
    for layer in getattr(model, "model", model).layers if is_gpt_oss(model.config) else ():
        layer.mlp.experts.limit = model.config.swiglu_limit


def make_model(config, state=None):
    model = AutoModelForCausalLM.from_config(config, **eager(config), dtype=torch.float32).eval()
    limit_experts(model)
    if latent_models.is_latent(config):
        latent_models.finish(model)
    nemotron_models.finish(model)
    if state is not None:
        model.load_state_dict(state)
    return model


def is_gpt_oss(config):
    return config.model_type == "gpt_oss"


# The four-bit numbers, by their codes.
FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def to_mxfp4(value):
    """Rounds experts (n, in, out) to the nearest MXFP4 numbers, with the scale that the largest
    element of a block needs. Returns blocks (n, out, in / 32, 16), scales (n, out, in / 32), and
    their values, (n, in, out)."""
    rows = value.transpose(1, 2).unflatten(-1, (-1, 32))
    exponents = torch.floor(torch.log2(rows.abs().amax(-1, keepdim=True))) - 2
    scaled = rows * torch.exp2(-exponents)
    codes = (scaled.unsqueeze(-1) - FP4).abs().argmin(-1)
    values = (FP4[codes] * torch.exp2(exponents)).flatten(-2).transpose(1, 2).contiguous()
    codes = codes.to(torch.uint8)
    blocks = codes[..., ::2] | (codes[..., 1::2] << 4)
    return blocks, (exponents.squeeze(-1) + 127).to(torch.uint8), values


EXPERTS = ("experts.gate_up_proj", "experts.down_proj")


# Stored (in, out).
CONV1D = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
LAST_NORMS = ("model.norm.weight", "transformer.ln_f.weight", "gpt_neox.final_layer_norm.weight")
HEAD_NORMS = ("q_norm.weight", "k_norm.weight", "q_layernorm.weight", "k_layernorm.weight")


def fill(model, generator, mxfp4):
    config = model.config
    for name, parameter in model.named_parameters():
        if spread := (nemotron_models.spread_of(name) if nemotron_models.is_nemotron(config) else
                      mamba_models.spread_of(name) or hybrid_models.spread_of(name)
                      or gemma4_models.spread_of(config, name)):
            mean, deviation = spread
        elif parameter.dim() == 2 and name.endswith(CONV1D):
            mean, deviation = 0, parameter.shape[0] ** -0.5
        elif is_gpt_oss(config) and name.endswith(EXPERTS):  # (experts, in, out)
            wide = config.swiglu_limit / 2 if "gate_up" in name else 1  # some beyond the limit
            mean, deviation = 0, wide * parameter.shape[1] ** -0.5
        elif name.endswith("_bias"):  # of experts
            mean, deviation = 0, 0.5
        elif name.endswith("sinks"):
            mean, deviation = 1, 1
        elif parameter.dim() == 2:
            mean, deviation = 0, parameter.shape[1] ** -0.5
        elif parameter.dim() == 3:  # all experts (experts, out, in); filters (channels, 1, tokens)
            mean, deviation = 0, parameter.shape[2] ** -0.5
        elif name.endswith("bias"):
            # If every product has a bias, larger ones would drown the tokens.
            mean, deviation = 0, (
                0.1 if config.model_type in ("gpt2", "gpt_neox", "lfm2") else 0.5)
        elif name == "model.embedding_norm.weight":  # convolutions amplify rounding errors
            mean, deviation = 2, 0.3
        elif name in LAST_NORMS:  # logits of a few units; recurrence amplifies rounding errors
            recurrent = hybrid_models.is_hybrid(config) or mamba_models.is_mamba(config)
            mean, deviation = 0.75 if recurrent else 3, 0.3
        elif name.endswith(HEAD_NORMS):  # attention that distinguishes tokens
            mean, deviation = 1.25, 0.3
        else:
            mean, deviation = 1, 0.3
        # Gemma's norms multiply by 1 + weight.
        mean -= is_gemma(config) and parameter.dim() == 1 and name.endswith("norm.weight")
        mean -= hybrid_models.is_hybrid(config) and hybrid_models.is_offset(name)
        parameter.normal_(mean, deviation, generator=generator)
        parameter.copy_(parameter.bfloat16().float())
        if mxfp4 and name.endswith(EXPERTS):
            parameter.copy_(to_mxfp4(parameter)[2])


@torch.no_grad()
def logits_of(model, ids):
    return model(torch.tensor([ids]), use_cache=False).logits[0]


def greedy(model, ids):
    """The ids after a prompt, or None if two logits come too close to each other."""
    ids = list(ids)
    for _ in range(N_GREEDY):
        best = logits_of(model, ids)[-1].topk(2)
        if best.values[0] - best.values[1] < CLEAR:
            return None
        ids.append(int(best.indices[0]))
    return ids[-N_GREEDY:]


def make_case(options):
    """A model with a clear continuation of several ids (8, or fewer if none of 20 has 8)."""
    n = options.get("n", 64)
    mxfp4 = options.get("mxfp4", False)
    options = {key: value for key, value in options.items()
               if key not in ("old", "gguf", "n", "stacked", "mxfp4", "joined", "renamed")}
    shape = {"gpt2": dict(n_positions=256), "gpt_neox": dict(max_position_embeddings=256),
             "lfm2": dict(max_position_embeddings=256, norm_eps=1e-6),
             "nemotron_h": dict(max_position_embeddings=256, layer_norm_epsilon=1e-6)}.get(
        options["model_type"], dict(max_position_embeddings=256, rms_norm_eps=1e-6))
    config = AutoConfig.for_model(
        **{**shape, **options}, vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2,
        pad_token_id=0)
    for seed in range(100):
        generator = torch.Generator().manual_seed(seed)
        model = make_model(config)
        with torch.no_grad():
            fill(model, generator, mxfp4)
            latent_models.fill_buffers(model, generator)
            gemma4_models.fill_buffers(model, generator)
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
        overflows = math.isnan(difference) and name in hybrid_models.MAY_OVERFLOW
        assert difference > VISIBLE or overflows, name


# --- files ---


def write_experts_as_blocks(directory):
    """The experts of a saved gpt-oss model, rewritten in the published format."""
    path = directory / "model.safetensors"
    state = load_file(path)
    for name in [name for name in state if name.endswith(EXPERTS)]:
        value = state.pop(name).float()
        blocks, scales, values = to_mxfp4(value)
        assert torch.equal(values, value)
        assert torch.equal(convert_moe_packed_tensors(blocks, scales, dtype=torch.float32), value)
        state[name + "_blocks"] = blocks
        state[name + "_scales"] = scales
    save_file(state, path, metadata={"format": "pt"})
    path = directory / "config.json"
    config = json.loads(path.read_text())
    config["quantization_config"] = dict(
        quant_method="mxfp4", modules_to_not_convert=[
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens",
            "lm_head"])
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def write_old_spelling(directory, keys):
    path = directory / "config.json"
    config = json.loads(path.read_text())
    config.pop("rope_parameters", None)
    if "sliding_window_pattern" in keys or config["model_type"] != "gemma3_text":
        config.pop("layer_types", None)
    config["torch_dtype"] = config.pop("dtype")
    if "num_experts" in keys:
        config.pop("num_local_experts", None)
    config.update(keys)
    config = {key: value for key, value in config.items() if value is not ...}
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def rename_type(directory, name):
    path = directory / "config.json"
    config = json.loads(path.read_text())
    config["model_type"] = name
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def pieces():
    """Printable characters, blank and newline in the byte-level alphabet; three tokens that end or
    pad a text; a merge, since a reader may require one."""
    printable = [chr(code) for code in range(33, 127)][: VOCABULARY - 6]
    return ["<pad>", "<bos>", "<eos>", *printable, "\u0120", "\u010a", "th"]


LAYER_NORMED = ("gpt2", "gptneox")


def add_experts(writer, name, value, mxfp4):
    """One of gpt-oss' expert tensors: gates and ups separate, in MXFP4 with the codes of elements i
    and i + 16 of a block in one byte after its scale."""
    kind = "bias" if name.endswith("_bias") else "weight"
    parts = dict(down=value) if "down_proj" in name else dict(gate=value[..., ::2],
                                                              up=value[..., 1::2])
    for part, numbers in parts.items():
        its = f"blk.{name.split('.')[2]}.ffn_{part}_exps.{kind}"
        if kind == "weight" and mxfp4:
            blocks, scales, _ = to_mxfp4(numbers)
            codes = torch.stack((blocks & 15, blocks >> 4), -1).flatten(-2)
            blocks = torch.cat((scales.unsqueeze(-1), codes[..., :16] | (codes[..., 16:] << 4)), -1)
            writer.add_tensor(its, numpy.ascontiguousarray(blocks.flatten(-2).numpy()),
                              raw_dtype=gguf.GGMLQuantizationType.MXFP4)
        else:
            numbers = numbers.transpose(1, 2) if kind == "weight" else numbers
            writer.add_tensor(its, numpy.ascontiguousarray(numbers.numpy()))


def write_gguf(model, path, mxfp4=False, joined=False):
    """As convert_hf_to_gguf.py --outtype f32: Gemma's norms as 1 + weight; query and key rows of
    Llama, SmolLM3, Granite, Ministral 3 and Nemotron-H interleaved; GPT-2's matrices transposed;
    GPT-NeoX's queries, keys and values one after the other; no rows of the others moved."""
    config = model.config
    is_nemotron = nemotron_models.is_nemotron(config)
    architecture, arch = {
        "llama": ("llama", gguf.MODEL_ARCH.LLAMA),
        "qwen2": ("qwen2", gguf.MODEL_ARCH.QWEN2), "qwen3": ("qwen3", gguf.MODEL_ARCH.QWEN3),
        "gemma2": ("gemma2", gguf.MODEL_ARCH.GEMMA2),
        "gemma3_text": ("gemma3", gguf.MODEL_ARCH.GEMMA3),
        "gemma4_text": ("gemma4", gguf.MODEL_ARCH.GEMMA4),
        "ministral3": ("mistral3", gguf.MODEL_ARCH.MISTRAL3),
        "smollm3": ("smollm3", gguf.MODEL_ARCH.SMOLLM3),
        "olmo2": ("olmo2", gguf.MODEL_ARCH.OLMO2),
        "granite": ("granite", gguf.MODEL_ARCH.GRANITE),
        "gpt2": ("gpt2", gguf.MODEL_ARCH.GPT2),
        "gpt_neox": ("gptneox", gguf.MODEL_ARCH.GPTNEOX),
        "phi3": ("phi3", gguf.MODEL_ARCH.PHI3),
        "mixtral": ("llama", gguf.MODEL_ARCH.LLAMA),
        "qwen3_moe": ("qwen3moe", gguf.MODEL_ARCH.QWEN3MOE),
        "olmoe": ("olmoe", gguf.MODEL_ARCH.OLMOE),
        "lfm2": ("lfm2", gguf.MODEL_ARCH.LFM2),
        "granitemoehybrid": ("granitehybrid", gguf.MODEL_ARCH.GRANITE_HYBRID),
        "nemotron_h": nemotron_models.architecture(config) if is_nemotron else None,
        "gpt_oss": ("gpt-oss", gguf.MODEL_ARCH.GPT_OSS),
        "qwen3_next": ("qwen3next", gguf.MODEL_ARCH.QWEN3NEXT),
        "qwen3_5_text": ("qwen35", gguf.MODEL_ARCH.QWEN35),
        "qwen3_5_moe_text": ("qwen35moe", gguf.MODEL_ARCH.QWEN35MOE),
        "deepseek_v2": ("deepseek2", gguf.MODEL_ARCH.DEEPSEEK2),
        "deepseek_v3": ("deepseek2", gguf.MODEL_ARCH.DEEPSEEK2),
        "glm4_moe_lite": ("deepseek2", gguf.MODEL_ARCH.DEEPSEEK2),
        "glm4_moe": ("glm4moe", gguf.MODEL_ARCH.GLM4_MOE)}[config.model_type]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    is_gemma4 = gemma4_models.is_gemma4(config)
    if architecture != "qwen35moe" and not is_gemma4 and not is_nemotron:
        writer.add_feed_forward_length(
            4 * config.n_embd if architecture == "gpt2" else
            model.model.layers[0].feed_forward.w1.out_features if architecture == "lfm2" else
            config.intermediate_size)
    if n_experts_of(config) and not is_gemma4 and not is_nemotron:
        writer.add_expert_count(n_experts_of(config))
        writer.add_expert_used_count(config.num_experts_per_tok)
    if architecture == "qwen3moe":
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if architecture == "gpt-oss":
        writer.add_expert_feed_forward_length(config.intermediate_size)
        writer.add_sliding_window(config.sliding_window)
    writer.add_head_count(config.num_attention_heads)
    if architecture == "lfm2":
        writer.add_head_count_kv([config.num_key_value_heads if kind == "full_attention" else 0
                                  for kind in config.layer_types])
        writer.add_vocab_size(VOCABULARY)
        writer.add_shortconv_l_cache(config.conv_L_cache)
    elif architecture == "granitehybrid":
        mamba_models.write_keys(writer, config)
    elif is_gemma4:
        gemma4_models.write_keys(writer, config)
    elif is_nemotron:
        nemotron_models.write_keys(writer, config)
    elif architecture not in LAYER_NORMED:
        # There, latent attention has a single key head, except in the first files.
        is_one = latent_models.is_latent(config) and not joined
        writer.add_head_count_kv(1 if is_one else config.num_key_value_heads)
    if architecture == "gpt2":
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
        rope = dict(rope_type="none")
    elif is_nemotron:
        rope = dict(rope_type="none")
    elif architecture == "gptneox":
        # The converter writes no base, and readers assume 10000.
        rope = config.rope_parameters
        assert rope["rope_theta"] == 1e4
        writer.add_rope_dimension_count(int(rope["partial_rotary_factor"] * head_dim_of(config)))
        writer.add_parallel_residual(config.use_parallel_residual)
        writer.add_layer_norm_eps(config.layer_norm_eps)
    else:
        rope = config.rope_parameters
        rope = rope["full_attention"] if architecture in ("gemma3", "gemma4") else rope
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if architecture == "gpt-oss":
            writer.add_rope_scaling_yarn_truncate(rope["truncate"])
            writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
            writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
        elif rope.get("beta_fast", 32) != 32 and architecture == "deepseek2":
            # New converters write default values, too.
            writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
            writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
    elif rope["rope_type"] == "longrope":
        original = rope["original_max_position_embeddings"]
        ratio = config.max_position_embeddings / original
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(ratio) / math.log(original)))
        for kind in ("short", "long"):
            writer.add_tensor(f"rope_factors_{kind}.weight",
                              numpy.array(rope[f"{kind}_factor"], dtype=numpy.float32))
    if architecture in ("llama", "mistral3"):
        writer.add_vocab_size(VOCABULARY)
        writer.add_rope_dimension_count(config.head_dim)
    if architecture == "mistral3":
        writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
        writer.add_rope_scaling_yarn_log_mul(rope["mscale_all_dim"])
        writer.add_attn_temperature_scale(rope["llama_4_scaling_beta"])
    if architecture == "phi3":
        share = rope.get("partial_rotary_factor", 1.0)
        writer.add_rope_dimension_count(int(share * head_dim_of(config)))
        writer.add_sliding_window(config.sliding_window or 0)
    if hybrid_models.is_hybrid(config):
        hybrid_models.write_keys(writer, config)
    if latent_models.is_latent(config):
        latent_models.write_keys(writer, config, joined)
    if glm_models.is_glm(config):
        glm_models.write_keys(writer, config)
    if architecture == "granite":
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if architecture == "gemma2":  # the converter omits the base, and readers assume this one
        assert rope == dict(rope_type="default", rope_theta=1e4)
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    elif architecture not in LAYER_NORMED and not is_nemotron:
        writer.add_rope_freq_base(rope["rope_theta"])
    if architecture not in LAYER_NORMED and not is_nemotron:
        writer.add_layer_norm_rms_eps(
            config.norm_eps if architecture == "lfm2" else config.rms_norm_eps)
    if architecture in ("llama", "qwen3", "qwen3moe", "mistral3", "gemma2", "gemma3", "gpt-oss",
                        "qwen3next", "qwen35", "qwen35moe"):
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    if architecture == "gemma3":
        # Only new files have the second base of rope: readers assume 10000 if there is none.
        assert config.rope_parameters["sliding_attention"]["rope_theta"] == 1e4
    if is_gemma(config):
        writer.add_sliding_window(config.sliding_window)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)

    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default" if is_gemma(config) else
                             "gpt-2" if architecture in LAYER_NORMED else
                             "gpt-4o" if architecture == "gpt-oss" else "qwen2")
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
    if architecture in ("llama", "mistral3", "smollm3", "granite", "granitehybrid") or is_nemotron:
        interleave(config, state)
    if mamba_models.is_mamba(config):
        state = dict(part for name, value in state.items()
                     for part in mamba_models.tensors_of(config, name, value))
    if hybrid_models.is_hybrid(config):
        state = dict(part for name, value in state.items()
                     for part in hybrid_models.tensors_of(config, name, value))
    if latent_models.is_latent(config):
        state = dict(part for name, value in state.items()
                     for part in latent_models.tensors_of(config, name, value, joined))
    if glm_models.is_glm(config):
        state = dict(part for name, value in state.items()
                     for part in glm_models.tensors_of(name, value))
    if is_nemotron:
        state = dict(part for name, value in state.items()
                     for part in nemotron_models.tensors_of(config, name, value))
    if is_gemma4:
        state = dict(part for name, value in state.items()
                     for part in gemma4_models.tensors_of(name, value))
    for name, value in state.items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if is_gemma(config) and name.endswith("norm.weight"):
            value = value + 1
        if architecture == "gpt2" and name.endswith(CONV1D):
            value = value.T
        if name.endswith("conv.conv.weight"):
            value = value.squeeze(1)
        if ".query_key_value." in name:
            value = parts_together(config, value)
        if is_gpt_oss(config) and ".experts." in name:
            add_experts(writer, name, value, mxfp4)
            continue
        if name.endswith("sinks"):
            name += ".weight"
        if name.endswith("experts.gate_up_proj"):
            block = name.split(".")[2]
            for part, half in zip(("gate", "up"), value.chunk(2, dim=1)):
                writer.add_tensor(f"blk.{block}.ffn_{part}_exps.weight",
                                  numpy.ascontiguousarray(half.numpy()))
            continue
        if name.endswith("experts.down_proj"):
            name += ".weight"
        writer.add_tensor(name if name.startswith("blk.") else
                          names.get_name(name, try_suffixes=(".weight", ".bias")),
                          numpy.ascontiguousarray(value.numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    here = pathlib.Path(__file__).resolve().parents[1]
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
        # A copy: this also rounds the frequencies of RoPE, which a loaded model does not.
        copy.deepcopy(model).to(torch.bfloat16).save_pretrained(
            directory, save_original_format=not options.get("stacked"))
        if "old" in options:
            write_old_spelling(directory, options["old"])
            if nemotron_models.is_nemotron(model.config):
                nemotron_models.write_names_of_hub(directory)
        loaded = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32,
                                                      **eager(model.config)).eval()
        limit_experts(loaded)
        latent_models.finish(loaded)
        nemotron_models.finish(loaded)
        assert torch.equal(logits_of(loaded, ids), logits), "the files say something else"
        if "renamed" in options:  # which transformers does not know
            rename_type(directory, options["renamed"])
        if options.get("mxfp4"):  # the tensors that follow are checked there
            write_experts_as_blocks(directory)
        save_file({"logits": logits.contiguous()}, directory / "golden.safetensors")
        (directory / "golden.json").write_text(json.dumps({"ids": ids, "greedy": behind}) + "\n")
        if options.get("gguf"):
            name = "model.gguf" if options["gguf"] is True else options["gguf"]
            write_gguf(model, directory / name, options.get("mxfp4", False),
                       options.get("joined", False))


if __name__ == "__main__":
    main()
