# SPDX-License-Identifier: Apache-2.0
"""Log-likelihoods in batches; with lm-eval installed, the harness' model class, compared with
transformers' if installed."""

import math
from pathlib import Path

import numpy
import pytest

import outrider
from outrider.lm_eval.scoring import of_decoder, of_encoder_decoder, score

MODELS = Path(__file__).resolve().parents[2] / "models"
PAIRS = [("She opened the letter, and", " read it."), ("She opened the letter, and", " the"),
         ("It was", " late in the evening when the two brothers came home."), ("", "Nobody knew."),
         ("She opened the letter, and", " she"), ("One  ", "two")]


def test_what_is_read_of_a_text():
    scored = of_decoder([1, 2, 3], [4, 5], most=10)
    assert scored.ids == (1, 2, 3, 4) and scored.continuation == (4, 5)
    assert of_decoder([1, 2, 3], [4, 5], most=4).ids == (1, 2, 3, 4)
    assert of_decoder([1, 2, 3], [4, 5], most=3).ids == (2, 3, 4)
    assert of_decoder([9] * 5, [4, 5, 6], most=3).ids == (9, 4, 5)
    for context, continuation in (([1], []), ([1], [2, 3, 4, 5]), ([], [1])):
        with pytest.raises(outrider.Error, match="continuation"):
            of_decoder(context, continuation, most=3)
    scored = of_encoder_decoder([1, 2, 3], [4, 5], start_token=0, most=2)
    assert (scored.encoder_ids, scored.ids, scored.continuation) == ((2, 3), (0, 4), (4, 5))


class Table:
    """Rows that are a function of the input, and a record of the requests."""

    def __init__(self, vocabulary=7):
        self.vocabulary = vocabulary
        self.calls = []

    def row(self, prefix):
        return numpy.random.default_rng([token + 1 for token in prefix]).normal(size=self.vocabulary).astype(numpy.float32)

    def logits(self, ids, encoder_ids, first):
        self.calls.append((len(ids), first))
        return [numpy.stack([self.row(text[:place + 1]) for place in range(first, len(text))]) for text in ids]


def test_scores_are_sums_of_log_probabilities():
    generator = numpy.random.default_rng(3)
    texts = []
    for _ in range(40):
        whole = generator.integers(0, 7, size=generator.integers(2, 12)).tolist()
        cut = int(generator.integers(max(1, len(whole) - 8), len(whole)))
        texts.append((whole[:cut], whole[cut:]))
    table = Table()
    for batch_size in (1, 3, 100):
        done = []
        answers = score([of_decoder(*text, most=8) for text in texts], batch_size, table.logits, done.append)
        assert sum(done) == len(texts)
        for (context, continuation), (log_likelihood, is_greedy) in zip(texts, answers):
            expected, greedy = 0.0, True
            read = (context + continuation)[-9:]
            for place in range(len(read) - len(continuation), len(read)):
                row = [float(value) for value in table.row(read[:place])]
                expected += row[read[place]] - math.log(sum(math.exp(value) for value in row))
                greedy = greedy and max(range(7), key=row.__getitem__) == read[place]
            # Sums of at most 11 terms of a few nats in double precision.
            assert abs(log_likelihood - expected) < 1e-12 * 11 * 10 and is_greedy == greedy


def test_texts_that_read_the_same_are_run_once():
    table = Table()
    texts = [of_decoder([1, 2], [token], most=8) for token in range(6)] + [of_decoder([1], [2, 3], most=8)]
    answers = score(texts, 10, table.logits)
    assert sum(n for n, _ in table.calls) == 1
    assert abs(sum(math.exp(log_likelihood) for log_likelihood, _ in answers[:6]) + math.exp(
        score([of_decoder([1, 2], [6], most=8)], 1, table.logits)[0][0]) - 1) < 1e-12
    assert sum(is_greedy for _, is_greedy in answers[:6]) <= 1


def test_scores_of_a_model_are_those_of_its_rows():
    model = outrider.Model(str(MODELS / "target"), weights="f32", threads=1)
    generator = outrider.Generator(model)
    prompt = model.tokenizer.encode(PAIRS[0][0]).tolist()
    result = generator.generate(prompt, max_tokens=8, keep_logits=True, ignore_eos=True)
    logits = lambda ids, encoder_ids, first: model.logits(ids, first=first)
    (log_likelihood, is_greedy), _ = score(
        [of_decoder(prompt, result.ids.tolist(), 1024), of_decoder([1], [5], 1024)], 2, logits)
    rows = result.logits.astype(numpy.float64)
    expected = sum(row[token] - math.log(numpy.exp(row - row.max()).sum()) - row.max()
                   for row, token in zip(rows, result.ids))
    assert is_greedy and abs(log_likelihood - expected) < 1e-9


# --- in the harness


@pytest.fixture(scope="module")
def harness():
    pytest.importorskip("lm_eval", reason="lm-eval is not installed")
    from outrider.lm_eval import register

    register()
    register()
    from lm_eval.api.registry import get_model

    return get_model("outrider")


@pytest.fixture(scope="module")
def model(harness):
    return harness.create_from_arg_string(f"pretrained={MODELS / 'target'},weights=f32,threads=1,drafter=suffix",
                                          {"batch_size": 4, "max_batch_size": None, "device": None})


def instances(kind, arguments):
    from lm_eval.api.instance import Instance

    return [Instance(request_type=kind, doc={}, arguments=one, idx=number) for number, one in enumerate(arguments)]


def test_loglikelihood(model):
    answers = model.loglikelihood(instances("loglikelihood", PAIRS), disable_tqdm=True)
    for pair, answer in zip(PAIRS, answers):
        assert model.loglikelihood(instances("loglikelihood", [pair]), disable_tqdm=True) == [answer]
        assert answer[0] < 0
    text = model.generate_until(instances("generate_until", [(PAIRS[0][0], {"max_gen_toks": 4, "until": []})]),
                                disable_tqdm=True)[0]
    assert model.loglikelihood(instances("loglikelihood", [(PAIRS[0][0], text)]), disable_tqdm=True)[0][1] in (True, False)


def test_rolling_windows_cover_each_token_once(harness):
    text = "The old gentleman looked at her for a moment, and then he went away. " * 3
    wide = harness(str(MODELS / "target"), weights="f32", threads=1, batch_size=2)
    whole, = wide.loglikelihood_rolling(instances("loglikelihood_rolling", [(text,)]), disable_tqdm=True)
    ids = wide.tok_encode(text)
    rows = wide.model.logits([wide.prefix_token_id] + ids[:-1]).astype(numpy.float64)
    rows -= rows.max(axis=1, keepdims=True)
    expected = (rows[numpy.arange(len(ids)), ids] - numpy.log(numpy.exp(rows).sum(axis=1))).sum()
    assert abs(whole - expected) < 1e-9 * len(ids)
    narrow = harness(str(MODELS / "target"), weights="f32", threads=1, batch_size=2, max_length=16)
    cut, = narrow.loglikelihood_rolling(instances("loglikelihood_rolling", [(text,)]), disable_tqdm=True)
    assert cut < whole, "less context predicts worse"


def test_generate_until(model):
    arguments = {"until": ["."], "max_gen_toks": 40, "do_sample": False}
    texts = model.generate_until(instances("generate_until", [(context, arguments) for context, _ in PAIRS]),
                                 disable_tqdm=True)
    assert all("." not in text for text in texts)
    for (context, _), text in zip(PAIRS, texts):
        assert model.generate_until(instances("generate_until", [(context, arguments)]), disable_tqdm=True) == [text]
    with pytest.raises(outrider.UsageError, match="frob"):
        model.generate_until(instances("generate_until", [("a", {"frob": 1})]), disable_tqdm=True)
    with pytest.raises(outrider.UsageError, match="num_beams"):
        model.generate_until(instances("generate_until", [("a", {"num_beams": 4})]), disable_tqdm=True)


def test_the_same_as_transformers(model):
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    hugging = pytest.importorskip("lm_eval.models.huggingface", reason="lm-eval's HFLM cannot be imported")
    theirs = hugging.HFLM(pretrained=str(MODELS / "target"), device="cpu", dtype="float32", batch_size=4)
    for ours, other in zip(model.loglikelihood(instances("loglikelihood", PAIRS), disable_tqdm=True),
                           theirs.loglikelihood(instances("loglikelihood", PAIRS), disable_tqdm=True)):
        assert abs(ours[0] - other[0]) <= 1e-3 * abs(other[0]) and ours[1] == other[1]
    rolling = instances("loglikelihood_rolling", [(context + continuation,) for context, continuation in PAIRS])
    for ours, other in zip(model.loglikelihood_rolling(rolling, disable_tqdm=True),
                           theirs.loglikelihood_rolling(rolling, disable_tqdm=True)):
        assert abs(ours - other) <= 1e-3 * abs(other)
    asked = [(context, {"until": ["."], "max_gen_toks": 24}) for context, _ in PAIRS if context]
    assert model.generate_until(instances("generate_until", asked), disable_tqdm=True) == theirs.generate_until(
        instances("generate_until", asked), disable_tqdm=True)
