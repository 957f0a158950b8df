#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes quantise.json in the folder above: the results of other programs for floats and for models.

"blocks": floats, and the bytes to which the package gguf quantises them, hexadecimal,
little-endian. "super_blocks": floats by kind, and the sum of squared errors of llama.cpp's blocks
for them. "target": the same sums for the shipped target's matrices. "models": tensors of made-up
models, and the type that llama-quantize --dry-run plans for each, by file type. Needs gguf, numpy,
llama-quantize and libggml-base.
"""

import ctypes
import importlib.metadata
import json
import pathlib
import re
import subprocess
import tempfile

import gguf
import numpy as np

TYPES = ("Q8_0", "Q4_0", "Q5_0", "Q5_1")
SUPER_TYPES = ("Q4_K", "Q5_K", "Q6_K")
TARGET = pathlib.Path(__file__).resolve().parents[3] / "models/target/model.safetensors"
FILE_TYPES = ("Q8_0", "Q6_K", "Q4_K_M", "Q4_0")


def blocks(generator):
    """Blocks of 32 floats, row by row."""
    rows = [generator.normal(0, scale, 32) for scale in (1, 0.02, 300, 1e-6, 3e-8, 1e-30)]
    rows += [generator.standard_t(2, 32) for _ in range(8)]
    rows.append(np.zeros(32))
    rows.append(np.full(32, 0.75))
    rows.append(np.full(32, -3))
    rows.append(np.arange(-16, 16) / 2)  # ties of codes
    rows.append(np.arange(-127, 128, 8))
    rows.append(np.append(np.arange(31) + 0.5, 127))  # halves in q8_0
    rows.append(-rows[-1])
    rows.append(np.tile([1.0, -1.0], 16))  # the first of two extremes decides
    rows.append(np.tile([-1.0, 1.0], 16))
    rows.append(np.append(np.zeros(31), 65504))
    rows.append(np.append(generator.normal(0, 1e-3, 31), 40))
    return np.array(rows, dtype=np.float32)


def block_cases():
    values = blocks(np.random.default_rng(7))
    cases = {"f32": values.astype("<f4").tobytes().hex()}
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        with np.errstate(all="ignore"):
            cases[name.lower()] = gguf.quants.quantize(values, kind).tobytes().hex()
    return cases


def ggml_error(library, values, kind):
    """The sum of squared errors of llama.cpp's own rounding (no importance matrix)."""
    n_elements, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    out = np.zeros(values.size // n_elements * n_bytes, dtype=np.uint8)
    values = np.ascontiguousarray(values, dtype=np.float32)
    library.ggml_quantize_chunk(int(kind), values.ctypes.data, out.ctypes.data, 0, values.shape[0],
                                values.shape[1], None)
    apart = gguf.quants.dequantize(out, kind).reshape(values.shape) - values.astype(np.float64)
    return float((apart ** 2).sum())


def super_blocks(generator):
    """Two blocks of 256 of each kind."""
    normal = generator.normal(0, 0.02, (2, 256))
    steps = 2.0 ** -np.repeat(np.arange(8), 32)
    return {
        "normal": normal,
        "heavy tails": generator.standard_t(3, (2, 256)) * 0.01,
        "positive": np.abs(normal) + 0.01,
        "negative": -np.abs(normal) - 0.01,
        "groups of many sizes": normal * steps,
        "one outlier": np.where(np.arange(256) == 77, 1.0, normal),
        "mostly zeros": normal * (generator.random((2, 256)) < 0.1),
        "large": normal * 1e6,
        "scales near f16's end": normal * 1e-3,
    }


def super_block_cases(library):
    cases = {}
    for name, values in super_blocks(np.random.default_rng(8)).items():
        values = values.astype("<f4")
        cases[name] = {"f32": values.tobytes().hex()}
        for kind in SUPER_TYPES:
            cases[name][kind.lower()] = ggml_error(library, values,
                                                   gguf.GGMLQuantizationType[kind])
    return cases


def target_cases(library):
    data = TARGET.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    cases = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name == "__metadata__" or len(entry["shape"]) < 2:
            continue
        first, end = entry["data_offsets"]
        bits = np.frombuffer(data[begin + first:begin + end], dtype="<u2").astype(np.uint32) << 16
        values = bits.view(np.float32).reshape(entry["shape"])
        cases[name] = {kind.lower(): ggml_error(library, values, gguf.GGMLQuantizationType[kind])
                       for kind in SUPER_TYPES}
    return cases


def layer(i, width, attention, feed_forward):
    """Names and shapes (outermost first)."""
    return [(f"blk.{i}.{name}.weight", [2, width]) for name in (*attention, *feed_forward)]


SPLIT = ("attn_q", "attn_k", "attn_v", "attn_output")
FUSED = ("attn_qkv", "attn_output")
GATED = ("ffn_gate", "ffn_up", "ffn_down")
PLAIN = ("ffn_up", "ffn_down")
# For many layers, only the matrices whose type depends on the layer.
FEW = {"attention": ("attn_v",), "feed_forward": ("ffn_down",)}
# Matrices that stay unquantised, some by their names only.
KEPT = [("position_embd.weight", [4, 256]), ("blk.0.attn_norm.weight", [256]),
        ("blk.0.attn_q_norm.weight", [2, 256]), ("blk.0.attn_q.bias", [2, 256]),
        ("blk.0.column.weight", [1, 256]), ("blk.0.ssm_conv1d.weight", [2, 256]),
        ("blk.0.time_mix_w1.weight", [2, 256]), ("blk.0.attn_rel_b.weight", [2, 256])]


def model(architecture, n_layers, width=256, attention=SPLIT, feed_forward=GATED, tied=False,
          more=(), keys=None):
    tensors = [("token_embd.weight", [4, width]), ("output_norm.weight", [width])]
    if not tied:
        tensors.append(("output.weight", [4, width]))
    # Not in the order of the layers, because they are ordered by layer number.
    for i in reversed(range(n_layers)):
        tensors += layer(i, width, attention, feed_forward)
    tensors += more
    return {
        "keys": {f"{architecture}.block_count": n_layers,
                 f"{architecture}.context_length": 128,
                 f"{architecture}.embedding_length": width,
                 f"{architecture}.feed_forward_length": width,
                 f"{architecture}.attention.head_count": 4,
                 f"{architecture}.attention.head_count_kv": 2,
                 **(keys or {})},
        "architecture": architecture,
        "tensors": tensors,
    }


MODELS = {
    "llama of 9 layers": model("llama", 9, more=KEPT),
    "llama of 32 layers": model("llama", 32, **FEW),
    "llama of 80 layers, shared values": model("llama", 80, **FEW),
    "llama of 80 layers, a value a head":
        model("llama", 80, **FEW, keys={"llama.attention.head_count_kv": 4}),
    "qwen2 of 80 layers": model("qwen2", 80, **FEW),
    "tied llama": model("llama", 4, tied=True),
    "rows of 288": model("llama", 9, width=288),
    "rows of 288, tied": model("llama", 2, width=288, tied=True),
    "rows of 288, 80 layers": model("llama", 80, width=288, **FEW),
    "gpt2": model("gpt2", 12, attention=FUSED, feed_forward=PLAIN, more=KEPT[:1]),
    "eight experts": model("llama", 8, attention=SPLIT, feed_forward=("ffn_gate_inp",), more=[
        (f"blk.{i}.{name}_exps.weight", [2, 2, 256]) for i in range(8) for name in GATED],
        keys={"llama.expert_count": 8, "llama.expert_used_count": 2}),
    "sixteen experts": model("llama", 8, attention=SPLIT, feed_forward=("ffn_gate_inp",), more=[
        (f"blk.{i}.{name}_exps.weight", [2, 2, 256]) for i in range(8) for name in GATED],
        keys={"llama.expert_count": 16, "llama.expert_used_count": 2}),
    "falcon": model("falcon", 32, attention=FUSED, feed_forward=PLAIN),
}
EPSILONS = {"gpt2": "attention.layer_norm_epsilon", "falcon": "attention.layer_norm_epsilon"}


def write(path, case):
    architecture = case["architecture"]
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in case["keys"].items():
        writer.add_uint32(key, value)
    epsilon = EPSILONS.get(architecture, "attention.layer_norm_rms_epsilon")
    writer.add_float32(f"{architecture}.{epsilon}", 1e-5)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b", "c", "d"])
    for name, shape in case["tensors"]:
        writer.add_tensor(name, np.ones(shape, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def planned_types(path, case, file_type):
    run = subprocess.run(["llama-quantize", "--dry-run", path, file_type], check=True, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    types = {}
    for line in run.stdout.splitlines():
        found = re.search(r"\] +(\S+) +- \[.*\], type = +(\S+),(.*)", line)
        if found:
            name, stored, rest = found.groups()
            now = re.search(r"-> .*?\((\S+)\)", rest)
            types[name] = now.group(1).lower() if now else stored.lower()
    missing = [name for name, _ in case["tensors"] if name not in types]
    assert not missing, (missing[:3], run.stdout)
    return [types[name] for name, _ in case["tensors"]]


def model_cases():
    cases = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, case in MODELS.items():
            path = str(pathlib.Path(folder) / "model.gguf")
            write(path, case)
            cases[name] = {**case, "types": {kind.lower(): planned_types(path, case, kind)
                                             for kind in FILE_TYPES}}
    return cases


def main():
    made_with = {"gguf": importlib.metadata.version("gguf"), "llama.cpp": "0.7.0",
                 "ggml": "0.27.0"}
    library = ctypes.CDLL("libggml-base.so.0")
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
                                            *[ctypes.c_int64] * 3, ctypes.c_void_p]
    parts = [f'"made_with": {json.dumps(made_with)}', f'"blocks": {json.dumps(block_cases())}']
    for name, cases in {"super_blocks": super_block_cases(library),
                        "target": target_cases(library)}.items():
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(case)}" for key, case in cases.items())
        parts.append(f'"{name}": {{\n{lines}}}')
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(case)}"
                       for name, case in model_cases().items())
    parts.append(f'"models": {{\n{lines}}}')
    path = pathlib.Path(__file__).resolve().parents[1] / "quantise.json"
    path.write_text("{" + ",\n".join(parts) + "}\n")


if __name__ == "__main__":
    main()
