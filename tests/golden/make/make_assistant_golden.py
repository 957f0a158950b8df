#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/assistant/*: assistants of tiny Gemma 4 models, which read the target's keys
and values, and the drafts of Hugging Face transformers' forward with them.

Needs torch, transformers (5.12.1), safetensors, gguf. For each case it writes

    config.json, model.safetensors   the assistant, as save_pretrained writes it, bf16
    drafts.json                      base (the target's folder below tests/golden), tokens (the text and
                                     the greedy draft after it)
    golden.safetensors               logits (N_DRAFTED, vocabulary), f32
    model.gguf                       the assistant with the tensors and names of llama.cpp's converter,
                                     f32; without a tokenizer
    target/                          the target, if it is not a golden model

The target has run the text except its last token. Each drafted row therefore reads the keys and
values of these tokens and is at the last one's position. Row 0 reads the last token's embedding and
the target's last hidden state. Row i reads the token drafted before it and the output of row i - 1:

    x = pre_projection [embedding, state];  h = norm(layers(x));  state' = post_projection(h)

For each case the script asserts that each mistake in `wrong_ways` changes the logits.
"""
import copy
import json
import pathlib
import shutil
import sys

import gguf
import numpy
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, Gemma4AssistantConfig, Gemma4TextConfig

import gemma4_models
import make_family_models as family

N_DRAFTED = 6
# Each cluster of the output has several tokens: the vocabulary of other goldens is prime.
ORDERED_VOCABULARY = 96
ROPES = dict(full_attention=dict(rope_type="proportional", rope_theta=1e6,
                                 partial_rotary_factor=0.25),
             sliding_attention=dict(rope_type="default", rope_theta=1e4))
CASES = {
    # As Gemma 4 E2B's: an output of clusters, of which only the best are read.
    "ordered": dict(
        base=None, ordered=dict(num_centroids=12, centroid_intermediate_top_k=5),
        text=dict(hidden_size=20, intermediate_size=28, num_hidden_layers=3, num_attention_heads=4,
                  num_key_value_heads=1, head_dim=8, global_head_dim=16, sliding_window=16,
                  layer_types=["sliding_attention", "sliding_attention", "full_attention"],
                  rope_parameters=ROPES)),
    # As Gemma 4 31B's: a whole output, for a target whose values are its keys.
    "whole": dict(
        base="gemma4_keys", ordered=None,
        text=dict(hidden_size=24, intermediate_size=36, num_hidden_layers=2, num_attention_heads=6,
                  num_key_value_heads=2, num_global_key_value_heads=1, attention_k_eq_v=True,
                  head_dim=10, global_head_dim=20, sliding_window=20,
                  layer_types=["sliding_attention", "full_attention"], rope_parameters=ROPES)),
}


def make_target(base):
    if base is None:
        family.VOCABULARY = ORDERED_VOCABULARY
        options = dict(gemma4_models.CASES["gemma4_shared"])
        options["vocab_size_per_layer_input"] = ORDERED_VOCABULARY
        model, ids, _ = family.make_case(options)
        return model, ids
    folder = pathlib.Path(__file__).resolve().parents[1] / base
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                 attn_implementation="eager").eval()
    return model, json.loads((folder / "golden.json").read_text())["ids"]


def make_assistant(target, options, seed):
    config = Gemma4AssistantConfig(
        text_config=Gemma4TextConfig(
            **options["text"], vocab_size=target.config.vocab_size, rms_norm_eps=1e-6,
            max_position_embeddings=256, num_kv_shared_layers=options["text"]["num_hidden_layers"],
            hidden_size_per_layer_input=0, vocab_size_per_layer_input=0, bos_token_id=1,
            eos_token_id=2, pad_token_id=0),
        backbone_hidden_size=target.config.hidden_size,
        use_ordered_embeddings=options["ordered"] is not None, **options["ordered"] or {})
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager",
                                             dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(2000 + seed)
    family.fill(model.model, generator, False)
    gemma4_models.fill_buffers(model.model, generator)
    for linear in (model.pre_projection, model.post_projection,
                   *([model.masked_embedding.centroids] if options["ordered"] else [])):
        linear.weight.normal_(0, linear.in_features ** -0.5, generator=generator)
        linear.weight.copy_(linear.weight.bfloat16().float())
    if options["ordered"]:
        model.masked_embedding.token_ordering = torch.randperm(target.config.vocab_size,
                                                               generator=generator)
    return model


class Way:
    """The input of a row; each possible mistake of a reader changes one of these."""
    swapped_parts = False      # the state before the embedding
    first_position = 0         # counted from the last token's
    own_positions = False      # a separate one for each drafted row
    raw_embedding = False      # without its scale
    raw_state = False          # the target's, before its final norm
    same_state = False         # one for all rows
    last_key = False           # includes the last token's

    def __init__(self, **changes):
        for name, value in changes.items():
            assert hasattr(Way, name)
            setattr(self, name, value)


@torch.no_grad()
def drafted(target, assistant, ids, tokens=None, way=None):
    """Logits of N_DRAFTED rows after a text, for the given tokens or the likeliest. Also returns
    the tokens and the smallest lead of a best logit."""
    way = way or Way()
    seen = {}
    hook = target.model.norm.register_forward_pre_hook(
        lambda _, inputs: seen.update(raw=inputs[0]))
    run = ids if way.last_key else ids[:-1]
    out = target.model(torch.tensor([run]), use_cache=False, return_shared_kv_states=True)
    hook.remove()
    state = (seen["raw"] if way.raw_state else out.last_hidden_state)[:, len(ids) - 2:len(ids) - 1]
    text = list(ids if tokens is None else tokens)
    logits, lead = [], 1e9
    for step in range(N_DRAFTED):
        embedding = target.model.embed_tokens(torch.tensor([[text[len(ids) - 1 + step]]]))
        if way.raw_embedding:
            embedding = embedding / target.config.hidden_size ** 0.5
        parts = [state, embedding] if way.swapped_parts else [embedding, state]
        position = len(ids) - 1 + way.first_position + (step if way.own_positions else 0)
        given = assistant(inputs_embeds=torch.cat(parts, dim=-1),
                          position_ids=torch.tensor([[position]]),
                          shared_kv_states=dict(out.shared_kv_states))
        logits.append(given.logits[0, 0])
        best = logits[-1].topk(2)
        lead = min(lead, float(best.values[0] - best.values[1]))
        if tokens is None:
            text.append(int(best.indices[0]))
        if not way.same_state:
            state = given.last_hidden_state
    return torch.stack(logits), text, lead


def other_window(change):
    def wrong(_, assistant):
        assistant.config.text_config.sliding_window += change
    return wrong


def fewer_clusters(_, assistant):
    assistant.masked_embedding.centroid_intermediate_top_k -= 1


def other_clusters(_, assistant):
    ordering = assistant.masked_embedding.token_ordering
    n = assistant.masked_embedding.num_centroids
    assistant.masked_embedding.token_ordering = ordering.view(-1, n).T.reshape(-1).contiguous()


def ways_of(options):
    plain = {
        "the state before the embedding": Way(swapped_parts=True),
        "one position early": Way(first_position=-1),
        "drafted rows at positions of their own": Way(own_positions=True),
        "embeddings not scaled": Way(raw_embedding=True),
        "the state in front of the final norm": Way(raw_state=True),
        "the target's state in all rows": Way(same_state=True),
        "the last token's key": Way(last_key=True),
    }
    changed = {
        "a window less by one": other_window(-1),
        "a window more by one": other_window(1),
        "no window": other_window(1000),
        "keys of an earlier layer":
            lambda target, _: gemma4_models.keys_of_an_earlier_layer(target),
    }
    if options["ordered"]:
        changed |= {"a cluster less": fewer_clusters, "tokens in other clusters": other_clusters}
    return plain, changed


def check_wrong(target, assistant, options, ids, tokens, expected):
    def check(name, logits):
        difference = float((logits - expected).abs().max())
        print(f"    {name}: {difference:.2g}")
        assert difference > family.VISIBLE, name
    plain, changed = ways_of(options)
    for name, way in plain.items():
        check(name, drafted(target, assistant, ids, tokens, way)[0])
    for name, change in changed.items():
        others = copy.deepcopy((target, assistant))
        change(*others)
        check(name, drafted(*others, ids, tokens)[0])


def make_case(options):
    target, ids = make_target(options["base"])
    for seed in range(200):
        with torch.no_grad():
            assistant = make_assistant(target, options, seed)
        logits, tokens, lead = drafted(target, assistant, ids)
        if lead > family.CLEAR and len(set(tokens[len(ids):])) >= 4:
            return target, assistant, ids, tokens, logits
    raise AssertionError("no clear drafts in 200 assistants")


def write_gguf(directory):
    """As convert_hf_to_gguf.py --outtype f32, which omits the clusters."""
    config = Gemma4AssistantConfig.from_pretrained(directory)
    text = config.text_config
    writer = gguf.GGUFWriter(directory / "model.gguf", "gemma4-assistant")
    writer.add_block_count(text.num_hidden_layers)
    writer.add_context_length(text.max_position_embeddings)
    writer.add_embedding_length(text.hidden_size)
    writer.add_head_count(text.num_attention_heads)
    gemma4_models.write_keys(writer, text)
    writer.add_rope_freq_base(text.rope_parameters["full_attention"]["rope_theta"])
    writer.add_layer_norm_rms_eps(text.rms_norm_eps)
    writer.add_embedding_length_out(config.backbone_hidden_size)
    writer.add_nextn_predict_layers(text.num_hidden_layers)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GEMMA4_ASSISTANT, text.num_hidden_layers)
    for name, value in load_file(directory / "model.safetensors").items():
        if name == "lm_head.weight" or "masked_embedding" in name:
            continue
        for its, numbers in gemma4_models.tensors_of(name, value.float()):
            writer.add_tensor(names.get_name(its, try_suffixes=(".weight", ".bias")),
                              numpy.ascontiguousarray(numbers.numpy()))
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
        target, assistant, ids, tokens, logits = make_case(options)
        check_wrong(target, assistant, options, ids, tokens, logits)
        exact = drafted(*copy.deepcopy((target, assistant)), ids, tokens)[0]
        double = drafted(copy.deepcopy(target).double(), copy.deepcopy(assistant).double(), ids,
                         tokens)[0]
        rounding = float((double - exact).abs().max())
        print(f"    rounding: {rounding:.2g}; drafts {tokens[len(ids):]}")
        assert rounding < family.ROUNDING
        directory = here / "assistant" / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        copy.deepcopy(assistant).to(torch.bfloat16).save_pretrained(directory)
        write_gguf(directory)
        base = options["base"]
        if base is None:
            base = f"assistant/{name}/target"
            copy.deepcopy(target).to(torch.bfloat16).save_pretrained(directory / "target")
        save_file({"logits": logits.contiguous()}, directory / "golden.safetensors")
        (directory / "drafts.json").write_text(json.dumps(dict(base=base, tokens=tokens)) + "\n")


if __name__ == "__main__":
    main()
