#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of the documents, docs/figures/*.svg.

    tools/draw_figures.py            writes them
    tools/draw_figures.py --check    fails, naming the file, where one differs from what is drawn

pair.svg is drawn from docs/figures/pair.json, measured figures with their machine and date;
layers.svg and round.svg from the lists in this file. Every picture has a light background of its
own, so that it is legible on light and dark pages. Needs only the standard library.
"""

import argparse
import json
import pathlib
import sys
from xml.sax.saxutils import escape

FIGURES = pathlib.Path(__file__).resolve().parent.parent / "docs" / "figures"

INK = "#1f2430"
QUIET = "#5b6472"
LINE = "#c3c9d4"
OURS = "#2f6fb5"
OTHERS = "#a9b1bf"
ACCEPTED = "#2e7d4f"
REJECTED = "#b3453b"
BONUS = "#8a6100"
FILLS = ["#e8eef7", "#e9f3ec", "#f7efe1", "#f3e9f2", "#eceff3"]


class Picture:
    """SVG elements on a canvas of `width` by `height` pixels, y downwards."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.elements = []

    def box(self, x, y, width, height, fill, stroke=LINE, radius=5):
        self.elements.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" '
            f'fill="{fill}" stroke="{stroke}"/>')

    def text(self, x, y, words, size=13, fill=INK, anchor="start", bold=False, mono=False):
        family = ' font-family="ui-monospace, Menlo, Consolas, monospace"' if mono else ""
        weight = ' font-weight="600"' if bold else ""
        self.elements.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}" '
            f'text-anchor="{anchor}"{weight}{family}>{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, stroke=QUIET, width=1.5, arrow=False, dashed=False):
        marker = ' marker-end="url(#arrow)"' if arrow else ""
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        self.elements.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{stroke}" '
            f'stroke-width="{width:g}"{dashes}{marker}/>')

    def svg(self):
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" role="img" '
            'font-family="system-ui, -apple-system, Segoe UI, Roboto, sans-serif">\n'
            f"<title>{escape(self.title)}</title>\n"
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{QUIET}"/>'
            "</marker></defs>\n"
            f'<rect width="{self.width}" height="{self.height}" rx="8" fill="#ffffff" '
            f'stroke="{LINE}"/>\n')
        return head + "\n".join(self.elements) + "\n</svg>\n"


def wrapped(words, width):
    """Lines of at most `width` characters."""
    lines, line = [], ""
    for word in words.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return lines + [line]


def draw_pair():
    """Bars of tokens per second, a group for each machine; whiskers are the ranges."""
    figures = json.loads((FIGURES / "pair.json").read_text(encoding="utf-8"))
    note = wrapped(figures["note"], 104)
    left, bar, row, width = 210, 450, 26, 760
    height = 62 + sum(34 + row * len(group["bars"]) for group in figures["groups"]) + 18 * len(note)
    most = max(item["high"] for group in figures["groups"] for item in group["bars"])
    picture = Picture(width, height, figures["title"])
    picture.text(20, 32, figures["title"], size=16, bold=True)
    y = 48
    for group in figures["groups"]:
        picture.text(20, y + 20, group["machine"], size=12, fill=QUIET)
        y += 30
        for item in group["bars"]:
            middle = y + 9
            picture.text(left - 10, middle + 4, item["label"], anchor="end")
            picture.box(left, y, bar * item["value"] / most, 18,
                        OURS if item["ours"] else OTHERS, stroke="none", radius=2)
            low, high = (left + bar * item[end] / most for end in ("low", "high"))
            picture.line(low, middle, high, middle, stroke=INK)
            for end in (low, high):
                picture.line(end, middle - 4, end, middle + 4, stroke=INK)
            picture.text(high + 10, middle + 4, f'{item["value"]:.1f}', bold=item["ours"])
            y += row
        y += 4
    for line in note:
        y += 18
        picture.text(20, y, line, size=12, fill=QUIET)
    return picture.svg()


# From the top: the purpose of each row of the picture, and its folders. The table in
# docs/architecture.md lists the allowed includes; a test compares it with every #include.
LAYERS = [
    ("programs", ["apps", "python"]),
    ("public headers", ["include/outrider"]),
    ("around the engine", ["server", "eval", "measure", "train", "vocabulary_training", "mpi"]),
    ("requests and batches", ["engine"]),
    ("drafting; text in and out", ["speculate", "reply", "tokenizer", "chat_template"]),
    ("models and distributions", ["model", "sampling", "grammar"]),
    ("memory and files", ["tensor", "device", "io"]),
    ("arithmetic; common base", ["kernels", "base"]),
]


def draw_layers():
    drawn = {folder for _, folders in LAYERS for folder in folders}
    source = FIGURES.parent.parent / "src"
    missing = {path.name for path in source.iterdir() if path.is_dir()} - drawn
    if missing:
        raise SystemExit(f"draw_figures: LAYERS lacks src/{', src/'.join(sorted(missing))}")
    left, width, row = 210, 760, 46
    picture = Picture(width, 60 + row * len(LAYERS) + 12, "The layers of Outrider")
    picture.text(20, 32, "The layers, from programs down to arithmetic", size=15, bold=True)
    room = width - left - 20
    for number, (purpose, folders) in enumerate(LAYERS):
        y = 52 + row * number
        picture.text(left - 14, y + 23, purpose, size=12, fill=QUIET, anchor="end")
        # Widths by the length of the names, so that no name is cut.
        lengths = [len(folder) + 4 for folder in folders]
        x = left
        for folder, length in zip(folders, lengths):
            part = (room - 8 * (len(folders) - 1)) * length / sum(lengths)
            picture.box(x, y, part, 34, FILLS[number % len(FILLS)])
            picture.text(x + part / 2, y + 22, folder, anchor="middle", mono=True, size=12.5)
            x += part + 8
    return picture.svg()


# A step of a round: its name, the function that performs it, and what it does.
STEPS = [
    ("1  draft", "drafter.propose", "adds nodes to the tree"),
    ("2  target pass", "target.forward", "a row of logits for each"),
    ("3  verify", "acceptance.verify", "a path and one more"),
    ("4  keep", "sequence.keep", "drops what was rejected"),
    ("5  commit", "commit", "the text has the tokens"),
]
# A node of the example: column, row of the picture, token, parent, outcome.
NODES = [
    (0, 1, "and", None, INK),
    (1, 0, "then", 0, REJECTED),
    (1, 1, "as", 0, ACCEPTED),
    (2, 1, "she", 2, ACCEPTED),
    (2, 2, "he", 2, REJECTED),
    (3, 1, "sat", 3, REJECTED),
]
MEANINGS = [
    (INK, "root: the last committed token"),
    (ACCEPTED, "accepted"),
    (REJECTED, "rejected, or not reached"),
    (BONUS, "corrected by the target"),
]


def draw_round():
    width, height = 760, 330
    picture = Picture(width, height, "A round of speculative decoding")
    picture.text(20, 32, "One round: five steps, one pass of the target", size=15, bold=True)
    step, gap = 132, 15
    for number, (name, function, what) in enumerate(STEPS):
        x = 20 + number * (step + gap)
        picture.box(x, 50, step, 66, FILLS[number])
        picture.text(x + step / 2, 70, name, anchor="middle", bold=True)
        picture.text(x + step / 2, 88, function, anchor="middle", mono=True, size=11.5)
        picture.text(x + step / 2, 106, what, anchor="middle", size=10, fill=QUIET)
        if number > 0:
            picture.line(x - gap + 1, 83, x - 1, 83, arrow=True)
    example = ("A draft tree after step 3: two tokens are accepted and one is corrected, so this "
               "round emits three")
    picture.text(20, 150, example, size=12, fill=QUIET)
    places = [(40 + 120 * column, 170 + 40 * place) for column, place, *_ in NODES]
    for (x, y), (_, _, token, parent, colour) in zip(places, NODES):
        if parent is not None:
            from_x, from_y = places[parent]
            picture.line(from_x + 76, from_y + 14, x - 3, y + 14, stroke=QUIET, arrow=True)
        picture.box(x, y, 74, 28, "#ffffff", stroke=colour)
        picture.text(x + 37, y + 19, token, anchor="middle", mono=True, fill=colour)
    # The token that the target puts in place of the rejected one, after the accepted path.
    x, y = places[3]
    picture.line(x + 76, y + 14, x + 117, y + 54, stroke=BONUS, arrow=True, dashed=True)
    picture.box(x + 120, y + 40, 74, 28, "#ffffff", stroke=BONUS)
    picture.text(x + 157, y + 59, "said", anchor="middle", mono=True, fill=BONUS)
    for number, (colour, meaning) in enumerate(MEANINGS):
        picture.box(500, 174 + 26 * number, 14, 14, colour, stroke="none", radius=2)
        picture.text(522, 186 + 26 * number, meaning, size=12)
    plain = "Plain decoding is the same loop: the tree is its root, and each pass gives one token."
    picture.text(20, height - 18, plain, size=12, fill=QUIET)
    return picture.svg()


DRAWINGS = {"pair.svg": draw_pair, "layers.svg": draw_layers, "round.svg": draw_round}


def main():
    parser = argparse.ArgumentParser(description="Draws docs/figures/*.svg.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    stale = []
    for name, draw in DRAWINGS.items():
        path, drawn = FIGURES / name, draw()
        if not arguments.check:
            path.write_text(drawn, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != drawn:
            stale.append(name)
    if stale:
        print(f"docs/figures: {', '.join(stale)} differ from what tools/draw_figures.py draws: "
              "run it", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
