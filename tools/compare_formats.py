# SPDX-License-Identifier: Apache-2.0
"""Each block format of GGUF compared with its own values in f32. A model of f32 or f16, quantised
by llama.cpp to one type throughout, has the perplexity of the same file with every matrix
dequantised. Exits with 1 if the two differ by 0.5 % or a matrix has another type. Needs the package
gguf.

    python3 tools/compare_formats.py model.gguf TEXT --tokens 32768 --quantize llama-quantize

The weights of both runs are the same numbers; as stored, activations are int8 and keys bf16.
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys

import gguf
import numpy

TYPES = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL",
         "IQ4_XS", "MXFP4")
# The names in llama-quantize that differ.
NAMES = {"Q2_K": "Q2_K", "Q3_K": "Q3_K_S", "Q4_K": "Q4_K_S", "Q5_K": "Q5_K_S"}
BOUND = 0.005


def write(path, source, tensors):
    """A file with source's fields and these (name, values or blocks, type)."""
    fields = source.fields
    writer = gguf.GGUFWriter(path, fields["general.architecture"].contents())
    for name, field in fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        kind = field.types[0]
        if kind == gguf.GGUFValueType.ARRAY:
            writer.add_key_value(name, field.contents(), kind, field.types[-1])
        else:
            writer.add_key_value(name, field.contents(), kind)
    for name, values, kind in tensors:
        writer.add_tensor(name, values, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def is_matrix(tensor):
    return len(tensor.shape) > 1


def dequantise(quantised, path):
    f32 = gguf.GGMLQuantizationType.F32
    file = gguf.GGUFReader(quantised)
    write(path, file, [(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type)
                        .astype(numpy.float32), f32) for tensor in file.tensors])


def quantise_by_package(model, name, path):
    """For types that llama-quantize uses for experts only."""
    kind = gguf.GGMLQuantizationType[name]
    file = gguf.GGUFReader(model)
    tensors = []
    for tensor in file.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
        matrix = is_matrix(tensor)
        tensors.append((tensor.name, gguf.quants.quantize(values, kind) if matrix else values,
                        kind if matrix else gguf.GGMLQuantizationType.F32))
    write(path, file, tensors)


def perplexity(arguments, model, *flags):
    run = subprocess.run(
        [arguments.program, "eval", "--perplexity", "--model", model, "--text", arguments.text,
         "--window", "512", "--tokens", str(arguments.tokens), "--json", *flags],
        check=True, stdout=subprocess.PIPE)
    return json.loads(run.stdout)["perplexity"]


parser = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model")
parser.add_argument("text")
parser.add_argument("--tokens", type=int, default=32768)
parser.add_argument("--program", default="build/outrider")
parser.add_argument("--quantize", default="llama-quantize", help="the program, words and all")
parser.add_argument("--types", nargs="+", default=TYPES)
parser.add_argument("--folder", required=True, help="for the files that are made")
arguments = parser.parse_args()

failed = False
for name in arguments.types:
    quantised = str(pathlib.Path(arguments.folder) / f"{name}.gguf")
    twin = str(pathlib.Path(arguments.folder) / f"{name}-f32.gguf")
    if name == "MXFP4":
        quantise_by_package(arguments.model, name, quantised)
    else:
        subprocess.run([*shlex.split(arguments.quantize), "--pure", arguments.model, quantised,
                        NAMES.get(name, name)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    kinds = {tensor.tensor_type.name for tensor in gguf.GGUFReader(quantised).tensors
             if is_matrix(tensor)}
    dequantise(quantised, twin)
    stored = perplexity(arguments, quantised)
    exact = perplexity(arguments, twin, "--weights", "f32")
    apart = stored / exact - 1
    failed |= kinds != {name} or abs(apart) > BOUND
    print(f"{name}: matrices of {', '.join(sorted(kinds))}; perplexity {stored:.4f} as stored, "
          f"{exact:.4f} dequantised ({apart:+.3%})", flush=True)
    for path in (quantised, twin):
        pathlib.Path(path).unlink()
sys.exit(failed)
