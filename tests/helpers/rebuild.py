"""Converts JSON lines back to the original bytes, as a user's script would do."""

from __future__ import annotations

import base64
import json

from kdump.formats.record import Header


def payload(value, encoding):
    if value is None and encoding is None:
        return None
    if encoding == "hex":
        return bytes.fromhex(value)
    if encoding == "base64":
        return base64.b64decode(value, validate=True)
    assert encoding is None, encoding
    return value.encode()


def record(line: dict):
    """Return key, value and headers of a line, as bytes."""
    headers = tuple(
        Header(payload(header["key"], header.get("keyEncoding")), payload(header["value"], header.get("encoding")))
        for header in line["headers"]
    )
    return payload(line["key"], line.get("keyEncoding")), payload(line["value"], line.get("valueEncoding")), headers


def lines(data: bytes) -> list[dict]:
    """Return the objects of JSON lines: UTF-8, each on one line."""
    text = data.decode("utf-8")
    assert not text or text.endswith("\n")
    assert len(text.splitlines()) == text.count("\n"), "a character ends a line too early"
    return [json.loads(line) for line in text.split("\n")[:-1]]
