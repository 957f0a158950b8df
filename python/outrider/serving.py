"""outrider.serve(): the server of the command line, as a process of its own."""

from __future__ import annotations

import atexit
import collections
import os
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request
import weakref
from typing import Any, Optional, Union

from . import program
from ._outrider import Error, Model, UsageError

# What the server prints once it listens.
_LISTENS = re.compile(r" at (http://\S+) \(")
_KEPT_LINES = 50


class Server:
    """A server that runs until close(), the end of a with block or the end of this process.

    Made by serve(). Any thread may use it.
    """

    def __init__(self, process: subprocess.Popen):
        self._process = process
        self._lines: collections.deque = collections.deque(maxlen=_KEPT_LINES)
        self._url: Optional[str] = None
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def url(self) -> str:
        """Where it answers, "http://127.0.0.1:41234"; OpenAI's routes are below /v1."""
        return self._url or ""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """The last lines that the server printed."""
        with self._changed:
            return "\n".join(self._lines)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def check(self) -> None:
        """Raises Error, with the server's last lines, if it has ended by itself."""
        status = self._process.poll()
        if status is None:
            return
        self._reader.join(timeout=5)
        message = f"[serve] server: expected a running process, got exit status {status}"
        lines = self.log
        if lines:
            message += f": {lines}"
        # The program's own status for a request that cannot be meant.
        raise (UsageError if status == 2 else Error)(message)

    def close(self, timeout: float = 30) -> None:
        """Ends the server: requests that run are answered first, for `timeout` seconds at most."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join(timeout=5)
        if self._process.stderr is not None:
            self._process.stderr.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def _read(self) -> None:
        for line in self._process.stderr:
            with self._changed:
                self._lines.append(line.rstrip("\n"))
                found = _LISTENS.search(line)
                if found and self._url is None:
                    self._url = found.group(1)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _wait(self, timeout: float) -> None:
        """Until it answers /health."""
        end = time.monotonic() + timeout
        while True:
            self.check()
            if self._url is not None and _is_healthy(self._url):
                return
            if time.monotonic() > end:
                raise Error(f"[serve] server: expected an answer in {timeout} s, got none: {self.log}")
            with self._changed:
                self._changed.wait(0.05)


# The server is on this machine: no proxy stands before it.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _is_healthy(url: str) -> bool:
    try:
        with _opener.open(url + "/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


_open_servers: "weakref.WeakSet[Server]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for server in list(_open_servers):
        server.close(timeout=5)


def _flags(keywords: dict) -> list:
    """{"top_k": 40, "trust_messages": True, "also_drafter": ["a", "b"]} as flags."""
    words = []
    for name, value in keywords.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        for one in values:
            words += [flag, os.fspath(one) if isinstance(one, os.PathLike) else str(one)]
    return words


def serve(
    model: Union[str, os.PathLike, Model],
    *,
    drafter: str = "none",
    host: str = "127.0.0.1",
    port: int = 0,
    timeout: float = 600,
    **flags: Any,
) -> Server:
    """Starts `outrider serve` and waits until it answers.

    model: a path; of a Model its path, which the server loads for itself.
    drafter: a spec. host, port: where it listens; port 0 takes a free one.
    timeout: seconds that loading may take.
    flags: further flags of the command, with underscores: parallel=4, rule="exact",
    weights="int8", also_drafter=["suffix"], trust_messages=True (docs/serve.md).

    Returns a Server with .url and .close(); a with block closes it. Raises UsageError for flags
    that the command refuses, Error where the server ends or does not answer in time.
    """
    path = model.path if isinstance(model, Model) else os.fspath(model)
    if not os.path.exists(path):
        raise Error(f"[serve] model: expected a file or folder, got '{path}'")
    words = ["--model", str(path), "--host", host, "--port", str(port)]
    if drafter != "none":
        words += ["--drafter", drafter]
    process = subprocess.Popen(
        [str(program.path()), "serve", *words, *_flags(flags)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        # Ctrl-C at the terminal is for this process, which ends the server in its own time.
        start_new_session=True,
    )
    server = Server(process)
    _open_servers.add(server)
    try:
        server._wait(timeout)
    except BaseException:
        server.close(timeout=5)
        raise
    return server
