"""Decoded keys and values for people: cells of tables, and lines below the records of the classic text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kdump.primitives.encodings import Encoding, to_text
from kdump.primitives.terminal import harmless_line
from kdump.printers.json_text import plain, scalar
from kdump.rows import values
from kdump.rows.columns import DECODED, SHOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.formats.record import Record
    from kdump.rows.selection import SelectedBatch

SIDE_OF: Final = {column.source: column.name for column in SHOWN}
"""Source of a column -> ``key`` or ``value``."""


def cell(source: str, item: SelectedBatch, record: Record | None, encoding: Encoding) -> str | None:
    """Return a key or value for a table: the decoded data, else the text, both after the reason of a failure."""
    side = SIDE_OF[source]
    payload: bytes | None = getattr(record, side)
    if payload is None:
        return None
    part = values.decoded_side(item, record, side)
    if part is None:
        return to_text(payload, encoding).text
    reason = _reason(part)
    text = plain(DECODED, part["data"]) if "data" in part else to_text(payload, encoding).text
    return f"{f'({reason}) ' if reason else ''}{text}{_window(part)}"


def lines(item: SelectedBatch, record: Record, sides: tuple[str, ...]) -> Iterator[bytes]:
    """Yield a line for each side (key, value) of a record that has a schema or a known layout, even a broken one."""
    for side in sides:
        part = values.decoded_side(item, record, side)
        if part is not None:
            reason = _reason(part)
            texts = [scalar(DECODED, part["data"])] if "data" in part else []
            texts += [f"({reason})"] if reason and texts else [reason] * bool(reason)
            origin = _origin(part) + _window(part)
            yield f"  decoded {side}{f' ({origin.strip()})' if origin else ''}: {' '.join(texts)}\n".encode()


def _reason(part: dict[str, Any]) -> str:
    """Return the reason why a side cannot be decoded completely; empty if it can."""
    problem, why = part.get("problem"), part.get("why") or part.get("reason") or ""
    return harmless_line(f"{problem}: {why}" if problem else why)


def _origin(part: dict[str, Any]) -> str:
    """Return the format, schema and type of a decoded side as words."""
    words = []
    if part.get("format"):
        words.append("avro file" if part["framing"] == "file" else part["format"])
    if part.get("schemaId") is not None:
        words.append(f"schema id {part['schemaId']}")
    elif "guid" in part:
        words.append(f"schema {part['guid']}")
    if "subject" in part:
        state = "" if part["schemaState"] == "current" else f" {part['schemaState']}"
        words.append(f"{part['subject']} version {part['version']}{state}")
    if part.get("name"):
        version = f" version {part['version']}" if "subject" not in part and "version" in part else ""
        words.append(f"{part['name']}{version}")
    return harmless_line(", ".join(words))


def _window(part: dict[str, Any]) -> str:
    """Return the window of a Kafka Streams key, after a space; empty if the key has no window."""
    window = part.get("window")
    if window is None:
        return ""
    if window["type"] == "join":
        return f" @ {window['time']} {window['side']}"
    return f" @ {window['start']}" + (f"/{window['end']}" if window["type"] == "session" else "")
