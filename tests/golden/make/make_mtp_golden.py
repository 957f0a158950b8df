#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/mtp/*: multi-token prediction modules for golden models of tests/golden, and
their outputs, by a program written from the published descriptions. transformers ignores their
weights; the layer is one of its decoder layers, the rest is in this file.

Needs torch, transformers, safetensors, gguf. For each case it writes

    module.safetensors   the module's tensors, under the names of published directories, bf16
    target.gguf          the golden model and the module in one file, matrices bf16, rest f32
    module.json          base (the golden model), config (keys that a directory with it has besides),
                         tokens (the text and the module's greedy draft after it)
    golden.safetensors   logits (len(tokens) - 1, vocabulary), f32: row i is for the token after
                         tokens[i + 1]

Row i reads the state of place i and tokens[i + 1], at position i. Within the text, the states are
the target's last hidden states after its final norm. After the text, row i reads the output of row
i - 1, after the module's own norm:

    x = join [norm(embedding), norm(state)];  y = norm(layer(x));  logits = head y

This is what vLLM (qwen3_next_mtp.py, qwen3_5_mtp.py) and llama.cpp (qwen35) compute for Qwen3-Next
and Qwen3.5, and SGLang (deepseek_nextn.py) for DeepSeek-V3; vLLM's deepseek_mtp.py uses the output
before the norm. For each case the script asserts that each mistake in `wrong_ways` changes the
logits.
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
from transformers import AutoModelForCausalLM

import latent_models
import make_family_models as family

N_DRAFTED = 6
# In published directories: the parts' names, and the prefix of the layer's tensors.
BEHIND = dict(embedding_norm="enorm", state_norm="hnorm", join="eh_proj",
              head_norm="shared_head.norm")
APART = dict(embedding_norm="pre_fc_norm_embedding", state_norm="pre_fc_norm_hidden", join="fc",
             head_norm="norm")
GGUF = dict(embedding_norm="nextn.enorm", state_norm="nextn.hnorm", join="nextn.eh_proj",
            head_norm="nextn.shared_head_norm")
CASES = {
    # The directory's file repeats the embedding and the output matrix, as DeepSeek's do.
    "deepseek_v3": dict(base="deepseek_v3_plain", names=BEHIND, copies=True,
                        config=dict(num_nextn_predict_layers=1)),
    "glm4_moe": dict(base="glm4_moe_plain", names=BEHIND, copies=True,
                     config=dict(num_nextn_predict_layers=1)),
    "qwen3_5": dict(base="qwen3_5_plain", names=APART,
                    config=dict(mtp_num_hidden_layers=1, mtp_use_dedicated_embeddings=False)),
    "qwen3_next": dict(base="qwen3_next_plain", names=APART, config={}),
}


class Module(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.config = model.config
        dim = model.config.hidden_size
        self.layer = copy.deepcopy(model.model.layers[-1])
        self.embedding_norm, self.state_norm, self.head_norm = (
            copy.deepcopy(model.model.norm) for _ in range(3))
        self.join = torch.nn.Linear(2 * dim, dim, bias=False)




class Way:
    """How the parts are combined; each possible mistake of a reader changes one of these."""
    swapped_parts = False       # the state before the embedding
    swapped_norms = False
    first_token = 1             # row i reads tokens[i + first_token]
    raw_states = False          # the target's, before its final norm
    raw_given = False           # the rows' output states, before the module's norm
    no_head_norm = False
    first_position = 0
    same_position = False       # one for all drafted rows

    def __init__(self, **changes):
        for name, value in changes.items():
            assert hasattr(Way, name)
            setattr(self, name, value)


@torch.no_grad()
def last_states(model, ids, raw=False):
    seen = {}
    hook = model.model.norm.register_forward_pre_hook(
        lambda _, inputs: seen.update(raw=inputs[0]))
    states = model.model(torch.tensor([ids]), use_cache=False).last_hidden_state[0]
    hook.remove()
    return seen["raw"][0] if raw else states


@torch.no_grad()
def run(model, module, states, tokens, n_known, way):
    """The outputs of rows 0 .. len(states) - 1, before the last norm."""
    n = len(states)
    embeddings = model.model.embed_tokens(torch.tensor([tokens]))
    norms = [module.embedding_norm, module.state_norm]
    if way.swapped_norms:
        norms.reverse()
    parts = [norms[0](embeddings), norms[1](states[None])]
    if way.swapped_parts:
        parts.reverse()
    x = module.join(torch.cat(parts, dim=-1))
    positions = torch.arange(n)[None] + way.first_position
    if way.same_position:
        positions = positions.clamp(max=n_known - 1)
    mask = torch.full((1, 1, n, n), torch.finfo(x.dtype).min, dtype=x.dtype).triu(1)
    turned = model.model.rotary_emb(x, positions)
    given = module.layer(x, attention_mask=mask, position_ids=positions,
                         position_embeddings=turned)
    return (given[0] if isinstance(given, tuple) else given)[0]


@torch.no_grad()
def logits_of(model, module, ids, tokens=None, way=None):
    """Logits for the rows of the text and of N_DRAFTED - 1 drafted tokens after it, for the given
    tokens or the likeliest. Also returns the tokens and the smallest lead of a best logit."""
    way = way or Way()
    text = list(ids if tokens is None else tokens)
    n_known = len(ids) - 1
    states = last_states(model, ids, way.raw_states)[:n_known]
    lead = 1e9
    for step in range(N_DRAFTED):
        read = text[way.first_token:way.first_token + len(states)]
        given = run(model, module, states, read, n_known, way)
        normed = given if way.no_head_norm else module.head_norm(given)
        logits = model.lm_head(normed)
        best = logits[-1].topk(2)
        lead = min(lead, float(best.values[0] - best.values[1]))
        if tokens is None:
            text.append(int(best.indices[0]))
        fed = given if way.raw_given else normed
        states = torch.cat([states, fed[-1:]])
    return logits, text, lead


def wrong_ways():
    return {
        "the state before the embedding": Way(swapped_parts=True),
        "norms swapped": Way(swapped_norms=True),
        "the state's own token": Way(first_token=0),
        "states in front of the final norm": Way(raw_states=True),
        "feeding on what is not normed": Way(raw_given=True),
        "no norm before the head": Way(no_head_norm=True),
        "drafted rows at one position": Way(same_position=True),
    }


def make_case(base):
    here = pathlib.Path(__file__).resolve().parents[1]
    model = AutoModelForCausalLM.from_pretrained(here / base, dtype=torch.float32)
    model = AutoModelForCausalLM.from_pretrained(here / base, dtype=torch.float32,
                                                 **family.eager(model.config)).eval()
    if latent_models.is_latent(model.config):
        latent_models.finish(model)
    ids = json.loads((here / base / "golden.json").read_text())["ids"]
    for seed in range(100):
        generator = torch.Generator().manual_seed(1000 + seed)
        module = Module(model).eval()
        with torch.no_grad():
            family.fill(module, generator, False)
            latent_models.fill_buffers(module, generator)
        logits, tokens, lead = logits_of(model, module, ids)
        if lead > family.CLEAR and len(set(tokens[len(ids):])) >= 4:
            return model, module, ids, tokens, logits
    raise AssertionError("no clear drafts in 100 modules")


def check_wrong(model, module, ids, tokens, expected):
    for name, way in wrong_ways().items():
        other = logits_of(model, module, ids, tokens, way)[0]
        difference = float((other - expected).abs().max())
        print(f"    {name}: {difference:.2g}")
        assert difference > family.VISIBLE, name
    # Only relative positions matter.
    moved = logits_of(model, module, ids, tokens, Way(first_position=1))[0]
    difference = float((moved - expected).abs().max())
    print(f"    all rows one position on: {difference:.2g} (the same)")
    assert difference < family.VISIBLE / 20


# --- files ---


def published_layer(state):
    """The layer's tensors as in directories: one for each expert's matrix."""
    for name, value in state.items():
        if name.endswith("experts.gate_up_proj"):
            for expert, both in enumerate(value):
                for part, half in zip(("gate", "up"), both.chunk(2)):
                    yield name.replace("gate_up_proj", f"{expert}.{part}_proj.weight"), half
        elif name.endswith("experts.down_proj"):
            for expert, matrix in enumerate(value):
                yield name.replace("down_proj", f"{expert}.down_proj.weight"), matrix
        else:
            yield name, value


def write_module(model, module, options, path):
    apart = options["names"] is APART
    n_layers = model.config.num_hidden_layers
    parts, layer = ("mtp.", "mtp.layers.0.") if apart else (f"model.layers.{n_layers}.",) * 2
    tensors = {parts + name + ".weight": getattr(module, attribute).weight
               for attribute, name in options["names"].items()}
    tensors |= {layer + name: value for name, value in published_layer(module.layer.state_dict())}
    if options.get("copies"):
        tensors[parts + "embed_tokens.weight"] = model.model.embed_tokens.weight
        tensors[parts + "shared_head.head.weight"] = model.lm_head.weight
    save_file({name: value.detach().to(torch.bfloat16).clone() for name, value in tensors.items()},
              path, metadata={"format": "pt"})


def write_target_gguf(model, module, options, path):
    """As convert_hf_to_gguf.py: the module is an additional layer, with its parts below "nextn."."""
    whole = copy.deepcopy(model)
    n_layers = whole.config.num_hidden_layers
    whole.config.num_hidden_layers = n_layers + 1
    if hasattr(whole.config, "layer_types") and whole.config.layer_types is not None:
        whole.config.layer_types = list(whole.config.layer_types) + ["full_attention"]
    whole.model.layers.append(copy.deepcopy(module.layer))
    is_offset = options["names"] is APART

    class Writer(gguf.GGUFWriter):
        def add_tensor(self, name, value, **rest):
            if value.ndim > 1 and not rest and "gate_inp" not in name and "ssm_" not in name:
                kind = gguf.GGMLQuantizationType.BF16
                packed = gguf.quants.quantize(value, kind)
                assert numpy.array_equal(gguf.quants.dequantize(packed, kind), value), name
                return super().add_tensor(name, packed, raw_dtype=kind)
            return super().add_tensor(name, value, **rest)

        def write_header_to_file(self, *arguments, **rest):
            self.add_nextn_predict_layers(1)
            for attribute, name in GGUF.items():
                value = getattr(module, attribute).weight.detach()
                if is_offset and value.ndim == 1:
                    value = value + 1
                self.add_tensor(f"blk.{n_layers}.{name}.weight",
                                numpy.ascontiguousarray(value.numpy()))
            super().write_header_to_file(*arguments, **rest)

    plain, gguf.GGUFWriter = gguf.GGUFWriter, Writer
    try:
        family.write_gguf(whole, path)
    finally:
        gguf.GGUFWriter = plain


def main():
    here = pathlib.Path(__file__).resolve().parents[1]
    for name, options in CASES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        print(name)
        model, module, ids, tokens, logits = make_case(options["base"])
        check_wrong(model, module, ids, tokens, logits)
        exact = logits_of(copy.deepcopy(model).double(), copy.deepcopy(module).double(), ids,
                          tokens)[0]
        rounding = float((exact - logits).abs().max())
        print(f"    rounding: {rounding:.2g}; drafts {tokens[len(ids):]}")
        assert rounding < family.ROUNDING
        directory = here / "mtp" / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        write_module(model, module, options, directory / "module.safetensors")
        write_target_gguf(model, module, options, directory / "target.gguf")
        save_file({"logits": logits.contiguous()}, directory / "golden.safetensors")
        (directory / "module.json").write_text(json.dumps(
            dict(base=options["base"], config=options["config"], tokens=tokens)) + "\n")


if __name__ == "__main__":
    main()
