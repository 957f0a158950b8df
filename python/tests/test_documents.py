# SPDX-License-Identifier: Apache-2.0
"""The Python of the documents runs, in the order of the page."""

import re
from pathlib import Path

import pytest
from conftest import CHAT_TEMPLATE, TOOLS

import outrider

ROOT = Path(__file__).resolve().parents[2]


def blocks_of(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)


def needs_a_template(block: str) -> bool:
    return "generator.chat(" in block or "generator.stream_chat(" in block


def needs_transformers(block: str) -> bool:
    return "from_transformers" in block


def run_blocks(blocks: list[str], names: dict) -> None:
    for block in blocks:
        exec(compile(block, "a block of the page", "exec"), names)


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_readme(page, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    blocks = blocks_of(page)
    assert len(blocks) == 1
    run_blocks(blocks, {})
    assert len(capsys.readouterr().out) > 40


def test_the_page_of_the_package(monkeypatch, capsys, with_template):
    monkeypatch.chdir(ROOT)
    blocks = blocks_of("docs/python.md")
    assert sum(map(needs_a_template, blocks)) == 2
    assert sum(map(needs_transformers, blocks)) == 1  # test_transformers.py runs such lines
    # What the page leaves to its reader.
    names = {
        "prompt": "She opened the letter, and",
        "allowed_behind": lambda tokens: None,
        "tools": TOOLS,
        "messages": [{"role": "user", "content": "How warm is Rome?"}],
        "run": lambda call: None,
        "ids": [5, 6, 7],
    }
    run_blocks(blocks[:1], names)
    last_layer = names["model"].summary.n_layers
    rest = [block.replace("[0, 12]", f"[0, {last_layer}]") for block in blocks[1:]]
    assert rest != blocks[1:]
    rest = [block for block in rest if not needs_transformers(block)]
    run_blocks([block for block in rest if not needs_a_template(block)], names)
    assert names["rows"].shape == (3, names["model"].summary.vocabulary_size)
    assert names["states"].shape == (3, 2, names["model"].summary.dim)
    assert "http://127.0.0.1:" in capsys.readouterr().out
    names["generator"] = outrider.Generator(with_template(CHAT_TEMPLATE))
    run_blocks([block for block in rest if needs_a_template(block)], names)
    assert names["reply"].result.ids.size > 0
