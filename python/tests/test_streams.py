# SPDX-License-Identifier: Apache-2.0
"""Abandoned streams: their memory is given back."""

import gc
import os
import weakref

import pytest

import outrider
from conftest import DRAFTER, PROMPTS

PAGE_TOKENS = 64


@pytest.fixture(scope="module")
def narrow(models):
    """Memory for two texts of four pages and no more: lost pages show at once."""
    alone = outrider.Model(models / "target", threads=1)
    n_bytes = 8 * PAGE_TOKENS * alone.summary.kv_bytes_per_token
    return outrider.Model(models / "target", threads=1, kv_memory=n_bytes)


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def leave(generator, n_tokens: int, how: str) -> "weakref.ref":
    stream = generator.stream(PROMPTS[0] * 10, max_tokens=100, ignore_eos=True)
    for _ in range(n_tokens):
        next(stream)
    if how == "close":
        stream.close()
    elif how == "with":
        with stream:
            pass
    return weakref.ref(stream)


@pytest.mark.parametrize("drafter", ["none", DRAFTER])
def test_a_hundred_cancelled_streams_leak_nothing(narrow, drafter):
    generator = outrider.Generator(narrow, drafter=drafter, tree="own")
    prompt = PROMPTS[0] * 10
    expected = generator.generate(prompt, max_tokens=100, ignore_eos=True).ids.tolist()
    hows = ["drop", "close", "with"]
    for i in range(30):  # until the allocator has grown to its final size
        leave(generator, i % 4, hows[i % 3])
    gc.collect()
    before = resident_bytes()
    streams = [leave(generator, i % 4, hows[i % 3]) for i in range(100)]
    gc.collect()
    assert all(stream() is None for stream in streams)
    if "OUTRIDER_TEST_SANITIZED" not in os.environ:  # which keeps freed memory for a while
        # A leaked text would take two pages of 64 tokens, of 6 layers and 2 * 128 values of two
        # bytes: 393 kB, 39 MB for all.
        assert resident_bytes() - before < 8 << 20
    assert generator.generate(prompt, max_tokens=100, ignore_eos=True).ids.tolist() == expected


def test_a_left_stream_has_given_back_its_pages(narrow):
    generator = outrider.Generator(narrow)
    prompt = PROMPTS[0] * 12
    n_tokens = len(narrow.tokenizer.encode(prompt))
    assert n_tokens > PAGE_TOKENS
    stream = generator.stream(prompt, max_tokens=8 * PAGE_TOKENS - n_tokens, ignore_eos=True)
    next(stream)
    del stream
    # All eight pages: another generator of the model cannot have them while one is held.
    other = outrider.Generator(narrow)
    most = 8 * PAGE_TOKENS - n_tokens - 1
    assert len(other.generate(prompt, max_tokens=most, ignore_eos=True).ids) == most


def test_streams_that_are_closed_together_have_given_back_their_pages(narrow):
    generator = outrider.Generator(narrow)
    streams = [generator.stream(PROMPTS[0], max_tokens=90, ignore_eos=True) for _ in range(3)]
    for stream in streams:
        next(stream)
    for stream in streams:
        stream.close()
    assert [stream.result.finish_reason for stream in streams] == ["cancelled"] * 3
    # All eight pages are free for another generator.
    most = 8 * PAGE_TOKENS - len(narrow.tokenizer.encode(PROMPTS[0])) - 1
    other = outrider.Generator(narrow)
    assert len(other.generate(PROMPTS[0], max_tokens=most, ignore_eos=True).ids) == most


def test_a_closed_stream_has_ended(plain):
    stream = plain.stream(PROMPTS[0], max_tokens=100, ignore_eos=True)
    first = next(stream)
    stream.close()
    rest = [token.id for token in stream]
    assert stream.result.finish_reason == "cancelled"
    assert [first.id, *rest] == stream.result.ids.tolist()
    stream.close()


def test_a_loop_that_breaks_cancels(plain):
    n_seen = 0
    for token in plain.stream(PROMPTS[0], max_tokens=900, ignore_eos=True):
        n_seen += 1
        if n_seen == 3:
            break
    assert len(plain.generate(PROMPTS[0], max_tokens=3).ids) == 3


def test_streams_side_by_side_share_passes(plain):
    options = dict(max_tokens=20, ignore_eos=True)
    expected = [plain.generate(prompt, **options).ids.tolist() for prompt in PROMPTS]
    streams = [plain.stream(prompt, **options) for prompt in PROMPTS]
    said = [[], [], []]
    for tokens in zip(*streams):
        for ids, token in zip(said, tokens):
            ids.append(token.id)
    assert said == expected
    # A stream abandoned while others run does not disturb them, nor a text that starts in between.
    streams = [plain.stream(prompt, **options) for prompt in PROMPTS]
    next(streams[0])
    next(streams.pop(1))
    assert plain.generate(PROMPTS[1], **options).ids.tolist() == expected[1]
    assert [token.id for token in streams[1]] == expected[2]
    assert [token.id for token in streams[0]] == expected[0][1:]


def test_streams_take_one_prompt_and_no_callback(plain):
    with pytest.raises(outrider.UsageError):
        plain.stream(PROMPTS)
    with pytest.raises(outrider.UsageError):
        plain.stream(PROMPTS[0], on_token=print)


def test_a_streams_end_by_time_says_all_of_its_text(plain):
    stream = plain.stream(PROMPTS[0], max_tokens=900, ignore_eos=True, max_seconds=0.05)
    text = "".join(token.text for token in stream)
    assert text == stream.result.text
