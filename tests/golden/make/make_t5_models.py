#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/t5_*: tiny random T5 models with logits and greedy continuations from Hugging
Face transformers.

Needs torch, transformers, safetensors, gguf. Writes into the folder above; run it again only to change the
cases. Each folder has the files of save_pretrained, and beside them

    golden.json          encoder_ids, ids (of the decoder, the start token first), greedy (the 32
                         ids after them; an end token ends nothing)
    golden.safetensors   logits (len(ids), vocabulary), f32
    model.gguf           for one case: the same numbers as f32, as llama.cpp's converter names them

Weights are bf16 (small files); logits are those of the same numbers in f32 with eager attention.
For each case the script asserts that each mistake below changes the logits.
"""
import copy
import json
import pathlib
import shutil
import sys

import gguf
import numpy
import torch
from safetensors.torch import save_file
from transformers import T5Config, T5ForConditionalGeneration
from transformers.models.t5 import modeling_t5

VOCABULARY = 97
N_IDS = 64
N_GREEDY = 32
# The values of make_family_models.py.
ROUNDING = 3e-5
VISIBLE = 1e-3
CLEAR = 2e-3

CASES = {
    # As T5 v1.1: the heads together are not as wide as the model.
    "t5_plain": dict(
        d_model=24, d_kv=10, d_ff=36, num_layers=2, num_heads=2, feed_forward_proj="gated-gelu",
        tie_word_embeddings=False, n_encoder=40, gguf=True),
    # As the first T5: ReLU, one scaled matrix; more decoder layers than encoder layers.
    "t5_tied": dict(
        d_model=32, d_kv=8, d_ff=44, num_layers=2, num_decoder_layers=3, num_heads=4,
        feed_forward_proj="relu", tie_word_embeddings=True, n_encoder=90),
    # Few buckets, a text far beyond the last one, an encoder input of several pages.
    "t5_far": dict(
        d_model=30, d_kv=6, d_ff=38, num_layers=3, num_decoder_layers=1, num_heads=3,
        feed_forward_proj="gated-gelu", tie_word_embeddings=False,
        relative_attention_num_buckets=6, relative_attention_max_distance=11, n_encoder=150),
}


def make_model(config, state=None):
    model = T5ForConditionalGeneration._from_config(
        config, attn_implementation="eager", dtype=torch.float32).eval()
    if not config.scale_decoder_outputs:  # transformers 5 ties whatever the file has
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.clone())
    if state is not None:
        model.load_state_dict(state)
    return model


def fill(model, generator):
    config = model.config
    for name, parameter in model.named_parameters():
        if name == "shared.weight":  # tied, a large one would repeat the last token
            mean, deviation = 0, 0.25 if config.scale_decoder_outputs else 1
        elif name.endswith("relative_attention_bias.weight"):
            mean, deviation = 0, 1
        elif name.endswith(".q.weight"):  # scores are not scaled
            mean, deviation = 0, 1.5 * (config.d_model * config.d_kv) ** -0.5
        elif parameter.dim() == 2:
            mean, deviation = 0, parameter.shape[1] ** -0.5
        elif name == "decoder.final_layer_norm.weight":
            mean, deviation = 12 if config.scale_decoder_outputs else 3, 0.3
        else:
            mean, deviation = 1, 0.3
        parameter.normal_(mean, deviation, generator=generator)
        parameter.copy_(parameter.bfloat16().float())


@torch.no_grad()
def logits_of(model, encoder_ids, ids):
    return model(input_ids=torch.tensor([encoder_ids]), decoder_input_ids=torch.tensor([ids]),
                 use_cache=False).logits[0]


def greedy(model, encoder_ids, ids):
    ids = list(ids)
    for _ in range(N_GREEDY):
        best = logits_of(model, encoder_ids, ids)[-1].topk(2)
        if best.values[0] - best.values[1] < CLEAR:
            return None
        ids.append(int(best.indices[0]))
    return ids[-N_GREEDY:]


def make_case(options):
    options = dict(options)
    n_encoder = options.pop("n_encoder")
    options.pop("gguf", None)
    config = T5Config(vocab_size=VOCABULARY, decoder_start_token_id=0, **options)
    for seed in range(100):
        print(f"    seed {seed}", flush=True)
        generator = torch.Generator().manual_seed(seed)
        model = make_model(config)
        with torch.no_grad():
            fill(model, generator)
        draw = lambda n: torch.randint(3, VOCABULARY, (n,), generator=generator).tolist()
        encoder_ids = draw(n_encoder - 1) + [1]
        ids = [0] + draw(N_IDS - 1)
        behind = greedy(model, encoder_ids, ids)
        if behind is not None and len(set(behind)) >= 8 - seed // 20:
            return model, encoder_ids, ids, behind
    raise AssertionError("no clear continuation in 100 models")


# --- mistakes ---


def with_buckets(change):
    """change(function, relative_position, bidirectional, num_buckets, max_distance)"""
    def wrong(model, encoder_ids, ids):
        right = modeling_t5.T5Attention._relative_position_bucket
        modeling_t5.T5Attention._relative_position_bucket = staticmethod(
            lambda relative_position, bidirectional=True, num_buckets=32, max_distance=128: change(
                right, relative_position, bidirectional, num_buckets, max_distance))
        try:
            return logits_of(model, encoder_ids, ids)
        finally:
            modeling_t5.T5Attention._relative_position_bucket = staticmethod(right)
    return wrong


def with_model(change):
    def wrong(model, encoder_ids, ids):
        other = make_model(copy.deepcopy(model.config), model.state_dict())
        with torch.no_grad():
            change(other)
        return logits_of(other, encoder_ids, ids)
    return wrong


def scale_scores(model):
    for name, parameter in model.named_parameters():
        if name.endswith(".q.weight"):
            parameter.mul_(model.config.d_kv ** -0.5)


def change_activation(model):
    for module in model.modules():
        if hasattr(module, "act"):
            module.act = torch.nn.SiLU()


def swap_gates(model):
    for module in model.modules():
        if hasattr(module, "wi_0"):
            module.wi_0, module.wi_1 = module.wi_1, module.wi_0


def flip_scale(model):
    model.config.scale_decoder_outputs = not model.config.scale_decoder_outputs


def drop_bias(stack):
    def change(model):
        attention = getattr(model, stack).block[0].layer[0].SelfAttention
        attention.relative_attention_bias.weight.zero_()
    return change


def drop_encoder_norm(model):
    norm = model.encoder.final_layer_norm
    norm.forward = lambda states: states


def causal_encoder(model, encoder_ids, ids):
    """Every token of the encoder attends only to itself and those before it."""
    mask = torch.ones(len(encoder_ids), len(encoder_ids)).tril()
    full = torch.zeros_like(mask).masked_fill(mask == 0, torch.finfo(torch.float32).min)
    with torch.no_grad():
        states = []
        for n in range(1, len(encoder_ids) + 1):
            states.append(model.encoder(input_ids=torch.tensor([encoder_ids[:n]]))[0][:, -1:])
        return model(encoder_outputs=(torch.cat(states, 1),),
                     decoder_input_ids=torch.tensor([ids])).logits[0]


def mistakes(config):
    cases = {
        "a bucket further": with_buckets(lambda f, d, b, n, m: torch.clamp(f(d, b, n, m) + 1,
                                                                           max=n - 1)),
        "the other side": with_buckets(lambda f, d, b, n, m: f(-d if b else d, b, n, m)),
        "one side in the encoder": with_buckets(lambda f, d, b, n, m: f(d, False, n, m)),
        "another last distance": with_buckets(lambda f, d, b, n, m: f(d, b, n, 2 * m)),
        "another text in the encoder": lambda model, encoder_ids, ids: logits_of(
            model, encoder_ids[::-1], ids),
        "scaled scores": with_model(scale_scores),
        "no bias in the encoder": with_model(drop_bias("encoder")),
        "no bias in the decoder": with_model(drop_bias("decoder")),
        "no norm behind the encoder": with_model(drop_encoder_norm),
        "the other scale of outputs": with_model(flip_scale),
        "another activation": with_model(change_activation),
    }
    if config.d_kv == 10:  # slow: one pass per token
        cases["a causal encoder"] = causal_encoder
    if config.is_gated_act:
        cases["the other gate"] = with_model(swap_gates)
    return cases


# --- files ---


def pieces():
    """In SentencePiece's order: pad, end, unknown; a blank, characters, and a few words."""
    words = ["\u2581", "\u2581the", "\u2581to", "th", "er"]
    printable = [chr(code) for code in range(33, 127)][: VOCABULARY - 3 - len(words)]
    return ["<pad>", "</s>", "<unk>", *words, *printable]


def write_gguf(model, path):
    config = model.config
    writer = gguf.GGUFWriter(path, "t5")
    writer.add_context_length(512)
    writer.add_embedding_length(config.d_model)
    writer.add_feed_forward_length(config.d_ff)
    writer.add_block_count(config.num_layers)
    writer.add_decoder_block_count(config.num_decoder_layers)
    writer.add_head_count(config.num_heads)
    writer.add_key_length(config.d_kv)
    writer.add_value_length(config.d_kv)
    writer.add_layer_norm_eps(config.layer_norm_epsilon)
    writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)
    writer.add_relative_attn_buckets_count(config.relative_attention_num_buckets)
    writer.add_decoder_start_token_id(0)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(pieces())
    writer.add_token_scores([0.0, 0.0, 0.0] + [-float(i) for i in range(1, VOCABULARY - 2)])
    kinds = [gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, gguf.TokenType.UNKNOWN]
    writer.add_token_types(kinds + [gguf.TokenType.NORMAL] * (VOCABULARY - 3))
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(True)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.T5,
                                     max(config.num_layers, config.num_decoder_layers))
    for name, value in model.state_dict().items():
        if name.endswith("embed_tokens.weight"):
            continue
        its = names.get_name(name, try_suffixes=(".weight",))
        assert its, name
        writer.add_tensor(its, numpy.ascontiguousarray(value.float().numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    here = pathlib.Path(__file__).resolve().parents[1]
    for name, options in CASES.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        model, encoder_ids, ids, behind = make_case(options)
        logits = logits_of(model, encoder_ids, ids)
        exact = logits_of(copy.deepcopy(model).double(), encoder_ids, ids)
        rounding = float((exact - logits).abs().max())
        print(f"{name}: rounding {rounding:.2g}, {len(set(behind))} ids")
        assert rounding < ROUNDING
        for mistake, wrong in mistakes(model.config).items():
            difference = float((wrong(model, encoder_ids, ids) - logits).abs().max())
            print(f"    {mistake}: {difference:.2g}")
            assert difference > VISIBLE, mistake
        directory = here / name
        shutil.rmtree(directory, ignore_errors=True)
        copy.deepcopy(model).to(torch.bfloat16).save_pretrained(directory)
        path = directory / "config.json"  # in the spelling of the hub's files
        config = json.loads(path.read_text())
        config.pop("scale_decoder_outputs", None)
        config["tie_word_embeddings"] = options["tie_word_embeddings"]
        config["decoder_start_token_id"] = 0
        path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        save_file({"logits": logits.contiguous()}, directory / "golden.safetensors")
        (directory / "golden.json").write_text(
            json.dumps({"encoder_ids": encoder_ids, "ids": ids, "greedy": behind}) + "\n")
        if options.get("gguf"):
            write_gguf(model, directory / "model.gguf")


if __name__ == "__main__":
    main()
