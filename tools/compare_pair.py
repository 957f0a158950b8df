# SPDX-License-Identifier: Apache-2.0
"""A target with a drafter: the same bits as the target alone, and the speed compared with
llama.cpp's server. The prompts are the first 5, 2 and 2 of EAGLE's questions of HumanEval, GSM8K
and Alpaca, as messages under the model's chat template, at temperature 0.

    python3 tools/compare_pair.py bits TARGET DRAFTER QUESTIONS --tokens 48 [--table avx2]...
    python3 tools/compare_pair.py speed TARGET DRAFTER QUESTIONS --turns 3 \\
        --plain http://127.0.0.1:8090 --drafted http://127.0.0.1:8091

bits: ids and logits of both runs, compared byte by byte on each table of kernels; exits with 1 if
they differ. speed: Outrider and the two servers (llama-server with the same file, the second with
-md DRAFTER) one after the other, prompt by prompt; only one of them works at a time. The figures
are each engine's own tokens per second of decoding, without the prompt.
"""
import argparse
import filecmp
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import urllib.request

QUESTIONS = (("humaneval", 5), ("gsm8k", 2), ("alpaca", 2))


def read_prompts(folder):
    for name, count in QUESTIONS:
        with open(pathlib.Path(folder) / f"{name}_question.jsonl") as file:
            for number, line in zip(range(count), file):
                yield f"{name} {number}", json.loads(line)["turns"][0]


def outrider(arguments, prompt, spec, extra=(), table=None):
    environment = dict(os.environ)
    if table:
        environment["OUTRIDER_KERNELS"] = table
    run = subprocess.run(
        [arguments.program, "generate", "--model", arguments.target, "--chat", "--prompt", prompt,
         "--drafter", spec, "--max-tokens", str(arguments.tokens), "--json", *arguments.flag,
         *extra], stdout=subprocess.PIPE, env=environment, check=True)
    return json.loads(run.stdout)


def passes_and_tokens(result):
    figures = result["stats"]
    return figures["target_passes"], figures["emitted"]


def compare_bits(arguments):
    differing = 0
    for table in arguments.table or [None]:
        passes = tokens = 0
        for name, prompt in read_prompts(arguments.questions):
            with tempfile.TemporaryDirectory() as folder:
                files = [pathlib.Path(folder) / which for which in ("plain", "drafted")]
                plain, drafted = (
                    outrider(arguments, prompt, spec, ("--logits", str(file)), table)
                    for spec, file in zip(("none", arguments.spec), files))
                same = (plain["ids"] == drafted["ids"] and
                        filecmp.cmp(*files, shallow=False) and files[0].stat().st_size > 0)
            n_passes, n_tokens = passes_and_tokens(drafted)
            passes += n_passes
            tokens += n_tokens
            differing += not same
            print(f"{table or 'default'}  {name}: {n_tokens} tokens, {n_passes} passes, "
                  f"{'the same bits' if same else 'OTHER BITS'}", flush=True)
        print(f"{table or 'default'}: {tokens / passes:.2f} tokens a pass over all", flush=True)
    sys.exit(differing > 0)


def server(arguments, url, prompt):
    body = {"messages": [{"role": "user", "content": prompt}], "temperature": 0, "top_k": 1,
            "max_tokens": arguments.tokens, "cache_prompt": False}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        timings = json.load(answer)["timings"]
    return timings["predicted_n"], timings["predicted_ms"] / 1000


def compare_speed(arguments):
    def ours(spec):
        def run(prompt):
            result = outrider(arguments, prompt, spec)
            return len(result["ids"]), result["stats"]["decode_seconds"]
        return run

    engines = {"outrider": ours("none"), "outrider drafted": ours(arguments.spec),
               "llama-server": lambda prompt: server(arguments, arguments.plain, prompt),
               "llama-server drafted": lambda prompt: server(arguments, arguments.drafted, prompt)}
    rates = {name: [] for name in engines}
    for turn in range(arguments.turns):
        sums = {name: [0, 0.0] for name in engines}
        for name, prompt in read_prompts(arguments.questions):
            order = list(engines) if turn % 2 == 0 else list(engines)[::-1]
            said = {}
            for engine in order:
                tokens, seconds = engines[engine](prompt)
                sums[engine][0] += tokens
                sums[engine][1] += seconds
                said[engine] = tokens / seconds
            print(f"turn {turn + 1}  {name}: " + ", ".join(
                f"{engine} {said[engine]:.1f}" for engine in engines), flush=True)
        for engine, (tokens, seconds) in sums.items():
            rates[engine].append(tokens / seconds)
    for engine, figures in rates.items():
        print(f"{engine}: {statistics.median(figures):.1f} tokens/s "
              f"({min(figures):.1f} to {max(figures):.1f})")
    plain = [ours / theirs for ours, theirs in zip(rates["outrider"], rates["llama-server"])]
    best = [ours / max(theirs) for ours, *theirs in
            zip(rates["outrider drafted"], rates["llama-server"], rates["llama-server drafted"])]
    for what, ratios in (("plain beside plain", plain), ("drafted beside its better mode", best)):
        print(f"{what}: {statistics.median(ratios):.2f} times "
              f"({min(ratios):.2f} to {max(ratios):.2f})")


parser = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
commands = parser.add_subparsers(required=True)
for name, command, n_tokens in (("bits", compare_bits, 48), ("speed", compare_speed, 128)):
    sub = commands.add_parser(name)
    sub.set_defaults(command=command)
    sub.add_argument("target")
    sub.add_argument("drafter")
    sub.add_argument("questions", help="folder of the *_question.jsonl files")
    sub.add_argument("--tokens", type=int, default=n_tokens)
    sub.add_argument("--length", type=int, default=4, help="of a draft")
    sub.add_argument("--settings", default="", help="further ones of the drafter, as weights=int4")
    sub.add_argument("--program", default="build/outrider")
    sub.add_argument("--flag", action="append", default=[], help="one more flag of generate")
    if command is compare_bits:
        sub.add_argument("--table", action="append")
    else:
        sub.add_argument("--turns", type=int, default=3)
        sub.add_argument("--plain", required=True)
        sub.add_argument("--drafted", required=True)
arguments = parser.parse_args()
arguments.spec = ",".join(filter(None, (f"model:{arguments.drafter}", f"length={arguments.length}",
                                        arguments.settings)))
arguments.command(arguments)
