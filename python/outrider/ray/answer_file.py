# SPDX-License-Identifier: Apache-2.0
"""The folder that `map_prompts` writes. It holds each prompt's answer once, even if processes are
killed at any time.

    DIR/answers.jsonl   one JSON object a line, in the order in which answers came
    DIR/job.json        the settings of the answers
    DIR/lock            the writer's process id; locked by flock(2) as long as the writer lives

Only the process that holds the lock writes. The kernel releases the lock when that process ends for
whatever cause. Workers send their answers to it and never write, so a worker that outlives its
driver cannot write anywhere. A batch is one append, followed by fsync(2). An interrupted batch
leaves whole lines, which count, and at most one broken line at the end. That line is removed when
the folder is next opened. A key that has an answer is never written again.

The folder must be on a file system with a working flock (local ones, NFS from version 4 on).
"""

import fcntl
import hashlib
import json
import os
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Mapping, NamedTuple, Tuple

from outrider import Error, UsageError

FORMAT = 1


class Item(NamedTuple):
    """One prompt of a job."""

    key: str
    prompt: object  # a text, or a list of token ids


def hash_of(prompt) -> str:
    """Returns a hash in hex digits. A resumed job compares it to detect a changed prompt of a key."""
    text = prompt if isinstance(prompt, str) else json.dumps([int(token) for token in prompt])
    kind = "text" if isinstance(prompt, str) else "ids"
    return hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def read_answers(folder) -> Iterator[dict]:
    """Yields all answers of a folder, even while a job writes there. Leaves out a broken last line."""
    file = Path(folder) / "answers.jsonl"
    if file.exists():
        for record, _ in _read_lines(file):
            yield record


def _read_lines(file: Path) -> Iterator[Tuple[dict, int]]:
    """Yields (record, offset of the end of its line) for each whole line. Raises Error for a broken
    line that is not the last."""
    end = 0
    broken = 0
    with open(file, "rb") as lines:
        for number, line in enumerate(lines, 1):
            record = _parse(line)
            if record is None:
                broken = broken or number
                continue
            if broken:
                raise Error(f"[map_prompts] {file}: line {broken} is no answer, and there are answers behind it")
            end += len(line)
            yield record, end


def _parse(line: bytes):
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "key" in record and "prompt_hash" in record else None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_whole(file: Path, data: bytes) -> None:
    """Writes all of the file or nothing. It is on the disk when this returns."""
    partial = file.with_name(file.name + ".outrider-partial")
    with open(partial, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    os.replace(partial, file)
    _sync_folder(file.parent)


class AnswerFile:
    """The folder, opened for writing. A context manager; not thread-safe.

    settings: everything that determines the answers' texts, as JSON. Raises UsageError for a folder
    with answers for other settings, and Error for a folder to which another process is writing.
    """

    def __init__(self, folder, settings: Mapping):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._answers = self.folder / "answers.jsonl"
        self._hashes: Dict[str, str] = {}
        self._file = None
        # Python's descriptors are not inherited by child processes: only this process holds the
        # lock.
        self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._take_lock()
            self._check_settings(settings)
            self._load()
        except BaseException:
            self.close()
            raise

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            writer = os.pread(self._lock, 64, 0).decode("ascii", "replace").strip()
            raise Error(f"[map_prompts] {self.folder}: another job writes there ({writer or 'process unknown'})") from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"process {os.getpid()}\n".encode(), 0)

    def _check_settings(self, settings: Mapping) -> None:
        wanted = {"format": FORMAT, **json.loads(json.dumps(settings))}
        file = self.folder / "job.json"
        has_answers = next(read_answers(self.folder), None) is not None
        if has_answers and not file.exists():
            raise Error(f"[map_prompts] {self.folder}: answers.jsonl without job.json")
        if not has_answers:  # the settings of a job without answers are not binding
            _write_whole(file, (json.dumps(wanted, indent=1, sort_keys=True) + "\n").encode())
            return
        try:
            begun = json.loads(file.read_text())
        except ValueError as error:
            raise Error(f"[map_prompts] {file}: {error}") from None
        for name in sorted({*wanted, *begun}):
            if wanted.get(name) != begun.get(name):
                raise UsageError(f"[map_prompts] {self.folder}: expected {name} as it was begun with, "
                                 f"{begun.get(name)!r}, got {wanted.get(name)!r}")

    def _load(self) -> None:
        self._file = os.open(self._answers, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        end = 0
        for record, end in _read_lines(self._answers):
            if record["key"] in self._hashes:
                raise Error(f"[map_prompts] {self._answers}: expected each key once, got {record['key']!r} twice")
            self._hashes[record["key"]] = record["prompt_hash"]
        if os.fstat(self._file).st_size > end:
            os.ftruncate(self._file, end)
        os.fsync(self._file)
        _sync_folder(self.folder)

    def __len__(self) -> int:
        return len(self._hashes)

    def unanswered(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yields the `items` without an answer. Raises UsageError for a key that comes twice, or that
        was answered for another prompt."""
        seen = set()
        for item in items:
            if item.key in seen:
                raise UsageError(f"[map_prompts] dataset: expected each key once, got {item.key!r} twice")
            seen.add(item.key)
            answered = self._hashes.get(item.key)
            if answered is None:
                yield item
            elif answered != hash_of(item.prompt):
                raise UsageError(f"[map_prompts] dataset: key {item.key!r} was answered for another prompt")

    def append(self, records: List[dict]) -> int:
        """Writes a batch, which is on the disk when this returns. Returns the number of new answers."""
        if self._file is None:
            raise Error(f"[map_prompts] {self.folder}: closed")
        new: Dict[str, dict] = {}
        for record in records:
            if record["key"] not in self._hashes:
                new.setdefault(record["key"], record)
        data = b"".join(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
                        for record in new.values())
        end = os.fstat(self._file).st_size
        try:
            for at in range(0, len(data), 1 << 20):
                self._write_all(data[at:at + (1 << 20)])
            os.fsync(self._file)
        except OSError:
            # After a full disk: no partial line may remain before a later batch.
            os.ftruncate(self._file, end)
            raise
        for key, record in new.items():
            self._hashes[key] = record["prompt_hash"]
        return len(new)

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view):]

    def close(self) -> None:
        for name in ("_file", "_lock"):
            descriptor = getattr(self, name)
            if descriptor is not None:
                os.close(descriptor)
                setattr(self, name, None)

    def __enter__(self) -> "AnswerFile":
        return self

    def __exit__(self, *_) -> None:
        self.close()
