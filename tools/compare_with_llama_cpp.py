# SPDX-License-Identifier: Apache-2.0
"""llama.cpp against Outrider on one model: the same prompt, greedily continued, the same text.
Exits with 1 if the texts differ. The model is converted by llama.cpp's own script and run in f32,
as the other side was:

    outrider generate --model DIR --weights f32 --prompt "Once upon a time" --ignore-eos \\
        --max-tokens 64 --json > run.json
    python3 tools/compare_with_llama_cpp.py DIR "Once upon a time" run.json \\
        --converter llama.cpp/convert_hf_to_gguf.py
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model")
parser.add_argument("prompt")
parser.add_argument("run", help="what generate --json printed")
parser.add_argument("--converter", required=True, help="convert_hf_to_gguf.py")
parser.add_argument("--program", default="llama-completion")
arguments = parser.parse_args()

with open(arguments.run) as file:
    run = json.load(file)
with tempfile.TemporaryDirectory() as folder:
    gguf = str(pathlib.Path(folder) / "model.gguf")
    subprocess.run([sys.executable, arguments.converter, arguments.model, "--outtype", "f32",
                    "--outfile", gguf], check=True, stdout=subprocess.DEVNULL)
    # Its attention and KV cache in f32, too; no conversation, and the prompt is not printed again.
    theirs = subprocess.run(
        [arguments.program, "-m", gguf, "-p", arguments.prompt, "-n", str(len(run["ids"])),
         "--temp", "0", "--ignore-eos", "-fa", "off", "-ctk", "f32", "-ctv", "f32", "-t", "1",
         "-no-cnv", "--no-display-prompt", "--simple-io"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL).stdout.decode(errors="replace")
ours = run["text"]
# It ends its answer with newlines, and may omit a blank before the first word.
if theirs.strip() == ours.strip():
    print(f"llama.cpp: {len(run['ids'])} tokens, the same text")
    sys.exit(0)
at = next((i for i, (a, b) in enumerate(zip(ours.strip(), theirs.strip())) if a != b),
          min(len(ours.strip()), len(theirs.strip())))
sys.exit(f"the texts part at character {at}:\n{ours.strip()[at:at + 40]!r} here\n"
         f"{theirs.strip()[at:at + 40]!r} there")
