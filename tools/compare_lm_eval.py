# SPDX-License-Identifier: Apache-2.0
"""Two runs of lm-evaluation-harness (--log_samples), item by item.

    python3 tools/compare_lm_eval.py OURS THEIRS [--accuracy 0.5] [--likelihood 1e-3] [--least 200]

OURS, THEIRS: the values of --output_path. For each task it prints accuracies and their difference
in points, the largest relative difference of an item's log-likelihood, and how many generated texts
are the same. Exits with 1 if accuracy differs by more than --accuracy points, a log-likelihood by
more than --likelihood, or a task has fewer than --least items.
"""
import argparse
import json
import sys
from pathlib import Path

ACCURACIES = ("acc", "exact_match")


def samples(folder):
    """{task: {doc_id: sample}} of a run's newest files."""
    found = {}
    for file in sorted(Path(folder).rglob("samples_*.jsonl"), key=lambda file: file.stat().st_mtime):
        task = file.name[len("samples_"):].rpartition("_")[0]
        found[task] = {(sample["doc_id"], sample.get("filter", "")): sample
                       for sample in map(json.loads, file.read_text().splitlines())}
    return found


def is_generated(sample):
    return isinstance(sample["arguments"]["gen_args_0"].get("arg_1"), dict)


def likelihoods(sample):
    """The log-likelihoods of an item: one per choice, or one for a whole text."""
    firsts = [response[0] for response in sample["resps"]]
    return [float(first[0] if isinstance(first, list) else first) for first in firsts]


def accuracy(items):
    for name in ACCURACIES:
        values = [float(sample[name]) for sample in items.values() if name in sample]
        if values:
            return 100 * sum(values) / len(values)
    return None


def compare(task, ours, theirs, options):
    problems = []
    if ours.keys() != theirs.keys():
        return [f"{task}: not the same items"]
    if len(ours) < options.least:
        problems.append(f"{task}: {len(ours)} items, fewer than {options.least}")
    parts = [f"{len(ours)} items"]
    mine, other = accuracy(ours), accuracy(theirs)
    if mine is not None:
        parts.append(f"accuracy {mine:.2f} and {other:.2f}")
        if abs(mine - other) > options.accuracy:
            problems.append(f"{task}: accuracies differ by {abs(mine - other):.2f} points")
    worst, n_likelihoods, n_texts, n_same = 0.0, 0, 0, 0
    for key, sample in ours.items():
        if is_generated(sample):
            n_texts += 1
            n_same += sample["resps"] == theirs[key]["resps"]
            continue
        for one, two in zip(likelihoods(sample), likelihoods(theirs[key])):
            n_likelihoods += 1
            worst = max(worst, abs(one - two) / max(abs(two), 1e-9))
    if n_likelihoods:
        parts.append(f"{n_likelihoods} log-likelihoods, at most {worst:.2e} apart (relative)")
        if not worst <= options.likelihood:
            problems.append(f"{task}: a log-likelihood differs by {worst:.2e}")
    if n_texts:
        parts.append(f"{n_same} of {n_texts} texts the same")
    if not n_likelihoods and not n_texts:
        problems.append(f"{task}: nothing to compare")
    print(f"{task}: " + "; ".join(parts))
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("ours")
    parser.add_argument("theirs")
    parser.add_argument("--accuracy", type=float, default=0.5, help="points")
    parser.add_argument("--likelihood", type=float, default=1e-3, help="relative")
    parser.add_argument("--least", type=int, default=200)
    options = parser.parse_args()
    ours, theirs = samples(options.ours), samples(options.theirs)
    problems = [] if ours and ours.keys() == theirs.keys() else [f"tasks: {sorted(ours)} and {sorted(theirs)}"]
    for task in sorted(ours.keys() & theirs.keys()):
        problems += compare(task, ours[task], theirs[task], options)
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
