#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tokenizer_variants.json: two tiny BPE models, trained here on the text below, combined
with every component of tokenizer.json that the library reads, and the results of Hugging Face's
`tokenizers` with each for a list of awkward texts.

Usage: make_tokenizer_goldens.py [OUTPUT]      (needs the Python package tokenizers; made with 0.23)
"""
import json
import pathlib
import sys

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

STORY = """The river came down from the hills in the spring, brown and loud, and in the summer it was
a thread of silver between white stones. Anna's house stood where the road crossed it. She'd counted
the carts that went over the bridge: 12 on Monday, 7 on Tuesday, 30 on market day. "They're late
today," she said; "it's the rain." Her brother didn't answer. He was writing numbers in a book, 1871,
1872, 1873, and drawing a small boat beside every year that had been a good one.
In the evening the ferryman came. He'd seen the sea, he said, and ships with three masts, and a town
where the streets were water. "We'll go there," said Anna, "when the river is low." The river was
never low enough. It ran and ran, under the bridge, past the mill, and they listened to it at night.
Der Fluss kam im Frühling von den Hügeln, braun und laut; für die Müllerin war er größer als das
Meer. L'été, la rivière était à peine un fil d'argent entre les pierres blanches; où allait-elle ?
    if (count > 0) {
        count = count - 1;
    }
"""

TEXTS = [
    "", "a", " ", "   ", "The river", " the river", "the  river   ran", "The river\ncame\r\ndown\n\n",
    "They're late, she'd said; IT'S we'll", "1871 1872,1873.50", "x=12;y[3]", "\t\tcount\n",
    "Frühling größer été", "Fru\u0308hling e\u0301te\u0301", "ＡＢＣ ﬁne ½ Ⅷ", "İstanbul STRASSE Σς",
    "日本語のテキスト", "река и море", "👨‍👩‍👧 👍🏽", "a\u00a0b\u3000c\u2003d", "\u200b\ufeffx", "\x00\x01\x7f",
    "<s>the river</s>", "a<s>b <s> c", "<mask> river<mask>ran  <mask>", "foo cat cats concat cat.",
    "▁the▁river", "a▁ b ▁c", "<0x41>", "...!!!??", "(a) [b] {c}", "---", "it's 'tis 'LL",
    "the river the river the river the river the river the river the river the river the river",
    "xyzzyxyzzyxyzzyxyzzyxyzzyxyzzyxyzzyxyzzyxyzzyxyzzy", "   leading and trailing   ",
    "١٢٣ ४५ 七", "a-b_c.d/e", "é" * 12, "  \n  \n  ", "e\u0301" * 9, "ab\u0301\u0323c", "q\u180er",
]


def train(trainer, normalizer, pre_tokenizer, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(STORY.split("\n"), trainer)
    return json.loads(tokenizer.to_str())["model"]


def byte_level_model():
    trainer = trainers.BpeTrainer(
        vocab_size=420, show_progress=False, special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return train(trainer, None, pre_tokenizers.ByteLevel(add_prefix_space=False))


def sentence_piece_model():
    pieces = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % byte for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=460, show_progress=False, special_tokens=pieces)
    model = train(trainer, None, pre_tokenizers.Metaspace())
    model.update(unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    return model


def character_model():
    """Without byte fallback: characters outside the vocabulary are unknown."""
    trainer = trainers.BpeTrainer(vocab_size=160, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"])
    model = train(trainer, None, pre_tokenizers.Metaspace())
    model.update(unk_token="<unk>")
    return model


def suffix_model():
    trainer = trainers.BpeTrainer(vocab_size=160, show_progress=False,
                                  special_tokens=["<unk>", "<s>", "</s>"], end_of_word_suffix="</w>")
    return train(trainer, None, pre_tokenizers.Whitespace(), unk_token="<unk>", end_of_word_suffix="</w>")


def prefix_model():
    trainer = trainers.BpeTrainer(vocab_size=200, show_progress=False,
                                  special_tokens=["<unk>", "<s>", "</s>"], continuing_subword_prefix="##")
    return train(trainer, None, pre_tokenizers.Whitespace(), unk_token="<unk>", continuing_subword_prefix="##")


def added(id, content, **flags):
    token = dict(id=id, content=content, single_word=False, lstrip=False, rstrip=False,
                 normalized=False, special=True)
    token.update(flags)
    return token


def byte_level(**options):
    return dict(dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True), **options)


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return dict(type="Split", pattern={kind: pattern}, behavior=behavior, invert=invert)


def sequence(key, *items):
    return {"type": "Sequence", key: list(items)}


def template(before, behind):
    def special(token):
        return {"SpecialToken": {"id": token, "type_id": 0}}
    tokens = {"<s>": 0, "</s>": 1}
    return {"type": "TemplateProcessing",
            "single": [special(t) for t in before] + [{"Sequence": {"id": "A", "type_id": 0}}]
            + [special(t) for t in behind],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {t: {"id": t, "ids": [i], "tokens": [t]} for t, i in tokens.items()}}


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPACE_MARK = dict(type="Replace", pattern={"String": " "}, content="\u2581")
LLAMA_NORMALIZER = sequence("normalizers", dict(type="Prepend", prepend="\u2581"), SPACE_MARK)
LLAMA_DECODER = sequence("decoders", dict(type="Replace", pattern={"String": "\u2581"}, content=" "),
                         dict(type="ByteFallback"), dict(type="Fuse"),
                         dict(type="Strip", content=" ", start=1, stop=0))


def variants():
    byte_tokens = [added(0, "<s>"), added(1, "</s>")]
    piece_tokens = [added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")]
    base = dict(normalizer=None, pre_tokenizer=byte_level(), post_processor=byte_level(),
                decoder=byte_level(), added_tokens=byte_tokens)

    def bytes_variant(name, model="byte_level", **changes):
        return dict(base, name=name, model=model, **changes)

    def pieces_variant(name, model="sentence_piece", **changes):
        variant = dict(name=name, model=model, normalizer=LLAMA_NORMALIZER, pre_tokenizer=None,
                       post_processor=None, decoder=LLAMA_DECODER, added_tokens=piece_tokens)
        variant.update(changes)
        return variant

    yield bytes_variant("gpt2")
    yield bytes_variant("gpt2 prefix space", pre_tokenizer=byte_level(add_prefix_space=True))
    yield bytes_variant("template", post_processor=template(["<s>"], ["</s>"]))
    yield bytes_variant("template in sequence", post_processor=sequence(
        "processors", byte_level(), template(["<s>", "<s>"], [])))
    yield bytes_variant("roberta", post_processor=dict(
        type="RobertaProcessing", sep=["</s>", 1], cls=["<s>", 0], trim_offsets=True, add_prefix_space=False))
    yield bytes_variant("bert", post_processor=dict(type="BertProcessing", sep=["</s>", 1], cls=["<s>", 0]))
    yield bytes_variant("llama3", pre_tokenizer=sequence(
        "pretokenizers", split(LLAMA3), byte_level(use_regex=False)))
    for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"):
        yield bytes_variant(form, normalizer=dict(type=form))
    yield bytes_variant("accents", normalizer=sequence(
        "normalizers", dict(type="NFD"), dict(type="StripAccents"), dict(type="Lowercase")))
    yield bytes_variant("strip", normalizer=dict(type="Strip", strip_left=True, strip_right=False))
    yield bytes_variant("strip both", normalizer=dict(type="Strip", strip_left=True, strip_right=True))
    yield bytes_variant("replace regex", normalizer=dict(
        type="Replace", pattern={"Regex": r"\s{2,}|[0-9]+"}, content="$1"))
    yield bytes_variant("byte level normalizer", normalizer=dict(type="ByteLevel"), pre_tokenizer=None)
    for behavior in ("Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"):
        for invert in (False, True):
            yield bytes_variant(f"split {behavior} {invert}", pre_tokenizer=sequence(
                "pretokenizers", split(r"[er ]|\d", behavior, invert), byte_level(use_regex=False)))
        yield bytes_variant(f"split string {behavior}", pre_tokenizer=sequence(
            "pretokenizers", split("the", behavior, kind="String"), byte_level(use_regex=False)))
        yield bytes_variant(f"punctuation {behavior}", pre_tokenizer=sequence(
            "pretokenizers", dict(type="Punctuation", behavior=behavior), byte_level(use_regex=False)))
    for name, pattern in (("interval", r"\p{N}{1,2}+"), ("at most", r"a{,2}"), ("line end", r"\s+$"),
                          ("words", r"\w+"), ("hex", r"\h+"), ("dot", r"(?m:r.c)"), ("empty", r"x*"),
                          ("no space", r"[\S]+"), ("not words", r"\W"), ("unicode", r"\u0065+")):
        yield bytes_variant(f"dialect {name}", pre_tokenizer=sequence(
            "pretokenizers", split(pattern), byte_level(use_regex=False)))
    for name, step in (("digits", dict(type="Digits", individual_digits=False)),
                       ("single digits", dict(type="Digits", individual_digits=True)),
                       ("whitespace", dict(type="Whitespace")),
                       ("whitespace split", dict(type="WhitespaceSplit")),
                       ("delimiter", dict(type="CharDelimiterSplit", delimiter="i")),
                       ("isolated digits then words", sequence(
                           "pretokenizers", dict(type="Digits", individual_digits=True),
                           dict(type="Punctuation", behavior="Isolated")))):
        yield bytes_variant(name, pre_tokenizer=sequence("pretokenizers", step, byte_level(use_regex=False)))
    flags = lambda: [added(1000, "cat", special=False, single_word=True),
             added(1001, "<mask>", lstrip=True), added(1002, "ran", special=False, rstrip=True),
             added(1003, "CAMe", special=False, normalized=True), added(1004, "<m", special=False),
             added(1005, "hill", special=False, normalized=True, lstrip=True, rstrip=True)]
    yield bytes_variant("added tokens", added_tokens=byte_tokens + flags())
    yield bytes_variant("added tokens normalized", added_tokens=byte_tokens + flags(),
                        normalizer=dict(type="Lowercase"))
    yield bytes_variant("ignore merges", model="byte_level ignore_merges")
    yield bytes_variant("no decoder", decoder=None)

    yield pieces_variant("llama")
    yield pieces_variant("llama template", post_processor=template(["<s>"], []) | {"special_tokens": {
        "<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}})
    yield pieces_variant("added in pieces", added_tokens=piece_tokens + [
        added(1000, "river", special=False, normalized=True), added(1001, "<mask>", rstrip=True)])
    for scheme in ("always", "first", "never"):
        for cut in (True, False):
            meta = dict(type="Metaspace", replacement="\u2581", prepend_scheme=scheme, split=cut)
            yield pieces_variant(f"metaspace {scheme} {cut}", normalizer=None, pre_tokenizer=meta,
                                 decoder=sequence("decoders", dict(type="ByteFallback"), meta))
    old = dict(type="Metaspace", replacement="\u2581", add_prefix_space=True)
    yield pieces_variant("metaspace old", normalizer=None, pre_tokenizer=old, decoder=old)
    yield pieces_variant("metaspace first in sequence", normalizer=None, pre_tokenizer=sequence(
        "pretokenizers", dict(type="WhitespaceSplit"),
        dict(type="Metaspace", replacement="\u2581", prepend_scheme="first")), decoder=old)
    yield pieces_variant("strip ends", decoder=sequence(
        "decoders", dict(type="Fuse"), dict(type="Strip", content="e", start=0, stop=2),
        dict(type="Strip", content="\u2581", start=2, stop=1)))
    yield pieces_variant("strip each", decoder=dict(type="Strip", content="e", start=1, stop=1))
    yield pieces_variant("replace after fuse", decoder=sequence(
        "decoders", dict(type="Fuse"), dict(type="Replace", pattern={"Regex": "[er]\u2581"}, content="_")))
    yield pieces_variant("characters", model="character")
    yield pieces_variant("characters fused", model="character fuse_unk")
    yield pieces_variant("characters dropped", model="character no_unk")
    words = dict(normalizer=None, pre_tokenizer=dict(type="Whitespace"))
    yield pieces_variant("suffix", model="suffix", decoder=dict(type="BPEDecoder", suffix="</w>"), **words)
    yield pieces_variant("prefix", model="prefix", decoder=None, **words)


def decode(tokenizer, ids, **options):
    try:
        return tokenizer.decode(ids, **options)
    except BaseException:  # a Rust panic: Strip at the end of an empty token
        return None


def write(output, made, variants, texts):
    """Writes `variants` of the models `made` by name, with the results for the texts."""
    cases = []
    for variant in variants:
        document = {"version": "1.0", "truncation": None, "padding": None}
        document.update({k: v for k, v in variant.items() if k not in ("name", "model")})
        document["model"] = made[variant["model"]]
        # New tokens are numbered from the end of the model's vocabulary, whose size depends on
        # training.
        for token in variant["added_tokens"]:
            if token["id"] >= 1000:
                token["id"] += len(document["model"]["vocab"]) - 1000
        tokenizer = Tokenizer.from_str(json.dumps(document))
        ids = [tokenizer.encode(text).ids for text in texts]
        plain = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        cases.append(dict(
            variant, ids=ids, decoded=[decode(tokenizer, i) for i in ids],
            decoded_special=[decode(tokenizer, i, skip_special_tokens=False) for i in ids],
            # In reverse, so that the bytes of characters are separated.
            decoded_backwards=[decode(tokenizer, i[::-1]) for i in ids]))
        if plain != ids:
            cases[-1]["plain_ids"] = plain
        if cases[-1]["decoded_special"] == cases[-1]["decoded"]:
            del cases[-1]["decoded_special"]
    lines = [json.dumps(case, ensure_ascii=True, separators=(",", ":")) for case in cases]
    models_json = json.dumps(made, ensure_ascii=True, separators=(",", ":"))
    texts_json = json.dumps(texts, ensure_ascii=True, separators=(",", ":"))
    output.write_text('{"models":%s,\n"texts":%s,\n"variants":[\n%s\n]}\n'
                      % (models_json, texts_json, ",\n".join(lines)))
    print(f"{output}: {len(cases)} variants of {len(texts)} texts")


def main():
    output = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                          pathlib.Path(__file__).resolve().parents[1] / "tokenizer_variants.json")
    byte_model = byte_level_model()
    character = character_model()
    made = {"byte_level": byte_model,
            "byte_level ignore_merges": dict(byte_model, ignore_merges=True, merges=byte_model["merges"][:60]),
            "sentence_piece": sentence_piece_model(), "character": character,
            "character fuse_unk": dict(character, fuse_unk=True),
            "character no_unk": dict(character, unk_token=None),
            "suffix": suffix_model(), "prefix": prefix_model()}
    write(output, made, variants(), TEXTS)


if __name__ == "__main__":
    main()
