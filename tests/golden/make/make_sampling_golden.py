#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes sampling.json in the folder above: the results of Hugging Face transformers for given logits.

The processors are built and ordered by the library's own generate(), from its own configuration
object, so that the order is tested along with each step. Logits are float32 values; everything
after them is computed in float64. Needs torch and transformers; the figures do not depend on their
versions as long as the steps mean the same.
"""

import json
import pathlib

import torch
import transformers

VOCABULARY = 50


def processors(options):
    """The list that generate() would use for these options, for a model that is never run."""
    shape = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                 num_attention_heads=1, num_key_value_heads=1)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(vocab_size=VOCABULARY, **shape))
    config = transformers.GenerationConfig(
        do_sample=True, **{"top_k": 0, "top_p": 1.0, "temperature": 1.0, **options})
    return model._get_logits_processor(generation_config=config, input_ids_seq_length=4,
                                       encoder_input_ids=None, prefix_allowed_tokens_fn=None,
                                       logits_processor=transformers.LogitsProcessorList())


def main():
    torch.manual_seed(20)
    bias = {3: 2.5, 17: -4.0, 49: 1.25, 0: float("-inf")}
    combinations = [
        {},
        {"temperature": 0.7},
        {"temperature": 1.8},
        {"temperature": 0.05},
        {"top_k": 1},
        {"top_k": 7},
        {"top_k": 50},
        {"top_p": 0.9},
        {"top_p": 0.5},
        {"top_p": 0.01},
        {"min_p": 0.1},
        {"min_p": 0.01},
        {"min_p": 0.05, "temperature": 1.4},
        {"min_p": 1.0},
        {"top_k": 20, "top_p": 0.8},
        {"top_k": 12, "top_p": 0.95, "min_p": 0.08},
        {"temperature": 1.5, "top_p": 0.9},
        {"repetition_penalty": 1.3},
        {"repetition_penalty": 0.8, "temperature": 0.9},
        {"sequence_bias": bias},
        {"sequence_bias": bias, "repetition_penalty": 1.3},
        {"temperature": 0.7, "top_k": 20, "top_p": 0.9, "repetition_penalty": 1.2},
        {"sequence_bias": bias, "repetition_penalty": 1.2, "temperature": 1.3, "top_k": 25,
         "top_p": 0.93, "min_p": 0.02},
    ]
    cases = []
    for index, options in enumerate(combinations):
        logits = torch.randn(VOCABULARY) * (1.5 + index % 3)
        prompt = torch.randint(0, VOCABULARY, (6,)).tolist()
        generated = torch.randint(0, VOCABULARY, (5,)).tolist()
        generated += [generated[0], prompt[1], 3]  # repeats, and a biased token
        arguments = dict(options)
        if "sequence_bias" in arguments:
            arguments["sequence_bias"] = {(token,): value for token, value in
                                          arguments["sequence_bias"].items()}
        chain = processors(arguments)
        scores = chain(torch.tensor([prompt + generated]), logits.double().unsqueeze(0))
        probs = torch.softmax(scores, dim=-1)[0]
        params = {key: value for key, value in options.items() if key != "sequence_bias"}
        # JSON has no infinity: null is -infinity.
        params["logit_bias"] = [[token, None if value == float("-inf") else value]
                                for token, value in options.get("sequence_bias", {}).items()]
        kept = probs.nonzero().flatten().tolist()
        cases.append({
            "params": params,
            "order": [type(step).__name__ for step in chain],
            "logits": logits.double().tolist(),
            "prompt": prompt,
            "generated": generated,
            "ids": kept,
            "probs": [probs[i].item() for i in kept],
        })
    path = pathlib.Path(__file__).resolve().parents[1] / "sampling.json"
    lines = ",\n".join(json.dumps(case) for case in cases)
    path.write_text(f'{{"transformers": "{transformers.__version__}", '
                    f'"torch": "{torch.__version__}", "cases": [\n{lines}\n]}}\n')
    print(f"{path.name}: {len(cases)} cases")


if __name__ == "__main__":
    main()
