# SPDX-License-Identifier: Apache-2.0
"""Makes a tokenizer.json for Hugging Face's tokenizers from other files: the reference of
compare_tokenizers.py and compare_tokenizer_speed.py if a model comes without one.

    python3 tools/make_tokenizer_json.py model.gguf tokenizer.json
    python3 tools/make_tokenizer_json.py FOLDER tokenizer.json          # vocab.json and merges.txt
    python3 tools/make_tokenizer_json.py tokenizer.model tokenizer.json --pattern llama-bpe
    python3 tools/make_tokenizer_json.py broken.json tokenizer.json

The third is for tiktoken's ranks, "BASE64 RANK" per line. The fourth leaves out merges of pieces
that are missing in the vocabulary, for which Hugging Face's tokenizers refuse a file. A GGUF file
(read with the package gguf) may be of kind gpt2 with one of the names below in tokenizer.ggml.pre,
or of kind llama, with a blank before its texts (Llama 2) or without (Gemma).
"""
import argparse
import base64
import json
import os

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
BEHIND_NUMBERS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LETTERS = r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
PATTERNS = {"llama-bpe": CONTRACTIONS + LETTERS + "{1,3}" + BEHIND_NUMBERS,
            "qwen2": CONTRACTIONS + LETTERS + BEHIND_NUMBERS}
MARK = "\u2581"  # for a blank


def byte_level(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
            "use_regex": use_regex}


def byte_level_document(vocab, merges, pre):
    if pre is None:
        raise SystemExit("tokenizer.ggml.pre is missing: nothing says how words are cut")
    if pre == "gpt-2":
        cutting = byte_level(True)
    elif pre == "smollm":
        cutting = {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True}, byte_level(True)]}
    elif pre not in PATTERNS:
        raise SystemExit(f"tokenizer.ggml.pre is {pre}, whose pattern is not here")
    else:
        cutting = {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": PATTERNS[pre]}, "behavior": "Isolated",
             "invert": False}, byte_level(False)]}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": {"type": "NFC"} if pre == "qwen2" else None,
            "pre_tokenizer": cutting, "post_processor": None, "decoder": byte_level(True),
            "model": {"type": "BPE", "dropout": None, "unk_token": None,
                      "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False,
                      "ignore_merges": pre == "llama-bpe", "vocab": vocab, "merges": merges}}


def of_scores(tokens, scores, unknown, blank_first):
    """Any two pieces that form a piece may merge, the best score first."""
    vocab = {token: i for i, token in enumerate(tokens)}
    merges = []
    for token, i in vocab.items():
        halves = [(token[:k], token[k:]) for k in range(1, len(token))]
        halves = [(a, b) for a, b in halves if a in vocab and b in vocab]
        halves.sort(key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
        merges += [(scores[i], a, b) for a, b in halves]
    merges.sort(key=lambda merge: -merge[0])
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    back = {"type": "Replace", "pattern": {"String": MARK}, "content": " "}
    decoders = [back, {"type": "ByteFallback"}, {"type": "Fuse"}]
    cutting = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    if blank_first:
        replace = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": MARK}, replace]}
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
        cutting = None
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": replace,
            "pre_tokenizer": cutting,
            "post_processor": None,
            "decoder": {"type": "Sequence", "decoders": decoders},
            "model": {"type": "BPE", "dropout": None, "unk_token": tokens[unknown],
                      "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                      "vocab": vocab, "merges": [[a, b] for _, a, b in merges]}}


def of_gguf(path):
    from gguf import GGUFReader
    fields = GGUFReader(path).fields

    def value(key, default=None):
        field = fields.get("tokenizer.ggml." + key)
        return default if field is None else field.contents()

    tokens = value("tokens")
    if value("model") not in ("gpt2", "llama"):
        raise SystemExit(f"tokenizer.ggml.model is {value('model')}, not gpt2 or llama")
    if value("model") == "llama":
        document = of_scores(tokens, value("scores"), value("unknown_token_id", 0),
                             value("add_space_prefix", True))
    else:
        merges = [merge[:1] + merge[1:].replace(" ", "\0", 1) for merge in value("merges")]
        document = byte_level_document({token: i for i, token in enumerate(tokens)},
                                       [merge.split("\0") for merge in merges], value("pre"))
    for i, kind in enumerate(value("token_type")):
        if kind in (2, 3, 4):  # unknown, control, user-defined
            document["added_tokens"].append(
                {"id": i, "content": tokens[i], "single_word": False, "lstrip": False,
                 "rstrip": False, "normalized": False, "special": kind != 4})
    return document


def of_folder(folder):
    with open(os.path.join(folder, "vocab.json"), encoding="utf-8") as file:
        vocab = json.load(file)
    with open(os.path.join(folder, "merges.txt"), encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    merges = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    return byte_level_document(vocab, merges, "gpt-2")


def of_ranks(path, pre):
    with open(path, encoding="ascii") as file:
        tokens = [base64.b64decode(line.split()[0]) for line in file if line.strip()]
    ranks = {token: rank for rank, token in enumerate(tokens)}
    own = [byte for byte in range(256)
           if 0x21 <= byte <= 0x7e or 0xa1 <= byte <= 0xac or byte >= 0xae]
    others = [byte for byte in range(256) if byte not in own]
    alphabet = {byte: chr(byte) for byte in own}
    alphabet.update((byte, chr(0x100 + i)) for i, byte in enumerate(others))

    def spelled(token):
        return "".join(alphabet[byte] for byte in token)

    merges = []
    for rank, token in enumerate(tokens):
        # The merge for a token joins the two parts that merges of lower rank make of it.
        parts = [token[i:i + 1] for i in range(len(token))]
        while len(parts) > 2:
            best, at = min((ranks.get(parts[i] + parts[i + 1], rank), i)
                           for i in range(len(parts) - 1))
            if best >= rank:
                break
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        if len(parts) == 2:
            merges.append([spelled(parts[0]), spelled(parts[1])])
    return byte_level_document({spelled(token): rank for token, rank in ranks.items()}, merges, pre)


def of_broken(path):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    merges, vocab = document["model"].get("merges", []), document["model"]["vocab"]
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
    known = [[a, b] for a, b in pairs if a in vocab and b in vocab and a + b in vocab]
    if len(known) == len(merges):
        raise SystemExit("all merges are of pieces of the vocabulary")
    document["model"]["merges"] = known
    return document


def document_of(source, pattern):
    if os.path.isdir(source):
        return of_folder(source)
    if source.endswith(".gguf"):
        return of_gguf(source)
    if source.endswith(".json"):
        return of_broken(source)
    return of_ranks(source, pattern)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("output")
    parser.add_argument("--pattern", choices=sorted(PATTERNS), default="llama-bpe")
    arguments = parser.parse_args()
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump(document_of(arguments.source, arguments.pattern), file, ensure_ascii=False)


if __name__ == "__main__":
    main()
