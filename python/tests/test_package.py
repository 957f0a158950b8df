# SPDX-License-Identifier: Apache-2.0
"""The package itself: its program, its stubs, its names."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import outrider
import outrider.program
from outrider import _outrider


def test_python_m_is_the_program(program):
    done = subprocess.run([sys.executable, "-m", "outrider", "--version"], capture_output=True)
    assert done.returncode == 0
    assert done.stdout == program("--version") != b""
    refused = subprocess.run([sys.executable, "-m", "outrider", "no-such"], capture_output=True)
    assert refused.returncode == 2


def test_the_program_has_its_tasks():
    # The program looks for them beside its own folder.
    folder = outrider.program.path().resolve().parent.parent
    assert (folder / "share/outrider/tasks").is_dir() or (folder / "tasks").is_dir()


def test_all_names_are_there():
    assert sorted(outrider.__all__) == sorted(set(outrider.__all__))
    for name in outrider.__all__:
        assert getattr(outrider, name).__doc__, name


def test_all_members_have_docstrings():
    without = [
        f"{name}.{member}"
        for name, of in vars(outrider._outrider).items()
        if isinstance(of, type)
        for member, value in vars(of).items()
        if not member.startswith("_") and not value.__doc__
    ]
    assert without == []


def stub() -> ast.Module:
    return ast.parse((Path(outrider.__file__).parent / "_outrider.pyi").read_text())


def test_the_stubs_are_the_modules():
    described = {}
    for node in stub().body:
        if isinstance(node, ast.ClassDef):
            names = set()
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    names.add(member.name)
                elif isinstance(member, ast.AnnAssign):
                    names.add(member.target.id)
            described[node.name] = names
        elif isinstance(node, ast.FunctionDef):
            described[node.name] = None
    there = {
        name: value
        for name, value in vars(_outrider).items()
        if inspect.isclass(value) or inspect.isroutine(value)
    }
    assert set(described) == set(there)
    dunder = {"__init__", "__iter__", "__len__", "__next__", "__enter__", "__exit__"}
    for name, members in described.items():
        if members is None or issubclass(there[name], Exception):
            continue
        own = {member for member in vars(there[name]) if not member.startswith("_")}
        assert members - dunder == own, name


def test_the_stubs_name_every_keyword():
    for node in stub().body:
        if not isinstance(node, ast.ClassDef) or node.name != "Generator":
            continue
        named = {}
        for member in node.body:
            if isinstance(member, ast.FunctionDef):
                named.setdefault(member.name, set()).update(
                    argument.arg for argument in member.args.kwonlyargs
                )
        keywords = set(_outrider._generate_keywords())
        assert named["generate"] == keywords
        assert named["stream"] == keywords - {"on_token"}
        of_chat = {"tools", "tool_choice", "variables", "parallel_calls", "trust_messages"}
        others = {"add_special", "encoder_prompt"}  # set by the template
        assert named["chat"] - of_chat - {"sampling"} == keywords - others
        assert named["stream_chat"] == named["chat"]
