"""Outrider's tokenizers against another program's on random strings: of assigned characters, words,
blanks, digits, punctuation and emoji sequences, the model's own special tokens left out.

    python3 tools/compare_tokenizers.py build-dev/tools/tokenize_texts MODEL --json tokenizer.json
    python3 tools/compare_tokenizers.py build-dev/tools/tokenize_texts MODEL --sentencepiece tokenizer.model
    python3 tools/compare_tokenizers.py build-dev/tools/tokenize_texts model.gguf --server http://127.0.0.1:8090

--json: Hugging Face's tokenizers (the Python package) on that file, ids and decoded text.
--sentencepiece: the Python package of that name, ids and decoded text, and what random ids decode
to. --server: llama-server with the same GGUF file, ids; --composed gives it the texts in Unicode's
form C, which Qwen's own tokenizer makes of them and llama.cpp does not. Exits with 1 where any
differs, and shows the first ones.
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
             lambda: chr(generator.randrange(0x21, 0x7f)),
             # What normal forms take together.
             lambda: chr(generator.choice((0x41, 0x65, 0xbd, 0xe9, 0xfb01, 0xff21, generator.randrange(0xc0, 0x250))))
             + chr(generator.randrange(0x300, 0x370)))
    weights = (3, 6, 1, 8, 2, 3, 3, 1)
    parts = generator.choices(kinds, weights, k=generator.randrange(1, 24))
    return "".join(part() for part in parts)


def ours(program, model, questions):
    """An answer for each question (a text, or a list of ids)."""
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    run = subprocess.run([program, model], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


class HuggingFace:
    def __init__(self, file):
        from tokenizers import Tokenizer
        self.tokenizer = Tokenizer.from_file(file)
        self.tokenizer.no_truncation()

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids):
        return self.tokenizer.decode(ids)


class SentencePiece:
    def __init__(self, file):
        from sentencepiece import SentencePieceProcessor
        self.model = SentencePieceProcessor(model_file=file)
        self.size = self.model.vocab_size()

    def encode(self, text):
        return self.model.encode(text)

    def decode(self, ids):
        # Unknown tokens are left out here, and become a sign of their own there.
        return self.model.decode([token for token in ids if not self.model.is_unknown(token)])

    def may_decode(self, token):
        # A control token among bytes ends a character there; here special tokens are left out first.
        return not self.model.is_control(token)


class Server:
    def __init__(self, url, composed):
        self.url, self.composed = url, composed

    def encode(self, text):
        content = unicodedata.normalize("NFC", text) if self.composed else text
        request = urllib.request.Request(
            f"{self.url}/tokenize", json.dumps({"content": content, "parse_special": True}).encode(),
            {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["tokens"]

    def decode(self, ids):
        return None


parser = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program")
parser.add_argument("model")
reference = parser.add_mutually_exclusive_group(required=True)
reference.add_argument("--json")
reference.add_argument("--sentencepiece")
reference.add_argument("--server")
parser.add_argument("--composed", action="store_true")
parser.add_argument("--strings", type=int, default=400)
parser.add_argument("--seed", type=int, default=0)
arguments = parser.parse_args()

if arguments.json:
    theirs = HuggingFace(arguments.json)
elif arguments.sentencepiece:
    theirs = SentencePiece(arguments.sentencepiece)
else:
    theirs = Server(arguments.server, arguments.composed)
generator = random.Random(arguments.seed)
texts = [random_string(generator) for _ in range(arguments.strings)]
differing = 0


def compare(question, answer, expected):
    global differing
    if answer == expected:
        return
    differing += 1
    if differing <= 5:
        print(f"{question!r}: {answer} here, {expected} there")


for text, answer in zip(texts, ours(arguments.program, arguments.model, texts), strict=True):
    ids = theirs.encode(text)
    expected = {"ids": ids, "text": theirs.decode(ids)}
    if expected["text"] is None:
        answer.pop("text", None)
        expected.pop("text")
    compare(text, answer, expected)
print(f"{differing} of {len(texts)} strings differ")
if arguments.sentencepiece:
    allowed = [token for token in range(theirs.size) if theirs.may_decode(token)]
    lists = [generator.choices(allowed, k=generator.randrange(1, 12)) for _ in texts]
    before = differing
    for ids, answer in zip(lists, ours(arguments.program, arguments.model, lists), strict=True):
        compare(ids, answer, {"ids": ids, "text": theirs.decode(ids)})
    print(f"{differing - before} of {len(lists)} decoded lists differ")
sys.exit(differing > 0)
