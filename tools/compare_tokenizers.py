# SPDX-License-Identifier: Apache-2.0
"""Outrider's tokenizers against another program's on random strings of assigned characters, words,
blanks, digits, punctuation and emoji sequences, without the model's own special tokens.

    python3 tools/compare_tokenizers.py build-dev/tools/tokenize_texts MODEL --json tokenizer.json
    python3 tools/compare_tokenizers.py build-dev/tools/tokenize_texts MODEL --sentencepiece tokenizer.model
    python3 tools/compare_tokenizers.py build-dev/tools/tokenize_texts model.gguf --llama-tokenize llama-tokenize
    python3 tools/compare_tokenizers.py build-dev/tools/tokenize_texts model.gguf --server http://127.0.0.1:8090

--json: Hugging Face's tokenizers (the Python package) on that file: ids, decoded text, and the text
of random ids. For a GGUF file with tokens of bytes, random ids leave these out: in invalid UTF-8
each byte is U+FFFD there, but each maximal bad sequence in Outrider and llama-server.
--sentencepiece: the same with the Python package of that name; for a GGUF file, runs of U+FFFD
count as one (it has one for each bad byte). --llama-tokenize: ids by llama.cpp's program of that
name (a command) with the same GGUF file, which may be a vocabulary only. --server: ids by
llama-server with the same GGUF file. --composed gives it the texts in Unicode's form C, which
Qwen's own tokenizer applies and llama.cpp does not.

Exits with 1 if any differs, and shows the first ones, or if only Outrider refuses the file; with 3
if the reference does. scripts/compare-tokenizers runs it for folders of them.
"""
import argparse
import ast
import json
import random
import re
import shlex
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
             # Characters that normal forms combine.
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


class Refused(Exception):
    """The reference cannot read its file."""


class Reference:
    name = ""
    decodable = None  # ids that decode() accepts, if restricted

    def same(self, answer, expected):
        return answer == expected


class HuggingFace(Reference):
    name = "tokenizers"

    def __init__(self, file, of_gguf=False):
        from tokenizers import Tokenizer
        try:
            self.tokenizer = Tokenizer.from_file(file)
        except Exception as error:  # the package has no class of its own
            raise Refused(error) from error
        self.tokenizer.no_truncation()
        # Bytes that are invalid UTF-8 become other texts there than in llama.cpp, whose files these
        # are.
        left_out = of_gguf and getattr(self.tokenizer.model, "byte_fallback", False)
        vocab = self.tokenizer.get_vocab(with_added_tokens=True)
        self.decodable = sorted(token for piece, token in vocab.items()
                                if not (left_out and re.fullmatch("<0x[0-9A-F]{2}>", piece)))

    def encode(self, texts):
        return [self.tokenizer.encode(text, add_special_tokens=False).ids for text in texts]

    def decode(self, ids):
        return self.tokenizer.decode(ids)


class SentencePiece(Reference):
    name = "sentencepiece"

    def __init__(self, file, of_gguf=False):
        from sentencepiece import SentencePieceProcessor
        try:
            self.model = SentencePieceProcessor(model_file=file)
        except Exception as error:  # the package has no class of its own
            raise Refused(error) from error
        self.joins_bad_bytes = of_gguf
        # A control token among bytes ends a character there; here special tokens are left out
        # first.
        self.decodable = [token for token in range(self.model.vocab_size())
                          if not self.model.is_control(token)]

    def encode(self, texts):
        return self.model.encode(texts)

    def decode(self, ids):
        # Unknown tokens are left out here, and become a mark of their own there.
        return self.model.decode([token for token in ids if not self.model.is_unknown(token)])

    def same(self, answer, expected):
        if self.joins_bad_bytes and "text" in answer:
            answer, expected = (dict(side, text=re.sub("\ufffd+", "\ufffd", side["text"]))
                                for side in (answer, expected))
        return answer == expected


class LlamaTokenize(Reference):
    """All texts at once, each followed by the beginning token: it separates them, and each begins anew."""
    name = "llama-tokenize"

    def __init__(self, command, model):
        from gguf import GGUFReader
        fields = GGUFReader(model).fields
        begin = fields.get("tokenizer.ggml.bos_token_id")
        if begin is None:
            raise Refused("without a beginning token, texts cannot be told apart")
        self.mark = fields["tokenizer.ggml.tokens"].contents(begin.contents())
        self.command = shlex.split(command) + [
            "-m", model, "--ids", "--stdin", "--no-bos", "--no-escape", "--log-disable"]
        try:
            [self.mark_id] = self.ask(self.mark)
        except subprocess.CalledProcessError as error:
            raise Refused(error) from error

    def ask(self, text):
        run = subprocess.run(self.command, input=text.encode(), stdout=subprocess.PIPE, check=True)
        return ast.literal_eval(run.stdout.decode())

    def encode(self, texts):
        lists = [[]]
        for token in self.ask("".join(text + self.mark for text in texts)):
            if token == self.mark_id:
                lists.append([])
            else:
                lists[-1].append(token)
        return lists[:-1]


class Server(Reference):
    name = "llama-server"

    def __init__(self, url, composed):
        self.url, self.composed = url, composed

    def ask(self, text):
        content = unicodedata.normalize("NFC", text) if self.composed else text
        request = urllib.request.Request(
            f"{self.url}/tokenize", json.dumps({"content": content, "parse_special": True}).encode(),
            {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["tokens"]

    def encode(self, texts):
        return [self.ask(text) for text in texts]


class Count:
    """How many differ, and of how many."""

    def __init__(self, same):
        self.same = same
        self.asked = self.differing = 0

    def add(self, question, answer, expected):
        self.asked += 1
        if self.same(answer, expected):
            return
        self.differing += 1
        if self.differing <= 5:
            print(f"{question!r}: {answer} here, {expected} there")


def compare(program, model, theirs, n_strings, seed=0):
    """Counts for strings, and for lists of ids that are decoded alone (as many, or none)."""
    generator = random.Random(seed)
    texts = [random_string(generator) for _ in range(n_strings)]
    strings, lists = Count(theirs.same), Count(theirs.same)
    expected = theirs.encode(texts)
    for text, answer, ids in zip(texts, ours(program, model, texts), expected, strict=True):
        if theirs.decodable is None:
            strings.add(text, {"ids": answer.get("ids", answer)}, {"ids": ids})
        else:
            strings.add(text, answer, {"ids": ids, "text": theirs.decode(ids)})
    if theirs.decodable is not None:
        questions = [generator.choices(theirs.decodable, k=generator.randrange(1, 12)) for _ in texts]
        for ids, answer in zip(questions, ours(program, model, questions), strict=True):
            lists.add(ids, answer, {"ids": ids, "text": theirs.decode(ids)})
    return strings, lists


def reference_of(arguments):
    of_gguf = arguments.model.endswith(".gguf")
    if arguments.json:
        return HuggingFace(arguments.json, of_gguf)
    if arguments.sentencepiece:
        return SentencePiece(arguments.sentencepiece, of_gguf)
    if arguments.llama_tokenize:
        return LlamaTokenize(arguments.llama_tokenize, arguments.model)
    return Server(arguments.server, arguments.composed)


def refusal(program, model):
    """Outrider's message about a model that it does not load, otherwise ""."""
    run = subprocess.run([program, model], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if run.returncode == 0:
        return ""
    return run.stderr.decode().strip() or f"exit status {run.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    reference = parser.add_mutually_exclusive_group(required=True)
    reference.add_argument("--json")
    reference.add_argument("--sentencepiece")
    reference.add_argument("--llama-tokenize", metavar="COMMAND")
    reference.add_argument("--server", metavar="URL")
    parser.add_argument("--composed", action="store_true")
    parser.add_argument("--strings", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    refused_here = refusal(arguments.program, arguments.model)
    try:
        theirs = reference_of(arguments)
    except Refused as error:
        print(f"refused by {'both' if refused_here else 'the reference alone'}: {error}")
        sys.exit(3)
    if refused_here:
        print(f"refused by Outrider alone: {refused_here}")
        sys.exit(1)
    strings, lists = compare(arguments.program, arguments.model, theirs, arguments.strings,
                             arguments.seed)
    print(f"{strings.differing} of {strings.asked} strings differ")
    if lists.asked:
        print(f"{lists.differing} of {lists.asked} decoded lists differ")
    sys.exit(strings.differing + lists.differing > 0)


if __name__ == "__main__":
    main()
