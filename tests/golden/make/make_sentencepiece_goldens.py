#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes sentencepiece_models.json: tiny SentencePiece models, trained here on the text of
make_tokenizer_goldens.py, and SentencePiece's results with each for a list of awkward texts, and
for ids back to text. Also writes unigram_variants.json: a Unigram model with the components of
tokenizer.json that such models use, and the results of Hugging Face's `tokenizers` for the same
texts (in the form of tokenizer_variants.json). With a folder of shared data,
sentencepiece_models.json also has the ids that SentencePiece gives for the real models there.

Usage: make_sentencepiece_goldens.py [SHARED]     (Python packages tokenizers 0.23, sentencepiece
0.2.3)
"""
import base64
import io
import json
import pathlib
import random
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

import make_tokenizer_goldens as components

HERE = pathlib.Path(__file__).resolve().parents[1]
TEXTS = components.TEXTS + [
    "e\u0301 \ufb01\u0301x \u00bd\u0301 A\u0301 \uff21\u0301\u0302", "\r\n \r\u0301", "\u0600\u00bd \u0600\uff21",
    "the<sep>river<sep><sep>", " <sep> the", "<sep", "<se<sep>p>", "a<blank sep>b", "\u2581\u2581the\u2581\u2581\u2581river",
    "<ctl>the<ctl>", "</s></s>", "<unk>the<unk>", "the\u200briver\u00ad", "\uff1c/s\uff1e the", "\uff1cunk\uff1e\u2603",
    "<0x41><0xE2>\u2603", "\u2603\u2603 \u2603the\u2603", "    ", "\u3000\u3000the\u3000", "the\u2581", "the  \u2581 ",
    "00 000 0000 00000", "hill hills", "brbrbr", "r b r br rbr",
]
RULES = ([(c, [c - 0xFEE0]) for c in range(0xFF01, 0xFF5F)]
         + [(c, [0x20]) for c in (0x09, 0x0A, 0x0D, 0xA0, 0x3000, 0x2581)]
         + [(c, []) for c in (0x00AD, 0x200B, 0xFEFF)]
         + [(0xFB01, [0x66, 0x69]), (0xBD, [0x31, 0x2044, 0x32])])
SEQUENCES = [([0x65, 0x301], [0xE9]), ([0x75, 0x308], [0xFC]), ([0x0D, 0x0A], [0x20]), ([0x41, 0x301, 0x302], [0xC1])]


def train(folder, rules=True, **options):
    """A model; with `rules`, one that rewrites characters by a small table."""
    if rules:
        table = folder / "rules.tsv"
        lines = [(["%x" % source], target) for source, target in RULES]
        lines += [(["%x" % c for c in source], target) for source, target in SEQUENCES]
        table.write_text("".join(f"{' '.join(source)}\t{' '.join('%x' % c for c in target)}\n" for source, target in lines))
        options["normalization_rule_tsv"] = str(table)
    else:
        options["normalization_rule_name"] = "identity"
    file = io.BytesIO()
    settings = dict(vocab_size=150, hard_vocab_limit=False, character_coverage=1.0, num_threads=1, minloglevel=3)
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(components.STORY.split("\n") * 4), model_writer=file,
                                             **dict(settings, **options))
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(file.getvalue())
    model.normalizer_spec.ClearField("normalization_rule_tsv")  # a path of this machine
    return model


SYMBOLS = ["<sep>", "<blank sep>", "br", "brb", "ill", "\u2581\u2581", "00"]


def models(folder):
    """Names and models."""
    keep = dict(remove_extra_whitespaces=False, allow_whitespace_only_pieces=True)
    symbols = dict(user_defined_symbols=SYMBOLS, control_symbols=["<ctl>"])
    yield "unigram", train(folder)
    yield "unigram bytes", train(folder, rules=False, byte_fallback=True, vocab_size=400, split_digits=True, **keep)
    yield "unigram symbols", train(folder, pad_id=3, **symbols)
    yield "unigram symbols bytes", train(folder, rules=False, byte_fallback=True, vocab_size=420, **keep, **symbols)
    yield "unigram suffix", train(folder, treat_whitespace_as_suffix=True)
    yield "unigram no prefix", train(folder, add_dummy_prefix=False)
    yield "unigram nothing", train(folder, rules=False, add_dummy_prefix=False, unk_id=2, eos_id=0, bos_id=-1, **keep)
    yield "bpe", train(folder, model_type="bpe")
    yield "bpe bytes", train(folder, rules=False, model_type="bpe", byte_fallback=True, vocab_size=400, **keep)
    yield "bpe symbols", train(folder, model_type="bpe", **symbols)
    yield "bpe symbols bytes", train(folder, model_type="bpe", byte_fallback=True, vocab_size=420, **keep, **symbols)
    yield "bpe suffix", train(folder, model_type="bpe", treat_whitespace_as_suffix=True, **keep)
    blanks = train(folder, add_dummy_prefix=True)
    blanks.normalizer_spec.escape_whitespaces = False
    yield "unigram blanks", blanks
    unused = train(folder)
    for piece in list(unused.pieces)[20:60:3]:
        if len(piece.piece) > 1:
            piece.type = 5
    yield "unigram unused", unused


def random_lists(processor, generator):
    """Ids to decode; the library leaves unknown ones out, and its control ids do not end bytes."""
    allowed = [i for i in range(processor.vocab_size()) if not processor.is_control(i) and not processor.is_unknown(i)]
    return [generator.choices(allowed, k=generator.randrange(1, 14)) for _ in range(30)]


def measure(name, model, generator):
    bytes_ = model.SerializeToString()
    processor = sentencepiece.SentencePieceProcessor(model_proto=bytes_)
    ids = [processor.encode(text) for text in TEXTS]
    known = [[i for i in one if not processor.is_unknown(i)] for one in ids]
    lists = random_lists(processor, generator)
    return dict(name=name, model=base64.b64encode(bytes_).decode(), ids=ids, decoded=[processor.decode(one) for one in known],
                lists=lists, decoded_lists=[processor.decode(one) for one in lists])


SHARED = ["llama2/tokenizer.model", "t5_type_legal/spiece.model", "marian_opus/source.spm", "marian_opus/target.spm",
          "sentencepiece/test_ja_model.model", "sentencepiece/test_model.model", "sentencepiece/test_sentencepiece.model",
          "sentencepiece/test_sentencepiece_bpe.model", "sentencepiece/test_sentencepiece_no_bos.model",
          "sentencepiece/test_sentencepiece_with_bytefallback.model"]


def measure_shared(folder, file):
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / file))
    ids = [processor.encode(text) for text in TEXTS]
    known = [[i for i in one if not processor.is_unknown(i)] for one in ids]
    return dict(file=file, ids=ids, decoded=[processor.decode(one) for one in known])


def unigram_variants(model):
    """tokenizer.json documents without their model, as make_tokenizer_goldens.variants() has them."""
    added = components.added
    charsmap = dict(type="Precompiled", precompiled_charsmap=base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode())
    one_blank = dict(type="Replace", pattern={"Regex": " {2,}"}, content=" ")
    metaspace = dict(type="Metaspace", replacement="\u2581", prepend_scheme="always", split=True)
    special = [added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")]
    base = dict(normalizer=components.sequence("normalizers", charsmap, one_blank), pre_tokenizer=metaspace,
                post_processor=None, decoder=metaspace, added_tokens=special, model="unigram")

    def variant(name, **changes):
        return dict(base, name=name, **changes)

    yield variant("t5")
    yield variant("charsmap alone", normalizer=charsmap, pre_tokenizer=dict(metaspace, split=False))
    yield variant("xlm-r", pre_tokenizer=components.sequence("pretokenizers", dict(type="WhitespaceSplit"), metaspace))
    yield variant("no metaspace", normalizer=None, pre_tokenizer=None, decoder=None)
    yield variant("nmt", normalizer=components.sequence("normalizers", dict(type="Nmt"), dict(type="NFKC"), one_blank))
    yield variant("nothing added", added_tokens=[])
    yield variant("albert", normalizer=components.sequence(
        "normalizers", dict(type="Replace", pattern={"String": "``"}, content='"'), dict(type="NFKD"),
        dict(type="StripAccents"), dict(type="Lowercase"), charsmap, one_blank))
    yield variant("added", added_tokens=special + [
        added(1000, "river", special=False, normalized=True), added(1001, "<mask>", lstrip=True)])
    yield variant("bytes", model="unigram bytes", decoder=components.sequence(
        "decoders", dict(type="ByteFallback"), metaspace))
    yield variant("some bytes", model="unigram some bytes", added_tokens=[], decoder=components.sequence(
        "decoders", dict(type="ByteFallback"), metaspace))
    yield variant("unknown elsewhere", model="unigram unknown elsewhere", added_tokens=[])
    yield variant("high scores", model="unigram high", added_tokens=[])
    yield variant("without a type", model="unigram without type")

    def byte_level_variant(name, **changes):
        byte_level = components.byte_level()
        return variant(name, **{**dict(model="unigram byte level", normalizer=None, pre_tokenizer=byte_level, decoder=byte_level,
                                       added_tokens=special[:1]), **changes})

    whole = components.byte_level(use_regex=False)
    yield byte_level_variant("byte level")
    yield byte_level_variant("byte level prefix space", pre_tokenizer=components.byte_level(add_prefix_space=True))
    yield byte_level_variant("byte level whole", pre_tokenizer=whole)
    yield byte_level_variant("byte level split", pre_tokenizer=components.sequence(
        "pretokenizers", components.split(components.LLAMA3), whole))
    yield byte_level_variant("byte level normalizer", normalizer=dict(type="ByteLevel"), pre_tokenizer=None)
    yield byte_level_variant("byte level added", added_tokens=special[:1] + [
        added(1000, "river", special=False, normalized=True), added(1001, "<mask>", lstrip=True)])
    yield byte_level_variant("byte level some bytes", model="unigram some byte letters")


def byte_level_vocab():
    """The pieces of a trained byte-level BPE, with scores as if each were as frequent as its rank implies."""
    ranked = sorted(components.byte_level_model()["vocab"].items(), key=lambda item: item[1])
    pieces = [piece for piece, _ in ranked if piece not in ("<s>", "</s>")]
    return [["<unk>", 0.0]] + [[piece, -4 - i / 64 if len(piece) == 1 else -2 - i / 64] for i, piece in enumerate(pieces)]


def unigram_models(model):
    vocab = [[piece.piece, piece.score] for piece in model.pieces]
    bytes_ = [["<0x%02X>" % byte, -12.5] for byte in range(256)]
    # Scores above 10: a run of unknown characters may beat the piece with that spelling.
    high = [["<unk>", 40.0], ["a", 30.0], ["\u2581", 30.0], ["zz", 41.0], ["zzy", 35.0], ["the", 36.0], ["\u2603\u2603", 32.0]]
    made = {"unigram": dict(type="Unigram", unk_id=0, vocab=vocab),
            "unigram bytes": dict(type="Unigram", unk_id=0, vocab=vocab + bytes_, byte_fallback=True),
            "unigram some bytes": dict(type="Unigram", unk_id=0, byte_fallback=True, vocab=vocab + [
                pair for pair in bytes_ if pair[0] not in ("<0x98>", "<0x94>")]),
            "unigram unknown elsewhere": dict(type="Unigram", unk_id=5, vocab=vocab),
            "unigram high": dict(type="Unigram", unk_id=0, vocab=high)}
    byte_level = byte_level_vocab()
    made["unigram byte level"] = dict(type="Unigram", unk_id=0, vocab=byte_level)
    made["unigram some byte letters"] = dict(type="Unigram", unk_id=0, vocab=[
        pair for pair in byte_level if pair[0] not in ("\u00e2", "\u0122", "\u00a9", "z")])
    made["unigram without type"] = {k: v for k, v in made["unigram"].items() if k != "type"}
    return made


def main():
    generator = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        made = list(models(pathlib.Path(folder)))
    cases = [measure(name, model, generator) for name, model in made]
    shared = []
    if len(sys.argv) > 1:
        tokenizers = pathlib.Path(sys.argv[1]) / "tokenizers"
        shared = [measure_shared(tokenizers, file) for file in SHARED]
    lines = [",\n".join(json.dumps(case, separators=(",", ":")) for case in part) for part in (cases, shared)]
    output = HERE / "sentencepiece_models.json"
    output.write_text('{"texts":%s,\n"models":[\n%s\n],\n"shared":[\n%s\n]}\n'
                      % (json.dumps(TEXTS, separators=(",", ":")), *lines))
    print(f"{output}: {len(cases)} models and {len(shared)} real ones, {len(TEXTS)} texts")
    plain = dict(made)["unigram"]
    components.write(HERE / "unigram_variants.json", unigram_models(plain), unigram_variants(plain), TEXTS)


if __name__ == "__main__":
    main()
