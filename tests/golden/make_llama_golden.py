#!/usr/bin/env python3
"""Makes tests/golden/llama_*: tiny random Llama models with logits from Hugging Face transformers.

Needs torch, transformers, safetensors. Writes beside itself; run it again only to change the cases.
Weights are stored as bf16 (small files); the logits are those of the same numbers in f32.
"""
import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

CASES = {
    # Wavelengths fall on both sides of the two bounds 32/4 and 32/1, and between them.
    "llama_scaled_biased": dict(
        hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=20, attention_bias=True, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="llama3", rope_theta=10000.0, factor=4.0,
                             low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=32),
    ),
    "llama_linear_tied": dict(
        hidden_size=36, intermediate_size=50, num_hidden_layers=2, num_attention_heads=6,
        num_key_value_heads=1, mlp_bias=True, tie_word_embeddings=True, head_dim=6,
        rope_parameters=dict(rope_type="linear", rope_theta=5000.0, factor=2.5),
    ),
}
N_TOKENS = 56


def main():
    torch.manual_seed(7)
    here = pathlib.Path(__file__).resolve().parent
    for name, options in CASES.items():
        config = LlamaConfig(vocab_size=97, max_position_embeddings=128, rms_norm_eps=1e-5,
                             bos_token_id=1, eos_token_id=2, **options)
        model = LlamaForCausalLM(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 2:
                    parameter.normal_(0, parameter.shape[1] ** -0.5)
                elif parameter.shape[0] == config.hidden_size:
                    parameter.normal_(1, 0.1)
                else:
                    parameter.normal_(0, 0.3)
                parameter.copy_(parameter.bfloat16().float())
        ids = torch.randint(0, config.vocab_size, (1, N_TOKENS))
        with torch.no_grad():
            logits = model.eval()(ids).logits[0]
        directory = here / name
        # Only now: this rounds the frequencies of RoPE too, which a loaded model does not.
        model.to(torch.bfloat16).save_pretrained(directory)
        save_file({"logits": logits.contiguous()}, directory / "golden.safetensors")
        (directory / "golden.json").write_text(json.dumps({"ids": ids[0].tolist()}) + "\n")


if __name__ == "__main__":
    main()
