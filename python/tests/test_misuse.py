# SPDX-License-Identifier: Apache-2.0
"""Possible errors around the engine: first calls on many threads, uninitialised objects."""

import array
import subprocess
import sys

import numpy as np
import pytest

import outrider
from conftest import MODELS, PROMPTS

FIRST_ARRAYS = """
import sys, threading
import outrider
tokenizer = outrider.Tokenizer.load(sys.argv[1])
barrier = threading.Barrier(4)
def encode():
    barrier.wait()
    tokenizer.encode("one two three")
threads = [threading.Thread(target=encode) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_first_arrays_on_many_threads():
    # A separate process, in which no array has been made.
    for _ in range(3):
        words = [sys.executable, "-c", FIRST_ARRAYS, str(MODELS / "target")]
        subprocess.run(words, check=True, timeout=30)


def test_sequences_that_make_their_elements(model):
    tokenizer = model.tokenizer
    expected = tokenizer.decode(list(range(300, 600)))
    assert tokenizer.decode(range(300, 600)) == expected
    assert tokenizer.decode(array.array("q", range(300, 600))) == expected
    # Larger than the small integers that Python caches: each object exists for one look at it.
    big = range(2**40, 2**40 + 3)
    with pytest.raises(outrider.UsageError, match=str(2**40)):
        tokenizer.decode(big)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_are_no_ids(model, plain, kind):
    ids = kind(b"ab")
    with pytest.raises(outrider.UsageError):
        model.tokenizer.decode(ids)
    with pytest.raises(outrider.UsageError):
        plain.generate(ids, max_tokens=1)
    with pytest.raises(outrider.UsageError):
        model.logits(ids)


UNMADE = """
import sys
import outrider
import outrider._outrider as module
model = None
def refused(function):
    try:
        function()
    except TypeError:
        return
    raise AssertionError("not refused")
refused(lambda: outrider.Generator(None))
refused(lambda: outrider.Generator.model.fget(None))
refused(lambda: outrider.Generator.generate(None, "a"))
refused(lambda: outrider.Generator.__new__(outrider.Generator).generate("a"))
refused(lambda: outrider.Generator.__new__(outrider.Generator).model)
refused(lambda: outrider.Generator.__new__(outrider.Generator).stream("a"))
refused(lambda: outrider.Generator.__new__(outrider.Generator).stream_chat([]))
refused(lambda: outrider.Generator(outrider.Model.__new__(outrider.Model)))
for of in vars(module).values():
    if isinstance(of, type) and not issubclass(of, Exception):
        for name, part in vars(of).items():
            if isinstance(part, property):
                refused(lambda: getattr(of.__new__(of), name))
                refused(lambda: part.fget(None))
"""


def test_objects_that_were_never_made():
    done = subprocess.run([sys.executable, "-c", UNMADE], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


WITHIN_A_PASS = """
import gc, sys
import outrider

model = outrider.Model(sys.argv[1], threads=1)
plain = outrider.Generator(model)
other = outrider.Generator(model)
stream = other.stream("one", max_tokens=50, ignore_eos=True)
closed = other.stream("two", max_tokens=50, ignore_eos=True)
lonely = outrider.Generator(model).stream("five", max_tokens=50, ignore_eos=True)
next(stream), next(closed), next(lonely)
expected = plain.generate("one two", max_tokens=5).ids.tolist()
refused = []

def refuse(function):
    try:
        function()
    except outrider.UsageError as error:
        assert "within a pass of the same model" in str(error), error
        refused.append(error)

def everything():
    refuse(lambda: model.logits([1, 2]))
    refuse(lambda: other.generate("three", max_tokens=2))
    refuse(lambda: next(stream))
    refuse(lambda: outrider.Generator(model))
    refuse(lambda: other.keep_last_text(False))
    assert len(outrider.Generator(second).generate("a", max_tokens=1).ids) == 1
    if waste:  # a cycle: the collector drops it here
        waste.clear()
        gc.collect()
    closed.close()
    lonely.close()

def mask(text):
    everything()
    return None

second = outrider.Model(sys.argv[1], threads=1)
waste = []

def cycle():
    generator = outrider.Generator(model)
    held = [generator, generator.stream("four", max_tokens=9)]
    next(held[1])
    held.append(held)
    return held

waste.append(cycle())
assert plain.generate("one two", max_tokens=5, mask=mask).ids.tolist() == expected
assert len(refused) == 5 * 5

class Drafter:
    def begin(self, text): everything()
    def propose(self, text, draft): everything(); draft.add(-1, 5)
    def observe(self, text, accepted): everything()
    def end(self, id): everything()

waste.append(cycle())
refused.clear()
drafted = outrider.Generator(model, drafter=Drafter())
assert drafted.generate("one two", max_tokens=5).ids.tolist() == expected
assert len(refused) >= 15

# Behind a pass, in on_token, all of it works.
plain.generate("one", max_tokens=2, on_token=lambda token: model.logits([1, 2]))
assert lonely.result.finish_reason == "cancelled"
assert len(list(stream)) == 49
assert closed.result.finish_reason == "cancelled"
"""


def test_calls_within_a_pass():
    words = [sys.executable, "-c", WITHIN_A_PASS, str(MODELS / "drafter")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


class Refuses:
    def __init__(self, error):
        self.error = error

    def __array__(self, *arguments, **keywords):
        raise self.error("on purpose")


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_what_arrays_raise_comes_out(model, plain, error):
    with pytest.raises(error, match="on purpose"):
        plain.generate(PROMPTS[0], max_tokens=2, mask=lambda text: Refuses(error))

    class Drafter:
        def propose(self, text, draft):
            draft.draw(-1, Refuses(error))

    with pytest.raises(error, match="on purpose"):
        outrider.Generator(model, drafter=Drafter()).generate(PROMPTS[0], max_tokens=5)
    with pytest.raises(error, match="on purpose"):
        outrider._outrider.model_from_memory("{}", {"a": Refuses(error)}, {})


def test_stop_iteration_of_a_callback_ends_no_stream(model, plain):
    def mask(text):
        raise StopIteration

    class Drafter:
        def propose(self, text, draft):
            raise StopIteration

    for stream in (
        plain.stream(PROMPTS[0], max_tokens=5, mask=mask),
        outrider.Generator(model, drafter=Drafter()).stream(PROMPTS[0], max_tokens=5),
    ):
        with pytest.raises(RuntimeError, match="StopIteration") as caught:
            list(stream)
        assert isinstance(caught.value.__cause__, StopIteration)
        # A text that failed has no result.
        assert stream.result is None
        assert list(stream) == []


REFUSED = [
    ({"seed": -1}, r"seed: expected 0\.\.18446744073709551615, got -1"),
    ({"seed": []}, "0 for 1 prompts"),
    ({"max_tokens": 2**31}, r"max_tokens: expected 0\.\.2147483647, got 2147483648"),
    ({"max_seconds": float("nan")}, "max_seconds"),
    ({"max_seconds": -1}, "max_seconds"),
    ({"stop": "\ud800"}, "a lone surrogate"),
    ({"\ud800": 1}, "a lone surrogate"),
]


@pytest.mark.parametrize("keywords, message", REFUSED)
def test_values_out_of_range(plain, keywords, message):
    with pytest.raises(outrider.UsageError, match=message):
        plain.generate(PROMPTS[0], **{"max_tokens": 1, **keywords})


def test_prompts_out_of_range(model, plain):
    with pytest.raises(outrider.UsageError, match="a lone surrogate"):
        plain.generate("\ud800", max_tokens=1)
    with pytest.raises(outrider.UsageError, match="a lone surrogate"):
        model.tokenizer.encode("\ud800")
    for of in (plain.generate, model.logits):
        with pytest.raises(outrider.UsageError):
            of(np.array(5))
    with pytest.raises(outrider.UsageError, match=str(2**64 - 1)):
        model.logits(np.array([2**64 - 1], np.uint64))
    with pytest.raises(outrider.UsageError, match=r"kv_memory: expected 0\.\..*, got -1"):
        outrider.Model(MODELS / "drafter", kv_memory=-1)


SURROGATE = "\ud800"
OF_SURROGATES = {
    "piece": lambda model: model.tokenizer.find(SURROGATE),
    "texts": lambda model: model.tokenizer.chat_template([], variables={"a": SURROGATE}),
    "text": lambda model: model.tokenizer.chat_template([], variables=SURROGATE),
    "drafter": lambda model: outrider.Generator(model, drafter=SURROGATE),
    "rule": lambda model: outrider.Generator(model, rule=SURROGATE),
    "tree": lambda model: outrider.Generator(model, tree=SURROGATE),
    "verify": lambda model: outrider.Generator(model, verify=SURROGATE),
    "kv": lambda model: outrider.Generator(model, drafter_options={"kv": SURROGATE}),
    "weights": lambda model: outrider.Model(MODELS / "drafter", weights=SURROGATE),
    "path": lambda model: outrider.Model(SURROGATE),
    "path ": lambda model: outrider.Tokenizer.load(SURROGATE),
    "value": lambda model: outrider.escape_spec_value(SURROGATE),
    "text ": lambda model: outrider.Grammar.from_gbnf(SURROGATE),
    "text  ": lambda model: outrider.Grammar.from_regex(SURROGATE),
    "tool_choice": lambda model: outrider.Generator(model).chat([], tool_choice=SURROGATE),
    "config_json": lambda model: outrider._outrider.model_from_memory(SURROGATE, {}, {}),
    "name of a tensor": lambda model: outrider._outrider.model_from_memory("", {SURROGATE: 1}, {}),
    "name of a file": lambda model: outrider._outrider.model_from_memory("", {}, {SURROGATE: b""}),
}


@pytest.mark.parametrize("name", OF_SURROGATES)
def test_lone_surrogates_are_named(model, name):
    with pytest.raises(outrider.UsageError, match=f"] {name.strip()}: .*, got a lone surrogate"):
        OF_SURROGATES[name](model)


def test_names_of_files_that_are_no_text(tmp_path, models):
    # A byte that is invalid UTF-8, as Python spells it.
    with pytest.raises(outrider.Error, match=r"\\x80"):
        outrider.Model(tmp_path / "\udc80")
    folder = tmp_path / "there\udc80"
    folder.symlink_to(models / "drafter")
    assert outrider.Model(folder, threads=1).path == str(folder)


SAMPLING = {
    "top_k": (2**40, r"expected 0\.\.2147483647, got 1099511627776"),
    "top_k ": (-1, r"expected 0\.\.2147483647, got -1"),
    "temperature": (10**400, "expected a number of at most 1.8e308, got a larger one"),
    "logit_bias": ([(2**40, 1.0)], r"expected 0\.\.2147483647, got 1099511627776"),
    "logit_bias ": ([(3, 10**400)], "expected a number of at most 1.8e308, got a larger one"),
}


@pytest.mark.parametrize("name", SAMPLING)
def test_sampling_out_of_range(name):
    value, message = SAMPLING[name]
    with pytest.raises(outrider.UsageError, match=rf"\[sampling\] {name.strip()}: {message}"):
        outrider.SamplingParams(**{name.strip(): value})
    params = outrider.SamplingParams()
    with pytest.raises(outrider.UsageError, match=message):
        setattr(params, name.strip(), value)
    assert repr(params) == repr(outrider.SamplingParams())


def test_sampling_of_other_types():
    for name in ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty"):
        with pytest.raises(TypeError, match=f"{name}: expected a number, got .*str"):
            outrider.SamplingParams(**{name: "1"})
    with pytest.raises(TypeError, match="top_k: expected an integer, got .*float"):
        outrider.SamplingParams(top_k=1.5)
    for bias in (3, "text", [3], [(1, 2, 3)], [("a", 1.0)], [(1, "a")]):
        with pytest.raises(TypeError, match="logit_bias"):
            outrider.SamplingParams(logit_bias=bias)
    taken = outrider.SamplingParams(np.float32(0.5), np.int64(3), logit_bias=[[np.int32(7), 1]])
    assert (taken.temperature, taken.top_k, taken.logit_bias) == (0.5, 3, [(7, 1.0)])


@pytest.mark.parametrize("first", [-1, 3, 2**70])
def test_first_rows_out_of_range(model, first):
    # At most the number of tokens of the shortest text.
    with pytest.raises(outrider.UsageError, match=rf"first: expected 0\.\.2, got {first}"):
        model.logits([[1, 2, 3], [1, 2]], first=first)
    with pytest.raises(TypeError, match="first: expected an integer"):
        model.logits([1, 2], first="1")
    assert [len(rows) for rows in model.logits([[1, 2, 3], [1, 2]], first=2)] == [1, 0]


def test_none_is_the_default(plain):
    expected = plain.generate(PROMPTS[0], max_tokens=3).ids.tolist()
    assert plain.generate(PROMPTS[0], max_tokens=3, stop=None, seed=None).ids.tolist() == expected


def test_masks_of_another_length_or_byte_order(model, plain):
    n = model.summary.vocabulary_size
    for wrong in (np.ones(n - 1, bool), np.ones((n + 31) // 32, ">i4")):
        with pytest.raises(outrider.UsageError, match="follow mask"):
            plain.generate(PROMPTS[0], max_tokens=1, mask=lambda text: wrong)


def test_distributions_rounded_to_bfloat16(model):
    class Drafter:
        def propose(self, text, draft):
            draft.draw(-1, ([1, 2], [0.5 * (1 + 2**-8)] * 2))

    outrider.Generator(model, drafter=Drafter()).generate(PROMPTS[0], max_tokens=5)


def test_arrays_of_a_result_are_read_only(plain):
    result = plain.generate(PROMPTS[0], max_tokens=2, keep_logits=True)
    for array in (result.ids, result.logits, result.accepted_per_round):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
