# SPDX-License-Identifier: Apache-2.0
"""`outrider serve` as a child process, for outrider.serve() and for the replicas of outrider.ray."""

from __future__ import annotations

import atexit
import collections
import os
import re
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence

from . import program as _program
from ._outrider import Error, UsageError

# The line that the server prints once it listens.
_LISTENS = re.compile(r" at (http://\S+) \(")

# The number of lines kept for an error message. A failing server prints one line, a starting one
# prints one line and each warning about the model's files. The bound is for servers that run for
# months.
_KEPT_LINES = 50

# The server itself disconnects clients that do not read their answers for this time
# (docs/serve.md).
CLOSE_SECONDS = 30.0

# If mpirun or srun starts a program several times, each of its processes has a server. Without these
# variables the servers do not take themselves for ranks of one model.
_LAUNCHER_BEGINNINGS = ("OMPI_", "PMIX_", "PMI_")
_LAUNCHER_NAMES = ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID")


def _own_environment() -> dict:
    """The environment of this process, without the variables of a launcher."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(_LAUNCHER_BEGINNINGS) and name not in _LAUNCHER_NAMES}


# Enough for a file of 60 GB, read from a disk at 100 MB/s.
START_SECONDS = 600.0


class Server:
    """A running server. It ends at close(), at the end of a with block, and when this process ends
    for whatever cause.

    Created by outrider.serve(). Thread-safe.
    """

    def __init__(self, arguments: Sequence[str], *, environment: Optional[Mapping[str, str]] = None,
                 seconds: float = START_SECONDS, on_line: Callable[[str], None] = lambda line: None,
                 on_death: Callable[[int], None] = lambda status: None,
                 program: Optional[Sequence[str]] = None):
        """arguments: the arguments of the command. environment: variables in addition to those of
        this process; those of mpirun and srun are left out. seconds: time limit until it listens.

        on_line is called with each line that the server writes. on_death is called once, with the
        exit status, if the server ends by itself. Both are called from a background thread.
        program: command that replaces `outrider serve`.
        """
        words = [*(program or (str(_program.path()), "serve")), *arguments]
        self._on_line = on_line
        self._on_death = on_death
        self._process: Optional[subprocess.Popen] = None
        self._url = ""
        self._is_closing = False
        self._lines: collections.deque = collections.deque(maxlen=_KEPT_LINES)
        self._has_started = threading.Event()
        self._is_known = threading.Event()  # it listens, or it has ended
        # The kernel ends the server with the *thread* that started it. This thread lives as long as
        # the server.
        self._thread = threading.Thread(target=self._run, args=(words, {**_own_environment(), **(environment or {})}),
                                        daemon=True)
        self._thread.start()
        _open_servers.add(self)
        try:
            if not self._is_known.wait(seconds):
                raise Error(f"[serve] server: expected it to listen within {seconds:g} s, got: {self.log or 'nothing'}")
            if not self._url:
                self.check()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Address of the server, such as "http://127.0.0.1:41234". OpenAI's routes are below /v1."""
        return self._url

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """Last lines that the server printed."""
        return "\n".join(list(self._lines))

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def check(self) -> None:
        """Raises Error, with the server's last lines, if it has ended by itself."""
        if self.is_alive():
            return
        if threading.current_thread() is not self._thread:
            self._thread.join()  # afterwards all lines have been read
        status = None if self._process is None else self._process.returncode
        message = f"[serve] server: expected a running process, got exit status {status}"
        lines = self.log
        if lines:
            message += f": {lines}"
        # The program's own status for invalid arguments.
        raise (UsageError if status == 2 else Error)(message)

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Ends the server: running requests are completed first, for at most `timeout` seconds."""
        self._is_closing = True
        self._has_started.wait()
        if self.is_alive():
            self._process.terminate()
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def _run(self, words, environment) -> None:
        try:
            # (If there is no interpreter, as in a program that embeds Python, the server does not
            # end with this process.)
            launcher = [sys.executable, "-I", "-S", str(Path(__file__).with_name("die_with_parent.py")),
                        str(os.getpid())] if sys.executable else []
            self._process = subprocess.Popen(
                [*launcher, *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True, errors="replace",
                # Ctrl-C at the terminal is for this process only, which ends the server in an
                # orderly way.
                start_new_session=True)
        except OSError as error:
            self._lines.append(str(error))
            return
        finally:
            self._has_started.set()
            if self._process is None:
                self._is_known.set()
        with self._process.stderr as lines:
            for line in lines:
                line = line.rstrip("\n")
                self._lines.append(line)
                found = _LISTENS.search(line)
                if found and not self._url:
                    self._url = found.group(1)
                    self._is_known.set()
                self._on_line(line)
        status = self._process.wait()
        self._is_known.set()
        if self._url and not self._is_closing:
            self._on_death(status)


_open_servers: "weakref.WeakSet[Server]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for server in list(_open_servers):
        server.close()
