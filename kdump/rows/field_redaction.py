"""Fields of decoded payloads replaced by their hash, in place of whole payloads: ``--redact value.email``.

The stored bytes of every key, value and header are hashed as by :class:`Redactor`: they hold the same fields. The
column ``decoded`` shows the payloads without the values of the fields. What is not certain is hidden, too: a payload
that cannot be decoded has no ``data``, and a value that stands where the path goes on is hashed whole.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kdump.errors import UsageError
from kdump.rows import values
from kdump.rows.columns import decoded_field
from kdump.rows.redaction import Redactor
from kdump.rows.values import RedactedRecord
from kdump.segments.lazy_records import ChangedRecords

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.formats.record import Record
    from kdump.rows.selection import SelectedBatch

ANY: Final = "*"
"""A part of a path that stands for every name and every item."""
HIDDEN_REASON: Final = "it cannot be decoded, and --redact hides why"
_OF_SCHEMA: Final = frozenset({"schema-invalid", "reference-missing"})
"""Problems whose reason holds nothing of a payload, unless that brings its schema."""


class FieldRedactor(Redactor):
    """Redacts the stored payloads of records whole, and of decoded ones the fields that are named."""

    def __init__(self, key: bytes, fields: Sequence[str]) -> None:
        """``fields`` are names such as ``value.customer.email``. Raises UsageError for one of another form."""
        super().__init__(key)
        self._paths: list[tuple[str, str, tuple[str, ...]]] = []
        for name in fields:
            if decoded_field(name) is None:
                raise UsageError(f"--redact {name}: a field is value.NAME or key.NAME, such as value.customer.email")
            side, _, path = name.partition(".")
            self._paths.append((name, side, tuple(path.split("."))))
        self._found: set[str] = set()
        self._has_read = False

    @property
    def absent(self) -> list[str]:
        """The fields that no record had, of those whose decoded payloads were shown."""
        return [name for name, *_ in self._paths if self._has_read and name not in self._found]

    def __call__(self, item: SelectedBatch) -> SelectedBatch:
        if item.batch.is_control:
            return item
        return item._replace(records=ChangedRecords(item.records, partial(self._changed, item)))

    def _changed(self, item: SelectedBatch, record: Record) -> Record:
        return RedactedRecord.of(self.record(record), partial(self._decoded, item, record))

    def _decoded(self, item: SelectedBatch, record: Record) -> dict[str, Any] | None:
        """Return a decoded record as it may be shown."""
        made: dict[str, Any] | None = values.decoded(item, record)
        self._has_read = True
        if made is None:
            return None
        return made | {side: self._side(side, made[side]) for side in ("key", "value") if made.get(side) is not None}

    def _side(self, side: str, part: dict[str, Any]) -> dict[str, Any]:
        if "problem" in part or "reason" in part or "data" not in part:
            return _undecoded(part)
        if "window" in part and part["framing"] is None:  # the application's key as it is stored
            return part | {"data": self._hashed(part["data"])}
        data = part["data"]
        for name, of, path in self._paths:
            if of == side:
                data, is_there = self._within(data, path)
                if is_there:
                    self._found.add(name)
        return part | {"data": data}

    def _within(self, value: Any, path: tuple[str, ...]) -> tuple[Any, bool]:
        """Return a JSON value with hashes at a path, and whether it has the path.

        A name takes the fields of all items of a list, a number also the item of that number.
        """
        if not path or not (value is None or isinstance(value, dict | list)):
            return self._hashed(value), not path
        if isinstance(value, dict):
            return self._in_object(value, path)
        return self._in_list(value, path) if isinstance(value, list) else (None, False)

    def _in_object(self, value: dict[str, Any], path: tuple[str, ...]) -> tuple[dict[str, Any], bool]:
        made, is_there, meets = dict(value), False, False
        for name in value:
            for count in range(1, len(path) + 1):  # a name may hold dots itself
                if name == ".".join(path[:count]) or (count == 1 and path[0] == ANY):
                    meets = True
                    made[name], found = self._within(made[name], path[count:])
                    is_there |= found
        if not meets and "@type" in value and "value" in value:  # a Protobuf Any whose message is not decoded
            made["value"] = self._hashed(value["value"])
        return made, is_there

    def _in_list(self, value: list[Any], path: tuple[str, ...]) -> tuple[list[Any], bool]:
        made, is_there = list(value), False
        is_number = path[0].isdecimal() and len(path[0]) <= values.ITEM_DIGITS
        for number, item in enumerate(value):
            here = path[0] == ANY or (is_number and int(path[0]) == number)
            if here:
                made[number], found = self._within(item, path[1:])
                is_there |= found
            if isinstance(made[number], dict) or not (here or is_number):
                made[number], found = self._within(made[number], path)
                is_there |= found
        return made, is_there

    def _hashed(self, value: Any) -> Any:
        """Return the hash of a text, or of the JSON of another value; null stays null."""
        if value is None:
            return None
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return self.hash(text.encode("utf-8", "surrogatepass"))


def _undecoded(part: dict[str, Any]) -> dict[str, Any]:
    """Return a side that cannot be decoded without what may be a part of its payload."""
    problem, framing = part.get("problem"), part.get("framing")
    left_out = {"data"} | ({"schemaId", "guid"} if problem == "schema-missing" else set())
    made = {name: value for name, value in part.items() if name not in left_out}
    if problem not in _OF_SCHEMA or framing == "file":
        made["reason" if "reason" in part else "why"] = HIDDEN_REASON
    return made
