# SPDX-License-Identifier: Apache-2.0
"""Assigns batches to workers that may die, and commits each answer once.

Independent of Ray and of files: `pool` and `commit` are arguments (see `collect`).
"""

import itertools
from collections import deque
from typing import Callable, Iterable, Iterator, List, NamedTuple, Protocol

from outrider import Error


class WorkerLost(Exception):
    """A worker died, or its machine became unreachable, before it answered."""


class Pool(Protocol):
    """Workers, numbered from 0."""

    def __len__(self) -> int: ...

    def submit(self, worker: int, batch: list):
        """Starts a batch; returns a hashable ticket."""

    def wait(self, tickets: list):
        """Waits until the batch of one of the tickets is answered or lost. Returns that ticket."""

    def result(self, ticket) -> list:
        """Returns the answers of a ticket. Raises WorkerLost if there are none and never will be."""

    def replace(self, worker: int) -> None:
        """Puts a new worker in the place of a lost one."""


class _Task(NamedTuple):
    batch: list
    attempt: int


def batched(items: Iterable, size: int) -> Iterator[List]:
    """Yields lists of `size` items each; the last one may be shorter."""
    source = iter(items)
    while batch := list(itertools.islice(source, size)):
        yield batch


def collect(batches: Iterable[list], pool: Pool, commit: Callable[[list], None], *, attempts: int = 3) -> int:
    """Runs all batches, one at a time per worker, and commits the answers as they come.

    The batch of a lost worker is assigned again, up to `attempts` times in all. Raises Error for a
    batch that is lost every time; answers committed before stay. Returns the number of lost workers.
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
