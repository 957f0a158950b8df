# SPDX-License-Identifier: Apache-2.0
"""Validates texts against their schemas: lines {"schema": ..., "text": "..."} of standard input.

Prints the first invalid text, and fails. Exits with status 77 if jsonschema is not installed.
"""

import json
import sys

try:
    import jsonschema
except ImportError:
    print("Python's jsonschema is not installed")
    sys.exit(77)

# Formats that need no other packages are checked here by the standard library's own readers.
import datetime
import ipaddress
import re
import urllib.parse
import uuid
from decimal import Decimal


def check_format(name, text):
    if name == "date":
        datetime.date.fromisoformat(text)
    elif name in ("time", "date-time"):
        kind = datetime.time if name == "time" else datetime.datetime
        head, dot, rest = text.partition(".")
        if dot:  # older Pythons read only fractions of three or six digits
            digits = len(rest) - len(rest.lstrip("0123456789"))
            assert digits >= 1
            text = head + rest[digits:]
        kind.fromisoformat(text.replace("Z", "+00:00"))
    elif name == "uuid":
        assert str(uuid.UUID(text)) == text
    elif name == "ipv4":
        ipaddress.IPv4Address(text)
    elif name == "ipv6":
        ipaddress.IPv6Address(text)
    elif name == "hostname":
        assert len(text) <= 253
        for label in text.split("."):
            assert 1 <= len(label) <= 63 and label.strip("-") == label
    elif name == "email":
        local, at, domain = text.partition("@")
        assert at and 1 <= len(local) <= 64 and "." in domain and ".." not in text
        assert not local.startswith(".") and not local.endswith(".")
        check_format("hostname", domain)
    elif name == "uri":
        parts = urllib.parse.urlsplit(text)
        assert parts.scheme and not re.search("[^!-~]|%(?![0-9A-F]{2})", text)
        parts.port  # raises for an invalid port
    elif name == "duration":
        assert re.fullmatch(r"P(?=.)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+S)?)?)", text)


checker = jsonschema.FormatChecker(formats=())
FORMATS = "date time date-time duration uuid ipv4 ipv6 hostname email uri"
for format_name in FORMATS.split():

    def check(value, format_name=format_name):
        if isinstance(value, str):
            check_format(format_name, value)
        return True

    checker.checks(format_name, raises=(ValueError, AssertionError))(check)

validators = {}
n_checked = 0
for line in sys.stdin:
    case = json.loads(line)
    # Numbers as written: multiples of 0.01 are none as floats.
    schema = json.loads(json.dumps(case["schema"]), parse_float=Decimal)
    key = json.dumps(case["schema"])
    if key not in validators:

        def with_null(node):  # `nullable` is not part of JSON Schema: expressed in its terms
            if isinstance(node, dict):
                node = {name: with_null(value) for name, value in node.items()}
                if node.pop("nullable", False) is True:
                    types = node["type"] if isinstance(node["type"], list) else [node["type"]]
                    node["type"] = types + ["null"]
            elif isinstance(node, list):
                node = [with_null(value) for value in node]
            return node

        validators[key] = jsonschema.Draft202012Validator(with_null(schema), format_checker=checker)
    value = json.loads(case["text"], parse_float=Decimal)
    error = next(validators[key].iter_errors(value), None)
    if error is not None:
        print(f"schema {key}\ntext {case['text']}\n{error.message}")
        sys.exit(1)
    n_checked += 1
print(f"{n_checked} texts are valid")
