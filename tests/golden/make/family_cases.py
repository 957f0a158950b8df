# SPDX-License-Identifier: Apache-2.0
"""The configurations of the tiny models of make_family_models.py. Some families have files of their
own."""
import gemma4_models
import glm_models
import hybrid_models
import latent_models
import mamba_models
import nemotron_models

# `old` replaces keys of config.json by the spelling of transformers 4, which most models on the hub
# use. `n` is the prompt's length. Windows are shorter than every prompt. `stacked`: the experts of
# a layer are one tensor in the file. `mxfp4`: the file stores them as MXFP4 blocks. `renamed`: the
# model_type in the final file, if transformers uses another name for the model.
CASES = {
    # As Llama 2 and 3, in the old spelling.
    "llama_plain": dict(
        model_type="llama", hidden_size=32, intermediate_size=44, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=5e5), gguf=True,
        old=dict(rope_theta=5e5, rope_scaling=None, pretraining_tp=1)),
    # Wavelengths fall on both sides of the two bounds 32/4 and 32/1, and between them.
    "llama_scaled_biased": dict(
        model_type="llama", hidden_size=48, intermediate_size=60, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=20, attention_bias=True,
        tie_word_embeddings=False,
        rope_parameters=dict(rope_type="llama3", rope_theta=1e4, factor=4.0, low_freq_factor=1.0,
                             high_freq_factor=4.0, original_max_position_embeddings=32)),
    "llama_linear_tied": dict(
        model_type="llama", hidden_size=36, intermediate_size=50, num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=1, head_dim=6, mlp_bias=True,
        tie_word_embeddings=True,
        rope_parameters=dict(rope_type="linear", rope_theta=5e3, factor=2.5)),
    # As Qwen2.5-0.5B. A window is in the configuration but not in use.
    "qwen2_tied": dict(
        model_type="qwen2", hidden_size=30, intermediate_size=44, num_hidden_layers=2,
        num_attention_heads=5, num_key_value_heads=1, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=1e6), gguf=True,
        old=dict(rope_theta=1e6, use_sliding_window=False, sliding_window=16, max_window_layers=1)),
    "qwen2_untied": dict(
        model_type="qwen2", hidden_size=32, intermediate_size=50, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    "qwen2_linear": dict(
        model_type="qwen2", hidden_size=42, intermediate_size=36, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.5)),
    # As Qwen3-0.6B: n_heads * head_dim is more than the model's width.
    "qwen3_tied": dict(
        model_type="qwen3", hidden_size=24, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=1e6), gguf=True,
        old=dict(rope_theta=1e6, rope_scaling=None, use_sliding_window=False, sliding_window=None,
                 max_window_layers=2)),
    # Less than the model's width, and a single key-value head.
    "qwen3_untied": dict(
        model_type="qwen3", hidden_size=42, intermediate_size=38, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=1, head_dim=6, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    "qwen3_linear": dict(
        model_type="qwen3", hidden_size=36, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, head_dim=22, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="linear", rope_theta=1e6, factor=4.0)),
    # As Gemma 3 4B: five layers with a window before each one without, whose rope is scaled. GGUF
    # can express only this pattern and query_pre_attn_scalar = head_dim.
    "gemma3_scaled": dict(
        model_type="gemma3_text", hidden_size=24, intermediate_size=32, num_hidden_layers=7,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, query_pre_attn_scalar=8,
        sliding_window=16, layer_types=["sliding_attention"] * 5 + ["full_attention",
                                                                    "sliding_attention"],
        rope_parameters=dict(
            full_attention=dict(rope_type="linear", rope_theta=1e6, factor=8.0),
            sliding_attention=dict(rope_type="default", rope_theta=1e4)), gguf=True,
        old=dict(rope_theta=1e6, rope_local_base_freq=1e4, sliding_window_pattern=6,
                 rope_scaling=dict(rope_type="linear", factor=8.0))),
    # Another pattern, another scale. The prompt is so long that a page of 64 tokens falls out of
    # the window.
    "gemma3_mixed": dict(
        model_type="gemma3_text", hidden_size=32, intermediate_size=44, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=1, head_dim=10, query_pre_attn_scalar=24,
        sliding_window=20, layer_types=["full_attention", "sliding_attention", "sliding_attention",
                                        "full_attention"], n=150,
        rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=1e6),
            sliding_attention=dict(rope_type="default", rope_theta=1e4))),
    # As Gemma 3 270M: layer_types beside the old spelling of the ropes; every third layer without a
    # window.
    "gemma3_one_in_three": dict(
        model_type="gemma3_text", hidden_size=24, intermediate_size=30, num_hidden_layers=6,
        num_attention_heads=3, num_key_value_heads=3, head_dim=8, query_pre_attn_scalar=8,
        sliding_window=9, layer_types=["sliding_attention", "sliding_attention",
                                       "full_attention"] * 2,
        rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=1e6),
            sliding_attention=dict(rope_type="default", rope_theta=1e4)),
        old=dict(rope_theta=1e6, rope_local_base_freq=1e4, rope_scaling=None)),
}

CASES |= {
    # As Mistral 7B v0.1, with its window; v0.2 and later say null.
    "mistral_window": dict(
        model_type="mistral", hidden_size=32, intermediate_size=44, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False, sliding_window=20,
        rope_parameters=dict(rope_type="default", rope_theta=1e4),
        old=dict(rope_theta=1e4)),
    # As NeMo: n_heads * head_dim is not the width.
    "mistral_whole": dict(
        model_type="mistral", hidden_size=30, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=1, head_dim=8, tie_word_embeddings=True,
        sliding_window=None, rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    "mistral_yarn": dict(
        model_type="mistral", hidden_size=24, intermediate_size=36, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, head_dim=16, tie_word_embeddings=False,
        sliding_window=None,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=8.0, beta_fast=4.0,
                             beta_slow=1.0, original_max_position_embeddings=32)),
    # As Ministral 3: queries scaled by their position; the scaling starts within the prompt.
    "ministral3_scaled": dict(
        model_type="ministral3", hidden_size=32, intermediate_size=44, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="yarn", type="yarn", rope_theta=1e4, factor=8.0,
                             beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
                             original_max_position_embeddings=32, max_position_embeddings=256,
                             llama_4_scaling_beta=0.25), gguf=True),
    # An original context that is no power of two, and attention factors that do not cancel.
    "ministral3_tied": dict(
        model_type="ministral3", hidden_size=30, intermediate_size=36, num_hidden_layers=3,
        num_attention_heads=5, num_key_value_heads=1, head_dim=8, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e6, factor=4.0, beta_fast=4.0,
                             beta_slow=1.0, mscale=1.0, mscale_all_dim=0.5,
                             original_max_position_embeddings=21, llama_4_scaling_beta=0.5)),
    "ministral3_window": dict(
        model_type="ministral3", hidden_size=24, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, head_dim=8, tie_word_embeddings=False,
        sliding_window=20,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=2.5,
                             original_max_position_embeddings=48, llama_4_scaling_beta=0.4)),
    # As Qwen2.5 with the scaling that its card recommends, in the old spelling.
    "qwen2_yarn": dict(
        model_type="qwen2", hidden_size=32, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0,
                             original_max_position_embeddings=64), gguf=True,
        old=dict(rope_theta=1e4, rope_scaling=dict(
            type="yarn", factor=4.0, original_max_position_embeddings=64))),
    # As SmolLM3-3B: every fourth layer without RoPE.
    "smollm3_fourth": dict(
        model_type="smollm3", hidden_size=32, intermediate_size=40, num_hidden_layers=5,
        num_attention_heads=4, num_key_value_heads=1, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=5e4), gguf=True,
        old=dict(rope_theta=5e4, no_rope_layers=[1, 1, 1, 0, 1], no_rope_layer_interval=4)),
    "smollm3_listed": dict(
        model_type="smollm3", hidden_size=24, intermediate_size=44, num_hidden_layers=3,
        num_attention_heads=3, num_key_value_heads=3, tie_word_embeddings=False,
        no_rope_layers=[0, 1, 0], attention_bias=True,
        rope_parameters=dict(rope_type="default", rope_theta=2e6)),
    "smollm3_window": dict(
        model_type="smollm3", hidden_size=32, intermediate_size=36, num_hidden_layers=4,
        num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
        no_rope_layer_interval=2, use_sliding_window=True, sliding_window=12,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0,
                             original_max_position_embeddings=64)),
    "olmo2_plain": dict(
        model_type="olmo2", hidden_size=32, intermediate_size=44, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=4, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=5e5), gguf=True,
        old=dict(rope_theta=5e5, rope_scaling=None)),
    "olmo2_grouped": dict(
        model_type="olmo2", hidden_size=40, intermediate_size=36, num_hidden_layers=3,
        num_attention_heads=5, num_key_value_heads=1, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=5e5)),
    "olmo2_biased": dict(
        model_type="olmo2", hidden_size=24, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, tie_word_embeddings=False,
        attention_bias=True,
        rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.0)),
    # As Granite 3: all four multipliers.
    "granite_tied": dict(
        model_type="granite", hidden_size=32, intermediate_size=44, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
        embedding_multiplier=0.4, attention_multiplier=0.2, residual_multiplier=0.7,
        logits_scaling=3.0, rope_parameters=dict(rope_type="default", rope_theta=1e4), gguf=True,
        old=dict(rope_theta=1e4, rope_scaling=None)),
    "granite_untied": dict(
        model_type="granite", hidden_size=30, intermediate_size=36, num_hidden_layers=2,
        num_attention_heads=5, num_key_value_heads=1, tie_word_embeddings=False,
        embedding_multiplier=6.0, attention_multiplier=0.5, residual_multiplier=0.22,
        logits_scaling=0.5, rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    "granite_biased": dict(
        model_type="granite", hidden_size=24, intermediate_size=30, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, tie_word_embeddings=True,
        attention_bias=True, mlp_bias=True, attention_multiplier=0.3,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0,
                             original_max_position_embeddings=64)),
}

SHORT = [1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0]
LONG = [1.1, 2.0, 3.5, 6.0, 9.0, 14.0, 20.0, 30.0]

CASES |= {
    # As Phi-3-mini-4k: a window, no scaling, as many key heads as query heads.
    "phi3_window": dict(
        model_type="phi3", hidden_size=36, intermediate_size=44, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, tie_word_embeddings=False, sliding_window=20,
        original_max_position_embeddings=256,
        rope_parameters=dict(rope_type="default", rope_theta=1e4),
        old=dict(rope_theta=1e4, rope_scaling=None, full_attn_mod=1, interpolate_factor=1)),
    # As Phi-4-mini: a part of each head is rotated, by longrope; the generated text grows beyond
    # the original context.
    "phi3_crossing": dict(
        model_type="phi3", hidden_size=64, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
        sliding_window=None, original_max_position_embeddings=80,
        rope_parameters=dict(rope_type="longrope", rope_theta=1e4, partial_rotary_factor=0.75,
                             short_factor=SHORT[:6], long_factor=LONG[:6],
                             original_max_position_embeddings=80), gguf=True),
    # As Phi-3.5-mini: whole heads; a prompt beyond the original context, in the old spelling.
    "phi3_long": dict(
        model_type="phi3", hidden_size=48, intermediate_size=36, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=1, tie_word_embeddings=False,
        sliding_window=None, original_max_position_embeddings=48,
        rope_parameters=dict(rope_type="longrope", rope_theta=1e4, short_factor=SHORT,
                             long_factor=LONG, original_max_position_embeddings=48),
        old=dict(rope_theta=1e4, original_max_position_embeddings=48,
                 rope_scaling=dict(type="longrope", short_factor=SHORT, long_factor=LONG))),
}

CASES |= {
    # As GPT-2: everything by default.
    "gpt2_plain": dict(
        model_type="gpt2", n_embd=32, n_layer=3, n_head=4, gguf=True,
        old=dict(n_ctx=256, n_inner=None, task_specific_params=dict())),
    # MLPs that are not four times as wide; a number of heads that is no power of two; the exact
    # GELU.
    "gpt2_odd": dict(
        model_type="gpt2", n_embd=30, n_layer=2, n_head=5, n_inner=44, activation_function="gelu",
        layer_norm_epsilon=1e-4),
    # A context that the text nearly fills; scores scaled by layer, as in CRFM's models.
    "gpt2_short": dict(
        model_type="gpt2", n_embd=24, n_layer=3, n_head=3, n_positions=100,
        scale_attn_by_inverse_layer_idx=True, reorder_and_upcast_attn=False),
    # As Pythia.
    "gpt_neox_parallel": dict(
        model_type="gpt_neox", hidden_size=48, intermediate_size=60, num_hidden_layers=3,
        num_attention_heads=3, hidden_act="gelu", tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.25),
        gguf=True, old=dict(rotary_pct=0.25, rotary_emb_base=10000)),
    # As StableLM's first models: one branch after the other.
    "gpt_neox_sequential": dict(
        model_type="gpt_neox", hidden_size=32, intermediate_size=44, num_hidden_layers=2,
        num_attention_heads=4, hidden_act="gelu_new", tie_word_embeddings=True,
        use_parallel_residual=False,
        rope_parameters=dict(rope_type="linear", rope_theta=2e4, factor=2.0,
                             partial_rotary_factor=0.5)),
    "gpt_neox_whole": dict(
        model_type="gpt_neox", hidden_size=40, intermediate_size=36, num_hidden_layers=2,
        num_attention_heads=5, hidden_act="gelu_fast", tie_word_embeddings=False,
        attention_bias=False, layer_norm_eps=1e-4,
        rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=1.0)),
}

CASES |= {
    # As LFM2-350M, in the spelling of its first files: the training code's names beside the others.
    "lfm2_tied": dict(
        model_type="lfm2", hidden_size=24, intermediate_size=50, num_hidden_layers=5,
        num_attention_heads=3, num_key_value_heads=1, block_multiple_of=16,
        layer_types=["conv", "conv", "full_attention", "conv", "full_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=1e6), gguf=True,
        old=dict(rope_theta=1e6, full_attn_idxs=[2, 4], block_ff_dim=50, intermediate_size=96,
                 block_dim=24, conv_dim=24, conv_dim_out=24, num_heads=3, theta=1e6,
                 block_use_swiglu=True, use_pos_enc=True, block_norm_eps=1e-6,
                 block_mlp_init_scale=1.0, block_out_init_scale=1.0, block_use_xavier_init=True,
                 conv_use_xavier_init=True, tie_embedding=True)),
    # Biases, a longer window, a factor for the feed-forward width; a prompt over many pages.
    "lfm2_long": dict(
        model_type="lfm2", hidden_size=24, intermediate_size=60, num_hidden_layers=3,
        num_attention_heads=3, num_key_value_heads=1, block_multiple_of=4,
        block_ffn_dim_multiplier=0.8, conv_L_cache=5, conv_bias=True, n=610,
        max_position_embeddings=1024, tie_word_embeddings=True,
        layer_types=["conv", "full_attention", "conv"],
        rope_parameters=dict(rope_type="default", rope_theta=1e4)),
    # Convolutions over two tokens, an explicit feed-forward width, a separate output matrix.
    "lfm2_untied": dict(
        model_type="lfm2", hidden_size=40, intermediate_size=44, num_hidden_layers=4,
        num_attention_heads=5, num_key_value_heads=5, block_auto_adjust_ff_dim=False,
        conv_L_cache=2, tie_word_embeddings=False,
        layer_types=["conv", "full_attention", "conv", "conv"],
        rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.0)),
}

# Caps are small, so that they have an effect: scores are a few units, and so are uncapped logits.
CASES |= {
    # As Gemma 2 2B, whose config.json names the activation twice. GGUF can express only this order
    # of layers, this rope and query_pre_attn_scalar = head_dim.
    "gemma2_capped": dict(
        model_type="gemma2", hidden_size=24, intermediate_size=36, num_hidden_layers=5,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, query_pre_attn_scalar=8,
        sliding_window=16, attn_logit_softcapping=0.75, final_logit_softcapping=4.0,
        rope_parameters=dict(rope_type="default", rope_theta=1e4), gguf=True,
        old=dict(rope_theta=1e4, cache_implementation="hybrid", hidden_act="gelu_pytorch_tanh",
                 sliding_window_size=16)),
    # Other layers, and no cap on scores.
    "gemma2_uncapped_scores": dict(
        model_type="gemma2", hidden_size=30, intermediate_size=44, num_hidden_layers=3,
        num_attention_heads=5, num_key_value_heads=5, head_dim=6, query_pre_attn_scalar=3,
        sliding_window=20, layer_types=["full_attention", "sliding_attention",
                                        "sliding_attention"],
        attn_logit_softcapping=None, final_logit_softcapping=3.0, attention_bias=True,
        rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    # As Gemma 2 27B: the scale differs from the heads' width. The prompt is so long that a page of
    # 64 tokens falls out of the window.
    "gemma2_wide": dict(
        model_type="gemma2", hidden_size=32, intermediate_size=40, num_hidden_layers=4,
        num_attention_heads=2, num_key_value_heads=1, head_dim=40, query_pre_attn_scalar=16,
        sliding_window=20, attn_logit_softcapping=2.0, final_logit_softcapping=None, n=150,
        rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.0)),
    "gemma3_capped": dict(
        model_type="gemma3_text", hidden_size=24, intermediate_size=32, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, query_pre_attn_scalar=8,
        sliding_window=16, layer_types=["sliding_attention", "sliding_attention",
                                        "full_attention"],
        final_logit_softcapping=4.0,
        rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=1e6),
            sliding_attention=dict(rope_type="default", rope_theta=1e4))),
}

CASES |= {
    # As Mixtral 8x7B: two experts per layer, with weights normalised to a sum of 1.
    "mixtral_plain": dict(
        model_type="mixtral", hidden_size=24, intermediate_size=20, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=1, head_dim=8, tie_word_embeddings=False,
        num_local_experts=4, num_experts_per_tok=2, sliding_window=None,
        rope_parameters=dict(rope_type="default", rope_theta=1e6), gguf=True,
        old=dict(rope_theta=1e6)),
    # An odd number of experts, three of them used; a window.
    "mixtral_window": dict(
        model_type="mixtral", hidden_size=32, intermediate_size=16, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, head_dim=12, tie_word_embeddings=True,
        num_local_experts=5, num_experts_per_tok=3, sliding_window=20,
        rope_parameters=dict(rope_type="default", rope_theta=1e4)),
    # Tensors as transformers 5 holds them: the experts of a layer stacked, gate rows before up
    # rows.
    "mixtral_stacked": dict(
        model_type="mixtral", hidden_size=30, intermediate_size=18, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, head_dim=10, tie_word_embeddings=False,
        num_local_experts=3, num_experts_per_tok=1, sliding_window=None, stacked=True,
        rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.0)),
    # As Qwen3-30B-A3B, in the old spelling.
    "qwen3_moe_plain": dict(
        model_type="qwen3_moe", hidden_size=24, intermediate_size=40, moe_intermediate_size=12,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        tie_word_embeddings=False, num_experts=8, num_experts_per_tok=3, norm_topk_prob=True,
        rope_parameters=dict(rope_type="default", rope_theta=1e6), gguf=True,
        old=dict(rope_theta=1e6, rope_scaling=None, num_experts=8, use_sliding_window=False,
                 sliding_window=None, max_window_layers=2)),
    # Every second layer has experts, except a listed one; weights are not normalised.
    "qwen3_moe_mixed": dict(
        model_type="qwen3_moe", hidden_size=32, intermediate_size=28, moe_intermediate_size=14,
        num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1, head_dim=12,
        tie_word_embeddings=True, num_experts=4, num_experts_per_tok=2, norm_topk_prob=False,
        decoder_sparse_step=2, mlp_only_layers=[1],
        rope_parameters=dict(rope_type="default", rope_theta=1e4)),
    # All experts of a layer, and a tensor for all of them.
    "qwen3_moe_stacked": dict(
        model_type="qwen3_moe", hidden_size=30, intermediate_size=20, moe_intermediate_size=16,
        num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3, head_dim=10,
        tie_word_embeddings=True, num_experts=3, num_experts_per_tok=3, norm_topk_prob=False,
        attention_bias=True, stacked=True,
        rope_parameters=dict(rope_type="linear", rope_theta=1e6, factor=4.0)),
    # As OLMoE: norms over all heads together, weights not normalised.
    "olmoe_plain": dict(
        model_type="olmoe", hidden_size=32, intermediate_size=14, num_hidden_layers=2,
        rms_norm_eps=1e-5,  # the converter to GGUF writes this whatever the file has
        num_attention_heads=4, num_key_value_heads=4, tie_word_embeddings=False, num_experts=6,
        num_experts_per_tok=2, norm_topk_prob=False,
        rope_parameters=dict(rope_type="default", rope_theta=1e4), gguf=True,
        old=dict(rope_theta=1e4, rope_scaling=None)),
    "olmoe_grouped": dict(
        model_type="olmoe", hidden_size=40, intermediate_size=16, num_hidden_layers=2,
        num_attention_heads=5, num_key_value_heads=1, tie_word_embeddings=True, num_experts=4,
        num_experts_per_tok=3, norm_topk_prob=True,
        rope_parameters=dict(rope_type="default", rope_theta=5e5)),
    "olmoe_biased": dict(
        model_type="olmoe", hidden_size=24, intermediate_size=18, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, tie_word_embeddings=False, num_experts=5,
        num_experts_per_tok=4, norm_topk_prob=False, attention_bias=True,
        rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.0)),
}

CASES |= {
    # As gpt-oss-20b before quantisation, in the spelling of its files: layers with and without a
    # window, fractional bounds of yarn. GGUF stores no limit: readers assume 7.
    "gpt_oss_plain": dict(
        model_type="gpt_oss", hidden_size=24, intermediate_size=20, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, tie_word_embeddings=False,
        num_local_experts=6, num_experts_per_tok=4, sliding_window=20, swiglu_limit=7.0, n=72,
        stacked=True, gguf=True,
        rope_parameters=dict(rope_type="yarn", rope_theta=1.5e5, factor=8.0, beta_fast=8.0,
                             beta_slow=1.0, truncate=False, original_max_position_embeddings=32),
        old=dict(rope_theta=1.5e5, swiglu_limit=7.0, experts_per_token=4,
                 initial_context_length=32,
                 rope_scaling=dict(rope_type="yarn", factor=8.0, beta_fast=8.0, beta_slow=1.0,
                                   truncate=False, original_max_position_embeddings=32))),
    # As published: experts in MXFP4 blocks, all else in bf16.
    "gpt_oss_mxfp4": dict(
        model_type="gpt_oss", hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=1, head_dim=16, tie_word_embeddings=False,
        num_local_experts=4, num_experts_per_tok=2, sliding_window=12, swiglu_limit=7.0,
        mxfp4=True, gguf=True,
        rope_parameters=dict(rope_type="yarn", rope_theta=1.5e5, factor=4.0, beta_fast=8.0,
                             beta_slow=1.0, truncate=False, original_max_position_embeddings=64)),
    # Layers in another order, an odd number of experts, integral bounds, tied embeddings, another
    # limit than the code's.
    "gpt_oss_listed": dict(
        model_type="gpt_oss", hidden_size=30, intermediate_size=18, num_hidden_layers=3,
        num_attention_heads=3, num_key_value_heads=3, head_dim=10, tie_word_embeddings=True,
        num_local_experts=5, num_experts_per_tok=3, sliding_window=16, swiglu_limit=1.5,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"], stacked=True,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0,
                             original_max_position_embeddings=64)),
}

CASES |= (gemma4_models.CASES | hybrid_models.CASES | mamba_models.CASES | latent_models.CASES
          | glm_models.CASES | nemotron_models.CASES)
