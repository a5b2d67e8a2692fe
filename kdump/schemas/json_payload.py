"""JSON payloads: the value. It is not validated against its schema."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from kdump.schemas.avro import number
from kdump.schemas.errors import UndecodableError

MAX_DEPTH: Final = 200
"""How deep a value may be nested. A command prints it inside a line of its own, by a recursive encoder."""


def read(payload: bytes, position: int) -> Any:
    """Return the JSON value from a position up to the end of the payload. Raises UndecodableError."""
    try:
        text = payload[position:].decode()
        if text.count("[") + text.count("{") > MAX_DEPTH:
            _check_depth(text)
        return json.loads(text, parse_constant=_refuse, parse_float=lambda digits: number(float(digits)))
    except UnicodeDecodeError as reason:
        raise UndecodableError(f"the JSON is no UTF-8 ({reason.reason})") from None
    except json.JSONDecodeError as reason:
        raise UndecodableError(f"it is no JSON: {reason.msg} at character {reason.pos}") from None
    except ValueError as reason:
        raise UndecodableError(f"it is no JSON: {reason}") from None
    except RecursionError:
        raise UndecodableError("the JSON is nested too deep") from None


def text(payload: bytes, position: int) -> str:
    """Return the same as JSON text in one line without blanks. Raises UndecodableError."""
    return json.dumps(read(payload, position), ensure_ascii=False, separators=(",", ":"))


def _refuse(constant: str) -> NoReturn:
    raise UndecodableError(f"{constant} is no JSON")


def _check_depth(text: str) -> None:
    level, in_text, escaped = 0, False, False
    for character in text:
        if in_text:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_text = False
        elif character == '"':
            in_text = True
        elif character in "[{":
            level += 1
            if level > MAX_DEPTH:
                raise UndecodableError("the JSON is nested too deep")
        elif character in "]}":
            level -= 1
