# SPDX-License-Identifier: Apache-2.0
"""Models for all tests: the shipped family (models/), on one thread."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import outrider
import outrider.program

MODELS = Path(__file__).resolve().parents[2] / "models"
PROMPTS = [
    "She opened the letter, and",
    "It was late in the evening when the",
    "The old gentleman looked at her for a moment, and then",
]
# The shipped models have no template: they continue novels. This one takes tools and calls them in
# Qwen's form.
CHAT_TEMPLATE = (
    "{% if tools %}tools: {{ tools | tojson }} answer "
    '<tool_call>\n{"name": n, "arguments": a}\n</tool_call>\n{% endif %}'
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"
)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"enum": ["Rome", "Paris"]}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    }
]
DRAFTER = f"model:{MODELS / 'drafter'},weights=int8,length=4"


@pytest.fixture(scope="session")
def models() -> Path:
    return MODELS


@pytest.fixture(scope="session")
def model() -> outrider.Model:
    return outrider.Model(MODELS / "target", threads=1)


@pytest.fixture(scope="session")
def with_template(models, tmp_path_factory):
    """Loads the shipped model with a chat template."""

    def load(template, **options) -> outrider.Model:
        folder = tmp_path_factory.mktemp("chatty") / "target"
        shutil.copytree(models / "target", folder)
        config = json.loads((folder / "tokenizer_config.json").read_text())
        config["chat_template"] = template
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        return outrider.Model(folder, threads=1, **options)

    return load


@pytest.fixture(scope="session")
def plain(model) -> outrider.Generator:
    return outrider.Generator(model)


@pytest.fixture(scope="session")
def drafted(model) -> outrider.Generator:
    return outrider.Generator(model, drafter=DRAFTER, tree="own")


@pytest.fixture(scope="session")
def program():
    """Runs the package's own program; returns the output of a successful run."""

    def run(*arguments) -> bytes:
        words = [str(outrider.program.path()), *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    return run


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until(condition, seconds=20):
    end = time.time() + seconds
    while not condition():
        assert time.time() < end, "waited in vain"
        time.sleep(0.02)
