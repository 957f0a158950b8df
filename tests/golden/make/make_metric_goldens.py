#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes metrics.json in the folder above: scores of texts by the programs that papers cite.

BLEU and chrF by sacreBLEU, ROUGE by Google's rouge-score, SQuAD's exact match and F1 by the
functions in Hugging Face transformers, pass@k by counting subsets. Needs these packages (sacrebleu
2.5, rouge-score 0.1.2); the texts are below.
"""

import itertools
import json
import pathlib

import sacrebleu
from rouge_score import rouge_scorer
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from transformers.data.metrics import squad_metrics

TO_TOKENIZE = [
    "A dog runs, then stops.",
    "It cost $1,250.50 (about 3.5% more) in 2019-2020.",
    "Well-known: e.g. the U.S. and the E.U.!",
    "He said \"no\" -- and 'left'... twice..",
    "&quot;Fish &amp; chips&quot; &lt;b&gt; &amp;lt;",
    "a-\nb and c\nd <skipped>gone",
    "Version 1.2.3, section 4-5; 7,8,9 and .5 or 6.",
    "Größe: 3,5 m² – „Straße“ kostet 1.000,00 €.",
    "tabs\tand\u00a0no-break\u2003spaces\u3000here \x1c end",
    "x@y.org/path?q=1&r=[2]{3}~`^_|\\*+<=>#$%",
    ",.,. ., 1., .1 1,a a,1 -1 1- 1--2",
    "",
    "   ",
    "日本語の文。These,混ざる.",
    "emoji \U0001f600! e\u0301 combining",
]

CORPORA = {
    "perfect": {
        "texts": ["The children play football in the park.", "Two women cross a busy street."],
        "references": [["The children play football in the park."],
                       ["Two women cross a busy street."]],
    },
    "close": {
        "texts": [
            "A man in a red jacket is standing beside the river.",
            "Two dogs run over the wet sand , one of them carries a stick.",
            "A woman is reading a newspaper on a bench.",
            "Children are throwing snowballs at each other.",
            "The cook cuts 3.5 kg of onions, i.e. 1,000 slices.",
        ],
        "references": [
            ["A man wearing a red jacket stands by the river."],
            ["Two dogs run across wet sand, one of them carrying a stick."],
            ["A woman reads the newspaper on a park bench."],
            ["The children throw snowballs at one another."],
            ["The cook is cutting 3.5 kg of onions - 1,000 slices!"],
        ],
    },
    "german": {
        "texts": ["Ein Mann mit einem Hut steht auf der Straße.",
                  "Zwei Mädchen spielen im Garten; sie lachen.",
                  "Die Größe beträgt 3,5 Meter."],
        "references": [["Ein Mann mit Hut steht an der Straße."],
                       ["Zwei Mädchen spielen lachend im Garten."],
                       ["Sie ist 3,5 Meter groß."]],
    },
    "two references": {
        "texts": ["the cat sat on the mat", "there is a cat", "a b c d e f g"],
        "references": [["the cat is on the mat", "a cat sat down on the mat yesterday"],
                       ["a cat is there", "there sits a cat"],
                       ["a b c d", "a b c d e f g h i j"]],
    },
    "short": {
        "texts": ["one two", "three", ""],
        "references": [["one two"], ["three four"], ["five"]],
    },
    "smoothed": {
        "texts": ["red green blue black white", "up down left right"],
        "references": [["red green yellow black brown"], ["down up right left"]],
    },
    "nothing": {
        "texts": ["alpha beta gamma delta", "epsilon zeta"],
        "references": [["one two three four"], ["five six"]],
    },
    "empty": {"texts": [""], "references": [["something was expected"]]},
    "long and short": {
        "texts": ["yes " * 30, "no"],
        "references": [["yes"], ["no no no no no no no no"]],
    },
    "summaries": {
        "texts": [
            "The council's plan, announced on Monday, would close 12 libraries by 2030.",
            "Storm damage has left thousands without power in the north-east, officials say.",
            "İstanbul'da ÜBER 3rd-party don't K",
        ],
        "references": [
            ["Twelve libraries would be closed under a plan the council announced Monday."],
            ["Officials say thousands of homes in the north-east have no power after the storm.",
             "Thousands are without power after storm damage in the north-east."],
            ["istanbul'da über 3rd party don t k"],
        ],
    },
    "odd characters": {
        "texts": ["naïve café\u0301 \u2013 “quoted” text…", "  leading and trailing  \n",
                  "日本語 の テスト です", "😀😀 ok 😀"],
        "references": [["naive café — \"quoted\" text..."], ["leading and trailing"],
                       ["日本語 の 試験 です"], ["😀 ok 😀😀"]],
    },
}

ANSWERS = [
    ("The Eiffel Tower", ["eiffel tower", "Tour Eiffel"]),
    ("in the year 1969.", ["1969", "July 1969"]),
    ("", [""]),
    ("something", [""]),
    ("", ["something"]),
    ("an apple a day", ["apple day", "day"]),
    ("U.S.A", ["USA", "United States of America"]),
    ("Theatre another anthem", ["theatre another anthem the"]),
    ("a-an the_the", ["aan thethe"]),
    ("A", ["the"]),
    ("Ünïcode ÀÉ the ß", ["ünïcode àé ß"]),
    ("a\u0301 b", ["\u0301 b"]),
    ("the “big” one", ["“big” one", "big one"]),
    ("to be or not to be", ["to be not", "be to"]),
    ("x  y\u00a0z", ["x y z"]),
    ("a—the—b", ["— — b"]),
    ("日本 the 語", ["日本 語"]),
]

PASSES = [(n, c, k) for n in (1, 2, 5, 8) for c in range(n + 1) for k in (1, 2, 5) if k <= n]


def transposed(references):
    """sacreBLEU needs one list per reference number; items with fewer references have None."""
    width = max(map(len, references))
    return [[row[i] if i < len(row) else None for row in references] for i in range(width)]


def rouge(text, references):
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)
    best = scorer.score_multi(references, text)
    return [100 * best[name].fmeasure for name in ("rouge1", "rouge2", "rougeL")]


def corpus(case):
    texts, references = case["texts"], transposed(case["references"])
    rouges = [rouge(t, r) for t, r in zip(texts, case["references"])]
    return {
        **case,
        "bleu": sacrebleu.BLEU().corpus_score(texts, references).score,
        "chrf": sacrebleu.CHRF().corpus_score(texts, references).score,
        "rouge": [sum(column) / len(texts) for column in zip(*rouges)],
        "each_rouge": rouges,
    }


def subsets(n, c, k):
    """The share of k-subsets of n attempts that contain one of the c correct ones."""
    chosen = list(itertools.combinations(range(n), k))
    return sum(any(i < c for i in subset) for subset in chosen) / len(chosen)


def main():
    tokenize = Tokenizer13a()
    out = {
        "sacrebleu": sacrebleu.__version__,
        "tokens_13a": [{"text": t, "words": tokenize(t.rstrip()).split()} for t in TO_TOKENIZE],
        "corpora": {name: corpus(case) for name, case in CORPORA.items()},
        "answers": [{
            "answer": a,
            "references": refs,
            "normalized": squad_metrics.normalize_answer(a),
            "exact_match": max(squad_metrics.compute_exact(r, a) for r in refs),
            "f1": max(squad_metrics.compute_f1(r, a) for r in refs),
        } for a, refs in ANSWERS],
        "passes": [{"n": n, "c": c, "k": k, "estimate": subsets(n, c, k)} for n, c, k in PASSES],
    }
    file = pathlib.Path(__file__).resolve().parents[1] / "metrics.json"
    file.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
