#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_template_goldens.py [FILE]: writes templates.json in the folder above (or FILE): templates of
our own, one or more for each feature of src/chat_template, with the results of jinja2 3.1.6 as
Hugging Face transformers configures it. Needs `pip install jinja2==3.1.6`."""
import datetime
import json
import os
import sys

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

from template_cases import EXPRESSIONS, TEMPLATES

NOW = datetime.datetime(2024, 7, 26, 14, 5, 9)


class Generation(Extension):
    """{% generation %}: marks the assistant's text; here it only outputs that text."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_said"), [], [], body).set_lineno(line)

    def _said(self, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = NOW.strftime
    return made


CONTEXT = {
    "n": 7, "neg": -3, "x": 2.5, "yes": True, "no": False, "nil": None, "s": "Hello World", "e": "",
    "u": "Grüße, Öl – 漢字 😀", "l": [3, 1, 2], "el": [], "d": {"b": 1, "a": "two", "items": 3}, "ed": {},
    "m": [{"role": "user", "content": " Hi ", "n": 2}, {"role": "assistant", "content": "Yes?", "n": 1},
          {"role": "user", "content": "Bye"}],
    "t": {"name": "f", "parameters": {"type": "object", "properties": {"p": {"type": "string"}}}, "q": [1, 2.0, None, True]},
    "deep": {"a": {"b": [10, {"c": "end"}]}},
}

def main():
    target = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "templates.json")
    cases = []
    for template in ["{{ " + expression + " }}" for expression in EXPRESSIONS] + TEMPLATES:
        try:
            cases.append({"template": template, "output": environment().from_string(template).render(**CONTEXT)})
        except Exception as error:
            cases.append({"template": template, "error": type(error).__name__})
    with open(target, "w", encoding="utf8") as file:
        json.dump({"made_with": "jinja2 " + jinja2.__version__, "context": CONTEXT, "cases": cases}, file, indent=0)
        file.write("\n")
    print(len(cases), "templates,", sum("error" in case for case in cases), "of them errors")


if __name__ == "__main__":
    main()
