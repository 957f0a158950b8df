# SPDX-License-Identifier: Apache-2.0
"""Answers many prompts with workers on a Ray cluster. Each prompt is answered once, even after crashes."""

import hashlib
import json
import operator
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterable, Iterator, Mapping, Optional, Sequence

from outrider import Error, SamplingParams, UsageError
from outrider.ray.answer_file import AnswerFile, Item, hash_of
from outrider.ray.dispatch import WorkerLost, batched, collect


@dataclass(frozen=True)
class MapResult:
    """The result of a call of map_prompts."""

    file: Path         # answers.jsonl: all answers, including those of earlier calls
    n_answered: int    # by this call
    n_before: int      # answers that existed when it began
    n_errors: int      # answers of this call that are an error (for example, a prompt that is too long)
    n_lost: int        # workers that died meanwhile


@dataclass(frozen=True)
class Settings:
    """All settings that determine the answers. They must stay the same when a job is resumed. All are JSON."""

    model: str
    drafter: str = "none"
    rule: str = "exact"
    tree: str = ""
    verify: str = "exact"
    weights: str = ""
    kv: str = ""
    kernels: str = ""
    sampling: Mapping = field(default_factory=dict)
    max_tokens: int = 256
    seed: int = 0
    stop: Sequence[str] = ()
    stop_tokens: Sequence[int] = ()
    ignore_eos: bool = False
    add_special: bool = True

    def as_json(self) -> dict:
        """Returns the settings as JSON. Raises UsageError for settings that no model could accept. A
        worker checks the rest (Worker.answer)."""
        unknown = set(self.sampling) - {name for name in dir(SamplingParams) if not name.startswith("_")}
        if unknown:
            raise UsageError(f"[map_prompts] sampling: expected fields of SamplingParams, got {', '.join(sorted(unknown))}")
        fields = {**vars(self), "sampling": dict(self.sampling), "stop": list(self.stop),
                  "stop_tokens": list(self.stop_tokens)}
        try:
            fields["seed"] = operator.index(self.seed)
            fields["stop_tokens"] = [operator.index(token) for token in self.stop_tokens]
            return json.loads(json.dumps(fields))
        except (TypeError, ValueError) as error:
            raise UsageError(f"[map_prompts] settings: expected numbers, texts and lists of these: {error}") from None


def seed_of(seed: int, key: str) -> int:
    """Returns the seed of a key, so that the answer does not depend on the worker or the batch."""
    digest = hashlib.sha256(f"{seed}\0{key}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def read_items(dataset, key: Optional[str], prompt: str) -> Iterator[Item]:
    """Yields the prompts of any value that map_prompts accepts as a dataset."""
    rows: Iterable
    if isinstance(dataset, (str, os.PathLike)):
        rows = _lines(Path(dataset))
    elif hasattr(dataset, "iter_rows"):
        rows = dataset.iter_rows()
    elif isinstance(dataset, Mapping):
        rows = ({"key": name, prompt: text} for name, text in dataset.items())
        key = key or "key"
    else:
        rows = dataset
    for number, row in enumerate(rows):
        yield _item(row, number, key, prompt)


def _lines(file: Path) -> Iterator:
    with open(file, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise Error(f"[map_prompts] {file}: line {number}: {error}") from None


def _item(row, number: int, key: Optional[str], prompt: str) -> Item:
    if not isinstance(row, Mapping):
        row = {prompt: row}
    if prompt not in row:
        raise UsageError(f"[map_prompts] dataset: expected a column '{prompt}', got {', '.join(map(str, row))}")
    if key is not None and key not in row:
        raise UsageError(f"[map_prompts] dataset: expected a column '{key}', got {', '.join(map(str, row))}")
    name = str(row[key]) if key is not None else str(row.get("key", number))
    content = row[prompt]
    if not isinstance(content, str):
        content = _ids(content, name)
    for text in (name, content):
        if isinstance(text, str) and not _is_text(text):
            raise UsageError(f"[map_prompts] key {name!r}: expected text, got a lone surrogate")
    return Item(name, content)


_MOST_ID = 2**31 - 1  # ids are signed 32-bit integers (outrider/types.h)


def _ids(content, name: str) -> list:
    try:
        if isinstance(content, (bytes, bytearray, memoryview, Mapping)):
            raise TypeError
        ids = [operator.index(token) for token in content]
    except TypeError:
        raise UsageError(f"[map_prompts] key {name!r}: expected a text or token ids, got {content!r:.80}") from None
    for token in ids:
        if not 0 <= token <= _MOST_ID:
            raise UsageError(f"[map_prompts] key {name!r}: expected token ids of 0..{_MOST_ID}, got {token}")
    return ids


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Worker:
    """One process of a job. It loads a model and makes a generator at its first batch."""

    def __init__(self, settings: Mapping, threads: int):
        self._settings = Settings(**settings)
        self._threads = threads
        self._generator = None

    def answer(self, batch: Sequence[Item]) -> list:
        """Returns a record for each item, in their order. Errors that every prompt would give, such as
        settings out of range, are raised as an Error and not recorded as answers."""
        import outrider

        if self._generator is None:
            self._begin()
        items = [Item(*item) for item in batch]
        try:
            return [self._record(item, result) for item, result in zip(items, self._generate(items))]
        except outrider.Error:
            # Some item cannot be run: running them one by one shows which.
            return [self._answer_alone(item) for item in items]

    def _begin(self) -> None:
        import outrider

        settings = self._settings
        try:
            model = outrider.Model(settings.model, weights=settings.weights, kv=settings.kv,
                                   kernels=settings.kernels, threads=self._threads)
            generator = outrider.Generator(model, drafter=settings.drafter, rule=settings.rule, tree=settings.tree,
                                           verify=settings.verify)
            self._check(generator)
        except TypeError as error:
            raise outrider.UsageError(f"[map_prompts] settings: {error}") from None
        self._generator = generator

    def _check(self, generator) -> None:
        """Raises the errors that the settings cause for every prompt. Runs a test prompt of one id
        that every vocabulary has."""
        with generator.stream([0], self._sampling(), seed=0, **self._options()) as stream:
            next(stream, None)

    def _answer_alone(self, item: Item) -> dict:
        import outrider

        try:
            return self._record(item, self._generate([item])[0])
        except outrider.Error as error:
            self._check(self._generator)
            return {**self._head(item), "error": str(error)}

    def _generate(self, items: Sequence[Item]) -> list:
        return self._generator.generate([item.prompt for item in items], self._sampling(),
                                        seed=[seed_of(self._settings.seed, item.key) for item in items],
                                        **self._options())

    def _sampling(self):
        import outrider

        return outrider.SamplingParams(**self._settings.sampling)

    def _options(self) -> dict:
        settings = self._settings
        return {"max_tokens": settings.max_tokens, "stop": list(settings.stop),
                "stop_tokens": list(settings.stop_tokens), "ignore_eos": settings.ignore_eos,
                "add_special": settings.add_special}

    @staticmethod
    def _head(item: Item) -> dict:
        return {"key": item.key, "prompt": item.prompt, "prompt_hash": hash_of(item.prompt)}

    def _record(self, item: Item, result) -> dict:
        return {**self._head(item), "text": result.text, "ids": [int(token) for token in result.ids],
                "finish_reason": result.finish_reason}


class RayPool:
    """Workers as actors of a Ray cluster. They end with the driver, as Ray's actors do."""

    def __init__(self, settings: Mapping, n_workers: int, threads: int, options: Mapping):
        import ray

        self._ray = ray
        self._arguments = (dict(settings), threads)
        # Workers share processors, so that waiting threads must not spin. The variable is read when
        # the engine is loaded, before the actor is made.
        environment = {"OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "passive")}
        # Lost workers are replaced here, where their batches are counted, and not by Ray.
        self._actor = ray.remote(Worker).options(**{"num_cpus": threads, "max_restarts": 0,
                                                    "runtime_env": {"env_vars": environment}, **options})
        self._workers = [self._actor.remote(*self._arguments) for _ in range(n_workers)]

    def __len__(self) -> int:
        return len(self._workers)

    def submit(self, worker: int, batch: list):
        return self._workers[worker].answer.remote([tuple(item) for item in batch])

    def wait(self, tickets: list):
        return self._ray.wait(tickets, num_returns=1)[0][0]

    def result(self, ticket) -> list:
        errors = self._ray.exceptions
        try:
            return self._ray.get(ticket)
        except errors.RayTaskError as error:
            if isinstance(error.cause, Error):
                raise error.cause from None  # without the worker's traceback: the message suffices
            raise
        except errors.ActorDiedError as error:
            # Ray also reports an actor whose constructor raised as dead. It is not a lost worker: a
            # new one would fail again.
            if "creation task" in str(error) or "__init__" in str(error):
                raise
            raise WorkerLost(str(error)) from error
        except (errors.ActorUnavailableError, errors.NodeDiedError, errors.ObjectLostError,
                errors.OutOfMemoryError, errors.WorkerCrashedError) as error:
            raise WorkerLost(str(error)) from error

    def replace(self, worker: int) -> None:
        # An unreachable worker may live on; its answers are discarded.
        self._ray.kill(self._workers[worker], no_restart=True)
        self._workers[worker] = self._actor.remote(*self._arguments)

    def close(self) -> None:
        for worker in self._workers:
            self._ray.kill(worker, no_restart=True)


def map_prompts(dataset, model, *, out, drafter: str = "none", rule: str = "exact", tree: str = "",
                verify: str = "exact", weights: str = "", kv: str = "", kernels: str = "",
                sampling: Optional[Mapping] = None, max_tokens: int = 256, seed: int = 0,
                stop: Sequence[str] = (), stop_tokens: Sequence[int] = (), ignore_eos: bool = False,
                add_special: bool = True, key: Optional[str] = None, prompt: str = "prompt",
                workers: Optional[int] = None, threads: int = 1, batch: int = 16, attempts: int = 3,
                actor_options: Optional[Mapping] = None,
                on_batch: Optional[Callable[[int], None]] = None) -> MapResult:
    """Answers every prompt of `dataset` once, and writes the answers to the folder `out`.

    dataset: a ray.data.Dataset, a JSONL file, a mapping from keys to prompts, or an iterable of
    rows. Rows are mappings or plain prompts. A prompt (column `prompt`) is a text or a list of
    token ids. A row's key is its column `key`. Without that argument it is its column "key" if it
    has one, otherwise its number. Keys are compared as texts, and each may come once.

    out: a folder that this process can write and lock. answers.jsonl gets a line for each prompt:
    key, prompt, prompt_hash, text, ids (generated ones) and finish_reason. A prompt that cannot be
    run (for example, too long) gets "error" instead of the last three. Errors in the settings are
    raised and not recorded as answers. Called again after an interruption with the same dataset and
    settings, it answers the missing prompts. Raises UsageError for settings other than the
    folder's, and for a key that was answered for another prompt.

    model, drafter, rule, ...: as in outrider.Model and outrider.Generator. `model` is a path that
    exists on all machines of the cluster. sampling: the fields of SamplingParams by name. A
    prompt's seed is derived from `seed` and its key: answers depend neither on batches nor on
    workers.

    workers: number of processes, each with `threads` threads and as many of Ray's CPUs. None: as
    many as the cluster's CPUs allow. batch: number of prompts that a worker decodes at a time. A
    dead worker is replaced and its batch assigned again, up to `attempts` times in all; then Error
    is raised. actor_options: further options of the actors, such as resources. on_batch is called
    after each batch with the number of answers so far.

    Needs `ray`. Starts or joins a cluster if that has not been done. Call it from one thread.
    """
    try:
        import ray
    except ImportError:
        raise Error("[map_prompts] ray: not installed (pip install 'ray[data]')") from None
    if threads < 1 or batch < 1 or attempts < 1 or (workers is not None and workers < 1):
        raise UsageError("[map_prompts] threads, batch, attempts, workers: expected 1 or more")
    settings = Settings(model=os.fspath(model), drafter=drafter, rule=rule, tree=tree, verify=verify,
                        weights=weights, kv=kv, kernels=kernels, sampling=dict(sampling or {}),
                        max_tokens=max_tokens, seed=seed, stop=tuple([stop] if isinstance(stop, str) else stop),
                        stop_tokens=tuple(stop_tokens), ignore_eos=ignore_eos, add_special=add_special).as_json()
    with AnswerFile(out, settings) as answers:
        n_before = len(answers)
        n_errors = 0

        def commit(records: list) -> None:
            nonlocal n_errors
            answers.append(records)
            n_errors += sum("error" in record for record in records)
            if on_batch is not None:
                on_batch(len(answers))

        if not ray.is_initialized():
            ray.init()
        n_workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)) // threads)
        pool = RayPool(settings, n_workers, threads, actor_options or {})
        try:
            n_lost = collect(batched(answers.unanswered(read_items(dataset, key, prompt)), batch), pool, commit,
                             attempts=attempts)
        finally:
            pool.close()
        return MapResult(answers.folder / "answers.jsonl", len(answers) - n_before, n_before, n_errors, n_lost)
