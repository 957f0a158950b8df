"""What can go wrong around the engine: first calls on many threads, objects that were never made."""

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
    # A process of its own: there, no array has been made.
    for _ in range(3):
        words = [sys.executable, "-c", FIRST_ARRAYS, str(MODELS / "target")]
        subprocess.run(words, check=True, timeout=30)


def test_sequences_that_make_their_elements(model):
    tokenizer = model.tokenizer
    expected = tokenizer.decode(list(range(300, 600)))
    assert tokenizer.decode(range(300, 600)) == expected
    assert tokenizer.decode(array.array("q", range(300, 600))) == expected
    # Beyond what Python keeps of small integers: each is made for one look at it.
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
