# SPDX-License-Identifier: Apache-2.0
"""A tokenizer's cost per byte as the text grows: nanoseconds of processor time per byte at 100 kB,
1 MB and 10 MB, and the ratio of the last to the first.

    python3 tools/measure_tokenizer_growth.py build-dev/tools/tokenize_texts MODEL... [--book FILE]
    python3 tools/measure_tokenizer_growth.py ... --added 60000      (a tokenizer.json)

The texts: one character (or two) repeated, random ones of a kind, the text of --book and the same
without blanks. --added first adds that many tokens to the vocabulary, in three ways: plain ones,
ones with a common beginning, and ones that stand alone and include white space. Exits with 1 if a
text is refused, or if the cost per byte grows by more than a factor of --limit.

The limit is 4; quadratic work would give 100. A single word of 10 MB does not fit into any cache,
and merging it allocates new pages of memory throughout (its cost per byte is up to 3.3 times that
of 100 kB). Text with words in it stays below 1.2.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

REPEATED = ("a", "A", "0", " ", "\n", "\r\n", "=", "<", "'", "ab", "a ", "\u00a0", "\u0301",
            "\u0323\u0301", "\u0600", "\u1112", "\u2581", "\u306e", "\u4e00", "\ufffd",
            "\U00013000", "\U0001f1e9", "\U0001f600", "\U0001f468\u200d")
RANDOM = {"letters": "abcdefghijklmnopqrstuvwxyz", "digits": "0123456789",
          "signs": "!#$%&()*+,-./:;<=>?@[]^_{|}~",
          "marks": "".join(map(chr, range(0x300, 0x370))),
          "han": "".join(map(chr, range(0x4e00, 0x9fa0)))}
SIZES = ((100_000, 15), (1_000_000, 2), (10_000_000, 1))  # bytes, and how often


def texts(book):
    """Names, and functions that make a given number of bytes of each."""
    def again(text):
        return lambda n: text * (n // len(text.encode()) + 1)

    for text in REPEATED:
        yield ascii(text), again(text)
    for name, alphabet in RANDOM.items():
        yield "random " + name, lambda n, of=alphabet: "".join(
            random.choices(of, k=n // len(of[-1].encode())))
    if book:
        with open(book, encoding="utf-8", errors="ignore") as file:
            whole = file.read()
        yield "book", again(whole)
        yield "without blanks", again("".join(whole.split()))


def added_tokens(count, kind):
    def token(i):
        if kind == "plain":
            return {"content": f"<token {i}>"}
        if kind == "alike":
            return {"content": "a" * (41 + i % 300) + (f"<{i // 300}" if i >= 300 else ""),
                    "single_word": i % 2 == 0, "normalized": i % 3 == 0}
        return {"content": f"~word{i}", "single_word": True, "lstrip": True, "rstrip": True,
                "normalized": i % 2 == 0}

    none = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": False}
    return [{**none, **token(i)} for i in range(count)]


def with_added(path, count, kind, target):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    vocab = document["model"]["vocab"]
    ids = set(vocab.values()) if isinstance(vocab, dict) else set(range(len(vocab)))
    added = document["added_tokens"] = document.get("added_tokens") or []
    first = max(ids | {token["id"] for token in added}) + 1
    added += [{**token, "id": first + i} for i, token in enumerate(added_tokens(count, kind))]
    with open(target, "w", encoding="utf-8") as file:
        json.dump(document, file)


def costs(process, make, file):
    for n_bytes, repeat in SIZES:
        text = make(n_bytes).encode()[:n_bytes].decode(errors="ignore").encode()
        with open(file, "wb") as out:
            out.write(text)
        process.stdin.write(json.dumps({"file": file, "repeat": repeat}) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        if "error" in answer:
            sys.exit(answer["error"])
        yield answer["seconds"] / repeat / len(text) * 1e9


def measure(program, path, name, arguments, folder):
    """The largest growth over all texts."""
    process = subprocess.Popen([program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    largest = 0
    for text, make in texts(arguments.book):
        each = list(costs(process, make, os.path.join(folder, "text")))
        growth = each[-1] / each[0]
        largest = max(largest, growth)
        print(f"{name:32} {text:24}", *(f"{cost:8.1f}" for cost in each), f"  x {growth:.2f}",
              flush=True)
    process.stdin.close()
    process.wait()
    return largest


parser = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program")
parser.add_argument("models", nargs="+")
parser.add_argument("--book")
parser.add_argument("--added", type=int, default=0)
parser.add_argument("--limit", type=float, default=4.0)
arguments = parser.parse_args()
largest = 0
with tempfile.TemporaryDirectory() as folder:
    for model in arguments.models:
        name = "/".join(model.split("/")[-2:])
        if not arguments.added:
            largest = max(largest, measure(arguments.program, model, name, arguments, folder))
            continue
        for kind in ("plain", "alike", "alone"):
            made = os.path.join(folder, "tokenizer.json")
            with_added(model, arguments.added, kind, made)
            largest = max(largest, measure(arguments.program, made, f"{name}, {kind}", arguments,
                                           folder))
print(f"at most {largest:.2f} times as much")
sys.exit(largest > arguments.limit)
