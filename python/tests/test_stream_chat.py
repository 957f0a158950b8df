# SPDX-License-Identifier: Apache-2.0
"""Conversations in pieces: together they are the reply of chat(). Left streams leave nothing."""

import gc
import json
import os
import signal
import threading
import weakref

import pytest

import outrider
from conftest import CHAT_TEMPLATE, DRAFTER, PROMPTS, TOOLS
from test_streams import PAGE_TOKENS, resident_bytes

# A template shows how its model marks reasoning. A call that must be may then follow reasoning, of
# which these models find no end: such tests take the template without it.
TEMPLATE = CHAT_TEMPLATE + "{# <think> </think> #}"
MESSAGES = [{"role": "user", "content": "What did she say?"}]
LONG = dict(max_tokens=400, ignore_eos=True)

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
REPLIES = {
    "words": "She said nothing, and he went home.",
    "reasoning": "<think>\nIt is late.\n</think>\n\nGo home.",
    "call": f"I look.\n{CALL}",
    "calls": f"<think>Both.</think>{CALL}\n{CALL.replace('Rome', 'Paris')}",
    "broken call": '<tool_call>\n{"name": "weather", "arguments": {"city": "Ro',
    "call and broken call": f'{CALL}\n<tool_call>\n{{"name": "weather", "arguments": {{"city": 1',
    "no call": "Say <tool_call> to call, or <think> to think. ",
}


@pytest.fixture(scope="module")
def chatty(with_template):
    return with_template(TEMPLATE)


def make_generators(model):
    return {
        "plain": outrider.Generator(model),
        "drafted": outrider.Generator(model, drafter=DRAFTER, tree="own"),
    }


@pytest.fixture(scope="module")
def generators(chatty):
    return make_generators(chatty)


@pytest.fixture(scope="module")
def generator(generators):
    return generators["plain"]


@pytest.fixture(scope="module")
def thoughtless(with_template):
    return make_generators(with_template(CHAT_TEMPLATE))


def saying(model, words):
    """A mask that has the model say these words and end."""
    ids = [*map(int, model.tokenizer.encode(words, add_special=False)), model.end_tokens[0]]

    def mask(text):
        n_said = len(text.tokens) - text.n_prompt
        return [ids[min(n_said, len(ids) - 1)]]

    mask.ids = ids
    return mask


def put_together(pieces):
    """Content, reasoning and calls, as a Reply has them; checks the order within calls."""
    said = {"content": "", "reasoning": ""}
    calls, n_begun, arguments = [], 0, None
    for piece in pieces:
        if piece.kind in said:
            assert arguments is None and piece.text
            said[piece.kind] += piece.text
            continue
        if piece.kind == "call_begin":
            assert arguments is None and piece.name and piece.tool_call is None
            assert piece.call == n_begun
            n_begun += 1
            arguments = ""
        elif piece.kind == "call_arguments":
            assert piece.text and piece.call == n_begun - 1
            arguments += piece.text
        else:
            assert piece.kind == "call_end" and piece.call == n_begun - 1
            if piece.tool_call is not None:
                assert piece.tool_call["function"] == {"name": piece.name, "arguments": arguments}
                assert piece.tool_call["id"] == piece.id
                calls.append(piece.tool_call)
            arguments = None
    assert arguments is None
    return said["content"], said["reasoning"], calls


def parts(reply):
    return reply.content, reply.reasoning, reply.tool_calls


def expect_the_same(generator, options):
    expected = generator.chat(MESSAGES, **options)
    stream = generator.stream_chat(MESSAGES, **options)
    assert stream.reply is None
    pieces = list(stream)
    assert put_together(pieces) == parts(expected) == parts(stream.reply)
    assert stream.reply.result.ids.tolist() == expected.result.ids.tolist()
    assert stream.reply.result.text == expected.result.text
    assert stream.reply.result.finish_reason == expected.result.finish_reason
    assert stream.reply is stream.reply
    assert list(stream) == []
    return pieces, expected


@pytest.mark.parametrize("kind", ["plain", "drafted"])
@pytest.mark.parametrize("tools", [None, TOOLS])
@pytest.mark.parametrize("name", REPLIES)
def test_pieces_are_the_reply(chatty, generators, name, tools, kind):
    options = dict(tools=tools, mask=saying(chatty, REPLIES[name]), max_tokens=300)
    pieces, reply = expect_the_same(generators[kind], options)
    assert reply.result.finish_reason == "stop"
    assert reply.result.text.strip() == REPLIES[name].strip()
    calls = [call["function"] for call in reply.tool_calls]
    n_calls = {"call": 1, "calls": 2, "call and broken call": 1}.get(name, 0) if tools else 0
    assert len(calls) == n_calls
    assert [json.loads(call["arguments"])["city"] for call in calls] == ["Rome", "Paris"][:n_calls]
    assert reply.reasoning == {"reasoning": "It is late.", "calls": "Both."}.get(name, "")
    broken = "".join(piece.text for piece in pieces if piece.of_broken_call)
    assert bool(broken) == (tools is not None and "broken" in name)
    assert broken in reply.content


@pytest.mark.parametrize("max_tokens", [1, 20, 50])
@pytest.mark.parametrize("name", ["words", "calls", "call and broken call"])
def test_pieces_of_a_reply_that_is_cut_off(chatty, generator, name, max_tokens):
    options = dict(tools=TOOLS, mask=saying(chatty, REPLIES[name]), max_tokens=max_tokens)
    expect_the_same(generator, options)


@pytest.mark.parametrize("kind", ["plain", "drafted"])
def test_pieces_of_the_models_own_words(thoughtless, kind):
    sampling = outrider.SamplingParams(temperature=0.8)
    for options in (
        dict(max_tokens=40),
        dict(max_tokens=40, sampling=sampling, seed=3),
        dict(max_tokens=400, tools=TOOLS, tool_choice="required", parallel_calls=False),
    ):
        pieces, reply = expect_the_same(thoughtless[kind], options)
        assert len(reply.tool_calls) == ("tools" in options)
        assert len(pieces) > 2


def test_pieces_come_as_they_are_said(chatty, generator):
    mask = saying(chatty, REPLIES["call"])
    tokens = []
    stream = generator.stream_chat(
        MESSAGES, tools=TOOLS, mask=mask, max_tokens=300, on_token=tokens.append
    )
    kinds, n_read = [], []
    for piece in stream:
        kinds.append(piece.kind)
        n_read.append(len(tokens))  # when the piece came
        assert stream.reply is None
    assert [token.id for token in tokens] == stream.reply.result.ids.tolist() == mask.ids
    # No piece waits for the end, and arguments come in several.
    assert kinds[0] == "content" and n_read[0] < len(tokens) / 4
    assert kinds.count("call_arguments") > 3
    assert kinds[-1] == "call_end" and n_read[-1] < len(tokens)


def test_a_closed_stream_has_ended(generator):
    stream = generator.stream_chat(MESSAGES, **LONG)
    first = next(stream)
    stream.close()
    pieces = [first, *stream]
    assert stream.reply.result.finish_reason == "cancelled"
    assert put_together(pieces) == parts(stream.reply)
    stream.close()
    with generator.stream_chat(MESSAGES, **LONG) as other:
        next(other)
    assert other.reply.result.finish_reason == "cancelled"


def test_streams_side_by_side_share_passes(generator):
    options = dict(max_tokens=30, ignore_eos=True)
    messages = [[{"role": "user", "content": prompt}] for prompt in PROMPTS]
    expected = [generator.chat(one, **options).content for one in messages]
    streams = [generator.stream_chat(one, **options) for one in messages]
    said = ["", "", ""]
    while any(stream.reply is None for stream in streams):
        for i, stream in enumerate(streams):
            piece = next(stream, None)
            said[i] += piece.text if piece else ""
    for i, stream in enumerate(streams):
        said[i] += "".join(piece.text for piece in stream)
    assert said == expected


def leave(generator, i: int) -> "weakref.ref":
    messages = [{"role": "user", "content": PROMPTS[0] * 6}]
    tools = [None, TOOLS][i % 2]
    choice = "required" if tools else None
    stream = generator.stream_chat(
        messages,
        tools=tools,
        tool_choice=choice,
        max_tokens=100,
        ignore_eos=tools is None,
        on_token=lambda token: None,
    )
    for _ in range(i % 4):
        next(stream, None)
    if i % 3 == 1:
        stream.close()
    elif i % 3 == 2:
        with stream:
            pass
    return weakref.ref(stream)


@pytest.mark.parametrize("drafter", ["none", DRAFTER])
def test_a_hundred_cancelled_streams_leak_nothing(with_template, chatty, drafter):
    # Room for a few texts and no more: pages that are lost are missed soon.
    n_bytes = 16 * PAGE_TOKENS * chatty.summary.kv_bytes_per_token
    generator = outrider.Generator(
        with_template(CHAT_TEMPLATE, kv_memory=n_bytes), drafter=drafter, tree="own"
    )
    options = dict(max_tokens=100, ignore_eos=True)
    expected = generator.chat(MESSAGES, **options).result.ids.tolist()
    for i in range(30):  # until the allocator has what it needs
        leave(generator, i)
    gc.collect()
    before = resident_bytes()
    streams = [leave(generator, i) for i in range(100)]
    gc.collect()
    assert all(stream() is None for stream in streams)
    if "OUTRIDER_TEST_SANITIZED" not in os.environ:  # which keeps what is freed for a while
        # As in test_streams: a lost text would be two pages at least, 39 MB for all.
        assert resident_bytes() - before < 8 << 20
    assert generator.chat(MESSAGES, **options).result.ids.tolist() == expected


def test_ctrl_c_ends_a_stream(generator):
    main = threading.main_thread().ident
    timer = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while True:
                for _ in generator.stream_chat(MESSAGES, **LONG):
                    pass
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(generator.chat(MESSAGES, max_tokens=5).result.ids) == 5


def test_one_generator_in_two_threads_is_refused(chatty):
    generator = outrider.Generator(chatty)
    refused = threading.Event()
    said = []

    def run():
        for _ in range(1000):  # some seconds: they meet in one of the first passes
            if refused.is_set():
                return
            try:
                list(generator.stream_chat(MESSAGES, max_tokens=20))
            except outrider.UsageError as error:
                said.append(str(error))
                refused.set()

    # That they meet at all shows that passes run without the GIL.
    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said and all("one thread at a time" in words for words in said)
    assert len(generator.chat(MESSAGES, max_tokens=3).result.ids) == 3


def test_what_callbacks_raise_comes_out(generator):
    def refuse(token):
        raise LookupError("no")

    def stop(token):
        raise StopIteration

    stream = generator.stream_chat(MESSAGES, on_token=refuse, **LONG)
    with pytest.raises(LookupError):
        list(stream)
    assert stream.reply.result.finish_reason == "cancelled"
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(generator.stream_chat(MESSAGES, on_token=stop, **LONG))

    def fail(text):
        raise KeyError("mask")

    failed = generator.stream_chat(MESSAGES, mask=fail, max_tokens=5)
    with pytest.raises(KeyError):
        list(failed)
    # A text that failed has no reply.
    assert failed.reply is None and list(failed) == []


def test_a_callback_may_use_its_stream(generator):
    streams = []
    tokens = []

    def close(token):
        tokens.append(token)
        if len(tokens) == 3:
            streams[0].close()

    streams.append(generator.stream_chat(MESSAGES, on_token=close, **LONG))
    pieces = list(streams[0])
    assert streams[0].reply.result.finish_reason == "cancelled"
    assert put_together(pieces) == parts(streams[0].reply)
    assert len(streams[0].reply.result.ids) < 10
    ids = [token.id for token in tokens if token.id >= 0]
    assert ids == streams[0].reply.result.ids.tolist()


def test_what_cannot_be_meant_is_refused(generator, plain):
    for keywords in (
        {"tool_choice": "required"},
        {"tools": TOOLS, "tool_choice": "time"},
        {"seed": [1, 2]},
        {"maximum": 3},
    ):
        with pytest.raises(outrider.UsageError):
            generator.stream_chat(MESSAGES, **{"max_tokens": 3, **keywords})
    with pytest.raises(outrider.Error, match="template"):
        plain.stream_chat(MESSAGES)
