#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/quantised_*: tiny random Llamas in the layouts in which quantised models are
published, each with the logits of its dequantised twin from Hugging Face transformers.

Needs torch, transformers, safetensors, numpy. Writes into the folder above (the cases named, or all). The
layouts are written out here by hand, from their programs' documentation; quantisation.h says what
each is. (compressed-tensors 0.20.0 unpacks packed and packed_column to the same numbers.) Scales
are f16 or bf16, as published. A folder's golden.safetensors holds

    ids      (n) int64, the prompt
    logits   (n, vocabulary) f32, of the weights scale * (code - zero) in f32
"""
import json
import pathlib
import shutil
import sys

import numpy
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

VOCABULARY = 61
N_IDS = 48
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]

CASES = {
    # AutoGPTQ's: symmetric, a group of 128, stored zeros less by one.
    "gptq": dict(width=128, method="gptq", group=128, symmetric=True),
    # Inputs in the order of their importance, and zeros stored unchanged.
    "gptq_ordered": dict(width=64, method="gptq", group=32, ordered=True, version=2),
    "gptq_column": dict(width=64, method="gptq", group=-1),
    "awq": dict(width=64, method="awq", group=32),
    "awq_column": dict(width=64, method="awq", group=-1),
    # compressed-tensors W4A16.
    "packed": dict(width=64, method="packed", group=32),
    "packed_column": dict(width=64, method="packed", group=-1, symmetric=True),
    # compressed-tensors W8A8, and FP8 with one scale a matrix.
    "int8": dict(width=96, method="int8"),
    "fp8": dict(width=96, method="fp8"),
    # As DeepSeek-V3's; blocks that do not divide the matrices.
    "fp8_blocks": dict(width=96, method="fp8_blocks", block=64),
    # As Ministral 3's: one scale per matrix, and one for its inputs.
    "fp8_static": dict(width=32, method="fp8_blocks", block=None),
    # compressed-tensors FP8 in blocks, with a scale for inputs.
    "fp8_static_blocks": dict(width=48, method="fp8", block=32),
}


def pack(codes, axis):
    """Eight codes of four bits in an int32 along an axis, the first in the lowest bits."""
    codes = numpy.moveaxis(codes.astype(numpy.uint32), axis, -1)
    codes = codes.reshape(*codes.shape[:-1], -1, 8)
    words = numpy.zeros(codes.shape[:-1], numpy.uint32)
    for place in range(8):
        words |= codes[..., place] << numpy.uint32(4 * place)
    return torch.from_numpy(numpy.moveaxis(words, -1, axis).astype(numpy.int32).copy())


def awq_order(codes):
    """For each eight columns, which one is stored at each place."""
    return codes.reshape(*codes.shape[:-1], -1, 8)[..., AWQ_ORDER].reshape(codes.shape)


def four_bits(case, name, weight, generator):
    """The stored tensors of a matrix (rows, k), and its twin."""
    rows, k = weight.shape
    group = case["group"] if case["group"] > 0 else k
    groups = numpy.arange(k) // group
    if case.get("ordered"):
        generator.shuffle(groups)
    n_groups = k // group
    scales = numpy.zeros((rows, n_groups), numpy.float32)
    zeros = numpy.full((rows, n_groups), 8)
    # Groups without a negative weight have a zero of 0.
    weight[::5] = abs(weight[::5])
    for g in range(n_groups):
        part = weight[:, groups == g]
        if case.get("symmetric"):
            scales[:, g] = abs(part).max(1) / 7
        else:
            scales[:, g] = (part.max(1) - part.min(1)) / 15
            zeros[:, g] = numpy.clip(numpy.rint(-part.min(1) / scales[:, g]), 0, 15)
    kind = torch.bfloat16 if case["method"] == "packed" else torch.float16
    stored_scales = torch.from_numpy(scales).to(kind)
    scales = stored_scales.float().numpy()
    codes = numpy.clip(numpy.rint(weight / scales[:, groups]) + zeros[:, groups], 0, 15).astype(int)
    twin = scales[:, groups] * (codes - zeros[:, groups]).astype(numpy.float32)
    if case["method"] == "gptq":
        # The first version subtracts one from each code, as one subtraction per word: zeros of 0
        # borrow.
        less = 0 if case.get("version") == 2 else 0x11111111
        stored = {"qweight": pack(codes.T, 0), "qzeros": pack(zeros.T, 1) - less,
                  "scales": stored_scales.T.contiguous(),
                  "g_idx": torch.from_numpy(groups.astype(numpy.int32))}
    elif case["method"] == "awq":
        stored = {"qweight": pack(awq_order(codes.T), 1), "qzeros": pack(awq_order(zeros.T), 1),
                  "scales": stored_scales.T.contiguous()}
    else:
        stored = {"weight_packed": pack(codes, 1), "weight_scale": stored_scales,
                  "weight_shape": torch.tensor([rows, k])}
        if not case.get("symmetric"):
            stored["weight_zero_point"] = pack(zeros, 0)
    return {f"{name}.{part}": tensor for part, tensor in stored.items()}, twin


def eight_bits(case, name, weight):
    rows, k = weight.shape
    weight = torch.from_numpy(weight)
    if case["method"] == "int8":
        scale = (weight.abs().amax(1, keepdim=True) / 127).to(torch.bfloat16)
        codes = torch.clamp(torch.round(weight / scale.float()), -127, 127).to(torch.int8)
        return ({f"{name}.weight": codes, f"{name}.weight_scale": scale},
                (codes.float() * scale.float()).numpy())
    if case["method"] == "fp8" and "block" not in case:
        scale = (weight.abs().max() / 448).float().reshape(1)
        codes = (weight / scale).to(torch.float8_e4m3fn)
        return ({f"{name}.weight": codes, f"{name}.weight_scale": scale},
                (codes.float() * scale).numpy())
    block = case["block"]
    if block is None:
        scale = weight.abs().max() / 448
        codes = (weight / scale).to(torch.float8_e4m3fn)
        return ({f"{name}.weight": codes, f"{name}.weight_scale_inv": scale,
                 f"{name}.activation_scale": torch.tensor(0.02)},
                (codes.float() * scale).numpy())
    n = [-(-size // block) for size in (rows, k)]
    scale = torch.zeros(n)
    for i in range(n[0]):
        for j in range(n[1]):
            part = weight[i * block:(i + 1) * block, j * block:(j + 1) * block]
            scale[i, j] = part.abs().max() / 448
    whole = scale.repeat_interleave(block, 0)[:rows].repeat_interleave(block, 1)[:, :k]
    codes = (weight / whole).to(torch.float8_e4m3fn)
    stored = {f"{name}.weight": codes}
    if case["method"] == "fp8":
        stored |= {f"{name}.weight_scale": scale, f"{name}.input_scale": torch.tensor([0.02])}
    else:
        stored[f"{name}.weight_scale_inv"] = scale
    return stored, (codes.float() * whole).numpy()


def quantization_config(case):
    method = case["method"]
    if method == "gptq":
        return dict(quant_method="gptq", bits=4, group_size=case["group"], damp_percent=0.1,
                    desc_act=case.get("ordered", False), sym=case.get("symmetric", False),
                    checkpoint_format="gptq_v2" if case.get("version") == 2 else "gptq")
    if method == "awq":
        return dict(quant_method="awq", bits=4, group_size=case["group"], zero_point=True,
                    version="gemm", modules_to_not_convert=None)
    if method == "fp8_blocks" and case["block"] is None:
        return dict(quant_method="fp8", activation_scheme="static", weight_block_size=None,
                    dequantize=False, modules_to_not_convert=["lm_head"])
    if method == "fp8_blocks":
        return dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic",
                    weight_block_size=[case["block"]] * 2)
    inputs = None
    weights = dict(num_bits=8, type="int", symmetric=True, strategy="channel", group_size=None)
    if method == "packed":
        weights.update(num_bits=4, symmetric=case.get("symmetric", False))
        if case["group"] > 0:
            weights.update(strategy="group", group_size=case["group"])
    elif method == "fp8":
        weights.update(type="float", strategy="tensor")
        if "block" in case:
            weights.update(strategy="block", block_structure=[case["block"]] * 2)
            inputs = dict(num_bits=8, type="float", symmetric=True, strategy="tensor",
                          dynamic=False)
    names = {"packed": "pack-quantized", "int8": "int-quantized", "fp8": "float-quantized"}
    return dict(quant_method="compressed-tensors", format=names[method], ignore=["lm_head"],
                config_groups={"group_0": {"targets": ["Linear"], "weights": weights,
                                           "input_activations": inputs}})


def main():
    here = pathlib.Path(__file__).resolve().parents[1]
    for number, (name, case) in enumerate(CASES.items()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        width = case["width"]
        config = AutoConfig.for_model(
            "llama", vocab_size=VOCABULARY, hidden_size=width, intermediate_size=width,
            num_hidden_layers=1, num_attention_heads=width // 16, num_key_value_heads=width // 32,
            head_dim=16, max_position_embeddings=128, tie_word_embeddings=True, bos_token_id=1,
            eos_token_id=2)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager",
                                                 dtype=torch.float32).eval()
        torch.manual_seed(number)
        generator = numpy.random.default_rng(number)
        stored = {}
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                if parameter.dim() == 1:
                    parameter.normal_(1 if "layernorm" in key else 3, 0.3)
                else:
                    parameter.normal_(0, parameter.shape[1] ** -0.5)
                if "_proj." in key:
                    module = key.removesuffix(".weight")
                    values = parameter.numpy().copy()
                    tensors, twin = (eight_bits(case, module, values)
                                     if case["method"] in ("int8", "fp8", "fp8_blocks")
                                     else four_bits(case, module, values, generator))
                    stored.update(tensors)
                    parameter.copy_(torch.from_numpy(twin))
                else:
                    stored[key] = parameter.to(torch.bfloat16)
                    parameter.copy_(stored[key].float())
        ids = torch.from_numpy(generator.integers(3, VOCABULARY, N_IDS))
        with torch.no_grad():
            logits = model(ids[None], use_cache=False).logits[0]
        directory = here / f"quantised_{name}"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        save_file({key: tensor.contiguous() for key, tensor in stored.items()},
                  directory / "model.safetensors", metadata={"format": "pt"})
        save_file({"ids": ids, "logits": logits.contiguous()}, directory / "golden.safetensors")
        text = json.loads(config.to_json_string(use_diff=False))
        keep = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "head_dim",
                "num_attention_heads", "num_key_value_heads", "max_position_embeddings",
                "rms_norm_eps", "tie_word_embeddings", "bos_token_id", "eos_token_id", "hidden_act")
        written = dict(architectures=["LlamaForCausalLM"], model_type="llama", torch_dtype="float16",
                       rope_theta=10000.0, quantization_config=quantization_config(case),
                       **{key: text[key] for key in keep})
        (directory / "config.json").write_text(json.dumps(written, indent=1) + "\n")
        print(name, float(logits.abs().max()))


if __name__ == "__main__":
    main()
