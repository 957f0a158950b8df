# SPDX-License-Identifier: Apache-2.0
"""Measures drafters beside plain decoding and writes docs/results.md. It covers the family in
models/, and a pair of downloaded models on Spec-Bench, by category, at temperatures 0 and 1, beside
llama.cpp's server with the same files.

    python3 tools/make_results.py --target TARGET.gguf --drafter DRAFTER.gguf \\
        --spec-bench question.jsonl --work DIR --out docs/results.md \\
        [--llama-server "llama-server -m TARGET.gguf -t 2 --port 8091" \\
         --llama-drafts "-md DRAFTER.gguf --spec-type draft-simple" \\
         --llama-url http://127.0.0.1:8091]

Measurements are kept in DIR, and a second call continues from there; once all of them exist, a call
only writes the file. One program works at a time. About two hours on two cores.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shlex
import signal
import statistics
import subprocess
import sys
import time
import urllib.request

FAMILY_TOKENS = 200
PAIR_TOKENS = 128
PAIR_PROMPTS = {0: 60, 1: 24}  # by temperature: the number of prompts of each kind
MISLED_TOKENS = 400  # of which the drafter is accurate for 200
MISLED_PROMPTS = 20
LLAMA_PROMPTS = 12  # two of each kind of Spec-Bench
LLAMA_LENGTHS = range(1, 9)


def run_bench(arguments, name, model, methods, prompts, tokens, extra=()):
    """Runs outrider bench --methods, or reads the result of an earlier run; returns the comparison
    as an object."""
    file = arguments.work / f"{name}.json"
    if not file.exists() or not json.loads(file.read_text())["complete"]:
        subprocess.run(
            [arguments.program, "bench", "--model", model, "--methods", ",".join(methods),
             "--prompts", prompts, "--max-tokens", str(tokens), "--json", str(file),
             "--html", str(file.with_suffix(".html")), *extra], stdout=subprocess.DEVNULL,
            check=True)
    return json.loads(file.read_text())


def spec_bench_turns(path):
    with open(path) as file:
        return {str(question["question_id"]): question["turns"][0]
                for question in map(json.loads, file)}


def chosen_prompts(pair, turns):
    """The first two prompts of each category of the pair's comparison, by their first turns."""
    chosen = []
    for category in sorted({prompt["category"] for prompt in pair["prompts"]}):
        its = [prompt for prompt in pair["prompts"] if prompt["category"] == category]
        chosen += [(category, turns[prompt["id"]]) for prompt in its[:LLAMA_PROMPTS // 6]]
    return chosen


def ask_llama(url, prompt, n_max):
    """Tokens per second of decoding, by the server's own timings."""
    request = {"messages": [{"role": "user", "content": prompt}], "max_tokens": PAIR_TOKENS,
               "temperature": 0, "cache_prompt": False}
    body = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(request).encode(),
                                  {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(body, timeout=600) as answer:
        timings = json.load(answer)["timings"]
    # A server reports the number of drafted tokens exactly if it drafts.
    if ("draft_n" in timings) != (n_max > 0):
        sys.exit(f"make_results: drafts of at most {n_max} tokens were asked for, and the server's "
                 f"timings are {timings}")
    return timings["predicted_per_second"]


def wait_for(url, server):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(300):
        if server.poll() is not None:
            sys.exit(f"make_results: the server ended with {server.returncode}")
        try:
            with opener.open(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(1)
    sys.exit(f"make_results: no server answers at {url}")


def ask_llama_server(arguments, prompts, n_max):
    """A server for one draft length, which only its command line can set."""
    command = shlex.split(arguments.llama_server)
    if n_max > 0:
        command += [*shlex.split(arguments.llama_drafts), "--spec-draft-n-max", str(n_max)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True) as server:
        try:
            wait_for(arguments.llama_url, server)
            # The first request loads the weights; the answer is long, so that it is drafted.
            ask_llama(arguments.llama_url, "Count from one to thirty.", n_max)
            return [ask_llama(arguments.llama_url, prompt, n_max) for prompt in prompts]
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(server.pid, signal.SIGTERM)


def measure_llama(arguments, pair):
    """Tokens per second by prompt: [{category, "0": .., "1": .., .. "8": ..}], 0 meaning no drafts.
    All lengths in turn, for one category after another."""
    file = arguments.work / "llama.json"
    rows = json.loads(file.read_text()) if file.exists() else []
    if not arguments.llama_server:
        return rows
    chosen = chosen_prompts(pair, spec_bench_turns(arguments.spec_bench))
    for category in sorted({category for category, _ in chosen} - {row["category"] for row in rows}):
        prompts = [prompt for its, prompt in chosen if its == category]
        speeds = {str(n): ask_llama_server(arguments, prompts, n) for n in (0, *LLAMA_LENGTHS)}
        rows += [{"category": category, **{n: speeds[n][i] for n in speeds}}
                 for i in range(len(prompts))]
        file.write_text(json.dumps(rows))
        print(f"llama.cpp: {len(rows)} of {len(chosen)} prompts", file=sys.stderr)
    return rows


def estimate(figure):
    if figure is None or figure["value"] is None:
        return "-"
    return f"{figure['value']:.2f} ({figure['low']:.2f} to {figure['high']:.2f})"


def table(rows):
    width = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, width)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("---" for _ in width) + "|")
    return "\n".join(lines)


def named(method):
    """The name of a method, without the folders of its files."""
    words = method.replace("@coupled", "").split(":")
    return ":".join(pathlib.Path(word).name if "/" in word else word for word in words)


def figures_of(comparison, temperature):
    figures = {}
    for figure in comparison["figures"]:
        if figure["temperature"] == temperature and figure["method"] != "plain":
            figures.setdefault(figure["method"], {})[figure["category"]] = figure
    return figures


def comparison_tables(comparison):
    parts = []
    for temperature in comparison["settings"]["temperatures"]:
        figures = figures_of(comparison, temperature)
        categories = [category for category in next(iter(figures.values())) if category]
        rows = [["method", "whole requests", "decoding", "tau", *categories, "first token",
                 "bound: oracle length"]]
        for method, by_category in figures.items():
            whole = by_category[""]  # of all categories
            rows.append(["`" + named(method) + "`", estimate(whole["request_speedup"]),
                         estimate(whole["speedup"]), estimate(whole["tau"]),
                         *(estimate(by_category[category]["speedup"]) for category in categories),
                         estimate(whole["first_token_ratio"]), estimate(whole.get("oracle_length"))])
        parts.append(f"Temperature {temperature:g}:\n\n{table(rows)}")
    return "\n\n".join(parts)


def machine_of(comparison):
    machine = comparison["settings"]["machine"]
    model = comparison["settings"]["model"]
    memory = machine["memory_bytes"] / 1e9
    return (f"{machine['processor']}, {machine['processors']} processors, {memory:.0f} GB; kernels "
            f"{model['kernels']}, {model['threads']} threads, weights {model['weights']}")


def llama_table(rows):
    def ratio(row, n):
        return row[str(n)] / row["0"]

    by_length = [["n-max", "speed-up over its own plain decoding, median (least to most)",
                  "tokens a second, median"],
                 ["none", "1", f"{statistics.median(row['0'] for row in rows):.1f}"]]
    for n in LLAMA_LENGTHS:
        ratios = [ratio(row, n) for row in rows]
        speed = statistics.median(row[str(n)] for row in rows)
        by_length.append([str(n), f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to "
                          f"{max(ratios):.2f})", f"{speed:.1f}"])
    return table(by_length)


PUBLISHED = """## Published tables, for scale

On other machines, with other models: nothing here is to be compared line by line.

| method | model, texts | hardware | speed-up | tokens a pass |
|---|---|---|---|---|
| EAGLE-3, EAGLE-2, EAGLE, Medusa, small model (EAGLE-3's chart) | Vicuna-13B, MT-bench, temperature 0 | not named | 5.6, 4.1, 3.1, 2.1, 1.9 | - |
| EAGLE-3, EAGLE-2 in SGLang (EAGLE's README) | Llama-3.1-8B | H100 | 2.36, 1.54 | - |
| Spec-Bench: EAGLE-2, EAGLE, Medusa, prompt lookup, small model, REST, Lookahead | Vicuna-7B, all of it, greedy | A100 (80 GB) | 2.36, 2.10, 1.71, 1.66, 1.52, 1.48, 1.34 | 4.34, 3.58, 2.31, 1.75, 2.28, 1.82, 1.64 |
| Spec-Bench: EAGLE-2, EAGLE, small model, prompt lookup, Medusa, REST, Lookahead | Vicuna-7B, all of it, greedy | RTX 3090 | 2.19, 2.03, 1.79, 1.64, 1.44, 1.28, 1.13 | 4.35, 3.57, 2.28, 1.73, 2.32, 1.63, 1.64 |
| Spec-Bench: EAGLE-3, EAGLE-2, EAGLE, Medusa, prompt lookup, small model | Vicuna-13B, all of it, greedy | A100 (80 GB) | 3.02, 2.46, 2.16, 1.80, 1.56, 1.54 | 5.71, 4.43, 3.64, 2.39, 1.67, 2.19 |
| DSpark, DFlash, EAGLE-3 (DSpark's paper, table 1): GSM8K | Qwen3-4B, temperature 1, blocks of 7 | any: tokens only | - | 6.11, 5.40, 5.14 |
| the same: HumanEval | the same | the same | - | 5.38, 4.74, 4.16 |
| the same: MT-bench | the same | the same | - | 3.64, 3.07, 2.39 |

Sources: the papers (arXiv 2401.15077, 2406.16858, 2503.01840; DSpark, 2026), EAGLE's README, and
Leaderboard.md of Spec-Bench (Xia et al., 2024).
"""


def write(arguments, family, pair, misled, llama):
    both_temperatures = "\n\n".join(comparison_tables(comparison) for comparison in pair)
    text = f"""# Results

Made by `python3 tools/make_results.py` ([what it measures](../tools/make_results.py)); each method
beside plain decoding in turn, speed-ups with 95 % intervals over prompts, as
[measuring.md](measuring.md) has it: of whole requests, prompts included, where texts are plain
decoding's; of decoding in all and by category. `@auto`, where no shape is named, is the controller
([drafters.md](drafters.md)). The bound: what drafts of exactly the accepted length would have given.

## The family in `models/`

{family['settings']['prompts']['count']} openings of [models/openings.jsonl](../models/openings.jsonl), {FAMILY_TOKENS} tokens
each. {machine_of(family)}.

{comparison_tables(family)}

## A downloaded pair

{pair[0]['settings']['prompts']['count']} texts of Spec-Bench, ten of each of its six kinds ({pair[1]['settings']['prompts']['count']} at temperature 1), {PAIR_TOKENS} tokens a turn: {pathlib.Path(pair[0]['settings']['model']['files'][0]['path']).name}.
{machine_of(pair[0])}.

{both_temperatures}

### A drafter that is good for 200 tokens, then useless

{misled['settings']['prompts']['count']} of these texts, at most {MISLED_TOKENS} tokens a turn; from the 200th on every drafted token is
another than the drafter's.

{comparison_tables(misled)}
"""
    if llama:
        text += f"""
### llama.cpp's server with the same files

{len(llama)} of these texts, their first turns, temperature 0, {PAIR_TOKENS} tokens, the same machine and
threads, drafts of at most n-max tokens; its own figures of decoding.

{llama_table(llama)}
"""
    text += "\n" + PUBLISHED
    arguments.out.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/outrider")
    parser.add_argument("--target", required=True)
    parser.add_argument("--drafter", required=True)
    parser.add_argument("--spec-bench", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/results.md"))
    parser.add_argument("--llama-server", help="a command that starts it, in the foreground")
    parser.add_argument("--llama-drafts", default="", help="what makes it draft, behind that command")
    parser.add_argument("--llama-url", default="http://127.0.0.1:8091")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    model = "model:models/drafter,weights=int8"
    family = run_bench(
        arguments, "family", "models/target",
        ["plain", model, *(f"{model}@chain:length={n}@coupled" for n in (1, 2, 4)),
         "suffix", "suffix@chain:length=3@coupled", "suffix@chain:length=7@coupled",
         "eagle:models/eagle,weights=int8", "mtp:models/mtp,weights=int8",
         "spoiled:tokens+model:models/drafter\\,weights=int8"],
        "models/openings.jsonl", FAMILY_TOKENS, ["--raw", "--temperatures", "0,1"])
    model = f"model:{arguments.drafter}"
    methods = [
        "plain", model, *(f"{model}@chain:length={n}@coupled" for n in (2, 3, 4)), "suffix",
        f"auto:suffix\\,{model}", f"spoiled:tokens+{model}"]
    pair = [run_bench(arguments, f"pair-{temperature}", arguments.target, methods,
                      arguments.spec_bench, PAIR_TOKENS,
                      ["--limit", str(n_prompts), "--temperatures", str(temperature)])
            for temperature, n_prompts in PAIR_PROMPTS.items()]
    misled = run_bench(
        arguments, "pair-misled", arguments.target,
        ["plain", f"spoiled:tokens:from=200+{model}"], arguments.spec_bench, MISLED_TOKENS,
        ["--limit", str(MISLED_PROMPTS), "--temperatures", "0,1"])
    write(arguments, family, pair, misled, measure_llama(arguments, pair[0]))


if __name__ == "__main__":
    main()
