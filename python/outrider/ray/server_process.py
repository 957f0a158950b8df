"""`outrider serve` as a child of this process, on a loopback port of its own.

outrider.serve() starts one, too, for a program that ends it; this one is for processes that others
kill, and tells them when it ends by itself.
"""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Callable, Mapping, Optional, Sequence

from outrider import Error

_LISTENS = re.compile(r" at (http://[0-9.]+:[0-9]+) ")


class ServerProcess:
    """A running server. It ends with this process, even when this one is killed.

    arguments: of `outrider serve`, without host and port. environment: beside this process's own.
    on_line gets each line that the server writes. on_death is called from a thread, once, if the
    server ends without having been told to. Thread-safe.
    """

    def __init__(self, arguments: Sequence[str], *, environment: Optional[Mapping[str, str]] = None,
                 seconds: float = 600, on_line: Callable[[str], None] = lambda line: None,
                 on_death: Callable[[int], None] = lambda status: None,
                 program: Optional[Sequence[str]] = None):
        if program is None:
            from outrider.program import path

            program = [str(path())]
        self.url = ""
        self.process: Optional[subprocess.Popen] = None
        self._on_line = on_line
        self._on_death = on_death
        self._closing = False
        self._known = threading.Event()  # it listens, or it has ended
        self._last_lines: list = []
        # The kernel ends the child with the *thread* that started it: one that lives as long.
        self._thread = threading.Thread(
            target=self._run, args=(list(program), list(arguments), {**os.environ, **(environment or {})}), daemon=True)
        self._thread.start()
        if not self._known.wait(seconds):
            self.close()
            raise Error(f"[serve replica] outrider serve: expected it to listen within {seconds:g} s, got nothing")
        if not self.url:
            raise Error("[serve replica] outrider serve: " + ("; ".join(self._last_lines) or "ended without a word"))

    def _run(self, program, arguments, environment) -> None:
        launcher = [sys.executable, "-I", "-S", str(Path(__file__).with_name("die_with_parent.py")), str(os.getpid())]
        try:
            self.process = subprocess.Popen(
                [*launcher, *program, "serve", "--host", "127.0.0.1", "--port", "0", *arguments],
                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                errors="replace")
        except OSError as error:
            self._last_lines.append(str(error))
            self._known.set()
            return
        for line in self.process.stderr:
            line = line.rstrip("\n")
            found = _LISTENS.search(line)
            if found and not self.url:
                self.url = found.group(1)
                self._known.set()
            self._last_lines = [*self._last_lines[-4:], line]
            self._on_line(line)
        status = self.process.wait()
        self._known.set()
        if self.url and not self._closing:
            self._on_death(status)

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def close(self, seconds: float = 30) -> None:
        """Lets it finish what it answers, for `seconds` at most."""
        self._closing = True
        if not self.is_alive():
            return
        self.process.terminate()
        self._thread.join(seconds)
        if self.is_alive():
            self.process.kill()
            self._thread.join()
