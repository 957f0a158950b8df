"""Outrider's tokenizers against another program's on random strings: of assigned characters, words,
blanks, digits, punctuation and emoji sequences, the model's own special tokens left out.

    python3 tools/compare_tokenizers.py build/outrider MODEL --json tokenizer.json [--strings 400]
    python3 tools/compare_tokenizers.py build/outrider model.gguf --server http://127.0.0.1:8090

--json: Hugging Face's tokenizers (the Python package) on that file, ids and decoded text. --server:
llama-server with the same GGUF file, ids; --composed gives it the texts in Unicode's form C, which
Qwen's own tokenizer makes of them and llama.cpp does not. Exits with 1 where any differs, and shows
the first ones.
"""
import argparse
import json
import random
import subprocess
import sys
import unicodedata
import urllib.request

WORDS = ("the", "Hello", "don't", "I'LL", "world", "Stra\u00dfe", "\u4f60\u597d", "\u0434\u0430",
         "\u0645\u0631\u062d\u0628\u0627", "\u3053\u3093", "na\u00efve", "e\u0301", "def", "return", "x_1",
         "3.14", "1,000", "2026")
EMOJI = ("\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd",
         "\u2764\ufe0f", "\U0001f1e9\U0001f1ea")
BLANKS = (" ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", " \n ")


def assigned(generator):
    while True:
        character = chr(generator.randrange(0x20, 0x2fa20))
        if unicodedata.category(character) not in ("Cn", "Cs", "Co"):
            return character


def random_string(generator):
    kinds = (lambda: assigned(generator), lambda: generator.choice(WORDS),
             lambda: generator.choice(EMOJI), lambda: generator.choice(BLANKS),
             lambda: str(generator.randrange(10 ** generator.randrange(1, 9))),
             lambda: generator.choice("!\"#$%&'()*+,-./:;=?@[\\]^_`{|}~"),
             lambda: chr(generator.randrange(0x21, 0x7f)))
    weights = (3, 6, 1, 8, 2, 3, 3)
    parts = generator.choices(kinds, weights, k=generator.randrange(1, 24))
    return "".join(part() for part in parts)


def ours(program, model, *flags, text):
    run = subprocess.run([program, "tokenize", "--model", model, *flags], input=text.encode(),
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return run.stdout


def their_ids_of_server(url, text):
    request = urllib.request.Request(
        f"{url}/tokenize", json.dumps({"content": text, "parse_special": True}).encode(),
        {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["tokens"]


parser = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program")
parser.add_argument("model")
reference = parser.add_mutually_exclusive_group(required=True)
reference.add_argument("--json")
reference.add_argument("--server")
parser.add_argument("--composed", action="store_true")
parser.add_argument("--strings", type=int, default=400)
parser.add_argument("--seed", type=int, default=0)
arguments = parser.parse_args()

theirs = None
if arguments.json:
    from tokenizers import Tokenizer
    theirs = Tokenizer.from_file(arguments.json)
generator = random.Random(arguments.seed)
differing = 0
for _ in range(arguments.strings):
    text = random_string(generator)
    ids = [int(token) for token in ours(arguments.program, arguments.model, "--no-special", "--ids",
                                        "--text-file", "-", text=text).split()]
    expected = (theirs.encode(text, add_special_tokens=False).ids if theirs
                else their_ids_of_server(arguments.server, unicodedata.normalize("NFC", text)
                                         if arguments.composed else text))
    same = ids == expected
    if theirs and same and ids:
        decoded = ours(arguments.program, arguments.model, "--decode", "-",
                       text=" ".join(map(str, ids))).decode(errors="replace")
        expected = theirs.decode(ids)
        same = decoded in (expected, expected + "\n")  # a line end is printed where there is none
    if not same:
        differing += 1
        if differing <= 5:
            print(f"{text!r}: {ids} here, {expected} there")
print(f"{differing} of {arguments.strings} strings differ")
sys.exit(differing > 0)
