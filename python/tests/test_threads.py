# SPDX-License-Identifier: Apache-2.0
"""Threads and signals: which thread may use a generator, and the effect of Ctrl-C."""

import signal
import threading
import time

import numpy as np
import pytest

import outrider
from conftest import DRAFTER, PROMPTS

# Longer than any machine generates before it is told to stop.
LONG = dict(max_tokens=900, ignore_eos=True)
MANY = PROMPTS * 16


def in_threads(*functions):
    """What each thread returned or raised."""
    outcomes = [None] * len(functions)

    def call(index, function):
        try:
            outcomes[index] = function()
        except BaseException as error:  # noqa: B036 (it is looked at)
            outcomes[index] = error

    threads = [threading.Thread(target=call, args=of) for of in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_two_generators_on_two_threads(model, plain):
    expected = [result.ids.tolist() for result in plain.generate(PROMPTS, max_tokens=40)]
    generators = [outrider.Generator(model), outrider.Generator(model, drafter=DRAFTER)]

    def run(generator):
        return [
            [generator.generate(prompt, max_tokens=40).ids.tolist() for prompt in PROMPTS]
            for _ in range(4)
        ]

    outcomes = in_threads(*(lambda generator=generator: run(generator) for generator in generators))
    assert outcomes == [[expected] * 4] * 2


def test_a_models_rows_beside_a_generator(model, plain):
    ids = model.tokenizer.encode(PROMPTS[0])
    expected = model.logits(ids).tobytes()
    text = plain.generate(PROMPTS[0], max_tokens=40).ids.tolist()
    outcomes = in_threads(
        lambda: {model.logits(ids).tobytes() for _ in range(20)},
        lambda: [plain.generate(PROMPTS[0], max_tokens=40).ids.tolist() for _ in range(5)],
    )
    assert outcomes == [{expected}, [text] * 5]


def test_one_generator_in_two_threads_is_refused(model):
    generator = outrider.Generator(model)
    refused = threading.Event()

    def run():
        for _ in range(1000):  # some seconds: the threads meet in one of the first passes
            if refused.is_set():
                return None
            try:
                generator.generate(PROMPTS[0], max_tokens=20)
            except outrider.UsageError as error:
                refused.set()
                return str(error)
        return None

    # That they meet at all shows that passes run without the GIL.
    outcomes = in_threads(run, run)
    assert any("one thread at a time" in (outcome or "") for outcome in outcomes), outcomes
    assert len(generator.generate(PROMPTS[0], max_tokens=3).ids) == 3


def test_a_generator_is_refused_within_its_own_callback(plain):
    errors = []

    def again(token):
        try:
            plain.generate(PROMPTS[0], max_tokens=1)
        except outrider.UsageError as error:
            errors.append(error)

    plain.generate(PROMPTS[0], max_tokens=2, on_token=again)
    assert len(errors) == 2


@pytest.fixture
def interrupt():
    """Ctrl-C after a delay. The handler tries the generator, which is in use if a call still runs."""
    seen = []

    class Interrupted(Exception):
        pass

    def handler(number, frame):
        try:
            seen.append(interrupt.generator.generate(PROMPTS[0], max_tokens=1))
        except outrider.UsageError as error:
            seen.append(error)
        raise Interrupted

    def interrupt(generator, seconds):
        interrupt.generator = generator
        signal.setitimer(signal.ITIMER_REAL, seconds)

    interrupt.seen = seen
    interrupt.error = Interrupted
    before = signal.signal(signal.SIGALRM, handler)
    yield interrupt
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_signal_ends_generating(plain, interrupt):
    expected = plain.generate(PROMPTS[0], max_tokens=5).ids.tolist()
    with pytest.raises(interrupt.error):
        interrupt(plain, 0.2)
        plain.generate(MANY * 8, **LONG)
    # It came in the middle of the call, not after it.
    assert [type(one) for one in interrupt.seen] == [outrider.UsageError]
    assert plain.generate(PROMPTS[0], max_tokens=5).ids.tolist() == expected


def test_a_signal_ends_a_streams_pass(plain, interrupt):
    with pytest.raises(interrupt.error):
        interrupt(plain, 0.2)
        while True:
            for _ in plain.stream(PROMPTS[0] * 40, **LONG):
                pass
    assert len(plain.generate(PROMPTS[0], max_tokens=5).ids) == 5


def test_a_signal_ends_scoring(model, plain, interrupt):
    texts = [np.full(1000, 5)] * 500
    with pytest.raises(interrupt.error):
        interrupt(plain, 0.2)
        model.features(texts, [0])
    # Scoring uses no generator: the handler could use one during the call.
    assert [type(one) for one in interrupt.seen] == [outrider.Result]
    assert model.logits([5]).shape == (1, 4096)


def test_ctrl_c_is_a_keyboard_interrupt(plain):
    main = threading.main_thread().ident
    timer = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        plain.generate(MANY * 8, **LONG)
        time.sleep(10)  # not reached: the signal comes first
    timer.join()
    assert len(plain.generate(PROMPTS[0], max_tokens=5).ids) == 5
