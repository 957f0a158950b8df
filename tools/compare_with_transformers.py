# SPDX-License-Identifier: Apache-2.0
"""Hugging Face transformers against Outrider on one model: the same prompt, the same tokens, the
largest difference of any logit. Exits with 1 above a bound (1e-4).

    outrider generate --model DIR --weights f32 --prompt "Once upon a time" --ignore-eos \\
        --max-tokens 64 --logits logits.f32 --json > run.json
    python3 tools/compare_with_transformers.py DIR "Once upon a time" run.json logits.f32
"""
import argparse
import json
import sys

import numpy
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

parser = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model")
parser.add_argument("prompt")
parser.add_argument("run", help="what generate --json printed")
parser.add_argument("logits", help="what generate --logits wrote")
parser.add_argument("--bound", type=float, default=1e-4)
arguments = parser.parse_args()

torch.set_num_threads(1)
with open(arguments.run) as file:
    ids = json.load(file)["ids"]
prompt = AutoTokenizer.from_pretrained(arguments.model)(arguments.prompt)["input_ids"]
model = AutoModelForCausalLM.from_pretrained(
    arguments.model, dtype=torch.float32, attn_implementation="eager").eval()
with torch.no_grad():
    theirs = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1:-1].numpy()
ours = numpy.fromfile(arguments.logits, dtype="<f4").reshape(len(ids), -1)
if ours.shape != theirs.shape:
    sys.exit(f"{ours.shape} logits here, {theirs.shape} there")
difference = float(numpy.abs(ours - theirs).max())
same = int((ours.argmax(-1) == theirs.argmax(-1)).sum())
print(f"transformers {transformers.__version__}, torch {torch.__version__}: {len(ids)} rows, largest "
      f"difference {difference:.2g}, same greedy token in {same}")
sys.exit(0 if difference <= arguments.bound else 1)
