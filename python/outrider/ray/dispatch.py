"""Batches handed out to workers that may die, and each answer taken once.

Knows neither Ray nor files: `pool` and `commit` are given (see `collect`).
"""

import itertools
from collections import deque
from typing import Callable, Iterable, Iterator, List, NamedTuple, Protocol

from outrider import Error


class WorkerLost(Exception):
    """A worker died, or its machine can no longer be reached, before it answered."""


class Pool(Protocol):
    """Workers, by numbers from 0."""

    def __len__(self) -> int: ...

    def submit(self, worker: int, batch: list):
        """Begins; returns a ticket that can be hashed."""

    def wait(self, tickets: list):
        """One of the tickets whose batch is answered or lost."""

    def result(self, ticket) -> list:
        """Its answers. WorkerLost: there are none and never will be."""

    def replace(self, worker: int) -> None:
        """A new worker in the place of one that is lost."""


class _Task(NamedTuple):
    batch: list
    attempt: int


def batched(items: Iterable, size: int) -> Iterator[List]:
    """Lists of `size` items each, the last one of what is left."""
    source = iter(items)
    while batch := list(itertools.islice(source, size)):
        yield batch


def collect(batches: Iterable[list], pool: Pool, commit: Callable[[list], None], *, attempts: int = 3) -> int:
    """Runs all batches, each worker one at a time, and commits the answers as they come.

    A batch whose worker is lost is given out again, `attempts` times in all; a batch that lost every
    one of them is an Error, behind which what was committed stays. Returns how many workers were lost.
    """
    waiting = iter(batches)
    again: deque = deque()
    running = {}
    idle = list(range(len(pool)))
    n_lost = 0
    while True:
        while idle:
            task = again.popleft() if again else next((_Task(batch, 1) for batch in waiting), None)
            if task is None:
                break
            worker = idle.pop()
            running[pool.submit(worker, task.batch)] = (worker, task)
        if not running:
            return n_lost
        ticket = pool.wait(list(running))
        worker, task = running.pop(ticket)
        try:
            answers = pool.result(ticket)
        except WorkerLost as lost:
            n_lost += 1
            if task.attempt >= attempts:
                raise Error(f"[map_prompts] batch of {len(task.batch)} prompts: {attempts} workers died with it; "
                            f"the last one: {lost}") from None
            again.append(_Task(task.batch, task.attempt + 1))
            pool.replace(worker)
        else:
            commit(answers)
        idle.append(worker)
