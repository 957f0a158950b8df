# SPDX-License-Identifier: Apache-2.0
"""The files of map_prompts, with each answer once; batches and their workers. None of it needs Ray itself."""

import collections
import json
import os
import random
import signal
import subprocess
import sys
import time
import types

import pytest

import outrider
from conftest import MODELS, PROMPTS
from outrider import Error, UsageError
from outrider.ray import answer_file, batch_job
from outrider.ray.answer_file import AnswerFile, Item, hash_of, read_answers
from outrider.ray.batch_job import RayPool, Settings, Worker, map_prompts, read_items, seed_of
from outrider.ray.dispatch import WorkerLost, batched, collect

SETTINGS = {"model": "m", "seed": 1}


def record(key, prompt="p", text="t"):
    return {"key": key, "prompt": prompt, "prompt_hash": hash_of(prompt), "text": text}


def keys_in(folder):
    return [answer["key"] for answer in read_answers(folder)]


# --- what map_prompts writes


def test_an_answer_is_written_once(tmp_path):
    with AnswerFile(tmp_path, SETTINGS) as answers:
        assert answers.append([record("a"), record("b"), record("a", text="other")]) == 2
        assert answers.append([record("b"), record("c")]) == 1
    with AnswerFile(tmp_path, SETTINGS) as answers:
        assert answers.append([record("c"), record("d")]) == 1
        assert len(answers) == 4
    assert keys_in(tmp_path) == ["a", "b", "c", "d"]
    assert [answer["text"] for answer in read_answers(tmp_path)] == ["t"] * 4


def test_a_broken_last_line_is_cut_off(tmp_path):
    with AnswerFile(tmp_path, SETTINGS) as answers:
        answers.append([record("a"), record("b")])
    file = tmp_path / "answers.jsonl"
    whole = file.read_bytes()
    second = json.dumps(record("c")).encode() + b"\n"
    for cut in range(len(second)):
        file.write_bytes(whole + second[:cut])
        assert keys_in(tmp_path) == ["a", "b"]
        with AnswerFile(tmp_path, SETTINGS) as answers:
            assert [item.key for item in answers.unanswered([Item("b", "p"), Item("c", "p")])] == ["c"]
            answers.append([record("c")])
        assert keys_in(tmp_path) == ["a", "b", "c"]


def test_damage_in_the_middle_is_an_error(tmp_path):
    with AnswerFile(tmp_path, SETTINGS) as answers:
        answers.append([record("a"), record("b")])
    file = tmp_path / "answers.jsonl"
    file.write_bytes(file.read_bytes().replace(b'{"key": "a"', b'{"key" "a"'))
    with pytest.raises(Error, match="line 1"):
        AnswerFile(tmp_path, SETTINGS)


def test_a_key_that_stands_twice_is_an_error(tmp_path):
    with AnswerFile(tmp_path, SETTINGS) as answers:
        answers.append([record("a")])
    file = tmp_path / "answers.jsonl"
    file.write_bytes(file.read_bytes() * 2)
    with pytest.raises(Error, match="'a' twice"):
        AnswerFile(tmp_path, SETTINGS)


def test_other_settings_are_refused(tmp_path):
    AnswerFile(tmp_path, {**SETTINGS, "model": "other"}).close()
    with AnswerFile(tmp_path, SETTINGS) as answers:  # there is no answer yet
        answers.append([record("a")])
    with pytest.raises(UsageError, match="seed"):
        AnswerFile(tmp_path, {**SETTINGS, "seed": 2})
    with pytest.raises(UsageError, match="rule"):
        AnswerFile(tmp_path, {**SETTINGS, "rule": "chow:alpha=0.5"})
    AnswerFile(tmp_path, SETTINGS).close()


def test_keys_are_checked_against_their_prompts(tmp_path):
    with AnswerFile(tmp_path, SETTINGS) as answers:
        answers.append([record("a", "one")])
        with pytest.raises(UsageError, match="twice"):
            list(answers.unanswered([Item("b", "x"), Item("b", "x")]))
        with pytest.raises(UsageError, match="another prompt"):
            list(answers.unanswered([Item("a", "two")]))
        assert list(answers.unanswered([Item("a", "one"), Item("b", [1, 2])])) == [Item("b", [1, 2])]
    assert hash_of("[1, 2]") != hash_of([1, 2])


def test_there_is_one_writer(tmp_path):
    script = ("import sys, time\nfrom outrider.ray.answer_file import AnswerFile\n"
              "with AnswerFile(sys.argv[1], {}) as a:\n print('open', flush=True)\n time.sleep(60)\n")
    writer = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout.readline() == "open\n"
        with pytest.raises(Error, match=f"another job.*process {writer.pid}"):
            AnswerFile(tmp_path, {})
    finally:
        writer.kill()
        writer.wait()
    AnswerFile(tmp_path, {}).close()


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    with AnswerFile(tmp_path, SETTINGS) as answers:
        answers.append([record("a")])
        write = os.write

        def fails_half_way(descriptor, data):
            write(descriptor, bytes(data[:10]))
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(answer_file.os, "write", fails_half_way)
        with pytest.raises(OSError):
            answers.append([record("b")])
        monkeypatch.undo()
        answers.append([record("b"), record("c")])
    assert keys_in(tmp_path) == ["a", "b", "c"]


WRITER = """
import sys
from outrider.ray.answer_file import AnswerFile, Item, hash_of
from outrider.ray.dispatch import batched
with AnswerFile(sys.argv[1], {}) as answers:
    print("open", flush=True)
    items = (Item(str(number), f"prompt {number}") for number in range(400))
    for batch in batched(answers.unanswered(items), 4):
        # Longer than a page: a kill may come within a line.
        answers.append([{"key": item.key, "prompt": item.prompt, "prompt_hash": hash_of(item.prompt),
                         "text": item.key * 3000} for item in batch])
"""


def test_a_writer_that_is_killed_again_and_again_answers_each_once(tmp_path):
    generator = random.Random(5)
    kills = 0
    for _ in range(200):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        writer.stdout.readline()
        time.sleep(generator.uniform(0.001, 0.02))
        if writer.poll() is None:
            writer.send_signal(signal.SIGKILL)
        if writer.wait() == 0:
            break
        kills += 1
        if kills == 12:
            subprocess.run([sys.executable, "-c", WRITER, str(tmp_path)], check=True, stdout=subprocess.DEVNULL)
            break
    answers = list(read_answers(tmp_path))
    assert sorted(int(answer["key"]) for answer in answers) == list(range(400))
    assert all(answer["text"] == answer["key"] * 3000 for answer in answers)
    assert kills > 0, "no writer was killed: this has shown nothing"


# --- batches and workers


class FakePool:
    """Answers at once; loses each batch in `loses` the given number of times."""

    def __init__(self, n_workers, loses):
        self.workers = [0] * n_workers
        self.loses = dict(loses)
        self.batches = {}
        self.asked = collections.Counter()

    def __len__(self):
        return len(self.workers)

    def submit(self, worker, batch):
        ticket = object()
        self.batches[ticket] = batch
        assert self.workers[worker] == 0, "a worker has one batch at a time"
        self.workers[worker] += 1
        self.ticket_worker = {**getattr(self, "ticket_worker", {}), ticket: worker}
        return ticket

    def wait(self, tickets):
        return tickets[-1]

    def result(self, ticket):
        batch = self.batches.pop(ticket)
        self.workers[self.ticket_worker[ticket]] -= 1
        self.asked[tuple(batch)] += 1
        if self.loses.get(batch[0], 0) > 0:
            self.loses[batch[0]] -= 1
            raise WorkerLost("killed")
        return [item * 10 for item in batch]

    def replace(self, worker):
        self.replaced = getattr(self, "replaced", 0) + 1


def test_a_lost_batch_is_given_out_again_and_committed_once():
    pool = FakePool(3, {4: 2, 10: 1})
    committed = []
    assert collect(batched(range(20), 2), pool, committed.extend, attempts=3) == 3
    assert sorted(committed) == [item * 10 for item in range(20)]
    assert pool.replaced == 3
    assert pool.asked[(4, 5)] == 3


def test_a_batch_that_loses_all_its_workers_is_an_error():
    committed = []
    with pytest.raises(Error, match="2 workers"):
        collect(batched(range(6), 1), FakePool(1, {3: 2}), committed.extend, attempts=2)
    assert 0 in committed and 30 not in committed


def test_datasets(tmp_path):
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"id": 7, "prompt": "x"}\n\n{"id": 8, "prompt": [1, 2]}\n')
    assert list(read_items(file, "id", "prompt")) == [Item("7", "x"), Item("8", [1, 2])]
    assert list(read_items(["x", "y"], None, "prompt")) == [Item("0", "x"), Item("1", "y")]
    assert list(read_items({"k": "x"}, None, "prompt")) == [Item("k", "x")]
    assert list(read_items([{"key": 3, "q": "x"}], None, "q")) == [Item("3", "x")]
    for rows in ([{"q": "x"}], [{"prompt": 3}], ["\ud800"], [{"prompt": b"ab"}], [[1, 2.0]], [{"prompt": {1: 2}}]):
        with pytest.raises(UsageError):
            list(read_items(rows, None, "prompt"))
    assert list(read_items([[0, 2**31 - 1]], None, "prompt")) == [Item("0", [0, 2**31 - 1])]
    for token in (2**31, -1, 2**70):
        with pytest.raises(UsageError, match=f"key 'a': expected token ids of 0..2147483647, got {token}"):
            list(read_items({"a": [1, token]}, None, "prompt"))
    with pytest.raises(UsageError, match="id"):
        list(read_items([{"prompt": "x"}], "id", "prompt"))


def test_seeds_and_settings():
    seeds = {seed_of(1, str(key)) for key in range(100)} | {seed_of(2, str(key)) for key in range(100)}
    assert len(seeds) == 200 and all(0 <= seed < 2**63 for seed in seeds)
    settings = Settings(model="m", stop=("a",), sampling={"temperature": 1.0}).as_json()
    assert json.loads(json.dumps(settings)) == settings


# --- workers, in this process


def settings_of(**settings):
    return Settings(model=str(MODELS / "drafter"), **{"max_tokens": 4, **settings}).as_json()


WRONG = [
    ({"sampling": {"temperature": -1}}, "temperature"),
    ({"sampling": {"top_p": "half"}}, "top_p|incompatible"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"max_tokens": "three"}, "max_tokens"),
    ({"stop": ["\ud800"]}, "lone surrogate"),
    ({"drafter": "nobody"}, "nobody"),
    ({"rule": "no rule"}, "rule"),
    ({"tree": "bush"}, "bush"),
    ({"verify": "nobody"}, "nobody"),
    ({"weights": "int3"}, "int3"),
    ({"ignore_eos": "yes"}, "ignore_eos"),
]
WRONG_FOR_ALL_MODELS = [
    ({"sampling": {"heat": 1}}, "heat"),
    ({"seed": 0.5}, "settings"),
    ({"stop_tokens": ["x"]}, "settings"),
    ({"drafter": object()}, "settings"),
]


@pytest.mark.parametrize("settings, message", WRONG)
def test_wrong_settings_are_no_prompts_answers(settings, message):
    worker = Worker(settings_of(**settings), 1)
    for _ in range(2):  # a restarted worker begins anew
        with pytest.raises(UsageError, match=message):
            worker.answer([Item("a", "one"), Item("b", "two")])


@pytest.mark.parametrize("settings, message", WRONG_FOR_ALL_MODELS)
def test_settings_that_no_model_takes(settings, message):
    with pytest.raises(UsageError, match=message):
        settings_of(**settings)


def test_a_prompts_own_errors_are_its_answers():
    worker = Worker(settings_of(drafter="suffix"), 1)
    items = [Item("a", PROMPTS[0]), Item("long", "x " * 4000), Item("none", []), Item("no token", [10**6]), Item("b", [1, 2])]
    answers = {answer["key"]: answer for answer in worker.answer(items)}
    assert "context of 1024" in answers["long"]["error"]
    assert "at least one token" in answers["none"]["error"]
    assert "below 4096" in answers["no token"]["error"]
    generator = outrider.Generator(outrider.Model(MODELS / "drafter", threads=1))
    for item in (items[0], items[-1]):
        assert answers[item.key]["ids"] == generator.generate(item.prompt, max_tokens=4).ids.tolist()


def test_an_error_that_is_not_the_prompts_fails_the_job():
    class Fails:
        def propose(self, text, draft):
            raise Error("the disk has gone")

    worker = Worker(settings_of(), 1)
    worker.answer([Item("a", "one")])
    worker._generator = outrider.Generator(outrider.Model(MODELS / "drafter", threads=1), drafter=Fails())
    with pytest.raises(Error, match="the disk has gone"):
        worker.answer([Item("b", "two")])


class LocalPool:
    """Takes RayPool's place: one worker, in this process."""

    def __init__(self, settings, n_workers, threads, options):
        self.worker = Worker(settings, threads)

    def __len__(self):
        return 1

    def submit(self, worker, batch):
        return tuple(map(tuple, batch))

    def wait(self, tickets):
        return tickets[0]

    def result(self, ticket):
        return self.worker.answer(ticket)

    def close(self):
        pass


def test_a_job_with_wrong_settings_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", types.SimpleNamespace(is_initialized=lambda: True))
    monkeypatch.setattr(batch_job, "RayPool", LocalPool)
    options = {"out": tmp_path, "workers": 1, "max_tokens": 3}
    with pytest.raises(UsageError, match="temperature"):
        map_prompts(PROMPTS, MODELS / "drafter", sampling={"temperature": -1}, **options)
    assert list(read_answers(tmp_path)) == []
    # The settings of an unanswered job do not block the corrected settings.
    result = map_prompts([*PROMPTS, "x " * 4000], MODELS / "drafter", sampling={"temperature": 1}, **options)
    assert (result.n_answered, result.n_errors) == (4, 1)
    with pytest.raises(UsageError, match="sampling"):
        map_prompts(PROMPTS, MODELS / "drafter", **options)


def test_a_worker_s_error_comes_without_its_traceback():
    class RayTaskError(Exception):
        def __init__(self, cause):
            super().__init__("a traceback of many lines")
            self.cause = cause

    class Never(Exception):
        pass

    names = ("ActorDiedError", "ActorUnavailableError", "NodeDiedError", "ObjectLostError", "OutOfMemoryError",
             "WorkerCrashedError")
    pool = RayPool.__new__(RayPool)

    def raises(cause):
        def get(ticket):
            raise RayTaskError(cause)

        pool._ray = types.SimpleNamespace(get=get, exceptions=types.SimpleNamespace(
            RayTaskError=RayTaskError, **dict.fromkeys(names, Never)))

    raises(UsageError("[sampling] temperature: wrong"))
    with pytest.raises(UsageError, match="temperature"):
        pool.result(None)
    raises(KeyError("a mistake"))
    with pytest.raises(RayTaskError):
        pool.result(None)
