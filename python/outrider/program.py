# SPDX-License-Identifier: Apache-2.0
"""The program `outrider`, which is part of the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn, Optional, Sequence

from ._outrider import Error


def path() -> Path:
    """Returns the path of the program. Raises Error if this build has none."""
    program = Path(__file__).parent / "bin" / "outrider"
    if not os.access(program, os.X_OK):
        raise Error(f"[find program] {program}: expected the program outrider, got none")
    return program


def run(arguments: Optional[Sequence[str]] = None) -> NoReturn:
    """Replaces this process by the program with these arguments (default: sys.argv[1:])."""
    program = path()
    words = sys.argv[1:] if arguments is None else arguments
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(program, ["outrider", *words])
