#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF model of random weights in Q8_0, to measure what passes cost: docs/moe.md.

    make_shape.py hybrid|dense|moe OUT.gguf [--layers N]

hybrid  Qwen3.5's layers, three of four a gated DeltaNet; 24 layers of width 2048 (1.6 GB)
dense   Qwen3's, all of them attention, otherwise of the same widths (1.4 GB)
moe     Qwen3-MoE's: 20 layers of width 1024, 4 of 32 experts a token (1.2 GB)

What such a model says is noise. Needs numpy and gguf."""
import argparse

import gguf
import numpy

VOCABULARY = 32000
Q8_0 = gguf.GGMLQuantizationType.Q8_0
SHAPES = {  # architecture, layers, width, heads, key-value heads, width of a head, width of the MLP
    "hybrid": ("qwen35", 24, 2048, 8, 2, 256, 6144),
    "dense": ("qwen3", 24, 2048, 8, 2, 256, 6144),
    "moe": ("qwen3moe", 20, 1024, 16, 4, 64, 512),
}
N_EXPERTS, N_USED = 32, 4
# For a DeltaNet: the number of key heads and of value heads, and the width of each.
N_KEYS, N_VALUES, HEAD = 16, 16, 128


def add_vocabulary(writer):
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    types = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256
    while len(tokens) < VOCABULARY:
        tokens.append(f"\u2581t{len(tokens)}")
        types.append(gguf.TokenType.NORMAL)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * VOCABULARY)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_vocab_size(VOCABULARY)


class Shape:
    def __init__(self, kind, path, n_layers):
        (architecture, published, self.dim, self.heads, self.kv_heads, self.head_dim,
         self.hidden) = SHAPES[kind]
        self.kind = kind
        self.n_layers = n_layers or published
        self.random = numpy.random.default_rng(1)
        self.writer = gguf.GGUFWriter(path, architecture)

    def matrix(self, name, *shape):
        """Blocks of 32 random codes, all with one scale: a standard deviation of 0.03."""
        n = int(numpy.prod(shape)) // 32
        codes = numpy.rint(self.random.standard_normal((n, 32), dtype=numpy.float32) * 40)
        blocks = numpy.empty((n, 34), numpy.uint8)
        blocks[:, 2:] = numpy.clip(codes, -127, 127).astype(numpy.int8).view(numpy.uint8)
        scale = numpy.full(n, 0.03 / 40, numpy.float16)
        blocks[:, :2] = scale.view(numpy.uint8).reshape(n, 2)
        self.writer.add_tensor(name, blocks.reshape(*shape[:-1], -1), raw_dtype=Q8_0)

    def floats(self, name, values):
        self.writer.add_tensor(name, numpy.ascontiguousarray(values, dtype=numpy.float32))

    def is_recurrent(self, layer):
        return self.kind == "hybrid" and (layer + 1) % 4 != 0

    def add_keys(self):
        writer = self.writer
        writer.add_context_length(4096)
        writer.add_block_count(self.n_layers)
        writer.add_embedding_length(self.dim)
        writer.add_feed_forward_length(self.hidden)
        writer.add_head_count(self.heads)
        writer.add_head_count_kv(self.kv_heads)
        writer.add_key_length(self.head_dim)
        writer.add_value_length(self.head_dim)
        writer.add_rope_freq_base(1e6)
        writer.add_layer_norm_rms_eps(1e-6)
        if self.kind == "moe":
            writer.add_expert_feed_forward_length(self.hidden)
            writer.add_expert_count(N_EXPERTS)
            writer.add_expert_used_count(N_USED)
        if self.kind == "hybrid":
            writer.add_ssm_conv_kernel(4)
            writer.add_ssm_state_size(HEAD)
            writer.add_ssm_group_count(N_KEYS)
            writer.add_ssm_time_step_rank(N_VALUES)
            writer.add_ssm_inner_size(N_VALUES * HEAD)
            writer.add_recurrent_layers([self.is_recurrent(i) for i in range(self.n_layers)])
            writer.add_full_attention_interval(4)
            writer.add_rope_dimension_count(64)
            writer.add_rope_dimension_sections([11, 11, 10, 0])
        add_vocabulary(writer)

    def add_delta_net(self, at):
        width = (2 * N_KEYS + N_VALUES) * HEAD
        normal = self.random.standard_normal
        self.matrix(at + "attn_qkv.weight", width, self.dim)
        self.matrix(at + "attn_gate.weight", N_VALUES * HEAD, self.dim)
        self.matrix(at + "ssm_beta.weight", N_VALUES, self.dim)
        self.matrix(at + "ssm_alpha.weight", N_VALUES, self.dim)
        self.floats(at + "ssm_conv1d.weight", normal((width, 4)) * 0.3)
        self.floats(at + "ssm_dt.bias", normal(N_VALUES) * 0.5 - 1)
        self.floats(at + "ssm_a", -numpy.exp(normal(N_VALUES) * 0.5 - 1.5))
        self.floats(at + "ssm_norm.weight", numpy.ones(HEAD))
        self.matrix(at + "ssm_out.weight", self.dim, N_VALUES * HEAD)

    def add_attention(self, at):
        queries = self.heads * self.head_dim
        keys = self.kv_heads * self.head_dim
        gated = 2 if self.kind == "hybrid" else 1
        self.floats(at + "attn_q_norm.weight", numpy.ones(self.head_dim))
        self.floats(at + "attn_k_norm.weight", numpy.ones(self.head_dim))
        self.matrix(at + "attn_q.weight", gated * queries, self.dim)
        self.matrix(at + "attn_k.weight", keys, self.dim)
        self.matrix(at + "attn_v.weight", keys, self.dim)
        self.matrix(at + "attn_output.weight", self.dim, queries)

    def add_layer(self, layer):
        at = f"blk.{layer}."
        self.floats(at + "attn_norm.weight", numpy.ones(self.dim))
        if self.is_recurrent(layer):
            self.add_delta_net(at)
        else:
            self.add_attention(at)
        norm = "post_attention_norm" if self.kind == "hybrid" else "ffn_norm"
        self.floats(f"{at}{norm}.weight", numpy.ones(self.dim))
        experts, stack = ("_exps", (N_EXPERTS,)) if self.kind == "moe" else ("", ())
        if stack:
            router = self.random.standard_normal((N_EXPERTS, self.dim)) * 0.1
            self.floats(at + "ffn_gate_inp.weight", router)
        self.matrix(f"{at}ffn_gate{experts}.weight", *stack, self.hidden, self.dim)
        self.matrix(f"{at}ffn_up{experts}.weight", *stack, self.hidden, self.dim)
        self.matrix(f"{at}ffn_down{experts}.weight", *stack, self.dim, self.hidden)

    def write(self):
        self.add_keys()
        self.matrix("token_embd.weight", VOCABULARY, self.dim)
        for layer in range(self.n_layers):
            self.add_layer(layer)
        self.floats("output_norm.weight", numpy.ones(self.dim))
        self.matrix("output.weight", VOCABULARY, self.dim)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=SHAPES)
    parser.add_argument("out")
    parser.add_argument("--layers", type=int, default=0)
    options = parser.parse_args()
    Shape(options.kind, options.out, options.layers).write()


if __name__ == "__main__":
    main()
