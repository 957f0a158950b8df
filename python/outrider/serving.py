# SPDX-License-Identifier: Apache-2.0
"""outrider.serve(): `outrider serve` as a child process."""

from __future__ import annotations

import os
from typing import Any, Union

from ._outrider import Error, Model
from .server_process import START_SECONDS, Server


def _flags(keywords: dict) -> list:
    """Keywords as flags: {"top_k": 40, "trust_messages": True, "also_drafter": ["a", "b"]}."""
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
    timeout: float = START_SECONDS,
    **flags: Any,
) -> Server:
    """Starts `outrider serve` and waits until it listens.

    model: a path, or a Model, whose path the server loads itself. drafter: a spec. host, port: the
    address on which it listens; port 0 selects a free one. timeout: seconds that loading may take.
    flags: further flags of the command, with underscores. Examples: parallel=4, rule="exact",
    weights="int8", also_drafter=["suffix"], trust_messages=True (docs/serve.md).

    Returns a Server with .url and .close(); a with block closes it. Raises UsageError for flags
    that the command refuses, Error if the server ends or does not listen in time.
    """
    path = model.path if isinstance(model, Model) else os.fspath(model)
    if not os.path.exists(path):
        raise Error(f"[serve] model: expected a file or folder, got '{path}'")
    words = ["--model", str(path), "--host", host, "--port", str(port)]
    if drafter != "none":
        words += ["--drafter", drafter]
    return Server([*words, *_flags(flags)], seconds=timeout)
