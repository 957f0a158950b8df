#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes block_formats.json in the folder above: random GGUF blocks and the values that the package
gguf decodes.

Every byte is random except the f16 scales, which are finite numbers of both signs, one of them
subnormal. Bytes and the bits of the floats are hexadecimal, little-endian. Needs gguf and numpy.
"""

import importlib.metadata
import json
import pathlib

import gguf
import numpy as np

BLOCKS = 3

# Offsets of the f16 numbers in a block.
F16_AT = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
}


def blocks_of(kind, generator):
    _, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    blocks = generator.integers(0, 256, (BLOCKS, n_bytes), dtype=np.uint8)
    for offset in F16_AT[kind.name]:
        scales = generator.normal(0, 0.05, BLOCKS)
        scales[-1] = 3e-6  # subnormal
        blocks[:, offset:offset + 2] = scales.astype(np.float16).reshape(-1, 1).view(np.uint8)
    if kind.name == "MXFP4":
        blocks[:, 0] = [0, 1, 121]  # exponents, two of which give subnormal halves
    return blocks


def main():
    generator = np.random.default_rng(1)
    cases = {}
    for name in F16_AT:
        kind = gguf.GGMLQuantizationType[name]
        blocks = blocks_of(kind, generator)
        values = gguf.quants.dequantize(blocks, kind).astype("<f4")
        assert np.isfinite(values).all()
        cases[name.lower()] = {"bytes": blocks.tobytes().hex(), "f32": values.tobytes().hex()}
    made_with = {"gguf": importlib.metadata.version("gguf")}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items())
    path = pathlib.Path(__file__).resolve().parents[1] / "block_formats.json"
    path.write_text(f'{{"made_with": {json.dumps(made_with)}, "types": {{\n{lines}}}}}\n')


if __name__ == "__main__":
    main()
