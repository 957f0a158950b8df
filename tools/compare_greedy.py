# SPDX-License-Identifier: Apache-2.0
"""Hugging Face transformers against Outrider on a GGUF file: greedy continuations of some prompts.
The first step runs Outrider (no Python package needed), the second judges its output (needs torch,
transformers, gguf):

    python3 tools/compare_greedy.py run build/outrider model.gguf OUT [PROMPT ...] [--as-stored]
    python3 tools/compare_greedy.py judge model.gguf OUT

transformers gets the file's values dequantised to f32, and reads the same ids in one pass. A place
differs if its best token is not the one chosen by Outrider. The gap is the difference between
transformers' best logit and its logit for Outrider's token. Exits with 1 if the gap of any place is
above 0.001 (Outrider with f32 weights, too), or if the gap of the first place that differs is above
0.3 (--as-stored: Outrider rounds weights and their inputs).
"""
import argparse
import json
import pathlib
import subprocess
import sys

PROMPTS = [
    "Once upon a time",
    "The capital of France is",
    "def fibonacci(n):\n",
    "The three laws of thermodynamics are:\n1.",
    "Dear Sir,\n\nI am writing to you about",
    "Zwei Dinge sind unendlich:",
]
BOUNDS = {"f32": 1e-3, "as stored": 0.3}


def run(arguments):
    folder = pathlib.Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    kind = [] if arguments.as_stored else ["--weights", "f32"]
    for number, prompt in enumerate(arguments.prompts or PROMPTS):
        program = [arguments.program]
        done = subprocess.run(
            program + ["generate", "--model", arguments.model, *kind, "--temperature", "0",
                       "--prompt", prompt, "--max-tokens", str(arguments.tokens), "--ignore-eos",
                       "--json", "--logits", str(folder / f"{number}.f32")],
            check=True, stdout=subprocess.PIPE)
        ids = subprocess.run(
            program + ["tokenize", "--model", arguments.model, "--ids", "--text", prompt],
            check=True, stdout=subprocess.PIPE).stdout
        record = {"prompt": prompt, "prompt_ids": [int(token) for token in ids.split()],
                  "weights": "as stored" if arguments.as_stored else "f32",
                  **{key: json.loads(done.stdout)[key] for key in ("ids", "text")}}
        (folder / f"{number}.json").write_text(json.dumps(record) + "\n")
        print(f"{number}: {record['text'][:60]!r}")


def load(path):
    """The file's model in transformers, with its values as f32."""
    import gguf
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    file = gguf.GGUFReader(path)
    architecture = file.get_field("general.architecture").contents()

    def value(key, default=None):
        field = file.get_field(f"{architecture}.{key}")
        return default if field is None else field.contents()

    tensors = {tensor.name: tensor for tensor in file.tensors}
    if "rope_freqs.weight" in tensors:
        sys.exit("rope_freqs.weight is not understood here")
    n_heads, width = value("attention.head_count"), value("embedding_length")
    head_dim = value("attention.key_length", width // n_heads)
    scaling = value("rope.scaling.type", "none")
    rope = {"rope_type": "default" if scaling == "none" else scaling,
            "rope_theta": value("rope.freq_base", 1e4)}
    if scaling != "none":
        rope["factor"] = value("rope.scaling.factor")
    options = dict(
        vocab_size=int(tensors["token_embd.weight"].shape[1]), hidden_size=width,
        intermediate_size=value("feed_forward_length"), num_hidden_layers=value("block_count"),
        num_attention_heads=n_heads, num_key_value_heads=value("attention.head_count_kv", n_heads),
        head_dim=head_dim, rms_norm_eps=value("attention.layer_norm_rms_epsilon"),
        max_position_embeddings=value("context_length"), rope_parameters=rope,
        tie_word_embeddings="output.weight" not in tensors)
    model_type = architecture
    if architecture == "llama":
        options.update(attention_bias="blk.0.attn_q.bias" in tensors)
    elif architecture == "gemma3":
        # Such files omit this: five layers with a window before each one without.
        model_type = "gemma3_text"
        layers = ["full_attention" if layer % 6 == 5 else "sliding_attention"
                  for layer in range(value("block_count"))]
        local = {"rope_type": "default", "rope_theta": value("rope.freq_base_swa", 1e4)}
        options.update(
            sliding_window=value("attention.sliding_window"), layer_types=layers,
            query_pre_attn_scalar=head_dim,
            rope_parameters={"full_attention": rope, "sliding_attention": local})
    elif architecture not in ("qwen2", "qwen3"):
        sys.exit(f"{architecture} is not understood here")

    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **options),
                                             attn_implementation="eager", dtype=torch.float32)
    arch = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(arch, value("block_count"))
    used = set()
    for name, parameter in model.named_parameters():
        key = names.get_name(name, try_suffixes=(".weight", ".bias"))
        values = gguf.dequantize(tensors[key].data, tensors[key].tensor_type)
        if architecture == "llama" and (".q_proj." in name or ".k_proj." in name):
            # A rotation's two rows are adjacent in Llama's files.
            values = (values.reshape(-1, head_dim // 2, 2, *values.shape[1:]).swapaxes(1, 2)
                      .reshape(values.shape))
        if architecture == "gemma3" and name.endswith("norm.weight"):
            values = values - 1
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(values.astype("float32")).reshape(parameter.shape))
        used.add(key)
    if used != set(tensors):
        sys.exit(f"nobody uses {sorted(set(tensors) - used)}")
    return model.eval()


def judge(arguments):
    import numpy
    import torch

    torch.set_num_threads(arguments.threads)
    model = load(arguments.model)
    good = True
    paths = sorted(pathlib.Path(arguments.folder).glob("*.json"))
    if not paths:
        sys.exit(f"{arguments.folder}: no records (the step run writes them)")
    for path in paths:
        record = json.loads(path.read_text())
        prompt, ids = record["prompt_ids"], record["ids"]
        with torch.no_grad():
            theirs = model(torch.tensor([prompt + ids]), use_cache=False,
                           logits_to_keep=len(ids) + 1).logits[0, :-1].numpy()
        ours = numpy.fromfile(path.with_suffix(".f32"), dtype="<f4").reshape(len(ids), -1)
        if ours.shape != theirs.shape:
            sys.exit(f"{path}: logits {ours.shape} here, {theirs.shape} there")
        if not (numpy.isfinite(theirs).all() and numpy.isfinite(ours).all()):
            sys.exit(f"{path}: logits that are no numbers")
        if (ours.argmax(-1) != ids).any():
            sys.exit(f"{path}: ids that are not greedy")
        gaps = theirs.max(-1) - theirs[numpy.arange(len(ids)), ids]
        places = numpy.flatnonzero(gaps > 0)
        exact = record["weights"] == "f32"
        first_gap = gaps[places[0]] if len(places) > 0 else 0
        accepted = (gaps.max() if exact else first_gap) <= BOUNDS[record["weights"]]
        good = good and accepted
        words = "equal"
        if len(places) > 0:
            best = numpy.sort(theirs[places[0]])[-2:]
            words = (f"{len(places)} of {len(ids)} differ, first at {places[0]} "
                     f"(gap {first_gap:.2g}, its two best apart by {best[1] - best[0]:.2g}), "
                     f"largest gap {gaps.max():.2g}")
        print(f"{path.stem} {record['weights']}: {words}; largest difference of a logit "
              f"{numpy.abs(ours - theirs).max():.2g}, mean {numpy.abs(ours - theirs).mean():.2g}"
              f"{'' if accepted else '  NOT ACCEPTED'}")
    sys.exit(0 if good else 1)


parser = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
steps = parser.add_subparsers(required=True)
step = steps.add_parser("run")
step.add_argument("program")
step.add_argument("model")
step.add_argument("folder")
step.add_argument("prompts", nargs="*")
step.add_argument("--tokens", type=int, default=64)
step.add_argument("--as-stored", action="store_true")
step.set_defaults(step=run)
step = steps.add_parser("judge")
step.add_argument("model")
step.add_argument("folder")
step.add_argument("--threads", type=int, default=1)
step.set_defaults(step=judge)
parsed = parser.parse_args()
parsed.step(parsed)
