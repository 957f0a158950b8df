#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every `outrider` command of the documents in an empty folder without any model, and fails
for each one that ends as a misuse (status 2): an unknown command or flag, an invalid value.

    tests/documents/check_commands.py --program build-dev/outrider [PAGE...]

Without pages: the README, those of models/ and all of docs/. Commands with `...` or `[` describe a
form and are left out. So are `devices`, which depends on the machine, and trainers' commands if
outrider-train was not built. scripts/try-quickstart runs the quickstart's commands with real
models.
"""

import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
IN_PROGRAM = {"tokenizer", "answers"}  # of `outrider train`
SHELL = {"&", "|", "<", ">", "&&"}


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "models").glob("**/README.md")),
            *sorted((ROOT / "docs").glob("**/*.md"))]


def commands(page):
    """(line, words) of each command that can be run unchanged."""
    text = re.sub(r"\\\n(\s*)", lambda match: " \0" + match[1], page.read_text(encoding="utf-8"))
    number = 1
    for line in text.split("\n"):
        at, number = number, number + 1 + line.count("\0")
        match = re.match(r"\s*(?:\$ )?(?:build/)?outrider (.*)$", line.replace("\0", ""))
        if not match or "..." in match[1] or "[" in match[1] or "$" in match[1]:
            continue
        words = shlex.split(match[1], comments=True)
        for end, word in enumerate(words):
            if word in SHELL:
                words = words[:end]
                break
        if words and words[0] != "devices":
            yield at, words


def main():
    parser = argparse.ArgumentParser(description="Runs the documents' commands without models.")
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    trainer = (program.parent / "outrider-train").exists()
    environment = dict(os.environ, OMP_NUM_THREADS="1", OUTRIDER_TASKS=str(ROOT / "tasks"))
    n_run, misused = 0, []
    with tempfile.TemporaryDirectory() as folder:
        environment.update(HOME=folder, XDG_CACHE_HOME=folder)
        for page in [path.resolve() for path in arguments.pages] or pages():
            for line, words in commands(page):
                if words[0] == "train" and not trainer and words[1:2] and words[1] not in IN_PROGRAM:
                    continue
                run = subprocess.run([program, *words], cwd=folder, env=environment, check=False,
                                     stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                     timeout=120)
                n_run += 1
                if run.returncode not in (0, 1):
                    said = run.stderr.strip().split("\n")[0]
                    misused.append(f"{page}:{line}: outrider {' '.join(words)}\n    status "
                                   f"{run.returncode}: {said}")
    for one in misused:
        print(one, file=sys.stderr)
    if n_run == 0:
        print("check_commands: no command was found", file=sys.stderr)
    print(f"{n_run} commands, {len(misused)} of them misused")
    return 1 if misused or n_run == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
