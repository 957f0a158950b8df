# SPDX-License-Identifier: Apache-2.0
"""Drafters written in Python: texts keep their bits, exceptions propagate, nothing is kept."""

import gc
import sys
import weakref

import numpy as np
import pytest

import outrider
from conftest import PROMPTS

SAMPLED = outrider.SamplingParams(temperature=0.8, top_k=40)


class WhatFollowed(outrider.OwnDrafter):
    """Proposes the tokens that followed the last tokens at an earlier place; state is kept by text id."""

    def __init__(self, style="return"):
        self.style = style
        self.texts = {}
        self.n_accepted = 0

    def begin(self, text):
        assert text.id not in self.texts
        self.texts[text.id] = text.tokens.tolist()

    def known(self, text):
        tokens = text.tokens.tolist()
        before = self.texts[text.id]
        assert tokens[: len(before)] == before
        self.texts[text.id] = tokens
        return tokens

    def propose(self, text, draft):
        assert text.tokens.dtype == np.int32
        tokens = self.known(text)
        self.nodes = None
        for at in range(len(tokens) - 2, 0, -1):
            if tokens[at - 1 : at + 1] == tokens[-2:]:
                break
        else:
            return None
        chain = tokens[at + 1 :][: min(4, draft.max_depth, draft.max_nodes)]
        if self.style == "return":
            return chain if len(chain) % 2 else np.array(chain)
        node = -1
        for token in chain:
            if self.style == "add":
                node = draft.add(node, token)
            else:  # uncertain
                other = (token + 1) % draft.vocabulary_size
                node, drawn = draft.draw(node, ([token, other], [0.8, 0.2]))
                if drawn != token:
                    break
        assert len(draft) <= len(chain)
        return None

    def observe(self, text, accepted):
        n_before = len(self.texts[text.id])
        tokens = self.known(text)
        assert len(tokens) > n_before
        assert len(tokens) <= n_before + len(accepted) + 1
        self.n_accepted += len(accepted)

    def end(self, id):
        del self.texts[id]


# A text that repeats itself.
PROMPT = "one two three four, one two three four, one two three four, one two"


@pytest.mark.parametrize("style", ["return", "add", "draw"])
@pytest.mark.parametrize("verify", ["exact", "coupled"])
def test_texts_have_the_bits_of_plain_ones(model, plain, style, verify):
    drafter = WhatFollowed(style)
    generator = outrider.Generator(model, drafter=drafter, verify=verify)
    sampling = SAMPLED if verify == "coupled" else None
    prompts = [PROMPT, *PROMPTS]
    options = dict(max_tokens=40, seed=5, keep_logits=True)
    expected = plain.generate(prompts, sampling, **options)
    for texts in (
        generator.generate(prompts, sampling, **options),
        [generator.generate(prompt, sampling, **options) for prompt in prompts],
    ):
        for result, wanted in zip(texts, expected):
            assert result.ids.tolist() == wanted.ids.tolist()
            assert result.logits.tobytes() == wanted.logits.tobytes()
            assert result.text == wanted.text
    assert drafter.n_accepted > 0
    assert drafter.texts == {}


def test_sampled_texts_replay(model):
    generator = outrider.Generator(model, drafter=WhatFollowed("draw"))
    hot = outrider.SamplingParams(temperature=1.0)
    first = generator.generate(PROMPT, hot, max_tokens=40, seed=3)
    again = generator.generate([PROMPTS[0], PROMPT], hot, max_tokens=40, seed=[1, 3])[1]
    assert first.ids.tolist() == again.ids.tolist()
    assert first.statistics.drafted > 0


def test_trees_and_limits(model, plain):
    seen = []

    class Tree:
        def propose(self, text, draft):
            seen.append((draft.max_depth, draft.max_nodes, draft.is_chain))
            first = draft.add(-1, 5)
            draft.add(-1, 6)
            if draft.max_depth > 1:
                draft.add(first, 7)
            with pytest.raises(outrider.Error, match="a parent before it"):
                draft.add(9, 5)
            with pytest.raises(outrider.Error, match="token ids below"):
                draft.add(-1, draft.vocabulary_size)

    generator = outrider.Generator(model, drafter=Tree(), tree="widths:2,1")
    result = generator.generate(PROMPTS[0], max_tokens=10)
    assert result.ids.tolist() == plain.generate(PROMPTS[0], max_tokens=10).ids.tolist()
    assert seen[0] == (2, 4, False)
    assert result.statistics.drafted >= 20


DISTRIBUTIONS = [
    (([1, 2], [0.5, float("nan")]), "finite"),
    (([1, 2], [0.9, 0.9]), "at most 1"),
    (([1, 1], [0.5, 0.5]), "each token once"),
    (([1], [0.5, 0.5]), "as many probabilities"),
    (([2], [1.0]), "that was drawn"),
    ((np.array([0.0, -1.0])), "not negative"),
    (([1, 2, 3],), "list of 1"),
]


@pytest.mark.parametrize("distribution, message", DISTRIBUTIONS)
def test_distributions_that_are_none(model, distribution, message):
    class Bad:
        def propose(self, text, draft):
            draft.add(-1, 1, distribution)

    generator = outrider.Generator(model, drafter=Bad())
    with pytest.raises(outrider.Error, match=message):
        generator.generate(PROMPTS[0], SAMPLED, max_tokens=10)


def test_a_distribution_of_all_tokens(model, plain):
    class Dense:
        def propose(self, text, draft):
            distribution = np.zeros(draft.vocabulary_size, np.float32)
            distribution[[3, 8]] = 0.25, 0.75
            node, token = draft.draw(-1, distribution)
            assert (node, token) in ((0, 3), (0, 8))

    generator = outrider.Generator(model, drafter=Dense(), verify="coupled")
    for sampling in (None, SAMPLED):
        result = generator.generate(PROMPTS[0], sampling, max_tokens=10, seed=1)
        expected = plain.generate(PROMPTS[0], sampling, max_tokens=10, seed=1)
        assert result.ids.tolist() == expected.ids.tolist()


class Mine(Exception):
    pass


@pytest.mark.parametrize("where", ["begin", "propose", "observe"])
@pytest.mark.parametrize("error", [Mine, KeyboardInterrupt, "bad id", "bad type"])
def test_what_it_raises_comes_out(model, plain, where, error):
    class Fails(WhatFollowed):
        armed = True

        def fail(self, here):
            if self.armed and here == where and not isinstance(error, str):
                self.armed = False
                raise error("on purpose")

        def begin(self, text):
            self.fail("begin")
            super().begin(text)

        def propose(self, text, draft):
            if self.armed and where == "propose" and isinstance(error, str):
                self.armed = False
                return [10**7] if error == "bad id" else "five"
            self.fail("propose")
            return super().propose(text, draft)

        def observe(self, text, accepted):
            self.fail("observe")
            super().observe(text, accepted)

    if isinstance(error, str) and where != "propose":
        pytest.skip("only what is proposed can be wrong")
    drafter = Fails()
    generator = outrider.Generator(model, drafter=drafter)
    expected = outrider.Error if isinstance(error, str) else error
    with pytest.raises(expected) as caught:
        generator.generate([PROMPT, PROMPTS[0]], max_tokens=20)
    if not isinstance(error, str):
        assert caught.value.args == ("on purpose",)
    assert not drafter.armed
    result = generator.generate(PROMPT, max_tokens=20)
    assert result.ids.tolist() == plain.generate(PROMPT, max_tokens=20).ids.tolist()
    assert drafter.texts == {}


def test_what_end_raises_is_told_and_passed_over(model, plain, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: told.append(error.exc_value))

    class Fails(WhatFollowed):
        def end(self, id):
            raise Mine("at the end")

    result = outrider.Generator(model, drafter=Fails()).generate(PROMPT, max_tokens=8)
    assert result.ids.tolist() == plain.generate(PROMPT, max_tokens=8).ids.tolist()
    assert [type(error) for error in told] == [Mine]


def test_a_draft_is_there_for_its_call(model):
    kept = []

    class Keeps:
        def propose(self, text, draft):
            kept.append((text, draft))

    outrider.Generator(model, drafter=Keeps()).generate(PROMPTS[0], max_tokens=3)
    text, draft = kept[0]
    assert len(text.tokens) > 0  # a copy
    with pytest.raises(outrider.UsageError, match="whose call is over"):
        draft.add(-1, 1)


def test_streams_draft_too(model, plain):
    drafter = WhatFollowed()
    generator = outrider.Generator(model, drafter=drafter)
    ids = [token.id for token in generator.stream(PROMPT, max_tokens=30, ignore_eos=True)]
    assert ids == plain.generate(PROMPT, max_tokens=30, ignore_eos=True).ids.tolist()
    assert drafter.n_accepted > 0
    for _ in range(3):
        for token in generator.stream(PROMPT, max_tokens=30, ignore_eos=True):
            break
    assert drafter.texts == {}


def test_a_drafter_goes_with_its_generator(model):
    drafter = WhatFollowed()
    generator = outrider.Generator(model, drafter=drafter)
    generator.generate(PROMPT, max_tokens=4)
    gone = weakref.ref(drafter)
    del drafter, generator
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("drafter", [5, None, object(), WhatFollowed])
def test_what_is_no_drafter(model, drafter):
    with pytest.raises(TypeError, match="a spec, or an object with a method propose"):
        outrider.Generator(model, drafter=drafter)


def test_rules_that_look_at_distributions_refuse_it(model):
    with pytest.raises(outrider.UsageError, match="has distributions"):
        outrider.Generator(model, drafter=WhatFollowed(), rule="diff:alpha=0.1")
    with pytest.raises(outrider.UsageError, match="brings the drafter"):
        outrider.Generator(model, drafter="own")
