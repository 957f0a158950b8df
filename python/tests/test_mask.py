# SPDX-License-Identifier: Apache-2.0
"""Masks written in Python: every node is masked, drafts change no bits, exceptions propagate."""

import numpy as np
import pytest

import outrider
from conftest import DRAFTER, PROMPTS

SAMPLED = outrider.SamplingParams(temperature=0.9)


def may_follow(tokens, vocabulary):
    """Two of three tokens, others after each text; booleans (vocabulary)."""
    mixed = 17
    for token in np.asarray(tokens).tolist():
        mixed = (31 * mixed + token) % 2**32
    return (mixed + np.arange(vocabulary)) % 3 != 0


def as_bits(flags):
    """In the format of grammar libraries: int32, 32 tokens per word."""
    words = np.zeros((len(flags) + 31) // 32 * 32, bool)
    words[: len(flags)] = flags
    return np.packbits(words, bitorder="little").view(np.int32)


FORMS = {
    "booleans": lambda flags: flags,
    "bits": as_bits,
    "bits in a row": lambda flags: as_bits(flags).reshape(1, -1),
    "unsigned bits": lambda flags: as_bits(flags).view(np.uint32),
    "ids": lambda flags: np.flatnonzero(flags).tolist(),
    "a set": lambda flags: set(np.flatnonzero(flags).tolist()),
}


@pytest.fixture
def mask(model):
    def third(text):
        return may_follow(text.tokens, model.summary.vocabulary_size)

    return third


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_mask(model, plain, mask, form):
    prompt = model.tokenizer.encode(PROMPTS[0])
    result = plain.generate(prompt, max_tokens=12, mask=lambda text: FORMS[form](mask(text)))
    tokens = prompt.tolist()
    assert len(result.ids) > 3
    for id in result.ids.tolist():
        assert may_follow(tokens, model.summary.vocabulary_size)[id]
        tokens.append(id)
    # Greedy decoding among the allowed tokens.
    tokens = prompt.tolist()
    for id in result.ids.tolist()[:4]:
        row = model.logits(tokens, first=len(tokens) - 1)[0].copy()
        row[~may_follow(tokens, len(row))] = -np.inf
        assert id == int(row.argmax())
        tokens.append(id)


@pytest.mark.parametrize("samples", [False, True])
def test_drafts_change_no_bits(model, plain, mask, samples):
    coupled = outrider.Generator(model, drafter=DRAFTER, tree="widths:2,1,1", verify="coupled")
    sampling = SAMPLED if samples else None
    options = dict(max_tokens=30, seed=2, keep_logits=True, mask=mask)
    expected = plain.generate(PROMPTS, sampling, **options)
    results = coupled.generate(PROMPTS, sampling, **options)
    for result, wanted in zip(results, expected):
        assert result.ids.tolist() == wanted.ids.tolist()
        assert result.logits.tobytes() == wanted.logits.tobytes()
    assert sum(result.statistics.accepted for result in results) > 0


def test_it_is_asked_once_for_a_place(drafted, mask):
    asked = []

    def asks(text):
        asked.append(tuple(text.tokens.tolist()))
        assert text.n_prompt <= text.n_committed <= len(text.tokens)
        return mask(text)

    result = drafted.generate(PROMPTS[0], max_tokens=20, mask=asks)
    assert len(asked) == len(set(asked)) >= len(result.ids)


def test_all_tokens(plain):
    expected = plain.generate(PROMPTS[0], max_tokens=10).ids.tolist()
    assert plain.generate(PROMPTS[0], max_tokens=10, mask=lambda text: None).ids.tolist() == expected
    assert plain.generate(PROMPTS[0], max_tokens=10, mask=None).ids.tolist() == expected


def test_an_end_token_ends_the_text(model, plain):
    (end, *_) = model.end_tokens
    result = plain.generate(
        PROMPTS[0],
        max_tokens=10,
        mask=lambda text: [end] if len(text.tokens) - text.n_prompt == 3 else None,
    )
    assert result.finish_reason == "stop"
    assert len(result.ids) == 4 and result.ids[-1] == end


def test_it_stands_beside_a_grammar(model, drafted):
    n_tokens = model.tokenizer.vocabulary_size
    zero = [id for id in range(n_tokens) if b"0" in model.tokenizer.bytes(id)]

    def no_zero(text):
        flags = np.ones(model.summary.vocabulary_size, bool)
        flags[zero] = False
        return flags

    grammar = outrider.Grammar.from_regex("[0-9]{12}")
    result = drafted.generate(PROMPTS[0], max_tokens=40, grammar=grammar, mask=no_zero)
    assert len(result.text) == 12 and set(result.text) <= set("123456789")


class Mine(Exception):
    pass


def test_what_it_raises_comes_out(drafted, plain):
    def fails(text):
        if len(text.tokens) - text.n_prompt == 5:
            raise Mine("on purpose")
        return None

    for generator in (plain, drafted):
        expected = generator.generate(PROMPTS[0], max_tokens=10).ids.tolist()
        with pytest.raises(Mine, match="on purpose"):
            generator.generate(PROMPTS, max_tokens=10, mask=fails)
        with pytest.raises(Mine):
            for _ in generator.stream(PROMPTS[0], max_tokens=10, mask=fails):
                pass
        assert generator.generate(PROMPTS[0], max_tokens=10).ids.tolist() == expected


def test_a_place_where_nothing_may_follow(drafted):
    def nothing(text):
        return [] if len(text.tokens) - text.n_prompt == 4 else None

    with pytest.raises(outrider.Error, match="one that the mask lets follow, got none"):
        drafted.generate(PROMPTS[0], max_tokens=10, mask=nothing)


WRONG = [
    (lambda text: "yes", "mask"),
    (lambda text: np.zeros(3, np.int32), "an array of 3 words"),
    (lambda text: np.zeros(10**6, bool), "1000000 booleans"),
    (lambda text: np.zeros(4, np.float32), "an array of float32"),
    (lambda text: np.zeros(4, np.int64), "an array of int64"),
    (lambda text: [-1], "the id -1"),
    (lambda text: [10**7], "the id 10000000"),
    (lambda text: ["a"], "a list with"),
]


@pytest.mark.parametrize("wrong, message", WRONG)
def test_what_is_no_mask(plain, wrong, message):
    with pytest.raises(outrider.UsageError, match=message):
        plain.generate(PROMPTS[0], max_tokens=3, mask=wrong)
    assert len(plain.generate(PROMPTS[0], max_tokens=3).ids) == 3


def test_what_is_no_function(plain):
    with pytest.raises(TypeError, match="a function of a MaskedText"):
        plain.generate(PROMPTS[0], max_tokens=3, mask=5)


def test_chats_are_masked(model, plain, mask):
    asked = []
    try:
        plain.chat([{"role": "user", "content": "Hello"}], max_tokens=5, mask=asked.append)
    except outrider.Error:
        pytest.skip("the model has no chat template")
    assert asked
