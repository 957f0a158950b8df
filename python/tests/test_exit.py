# SPDX-License-Identifier: Apache-2.0
"""The end of Python while daemon threads are in the engine: no abort, and nothing on stderr."""

import subprocess
import sys

import pytest

from conftest import MODELS

# The thread signals that it has started; then the main thread returns.
BEGINNING = """
import sys, threading, time
import outrider
model = outrider.Model(sys.argv[1], threads=1)
busy = threading.Event()
LONG = dict(max_tokens=900, ignore_eos=True)

def in_daemon(function):
    threading.Thread(target=function, daemon=True).start()
    assert busy.wait(30)
"""

GENERATES = """
def run():
    generator = outrider.Generator(model, drafter="suffix")
    while True:
        generator.generate(["one two"] * 4, on_token=lambda token, index: busy.set(), **LONG)
in_daemon(run)
"""

# Threads that wait for their turns, too.
STREAMS = """
def run():
    generator = outrider.Generator(model)
    while True:
        for token in generator.stream("one two", **LONG):
            busy.set()
for _ in range(4):
    in_daemon(run)
"""

SCORES = """
def run():
    while True:
        model.logits([[1] * 200] * 2)
        busy.set()
in_daemon(run)
"""

LOADS = """
def run():
    while True:
        outrider.Model(sys.argv[1], threads=1, progress=lambda share: busy.set())
in_daemon(run)
"""

ENCODES = """
def run():
    while True:
        model.tokenizer.encode("one two " * 1000)
        busy.set()
in_daemon(run)
"""

# The exception raised in the thread behaves like any other: the thread may catch it and go on.
GOES_ON = """
def run():
    while True:
        try:
            outrider.Generator(model).generate("one", on_token=lambda token: busy.set(), **LONG)
        except BaseException:
            pass
in_daemon(run)
"""

# Python ends the thread within a callback, whose pass holds the model's turn; after that the main
# thread drops another generator of the model.
IN_A_MASK = """
def mask(text):
    busy.set()
    while True:
        time.sleep(0.001)
other = outrider.Generator(model)
begun = other.stream("one", **LONG)
next(begun)
in_daemon(lambda: outrider.Generator(model).generate("one", mask=mask, **LONG))
"""

IN_A_DRAFTER = """
class Drafter:
    def propose(self, text, draft):
        busy.set()
        while True:
            time.sleep(0.001)
in_daemon(lambda: outrider.Generator(model, drafter=Drafter()).generate("one", **LONG))
"""

IN_ON_TOKEN = """
def on_token(token):
    busy.set()
    while True:
        time.sleep(0.001)
in_daemon(lambda: outrider.Generator(model).generate("one", on_token=on_token, **LONG))
"""

SCRIPTS = {
    "generate": GENERATES,
    "streams": STREAMS,
    "logits": SCORES,
    "load": LOADS,
    "encode": ENCODES,
    "goes_on": GOES_ON,
    "mask": IN_A_MASK,
    "drafter": IN_A_DRAFTER,
    "on_token": IN_ON_TOKEN,
}


def run(script):
    words = [sys.executable, "-c", script, str(MODELS / "drafter")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_daemon_threads_end_with_python(name):
    run(BEGINNING + SCRIPTS[name])


def test_calls_of_daemon_threads_end_behind_the_pass():
    # A hook that was registered before outrider's is called after it.
    script = """
import atexit, threading
atexit.register(lambda: print(left.wait(20)))
left = threading.Event()
""" + BEGINNING + """
def run():
    try:
        outrider.Generator(model).generate("one", on_token=lambda token: busy.set(), **LONG)
    except SystemExit:
        left.set()
in_daemon(run)
"""
    assert run(script) == "True\n"


def test_the_main_thread_may_generate_to_the_end():
    script = """
import atexit
atexit.register(lambda: last())
""" + BEGINNING + """
last = lambda: print(len(outrider.Generator(model).generate("one", max_tokens=2).ids))
in_daemon(lambda: outrider.Generator(model).generate("one", on_token=lambda token: busy.set(), **LONG))
"""
    assert run(script) == "2\n"
