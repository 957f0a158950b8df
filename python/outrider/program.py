"""The program `outrider`, which the package brings along."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn, Optional, Sequence

from ._outrider import Error


def path() -> Path:
    """Where the program is. Raises Error where this build has none."""
    program = Path(__file__).parent / "bin" / "outrider"
    if not os.access(program, os.X_OK):
        raise Error(f"[find program] {program}: expected the program outrider, got none")
    return program


def run(arguments: Optional[Sequence[str]] = None) -> NoReturn:
    """Becomes the program, with these arguments (those of Python itself where there are none)."""
    program = path()
    words = sys.argv[1:] if arguments is None else arguments
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(program, ["outrider", *words])
