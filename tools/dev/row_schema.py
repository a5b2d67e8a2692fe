"""Write the JSON Schema of kdump's JSON lines from the columns in ``kdump/rows/columns.py``.

python -m tools.dev.row_schema > kdump/rows/schema.json
"""

from __future__ import annotations

import json
import sys

from kdump.formats.record_layout import TIMESTAMP_TYPES
from kdump.primitives import compression
from kdump.rows import columns as rows

PAYLOAD = "A text, unless the encoding beside it is hex, base64 or json (an unchanged JSON value)."
STRING = {"type": "string"}
BOUNDS = {"int": 31, "long": 63}


def value(column: rows.Column) -> dict:
    """Return the schema of one column's values."""
    if column.type in BOUNDS:
        bits = BOUNDS[column.type]
        return {"type": "integer", "minimum": -(1 << bits), "maximum": (1 << bits) - 1}
    if column.type == "headers":
        return {"type": "array", "items": {"$ref": "#/$defs/header"}}
    return {
        "boolean": {"type": "boolean"},
        "binary": {},
        "json": {"type": "object"},
        "timestamp": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"},
        "timestampType": {"enum": [word for code, word in TIMESTAMP_TYPES.items() if code is not None]},
        "codec": {"enum": list(compression.NAMES)},
        "any": {"type": ["string", "integer"]},
        "string": STRING,
    }[column.type]


def nullable(schema: dict) -> dict:
    return schema if not schema else {"anyOf": [schema, {"type": "null"}]}


def kind(name: str, columns: tuple[rows.Column, ...]) -> dict:
    """Return the schema of one kind of line."""
    properties = {}
    for column in columns:
        schema = value(column)
        properties[column.name] = {
            "description": column.doc + (f" {PAYLOAD}" if column.type == "binary" else ""),
            **(nullable(schema) if column.nullable else schema),
        }
    properties["kind"] = {"const": name}
    return {
        "type": "object",
        "properties": properties,
        "required": [column.name for column in columns if not column.optional],
        "additionalProperties": False,
    }


def build() -> dict:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A line of kdump dump -o jsonl, version {rows.VERSION}",
        "description": "Without --fields. Numbers are as stored: -1 is Kafka's -1.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in rows.KINDS],
        "$defs": {
            **{
                name: kind(name, (*columns, rows.DECODED) if name == "record" else columns)
                for name, columns in rows.KINDS.items()
            },
            "header": {
                "type": "object",
                "properties": {
                    "key": STRING,
                    "value": {"description": f"Null is not empty. {PAYLOAD}"},
                    "keyEncoding": {"const": "base64"},
                    "encoding": {"enum": ["hex", "base64", "json"]},
                },
                "required": ["key", "value"],
                "additionalProperties": False,
            },
        },
    }


if __name__ == "__main__":
    json.dump(build(), sys.stdout, indent=1)
    sys.stdout.write("\n")
