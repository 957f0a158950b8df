# SPDX-License-Identifier: Apache-2.0
"""The speed of Outrider's tokenizers compared with Hugging Face's: the same text to the same ids,
one thread each, in turn.

    python3 tools/compare_tokenizer_speed.py build/tools/tokenize_texts MODEL --json tokenizer.json \\
        --text FILE... [--bytes 100000 10000000] [--rounds 9]

The text is the concatenation of the files, repeated up to each size of --bytes. The two programs
take turns: in each round, each gets one text of each size, as often as makes --round-bytes bytes.
Printed are nanoseconds of processor time per byte (median, minimum and maximum), Outrider's
speed-up (the median of the rounds' ratios), and the cost per byte of the longest text relative to
the shortest. Exits with 1 if any ids differ.
"""
import argparse
import array
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def serve(path):
    """Hugging Face's side: answers tokenize_texts's questions."""
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(path)
    for line in sys.stdin:
        asked = json.loads(line)
        with open(asked["file"], encoding="utf-8", newline="") as file:
            text = file.read()
        if "ids_to" in asked:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            with open(asked["ids_to"], "wb") as file:
                array.array("i", ids).tofile(file)
            print(json.dumps({"tokens": len(ids)}), flush=True)
            continue
        begin = time.process_time()
        for _ in range(asked["repeat"]):
            # The fastest method: no offsets.
            [encoding] = tokenizer.encode_batch_fast([text], add_special_tokens=False)
        seconds = time.process_time() - begin
        print(json.dumps({"seconds": seconds, "tokens": len(encoding)}), flush=True)


class Side:
    def __init__(self, *command):
        environment = dict(os.environ, TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def write_text(paths, n_bytes, target):
    whole = b"".join(open(path, "rb").read() for path in paths)
    whole = whole.decode(errors="replace").encode()
    text = (whole * (n_bytes // len(whole) + 1))[:n_bytes]
    with open(target, "wb") as file:  # not within a character
        file.write(text.decode(errors="ignore").encode())


def shown(values):
    return f"{statistics.median(values):7.1f} ({min(values):.1f} to {max(values):.1f})"


if sys.argv[1:2] == ["--serve"]:
    serve(sys.argv[2])
    sys.exit()
parser = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program")
parser.add_argument("model")
parser.add_argument("--json", required=True)
parser.add_argument("--text", nargs="+", required=True)
parser.add_argument("--bytes", nargs="+", type=int, default=[100_000, 10_000_000])
parser.add_argument("--rounds", type=int, default=9)
parser.add_argument("--round-bytes", type=int, default=10_000_000)
arguments = parser.parse_args()

sides = {"outrider": Side(arguments.program, arguments.model),
         "tokenizers": Side(sys.executable, __file__, "--serve", arguments.json)}
differ = False
costs = {}
with tempfile.TemporaryDirectory() as folder:
    for n_bytes in arguments.bytes:
        file = os.path.join(folder, f"{n_bytes}.txt")
        write_text(arguments.text, n_bytes, file)
        ids = {}
        for name, side in sides.items():
            target = os.path.join(folder, name)
            if "error" in (answer := side.ask(file=file, ids_to=target)):
                sys.exit(answer["error"])
            with open(target, "rb") as ids_file:
                ids[name] = ids_file.read()
        differ = differ or ids["outrider"] != ids["tokenizers"]
        print(f"{n_bytes} bytes: {len(ids['outrider']) // 4} tokens, "
              f"{'the same ids' if ids['outrider'] == ids['tokenizers'] else 'OTHER IDS'}")
    for _ in range(arguments.rounds):
        for n_bytes in arguments.bytes:
            repeat = max(1, arguments.round_bytes // n_bytes)
            for name, side in sides.items():
                answer = side.ask(file=os.path.join(folder, f"{n_bytes}.txt"), repeat=repeat)
                costs.setdefault((name, n_bytes), []).append(
                    answer["seconds"] / (repeat * n_bytes) * 1e9)

print(f"{'':24}ns a byte")
for (name, n_bytes), values in costs.items():
    print(f"{name:>10} {n_bytes:>11}  {shown(values)}")
for n_bytes in arguments.bytes:
    ratios = [theirs / ours for ours, theirs in zip(costs["outrider", n_bytes],
                                                   costs["tokenizers", n_bytes])]
    print(f"outrider is {statistics.median(ratios):.1f} times as fast ({min(ratios):.1f} to "
          f"{max(ratios):.1f}) on {n_bytes} bytes")
for name in sides:
    growth = [most / least for least, most in zip(costs[name, min(arguments.bytes)],
                                                 costs[name, max(arguments.bytes)])]
    print(f"{name}: a byte of {max(arguments.bytes)} costs {statistics.median(growth):.2f} times "
          f"one of {min(arguments.bytes)} ({min(growth):.2f} to {max(growth):.2f})")
sys.exit(differ)
