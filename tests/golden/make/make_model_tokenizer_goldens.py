#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes model_tokenizers.json: small tokenizer.json documents with the structure of the files of
Qwen2, Qwen3, Qwen3.5 and Gemma 3 (each with vocabulary, merges, added tokens and every component),
and the results of Hugging Face's `tokenizers` for a list of texts with each.

Vocabularies are learnt here from the text below, by a plain byte-pair training without randomness:
the script writes the same file each time.

Usage: make_model_tokenizer_goldens.py [OUTPUT]   (needs the Python package tokenizers; made with
0.23)
"""
import collections
import json
import pathlib
import re
import sys

from tokenizers import Tokenizer

STORY = """The mill stands where two rivers meet. In dry years the wheel is still, and the miller's
children walk across the stones to the other bank; in wet years they can't leave the house for weeks.
"It's the water that grinds," their mother says, "we're only here to count the sacks." She counts: 1,
2, 3, 14, 150, 2048. The grandfather, who'd been at sea, drew maps of islands that he'd never seen.
def count_sacks(weights, limit=50):
    total = 0
    for weight in weights:
        if weight > limit:
            total += 1
    return total
Die Mühle steht, wo zwei Flüsse sich treffen; im Sommer hört man das Rad nicht. La rivière était
basse, l'été fini, et les enfants allaient à l'école. Река шла мимо мельницы, и дети считали мешки.
川のそばに水車があります。水車は古いです。子供たちは石の上を歩きます。
नदी का पानी नीचे है। नदी का पानी नहीं है। नदी और पानी, पानी और नदी। नदी का पानी नीचे नहीं है।
"""

TEXTS = [
    "", " ", "  ", "   ", "a", " a", "  a", "a  ", "\n", "\n\n", "\n\n\n", "\n\n\n\n\n\n\n", " \n \n", "\r\n\r\n", "\t", "\t\t\tx", "\t \t",
    "The mill stands", " the  mill   stands    still", "water\nwater\r\nwater\n\n\nwater",
    "the miller's they'RE IT'S we'Ll 'tis x'd s'il", "1 23 456 7890 3.14 ١٢ ½ Ⅷ",
    "def f(x):\n    if x > 10:\n        return  x\n\n\n\treturn 0\n", "total += 1;  // count", "{\"a\": [1, 2]}",
    "Mühle größer été", "Mu\u0308hle gro\u0308ßer e\u0301te\u0301", "q\u0323\u0307 q\u0307\u0323 \u0301 a\u0300\u0301\u0302",
    "\u1112\u1161\u11ab\u1100\u1173\u11af 한글", "\u212b \u2126 \u0958 क\u093c नदी का पानी हिन्दी", "ＡＢＣ ﬁ ½",
    "川のそばに水車があります。", "река и мешки", "עברית العربية ไทย", "👩‍👩‍👧 👍🏽 🇫🇷 \U0001f600\U0001f600",
    "a\u00a0b\u3000c\u2003d\u2028e\u0085f", "\u200b\ufeffx\u00ad", "\x00\x01\x7f", "\ufffd",
    "<|im_start|>user\nThe mill<|im_end|>\n<|im_start|>assistant\n", "<|im_start|><|im_end|><|endoftext|>", "<|im_start", "<tool_call>{}</tool_call>",
    "<think>\n\n</think>\n\nThe", "<bos>The mill<eos>", "<start_of_turn>user\nThe<end_of_turn>\n<start_of_turn>model\n",
    "<unused0><unused1><unused2>", "<table><td>a</td></table>", "<table", "[multimodal]", "<0x41><0xE4>", "▁the▁mill", "▁▁a", "a ▁ b",
    "the the the the the the the the the the the the the the the the", "xyzzyxyzzyxyzzyxyzzyxyzzyxyzzyxyzzyxyzzyxyzzyxyzzyxyzzyxyzzy",
    "                                                  x", "é" * 15, "e\u0301" * 15, "---===...!?!?", "   leading and trailing   ",
]

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
          r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def learn(words, n_merges):
    """n_merges times: the most frequent pair; among ties the first in order of spelling."""
    counts = collections.Counter(words)
    split = {word: list(word) for word in counts}
    merges = []
    while len(merges) < n_merges:
        pairs = collections.Counter()
        for word, count in counts.items():
            for pair in zip(split[word], split[word][1:]):
                pairs[pair] += count
        (left, right), _ = min(pairs.items(), key=lambda item: (-item[1], item[0]))
        merges.append((left, right))
        for parts in split.values():
            i = 0
            while i + 1 < len(parts):
                if parts[i] == left and parts[i + 1] == right:
                    parts[i:i + 2] = [left + right]
                i += 1
    return merges


def byte_alphabet():
    """The character of byte-level vocabularies for each byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte if byte in plain else 256 + others.index(byte)) for byte in range(256)}


def added(id, content, special):
    return dict(id=id, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False,
                special=special)


def byte_level(trim_offsets):
    return dict(type="ByteLevel", add_prefix_space=False, trim_offsets=trim_offsets, use_regex=False)


def qwen(pattern, merges_as_pairs, added_tokens):
    alphabet = byte_alphabet()
    words = ["".join(alphabet[byte] for byte in word.encode())
             for word in re.findall(r" ?(?:[^\W\d_]|[\u0900-\u0963])+|\d| ?[^\s\w]+|\s+(?!\S)|\s+", STORY)]
    merges = learn(words, 300)
    # Ids in the order of the real files: printable bytes first.
    pieces = sorted(alphabet.values()) + [left + right for left, right in merges]
    vocab = {piece: id for id, piece in enumerate(pieces)}
    return dict(
        version="1.0", truncation=None, padding=None,
        added_tokens=[added(len(vocab) + i, content, special) for i, (content, special) in enumerate(added_tokens)],
        normalizer=dict(type="NFC"),
        pre_tokenizer=dict(type="Sequence", pretokenizers=[
            dict(type="Split", pattern=dict(Regex=pattern), behavior="Isolated", invert=False), byte_level(False)]),
        post_processor=byte_level(False), decoder=byte_level(False),
        model=dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix="", end_of_word_suffix="",
                   fuse_unk=False, byte_fallback=False, ignore_merges=False, vocab=vocab,
                   merges=[list(m) if merges_as_pairs else " ".join(m) for m in merges]))


def gemma(pre_tokenizer):
    mark = "\u2581"
    controls = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<unused0>", "<unused1>", "<start_of_turn>", "<end_of_turn>"]
    users = (["[multimodal]"] + ["\n" * n for n in range(1, 6)] + [mark * n for n in range(2, 9)]
             + ["\t" * n for n in range(2, 4)] + ["<table>", "</table>", "<td>", "</td>"])
    data = ["<0x%02X>" % byte for byte in range(256)]
    words = re.findall(mark + "?[^" + mark + "\n]+|\n", STORY.replace(" ", mark))
    learnt = [left + right for left, right in learn(words, 260)]
    known = set(users)
    normal = [p for p in dict.fromkeys(learnt) if p not in known]
    normal += sorted({c for c in "".join(words) if c not in known} | set("\t"))
    pieces = controls + users + data + normal
    vocab = {piece: id for id, piece in enumerate(pieces)}
    # SentencePiece's scores: 0 for user-defined pieces, then one less from piece to piece. Any two
    # pieces that form a third merge, the best score first.
    scores = {piece: 0 for piece in users} | {piece: -i for i, piece in enumerate(normal)}
    merges = []
    for piece, score in scores.items():
        for cut in range(1, len(piece)):
            if piece[:cut] in scores and piece[cut:] in scores:
                merges.append((score, cut, piece[:cut], piece[cut:]))
    merges.sort(key=lambda m: (-m[0], -m[1]))
    return dict(
        version="1.0", truncation=None, padding=None,
        added_tokens=[added(vocab[p], p, True) for p in controls] + [added(vocab[p], p, False) for p in users],
        normalizer=dict(type="Replace", pattern=dict(String=" "), content=mark), pre_tokenizer=pre_tokenizer,
        post_processor=dict(
            type="TemplateProcessing",
            single=[{"SpecialToken": dict(id="<bos>", type_id=0)}, {"Sequence": dict(id="A", type_id=0)}],
            pair=[{"SpecialToken": dict(id="<bos>", type_id=0)}, {"Sequence": dict(id="A", type_id=0)},
                  {"SpecialToken": dict(id="<bos>", type_id=1)}, {"Sequence": dict(id="B", type_id=1)}],
            special_tokens={"<bos>": dict(id="<bos>", ids=[2], tokens=["<bos>"])}),
        decoder=dict(type="Sequence", decoders=[
            dict(type="Replace", pattern=dict(String=mark), content=" "), dict(type="ByteFallback"),
            dict(type="Fuse")]),
        model=dict(type="BPE", dropout=None, unk_token="<unk>", continuing_subword_prefix=None,
                   end_of_word_suffix=None, fuse_unk=True, byte_fallback=True, ignore_merges=False, vocab=vocab,
                   merges=[[left, right] for _, _, left, right in merges]))


def documents():
    chat = [("<|endoftext|>", True), ("<|im_start|>", True), ("<|im_end|>", True)]
    tools = [("<tool_call>", False), ("</tool_call>", False)]
    thoughts = [("<think>", False), ("</think>", False)]
    yield "qwen2", qwen(QWEN2, False, chat)
    yield "qwen3", qwen(QWEN2, True, chat + tools + thoughts)
    yield "qwen35", qwen(QWEN35, True, chat + tools + thoughts)
    yield "gemma3", gemma(dict(type="Split", pattern=dict(String=" "), behavior="MergedWithPrevious", invert=False))
    yield "gemma3 uncut", gemma(None)


def main():
    output = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                          pathlib.Path(__file__).resolve().parents[1] / "model_tokenizers.json")
    cases = []
    for name, document in documents():
        tokenizer = Tokenizer.from_str(json.dumps(document))
        ids = [tokenizer.encode(text).ids for text in TEXTS]
        cases.append(dict(
            name=name, tokenizer=document, ids=ids,
            plain_ids=[tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS],
            decoded=[tokenizer.decode(i) for i in ids],
            decoded_special=[tokenizer.decode(i, skip_special_tokens=False) for i in ids],
            decoded_backwards=[tokenizer.decode(i[::-1]) for i in ids]))
    lines = [json.dumps(case, ensure_ascii=True, separators=(",", ":")) for case in cases]
    texts = json.dumps(TEXTS, ensure_ascii=True, separators=(",", ":"))
    output.write_text('{"texts":%s,\n"tokenizers":[\n%s\n]}\n' % (texts, ",\n".join(lines)))
    print(f"{output}: {len(cases)} tokenizers, {len(TEXTS)} texts")


if __name__ == "__main__":
    main()
