# SPDX-License-Identifier: Apache-2.0
"""Writes json_schemas.jsonl: schemas for the tests of the JSON Schema grammar, one per line.

    python3 tests/golden/make/make_json_schemas.py > tests/golden/json_schemas.jsonl

Every keyword that docs/grammar.md lists occurs in at least five of them (json_schema_test.cc
counts).
"""

import json

SCALARS = [
    {},
    True,
    {"type": "string"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "null"},
    {"type": ["string", "null"]},
    {"type": ["integer", "boolean"]},
    {"type": ["number", "array"]},
    {"type": "string", "nullable": True},
    {"type": "integer", "nullable": True, "minimum": 4},
    {"type": "boolean", "nullable": False},
    {"type": ["string", "integer"], "nullable": True},
    {"type": "array", "nullable": True, "items": {"type": "integer"}},
    {"const": "one"},
    {"const": 7},
    {"const": None},
    {"const": {"a": [1, 2.5, {"b": False}]}},
    {"const": "quote \" back \\ line \n tab \t bell \u0007 \u00fc \U0001f600"},
    {"enum": ["red", "green", "blue"]},
    {"enum": [1, 2.5, None, True, "x", [], {}]},
    {"enum": ["a", "ab", "abc", ""]},
    {"type": "integer", "enum": [1, "1", 2, 3.5]},
    {"type": "string", "enum": ["\u00e9t\u00e9", "\u00e9", "e"]},
]

STRINGS = (
    [{"type": "string", "minLength": n} for n in (0, 1, 3, 20)]
    + [{"type": "string", "maxLength": n} for n in (0, 1, 5, 10000)]
    + [{"type": "string", "minLength": a, "maxLength": b} for a, b in ((0, 0), (2, 2), (3, 7), (1, 4000))]
    + [{"minLength": 2}, {"maxLength": 3}]
    + [
        {"type": "string", "pattern": p}
        for p in (
            "^[a-z]+$",
            "^[A-Z]{2}-[0-9]{4}$",
            "ab",
            "^a|b$",
            "^(?:yes|no)$",
            "^\\d{3}(-\\d{2})?$",
            "^\\w+@\\w+\\.(com|org)$",
            "^[^a-z]{3}$",
            "^.{2,5}$",
            "^\"quoted\"\\\\$",
            "^[\\t\\n ]{2}$",
            "^\\u00e9[\\u4e00-\\u9fff]{1,3}$",
            "^$",
            "x*",
        )
    ]
    + [{"pattern": "^k[0-9]$"}]
    + [{"type": "string", "format": f} for f in ("date", "time", "date-time", "uuid", "ipv4")]
    + [{"type": "string", "format": f} for f in ("duration", "email", "hostname", "ipv6", "uri")]
    + [{"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png", "x-order": 1}]
)

INTEGERS = (
    [{"type": "integer", "minimum": n} for n in (0, 1, -5, 17, 100, 999, 1000, 123456)]
    + [{"type": "integer", "maximum": n} for n in (0, -1, 9, 10, 4321)]
    + [
        {"type": "integer", "minimum": a, "maximum": b}
        for a, b in ((0, 0), (1, 10), (-10, 10), (-105, -98), (95, 1203), (0, 255), (-128, 127), (1900, 2100))
    ]
    + [{"type": "integer", "exclusiveMinimum": n} for n in (0, -1, 9, 0.5)]
    + [{"type": "integer", "exclusiveMaximum": n} for n in (0, 10, -9, 99.5)]
    + [{"type": "integer", "minimum": 1.5, "maximum": 4.2}, {"type": "integer", "minimum": 3, "exclusiveMaximum": 5}]
    + [{"type": "integer", "multipleOf": n} for n in (1, 2, 5, 7, 60, 1000, 0.5)]
    + [
        {"type": "integer", "multipleOf": m, "minimum": a, "maximum": b}
        for m, a, b in ((3, 10, 200), (25, -60, 1000), (12, -50, -20))
    ]
)

NUMBERS = (
    [{"type": "number", "minimum": n} for n in (0, 1, -3, 100)]
    + [{"type": "number", "maximum": n} for n in (0, -2, 12)]
    + [{"type": "number", "minimum": a, "maximum": b} for a, b in ((0, 1), (-1, 1), (5, 5), (-90, 90), (-7, -7))]
    + [{"type": "number", "exclusiveMinimum": n} for n in (0, 3, -2)]
    + [{"type": "number", "exclusiveMaximum": n} for n in (0, 4, -1)]
    + [{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, {"minimum": 2, "maximum": 3}]
    + [{"type": "number", "minimum": a, "maximum": b} for a, b in ((0.1, 0.9), (-0.5, 0.25), (-7.25, -3.125), (1e-05, 2.5e3))]
    + [{"type": "number", "exclusiveMinimum": 0.5, "exclusiveMaximum": 0.75}, {"type": "number", "exclusiveMaximum": 4}]
    + [{"type": "number", "multipleOf": m} for m in (0.01, 0.5, 0.25, 3, 0.3)]
    + [{"type": "number", "multipleOf": 0.05, "minimum": 0, "maximum": 2}, {"multipleOf": 0.1, "exclusiveMinimum": 1}]
    + [{"enum": [1, 2.5, 7, "a", "abc", None], "minimum": 2, "minLength": 2}]
)

ARRAYS = (
    [{"type": "array"}, {"items": {"type": "boolean"}}]
    + [{"type": "array", "items": s} for s in ({"type": "integer"}, {"enum": ["a", "b"]}, {}, True)]
    + [{"type": "array", "minItems": n} for n in (0, 1, 3)]
    + [{"type": "array", "items": {"type": "null"}, "maxItems": n} for n in (0, 1, 4, 1000)]
    + [{"type": "array", "items": {"type": "boolean"}, "minItems": a, "maxItems": b} for a, b in ((0, 1), (2, 2), (2, 5))]
    + [{"type": "array", "uniqueItems": False, "items": {"type": "integer", "minimum": n}} for n in range(5)]
    + [
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
        {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}, {"const": 3}], "items": False, "minItems": 2},
        {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}, "minItems": 1, "maxItems": 4},
        {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}, {"const": 3}], "maxItems": 2},
        {"prefixItems": [{"type": "null"}], "minItems": 1},
    ]
)

POINT = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x", "y"]}
PERSON = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Person",
    "description": "Somebody",
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 30, "description": "in full"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 30},
        "email": {"type": ["string", "null"], "examples": ["a@b.c"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
OBJECTS = [
    {"type": "object"},
    {"type": "object", "additionalProperties": False},
    {"type": "object", "additionalProperties": True},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {}},
    {"properties": {"a": {"type": "integer"}}},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["b"]},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a", "b"]},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
    {"type": "object", "properties": {"a": {"const": 1}, "ab": {"const": 2}, "b": {"const": 3}}, "additionalProperties": {"const": 4}},
    {"type": "object", "properties": {"\u00e9": {"const": 1}, "\u00ea": {"const": 2}, "": {"const": 3}}, "additionalProperties": {"const": 4}},
    {"type": "object", "properties": {"a\"b": {"const": 1}, "c\\d": {"const": 2}}, "additionalProperties": {"const": 4}},
    {"type": "object", "properties": {"a": True, "b": False}},
    {"type": "object", "required": ["any", "thing"]},
    {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b"], "additionalProperties": {"type": "boolean"}},
    {"type": "object", "properties": {str(i): {"type": "boolean"} for i in range(12)}},
    {"type": "object", "properties": {str(i): {"type": "boolean"} for i in range(12)}, "required": ["3", "7", "11"]},
    POINT,
    PERSON,
    {"type": "array", "items": POINT},
] + [
    {"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": {"type": t}}
    for t in ("string", "integer", "number", "boolean", "null")
]

TREE = {
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2}},
            "required": ["value"],
        }
    },
    "$ref": "#/$defs/tree",
}
REFERENCES = [
    TREE,
    {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["next"]},
    {"definitions": {"word": {"type": "string", "pattern": "^[a-z]{1,5}$"}}, "type": "array", "items": {"$ref": "#/definitions/word"}},
    {"$defs": {"a b": {"type": "integer"}, "c/d": {"type": "null"}}, "anyOf": [{"$ref": "#/$defs/a%20b"}, {"$ref": "#/$defs/c~1d"}]},
    {"$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"type": "boolean"}}, "$ref": "#/$defs/x"},
    {"$defs": {"n": {"type": "integer", "minimum": 3}}, "$ref": "#/$defs/n", "maximum": 5},
    {
        "$defs": {"expression": {"anyOf": [{"type": "integer"}, {"type": "array", "prefixItems": [{"enum": ["+", "*"]}, {"$ref": "#/$defs/expression"}, {"$ref": "#/$defs/expression"}], "items": False, "minItems": 3}]}},
        "type": "object",
        "properties": {"e": {"$ref": "#/$defs/expression"}},
        "required": ["e"],
    },
]

COMBINATIONS = [
    {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "string", "minLength": 4}]},
    {"anyOf": [{"const": 1}, {"const": 1.5}, {"type": "boolean"}]},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"type": ["integer", "string"], "anyOf": [{"minimum": 3, "maxLength": 1}, {"maximum": -3, "minLength": 4}]},
    {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    {"oneOf": [{"const": "a"}, {"const": "b"}, {"enum": ["c", "d"]}]},
    {"oneOf": [{"type": "null"}, POINT]},
    {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number", "minimum": 0}}, "required": ["kind", "r"]},
            {"type": "object", "properties": {"kind": {"enum": ["square", "cube"]}, "side": {"type": "number"}}, "required": ["kind", "side"]},
        ]
    },
    {
        "oneOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
            {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"], "additionalProperties": False},
        ]
    },
    {"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"], "oneOf": [{"properties": {"t": {"const": "x"}}}, {"properties": {"t": {"const": "y"}, "u": {"type": "null"}}}]},
    {"allOf": [{"type": "integer"}, {"minimum": 3}, {"maximum": 12}]},
    {"allOf": [{"type": ["integer", "string"]}, {"type": ["number", "null"]}]},
    {"allOf": [POINT, {"properties": {"z": {"type": "number"}}, "required": ["z"]}]},
    {"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}]},
    {"allOf": [{"type": "array", "minItems": 1}, {"items": {"type": "integer"}}, {"items": {"minimum": 5}}]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"properties": {"a": {"minimum": 7}}, "required": ["a"], "additionalProperties": False}]},
    {"allOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "integer"}, {"type": "null"}]}]},
    {"type": "string", "allOf": [{"minLength": 2}, {"maxLength": 3}]},
    {"$defs": {"base": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}}, "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"name": {"type": "string"}}}]},
    {"type": "object", "properties": {"list": {"type": "array", "items": {"oneOf": [{"type": "integer"}, {"type": "boolean"}]}}}, "required": ["list"]},
]


def all_schemas():
    plain = SCALARS + STRINGS + INTEGERS + NUMBERS + ARRAYS + OBJECTS + REFERENCES + COMBINATIONS
    yield from plain
    # Each of the small ones again as a member, and as items.
    for number, schema in enumerate(STRINGS + INTEGERS + NUMBERS):
        if number % 3 == 0:
            yield {"type": "object", "properties": {"v": schema, "w": schema}, "required": ["v"], "additionalProperties": False}
        elif number % 3 == 1:
            yield {"type": "array", "items": schema, "minItems": 1, "maxItems": 3}
    for number, schema in enumerate(SCALARS):
        yield {"anyOf": [schema, {"type": "object", "properties": {"n": schema}}], "$comment": f"scalar {number}"}


for one in all_schemas():
    print(json.dumps(one))
