#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of the documents, and fails for each one that no test runs.

    tests/documents/check_commands.py --program build-dev/outrider [--list] [--times] [PAGE...]

Pages: the READMEs, CONTRIBUTING.md, those of models/ and docs/. Commands are the blocks of ```sh,
blocks without a language that begin with the program's name, and words in backquotes that begin as
a command. Each has one of these fates; --list prints them, and runs nothing. --times prints how
long each command took.

  run        here, on the models of models/ and short texts under the names that the page uses
             (NAMES), made shorter (SHORTER). The status must be 0. A server must answer the
             block's requests, and end at SIGTERM with status 0.
  read       here, in an empty folder, since it needs what is not there (READ). It may fail, but
             not as a misuse (status 2): an unknown command or flag, or an invalid value.
  flags      of a form (`...`, `[`, `|`), or in a sentence: the command's help must have its flags.
  named      a target of make or a script: it must be there (in a sentence, or in NAMED).
  elsewhere  another test runs it (ELSEWHERE; those of the quickstart: scripts/try-quickstart).
  not run    by no test, for the reason in NOT_RUN.

Blocks of Python run in python/tests/test_documents.py, the README's C++ in tests/install_test.cmake.
"""

import argparse
import functools
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from page_commands import ROOT, Command, all_pages, commands_of

# By how a command begins, or for READ by a pattern in it.
ELSEWHERE = {
    "make demo": "scripts/try-as-newcomer; scripts/demo by Demo.*",
    "make build": "scripts/try-as-newcomer",
    "make test": "it is how tests are run",
    "make format": "check.format, which changes nothing",
    "make lint": "check.lint, on files of the last commits",
    "ONLY='Cuda|Emulated' scripts/sanitized-tests": "check.sanitized_cuda, nightly",
    ".ci/run": "it is how tests are run before a change lands",
    "outrider devices": "DevicesCommand.*, on software drivers",
    "scripts/install-deps": "make demo, make test and make docs",
    "python3 -m venv": "scripts/test-wheel (check.wheel)",
    "pip install .": "scripts/test-wheel (check.wheel)",
    "python3 tests/page/try_page.py": "check.page",
}
NAMED = {
    "scripts/train-head": "takes hours; TrainHeads.* runs commands like those that it gives",
    "MEASURE=question.jsonl PARTS=measure scripts/train-head": "as above",
    "scripts/make-translation-pair": "takes hours",
    "scripts/measure-translation-pair": "takes hours",
    "scripts/measure-rules": "needs other models",
}
READ = {
    r"--device (vulkan|cuda)": "a GPU; DeviceGenerate.* runs it on software drivers",
    r"^mpirun ": "several machines; Mpirun.* runs ranks on one",
    r"eagle:out/head": "a head that takes hours",
    r"--encoder-prompt": "encoder-decoders, of which none is shipped; EncoderDecoder.* makes some",
    r"--verdict-log|train online": "two commands at a time; TrainOnline.* runs both",
}
NOT_RUN = {
    "curl -LO": "asks the network for gigabytes",
    "outrider devices cuda:0": "needs one of NVIDIA's GPUs",
    "OUTRIDER_TEST_CUDA=": "needs one of NVIDIA's GPUs",
    "compute-sanitizer": "needs one of NVIDIA's GPUs",
    "OUTRIDER_TEST_MODEL=": "needs a model of the user's; RealDevice.* runs the shipped ones",
    "pip install lm-eval": "asks the network",
    "python -m outrider.lm_eval": "needs lm-eval; test_lm_eval.py runs it where that is",
    "llama-bench": "another project's program",
    "measure_": "a program of bench/ on other models",
    "awk 'BEGIN": "cuts prompts out of TinyStories",
}

# What pages call their models and files, and what stands for it.
NAMES = {
    r"TARGET|LARGE|MIDDLE|MODEL|stories260K|SmolLM2-1\.7B": "target",
    r"(model|hybrid|qwen[\w.-]*-1\.5b[\w.-]*)\.gguf": "target",
    r"SMALL|DRAFTER|drafter|weak260K|qwen[\w.-]*-0\.5b[\w.-]*\.gguf": "drafter",
    r"(stories|texts|novels|notes|train)\.txt|(train|val|test)\.(de|en)": "text",
    r"(held-out|tinystories_2MiB)\.txt|test_2016\.(de|en)": "lines",
    r"test\.jsonl": "sums",
    r"answers\.jsonl|others\.jsonl": "answers",
    r"FILE|questions\.jsonl": "prompts",
    r"person\.json": "schema",
    r"list\.gbnf": "grammar",
    r"keys\.txt": "keys",
}
CONTENTS = {
    "lines": "She opened the letter.\nIt was late in the evening.\n",
    "sums": '{"question": "A box holds 3 pens. How many do 4 hold?", "answer": "#### 12"}\n',
    "answers": '{"prompt": "She opened the letter, and", "completion": " read it at once."}\n' * 8,
    "prompts": '{"turns": ["She opened the letter, and"], "category": "narrative"}\n',
    "schema": '{"type": "object", "properties": {"name": {"enum": ["Ada"]}}}\n',
    "grammar": 'root ::= "- " [a-z]+ "\\n"\n',
    "keys": "a-key\n",
}
TEMPLATE = "{% for message in messages %}{{ message.content }}\n{% endfor %}"  # of chats

# The flag's value here; where it stands in ALWAYS, also for a command that leaves it out.
SHORTER = {"--steps": "2", "--evaluate-every": "1", "--vocabulary": "320", "--seconds": "2",
           "--lengths": "3", "--length": "8", "--rows": "1,2", "--max-tokens": "8"}
ALWAYS = {r"outrider tune(?! layers| tree)": "--seconds",
          r"outrider train (?!answers|tokenizer|router)": "--steps",
          r"outrider train router": "--length",
          r"outrider (eval (--task|--frontier)|tune (layers|tree))": "--max-tokens"}
SERVE = "outrider serve --model TARGET --slot-save-path ."  # for a block of requests alone
SPEC = "suffix"  # what `--drafter SPEC` stands for


def fate_of(command: Command) -> tuple[str | None, str]:
    """The fate and what more there is to say; None if no test runs the command."""
    text = command.bare()
    for table, fate in ((NOT_RUN, "not run"), (NAMED, "named"), (ELSEWHERE, "elsewhere")):
        for beginning, reason in table.items():
            if command.block is not None and text.startswith(beginning):
                return fate, reason
    if command.words_of_program() is None and command.block is None:
        return "named", "in a sentence"
    if command.words_of_program() is not None and (command.block is None or command.is_form()):
        return "flags", ""
    if command.page.name == "quickstart.md" and not command.mark.startswith("skip"):
        newcomer = command.mark == "as a newcomer"
        return "elsewhere", f"scripts/try-{'as-newcomer' if newcomer else 'quickstart'}"
    if command.words_of_program() is not None:
        for pattern, reason in READ.items():
            if re.search(pattern, text):
                return "read", "needs " + reason
        return "run", ""
    if re.match(r"curl .*http://127\.0\.0\.1:8080/", text):
        return "run", ""
    if re.match(r"(export )?\w+=\S*$", text):
        return "run", "sets a name"
    return None, ""


class Trial:
    """Runs commands with one program, and says what went wrong."""

    def __init__(self, program: pathlib.Path, times: bool):
        self.program = program
        self.times = times
        self.has_trainer = (program.parent / "outrider-train").exists()
        self.n_problems = 0
        self.n_run = 0
        self.targets_of_make = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))

    def complain(self, command: Command, problem: str) -> None:
        self.n_problems += 1
        print(f"{command.where()}: {command.bare()}\n    {problem}", file=sys.stderr, flush=True)

    def needs_trainer(self, command: Command) -> bool:
        kind = re.match(r"train (\w+)", command.words_of_program() or "")
        return kind is not None and kind[1] not in ("tokenizer", "answers")

    @functools.cache
    def help_of(self, name: str) -> str:
        run = subprocess.run([self.program, *name.split(), "--help-all"], check=False, text=True,
                             capture_output=True, timeout=900)
        return run.stdout if run.returncode == 0 else ""

    def check_flags(self, command: Command) -> None:
        words = command.words_of_program().split()
        name = " ".join(words[:2] if words[0] in ("train", "datastore") else words[:1])
        known = self.help_of(name)
        if not known:
            self.complain(command, f"outrider has no command {name}")
            return
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", " ".join(words)):
            if not re.search(re.escape(flag) + r"[ \n,=]", known):
                self.complain(command, f"outrider {name} has no flag {flag}")

    def check_name(self, command: Command) -> None:
        for target in re.findall(r"^make ([a-z-]+)", command.bare()):
            if target not in self.targets_of_make:
                self.complain(command, f"make has no target {target}")
        for script in re.findall(r"(?:^|\s)(scripts/[a-z-]+|tools/\w+\.py)", command.bare()):
            place = ROOT / script
            if not place.is_file() or not (place.suffix or os.access(place, os.X_OK)):
                self.complain(command, f"{script} is no script")

    def read(self, command: Command) -> None:
        with tempfile.TemporaryDirectory() as folder:
            words = shlex.split(command.words_of_program(), comments=True)
            run = subprocess.run([self.program, *words], cwd=folder, env=environment(folder),
                                 check=False, stdin=subprocess.DEVNULL, capture_output=True,
                                 text=True, timeout=900)
        self.n_run += 1
        if run.returncode not in (0, 1):
            self.complain(command, f"status {run.returncode}: {last_line(run.stderr)}")

    def run_block(self, block: list[Command]) -> None:
        if any(self.needs_trainer(command) for command in block) and not self.has_trainer:
            return
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "build").mkdir()
            (folder / "build" / "outrider").symlink_to(self.program)
            (folder / "models").symlink_to(ROOT / "models")
            texts = [shortened(command.joined()) for command in block]
            if texts[0].startswith("curl "):  # of a server that an earlier block started
                texts.insert(0, SERVE)
                block = [block[0], *block]
            make_files(folder, "\n".join(texts))
            server = None
            for command, text in zip(block, texts):
                self.n_run += 1
                begin = time.monotonic()
                if text.startswith("outrider serve"):
                    server = Server(folder, text)
                    problem = server.problem
                else:
                    problem = run_command(folder, text, server)
                if self.times:
                    print(f"{time.monotonic() - begin:7.1f} s  {command.where()}", flush=True)
                if problem:
                    self.complain(command, problem)
                    break
            if server and (problem := server.end()):
                self.complain(block[0], problem)


def environment(folder: str | pathlib.Path) -> dict[str, str]:
    path = f"{folder}/build{os.pathsep}{os.environ['PATH']}"
    return dict(os.environ, HOME=str(folder), XDG_CACHE_HOME=str(folder), OMP_NUM_THREADS="1",
                OUTRIDER_TASKS=str(ROOT / "tasks"), PATH=path, TARGET="TARGET", no_proxy="*")


def last_line(text: str) -> str:
    return (text.strip().split("\n") or [""])[-1]


def make_files(folder: pathlib.Path, text: str) -> None:
    """Those that the block's commands name and do not write themselves."""
    written = set(re.findall(r"--out (\S+)", text))
    text = text.replace("$TARGET", "TARGET")
    for pattern, kind in NAMES.items():
        for found in re.finditer(rf"(?<![\w/.-])({pattern})(?![\w/-])", text):
            place = folder / found[0]
            if found[0] in written or place.exists():
                continue
            if kind in ("target", "drafter"):
                place.mkdir()
                for file in (ROOT / "models" / kind).iterdir():
                    (place / file.name).symlink_to(file)
                (place / "chat_template.jinja").write_text(TEMPLATE)
            elif kind == "text":
                lines = (ROOT / "models" / "openings.jsonl").read_text(encoding="utf-8")
                place.write_text(re.sub(r"[^\w\s,.]", " ", lines) * 3)
            else:
                place.write_text(CONTENTS[kind])


def shortened(text: str) -> str:
    for flag, value in SHORTER.items():
        text = re.sub(rf"{flag} [\d,]+", f"{flag} {value}", text)
    for pattern, flag in ALWAYS.items():
        if re.match(pattern, text) and flag not in text:
            text += f" {flag} {SHORTER[flag]}"
    return text.replace("--drafter SPEC", f"--drafter {SPEC}")


def run_command(folder: pathlib.Path, text: str, server: "Server | None") -> str | None:
    """What went wrong."""
    if text.startswith("curl "):
        if server is None:
            return "no server"
        text = text.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}")
        text = "curl -sS --fail-with-body " + text.removeprefix("curl ")
    try:
        run = subprocess.run(["bash", "-c", text], cwd=folder, env=environment(folder), check=False,
                             input="Hello.\n", capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        return "it had not ended after a quarter of an hour"
    if run.returncode == 0:
        return None
    return f"status {run.returncode}: {last_line(run.stderr) or last_line(run.stdout)}"


class Server:
    """A server on a port of its own, which is ready, or `problem` says why not."""

    def __init__(self, folder: pathlib.Path, text: str):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = folder / "server.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(["bash", "-c", f"exec {text} --port {self.port}"],
                                            cwd=folder, env=environment(folder), stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL)
        self.problem = self.wait()

    def wait(self) -> str | None:
        for _ in range(600):
            if self.process.poll() is not None:
                return f"status {self.process.returncode}: {last_line(self.log.read_text())}"
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ready", timeout=10):
                    return None
            except urllib.error.URLError:
                time.sleep(0.1)
        return "it was not ready after a minute"

    def end(self) -> str | None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "the server did not end at SIGTERM"
        return f"the server ended with status {status}" if status and not self.problem else None


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the commands of the documents.")
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--list", action="store_true", help="print the fate of each command")
    parser.add_argument("--times", action="store_true", help="print how long each command took")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.program is None and not arguments.list:
        parser.error("expected --program or --list")
    commands = [command for page in arguments.pages or all_pages()
                for command in commands_of(page.resolve())]
    fates = [fate_of(command) for command in commands]
    if arguments.list:
        for command, (fate, reason) in zip(commands, fates):
            first, *more = command.bare().split("\n")
            print(f"{command.where()}\t{fate}\t{reason}\t{first}{' ...' if more else ''}")
        return 0

    trial = Trial(arguments.program.resolve(), arguments.times)
    blocks: dict[tuple, list[Command]] = {}
    for command, (fate, _) in zip(commands, fates):
        if fate is None:
            trial.complain(command, "no test runs it: see the tables of check_commands.py")
        elif fate == "named":
            trial.check_name(command)
        elif trial.needs_trainer(command) and not trial.has_trainer:
            continue
        elif fate == "flags":
            trial.check_flags(command)
        elif fate == "read":
            trial.read(command)
        elif fate == "run":
            blocks.setdefault((command.page, command.block), []).append(command)
    for block in blocks.values():
        trial.run_block(block)

    counts = {fate: sum(1 for one, _ in fates if one == fate) for fate, _ in fates}
    print(f"{len(commands)} commands ({', '.join(f'{n} {fate}' for fate, n in counts.items())}), "
          f"{trial.n_run} started here, {trial.n_problems} problems")
    return 1 if trial.n_problems or not commands else 0


if __name__ == "__main__":
    sys.exit(main())
