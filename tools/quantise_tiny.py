# SPDX-License-Identifier: Apache-2.0
"""A tiny random Llama quantised by the programs that publish quantised models, on a CPU. Beside
each form is its twin: the same numbers dequantised by that program's own code, in f32.

    python3 tools/quantise_tiny.py llmcompressor OUT [FORM ...]
    outrider generate --model OUT/fp8 --weights f32 --prompt "Once upon a time" --ignore-eos \\
        --max-tokens 32 --logits logits.f32 --json > run.json
    python3 tools/compare_with_transformers.py OUT/fp8_twin "Once upon a time" run.json logits.f32

Needs torch, transformers and llmcompressor (0.13), gptqmodel (7.1) or awq (AutoAWQ 0.2.9). The
forms are those of FORMS. With these versions all of them load, and differ by 2e-5 at most.
"""
import argparse
import json
import os
import pathlib
import shutil

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 259
N_TEXTS, N_TOKENS = 32, 60
FORMS = {
    "llmcompressor": {
        "w4a16": "W4A16", "w4a16_zeros": "W4A16_ASYM", "w4a16_ordered": "GPTQ", "w8a8": "W8A8",
        "fp8": "FP8", "fp8_dynamic": "FP8_DYNAMIC", "fp8_block": "FP8_BLOCK"},
    "gptqmodel": {
        "gptq": dict(group_size=32), "gptq_ordered": dict(group_size=128, desc_act=True),
        "gptq_column": dict(group_size=-1, sym=False, act_group_aware=False),
        "gptq_v2": dict(group_size=32, format="gptq_v2")},
    "awq": {"awq": dict(zero_point=True, q_group_size=32, w_bit=4, version="GEMM")},
}


def make_tokenizer():
    pieces = ["<pad>", "<bos>", "<eos>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>",
                                   bos_token="<bos>", eos_token="<eos>")


def make_model():
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=256,
        bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False)
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, parameter.shape[1] ** -0.5)
            else:
                parameter.normal_(3 if name == "model.norm.weight" else 1, 0.3)
    return model.to(torch.bfloat16)


def make_texts():
    torch.manual_seed(5)
    return torch.randint(3, VOCABULARY, (N_TEXTS, N_TOKENS))


def write_plain(directory, tokenizer):
    """The unquantised model, in a directory beside that of a form, for programs that read one."""
    plain = directory.with_name("plain")
    make_model().save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    return str(plain)


def dequantised(directory, dequantise):
    """The result of dequantise(module, codes, stored) for each packed matrix; stored: all tensors."""
    stored = load_file(directory / "model.safetensors")
    modules = [name.removesuffix(".qweight") for name in stored if name.endswith(".qweight")]
    return {f"{module}.weight":
            dequantise(module, stored[f"{module}.qweight"], stored).T.contiguous()
            for module in modules}


def write_twin(directory, weights, tokenizer):
    """A plain directory of these matrices and of the unquantised tensors of the quantised model."""
    twin = directory.with_name(directory.name + "_twin")
    shutil.rmtree(twin, ignore_errors=True)
    config = json.loads((directory / "config.json").read_text())
    del config["quantization_config"]
    config["dtype"] = config["torch_dtype"] = "float32"
    twin.mkdir()
    (twin / "config.json").write_text(json.dumps(config))
    for name, value in load_file(directory / "model.safetensors").items():
        if name.endswith(".weight") and name not in weights:
            weights[name] = value
    model = LlamaForCausalLM(AutoConfig.from_pretrained(twin)).float()
    model.load_state_dict({name: value.float() for name, value in weights.items()})
    model.save_pretrained(twin)
    for place in (directory, twin):
        tokenizer.save_pretrained(place)


# --- each program ---


def by_llmcompressor(directory, scheme, tokenizer):
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import dequantize
    from llmcompressor import oneshot
    from llmcompressor.modifiers.quantization import GPTQModifier, QuantizationModifier
    from transformers import AutoModelForCausalLM
    from transformers.utils.quantization_config import CompressedTensorsConfig
    what = dict(targets="Linear", ignore=["lm_head"])
    recipe = (GPTQModifier(scheme="W4A16", actorder="group", **what) if scheme == "GPTQ" else
              QuantizationModifier(scheme=scheme, **what))
    texts = [{"input_ids": ids, "attention_mask": torch.ones_like(ids)} for ids in make_texts()]
    model = make_model()
    oneshot(model=model, recipe=recipe, processor=tokenizer, max_seq_length=N_TOKENS,
            num_calibration_samples=N_TEXTS,
            dataset=torch.utils.data.DataLoader(texts, batch_size=1))
    model.save_pretrained(directory, save_compressed=True)
    if scheme == "FP8_BLOCK":  # which transformers does not load this way
        config = json.loads((directory / "config.json").read_text())["quantization_config"]
        as_stored = QuantizationArgs(**config["config_groups"]["group_0"]["weights"])
        stored = load_file(directory / "model.safetensors")
        return {name: dequantize(stored[name].float(), stored[name + "_scale"].float(),
                                 args=as_stored)
                for name in stored if name + "_scale" in stored}
    whole = AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32,
        quantization_config=CompressedTensorsConfig(run_compressed=False))
    return {name: value for name, value in whole.state_dict().items() if name.endswith(".weight")}


def by_gptqmodel(directory, options, tokenizer):
    from gptqmodel import GPTQModel, QuantizeConfig
    from gptqmodel.nn_modules.qlinear.torch import TorchLinear
    from gptqmodel.utils.model import convert_gptq_v1_to_v2_format_module
    model = GPTQModel.load(write_plain(directory, tokenizer), QuantizeConfig(bits=4, **options), device="cpu")
    model.quantize([dict(input_ids=ids.tolist(), attention_mask=[1] * N_TOKENS)
                    for ids in make_texts()], batch_size=1)
    model.save(str(directory))

    def dequantise(module, codes, stored):
        linear = TorchLinear(
            bits=4, group_size=options["group_size"], sym=options.get("sym", True),
            desc_act=options.get("desc_act", False), in_features=8 * codes.shape[0],
            out_features=codes.shape[1])
        for part in ("qweight", "qzeros", "scales", "g_idx"):
            setattr(linear, part, stored[f"{module}.{part}"].clone())
        if options.get("format") != "gptq_v2":
            convert_gptq_v1_to_v2_format_module(linear, bits=4, pack_dtype=torch.int32)
        linear.scales = linear.scales.float()
        return linear.dequantize_weight()

    return dequantised(directory, dequantise)


def by_awq(directory, options, tokenizer):
    from awq import AutoAWQForCausalLM
    from awq.utils.packing_utils import reverse_awq_order, unpack_awq
    model = AutoAWQForCausalLM.from_pretrained(write_plain(directory, tokenizer),
                                               device_map="cpu", use_cache=False)
    # Samples longer than max_calib_seq_len are left out; the concatenation is cut into pieces of
    # that length.
    texts = ["".join(chr(33 + int(i) % 94) for i in ids) for ids in make_texts()]
    model.quantize(tokenizer, quant_config=options, calib_data=texts, max_calib_samples=N_TEXTS,
                   max_calib_seq_len=64)
    model.save_quantized(str(directory))

    def dequantise(module, codes, stored):
        codes, zeros = reverse_awq_order(*unpack_awq(codes, stored[f"{module}.qzeros"], 4), 4)
        scales, zeros = (value.repeat_interleave(options["q_group_size"], 0)
                         for value in (stored[f"{module}.scales"].float(), zeros & 15))
        return ((codes & 15) - zeros) * scales

    return dequantised(directory, dequantise)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=FORMS)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("forms", nargs="*")
    arguments = parser.parse_args()
    quantise = {"llmcompressor": by_llmcompressor, "gptqmodel": by_gptqmodel,
                "awq": by_awq}[arguments.program]
    tokenizer = make_tokenizer()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for form, options in FORMS[arguments.program].items():
        if arguments.forms and form not in arguments.forms:
            continue
        directory = arguments.folder / form
        shutil.rmtree(directory, ignore_errors=True)
        weights = quantise(directory, options, tokenizer)
        write_twin(directory, weights, tokenizer)
        print(directory)


if __name__ == "__main__":
    main()
