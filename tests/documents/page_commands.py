# SPDX-License-Identifier: Apache-2.0
"""The commands that a page of the documents tells its readers to type."""

import dataclasses
import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = re.compile(r"(?:^|\s)(?:build/)?outrider (?P<words>.*)", re.S)
IN_SENTENCE = re.compile(r"(build/)?outrider [a-z]+ .*--|make [a-z-]+$|scripts/[a-z-]+( |$)|"
                         r"(python3 )?tools/\w+\.py( |$)")
MARK = re.compile(r"<!-- try: (.*?) *-->")


@dataclasses.dataclass
class Command:
    page: pathlib.Path
    line: int
    text: str
    block: int | None  # the line where its block begins; None: words in backquotes
    language: str  # of the block
    mark: str  # in front of the block: <!-- try: MARK -->

    def where(self) -> str:
        page = self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page
        return f"{page}:{self.line}"

    def bare(self) -> str:
        """Without comments."""
        return re.sub(r"\s+#\s[^\n]*", "", self.text).strip()

    def joined(self) -> str:
        """Also without joins of lines."""
        return self.bare().replace("\\\n", " ")

    def words_of_program(self) -> str | None:
        """What follows `outrider`, whatever stands in front of it; None for another program."""
        found = PROGRAM.search(self.joined())
        return found["words"] if found else None

    def is_form(self) -> bool:
        """Whether it says what may be typed, and not what to type."""
        unquoted = re.sub(r"\"[^\"]*\"|'[^']*'", "", self.text)
        return self.words_of_program() is not None and bool(re.search(r"\.\.\.|\[|\|", unquoted))


def all_pages() -> list[pathlib.Path]:
    return [*sorted(ROOT.glob("README*.md")), ROOT / "CONTRIBUTING.md",
            *sorted((ROOT / "models").glob("**/README.md")),
            *sorted((ROOT / "docs").glob("**/*.md"))]


def is_whole(text: str, language: str) -> bool:
    """Whether a command, or a form of one in a block without a language, ends with this line."""
    if text.endswith(("\\", "|")) or (language == "" and text.count("[") > text.count("]")):
        return False
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def commands_of(page: pathlib.Path):
    """Of blocks of ```sh each command, of blocks without a language those of the program (forms),
    and words in backquotes that begin as a command."""
    language, mark, text = None, "", ""  # language None: outside of blocks
    block = begun = 0
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
        if re.match(r"\s*```", line):
            language, block, text = (line.strip()[3:] if language is None else None), number, ""
            mark = mark if language is not None else ""
        elif language is None:
            for words in re.findall(r"`([^`]+)`", line):
                if IN_SENTENCE.match(words):
                    yield Command(page, number, words, None, "", "")
            if line.strip():
                found = MARK.match(line)
                mark = found[1] if found else ""
        elif language == "sh" or (language == "" and (text or PROGRAM.match(line))):
            begun = begun if text else number
            text = f"{text}\n{line}" if text else line
            if is_whole(text, language):
                if text.strip() and not text.lstrip().startswith("#"):
                    yield Command(page, begun, text, block, language, mark)
                text = ""
