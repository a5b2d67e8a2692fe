"""Replaces payloads by keyed hashes (``--redact``), and hides secrets in the metadata log and Connect's config topics.

The hash is HMAC-SHA256 (RFC 2104): equal payloads get equal hashes, and without its key even short payloads cannot be
guessed. Null stays null. With ``--redact value.email`` the column ``decoded`` has a hash in place of the value's field
``email``. The stored bytes contain this field too, so they are hashed whole. Uncertain parts are hidden too: a payload
that cannot be decoded has no ``data``. A text or number in the middle of a path is hashed.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kdump.errors import DamageError
from kdump.formats.record import Header, ManyHeaders
from kdump.log_dirs.file_names import folder_name
from kdump.records import control
from kdump.rows import values
from kdump.rows.selection import may_hold_secrets
from kdump.rows.values import RedactedRecord
from kdump.segments.lazy_records import ChangedRecords
from kdump.segments.regions import ENDS_INSIDE, TRAILING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.formats.record import Record
    from kdump.internal_topics.secrets import Mask
    from kdump.records.field_map import FieldBytes
    from kdump.rows.selection import SegmentFacts, SelectedBatch
    from kdump.segments.regions import Damage

    AnyDamage = TypeVar("AnyDamage", Damage, DamageError)

PREFIX: Final = "hmac-sha256:"
HASHED: Final = len(PREFIX) + 64
"""Number of bytes of the text that replaces a payload."""


class Redactor:
    """Redacts records with one secret key. Control records are not changed, because they hold no payload of users."""

    def __init__(self, key: bytes) -> None:
        from hmac import digest

        self.key = key
        self._digest = digest

    def __call__(self, item: SelectedBatch) -> SelectedBatch:
        if item.batch.is_control:
            return item
        return item._replace(records=ChangedRecords(item.records, self.record))

    def record(self, record: Record) -> Record:
        """Return a record with hashes in place of key, value and header values. Its sizes are the stored ones."""
        headers = record.headers
        if isinstance(headers, ManyHeaders):
            headers = headers.changed(self._header)
        elif headers:
            headers = tuple(map(self._header, headers))
        return record._replace(key=self._of(record.key), value=self._of(record.value), headers=headers)

    def _header(self, header: Header) -> Header:
        return Header(header.key, self._of(header.value))

    def hash(self, data: bytes) -> str:
        return PREFIX + self._digest(self.key, data, "sha256").hex()

    def _of(self, data: bytes | None) -> bytes | None:
        return None if data is None else self.hash(data).encode()


def bare(damage: AnyDamage) -> AnyDamage:
    """Return damage without its reason and the expected and found values: they may show parts of a payload."""
    reason = ENDS_INSIDE if damage.kind == TRAILING else f"its {damage.kind} is wrong"
    if isinstance(damage, DamageError):
        return type(damage)(damage.kind, reason, position=damage.position)
    return damage._replace(reason=reason, expected=None, found=None)


def shown(damage: AnyDamage, topic: str | None) -> AnyDamage:
    """Return damage for a message. Its values are removed if they may be parts of the topic's secrets."""
    return bare(damage) if _may_be_secret(damage.kind, topic) else damage


def shown_in(damage: AnyDamage, folder: str) -> AnyDamage:
    """Like :func:`shown`, with the topic from a folder's name. Unless this is TOPIC-PARTITION, the topic is unknown."""
    return shown(damage, folder_name(folder)[0])


def _may_be_secret(kind: str, topic: str | None) -> bool:
    return may_hold_secrets(topic) and kind in _OF_RECORDS


_OF_RECORDS: Final = frozenset(
    {
        "record size",
        "record offset",
        "varint",
        "key size",
        "value size",
        "header count",
        "header key size",
        "header value size",
        "message size",
        "control key",
        "control value",
    }
)
"""The kinds of damage inside a batch's records. A wrong number there may be bytes of a payload."""
_FIRST_BYTES: Final = (0, 1)
"""The possible first bytes of a value of the metadata log: the versions of its frame."""


class Secrets:
    """Hides the secrets of records, segment by segment."""

    def __init__(self) -> None:
        self._file: str | None = None
        self._known: Mask | None = None
        self._is_decided = True

    def mask(self, item: SelectedBatch) -> Mask | None:
        """Return the function that hides secrets in a segment's values. None: no secrets, or not yet known."""
        if item.file.name != self._file or not self._is_decided:
            self._file, (self._known, self._is_decided) = item.file.name, _mask_of(item)
        return self._known

    def without(self, item: SelectedBatch) -> Iterator[SelectedBatch]:
        """Yield an item unchanged if it has no secrets, else its batches one by one with masked values."""
        mask = self.mask(item)
        if mask is None or item.batch.is_control:
            yield item
        else:

            def masked(record: Record) -> Record:
                return record._replace(value=mask(record.key, record.value))

            for one in item.each(batches=False):
                yield one._replace(records=ChangedRecords(one.records, masked))

    def may_be_in(self, file: SegmentFacts, damage: Damage | DamageError) -> bool:
        """Return whether the expected and found values of damage in a segment may be parts of secrets.

        True for topics with names of secrets. Of others the first records decide; before, only damage inside records.
        """
        if file.topic is not None and _of_topic(file.topic) is not None:
            return True
        if file.name == self._file and self._is_decided:
            return self._known is not None
        return _may_be_secret(damage.kind, file.topic)

    def parts(self, item: SelectedBatch, parts: Iterator[FieldBytes]) -> Iterator[FieldBytes]:
        from kdump.records import field_map

        mask = self.mask(item)
        if mask is None and not self._is_decided:  # no record can be read, but the bytes may hold a secret
            mask = _nothing
        return parts if mask is None or item.batch.is_control else field_map.masked(parts, mask)


def _nothing(_: bytes | None, __: bytes | None) -> None:
    """Hide every value."""


def _of_topic(topic: str) -> Mask | None:
    if not may_hold_secrets(topic):
        return None
    from kdump.internal_topics.secrets import mask_of

    return mask_of(topic)


def _mask_of(item: SelectedBatch) -> tuple[Mask | None, bool]:
    """Return the mask of a segment, and whether it is certain. It is uncertain if only markers can be read.

    If the topic is unknown, or may hide Connect's configs, the first record that is not a marker decides.
    """
    topic = item.file.topic
    known = None if topic is None else _of_topic(topic)
    if known is not None or (topic is not None and not may_hold_secrets(topic)):
        return known, True
    run = item.run
    for batch in [item.batch] if run is None else map(run.run.batch, range(run.row, run.stop)):
        with suppress(DamageError):
            for record in batch.records():
                if batch.is_control and (record.key is None or control.read_key(record.key).type in control.MARKERS):
                    continue
                return _by_content(record, is_control=batch.is_control, is_named=topic is not None), True
    return None, False


def _by_content(record: Record, *, is_control: bool, is_named: bool) -> Mask | None:
    if not is_control and (
        (record.key is None and not (record.value and record.value[0] in _FIRST_BYTES))
        or (record.key is not None and b"-" not in record.key)
    ):
        return None
    from kdump.internal_topics import secrets

    if secrets.is_connect_key(record.key):
        return secrets.uncertain_connect_value
    is_metadata = not is_named and (is_control or secrets.is_metadata(record.key, record.value))
    return secrets.metadata_value if is_metadata else None


ANY: Final = "*"
"""The path element that matches every name and every item."""
HIDDEN_REASON: Final = "it cannot be decoded, and --redact hides why"
_OF_SCHEMA: Final = frozenset({"schema-invalid", "reference-missing"})
"""Problems whose reason shows no part of a payload, except if the payload itself contains the schema."""


class FieldRedactor(Redactor):
    """Redacts the stored payloads of records whole, and the named fields of decoded payloads."""

    def __init__(self, key: bytes, fields: Sequence[str]) -> None:
        """``fields`` are names such as ``value.customer.email``."""
        super().__init__(key)
        self._paths: list[tuple[str, str, tuple[str, ...]]] = []
        for name in fields:
            side, _, path = name.partition(".")
            self._paths.append((name, side, tuple(path.split("."))))
        self._found: set[str] = set()
        self._has_read = False

    @property
    def absent(self) -> list[str]:
        """The fields that no decoded record had; empty if no record was read."""
        return [name for name, *_ in self._paths if self._has_read and name not in self._found]

    def __call__(self, item: SelectedBatch) -> SelectedBatch:
        if item.batch.is_control:
            return item
        return item._replace(records=ChangedRecords(item.records, partial(self._changed, item)))

    def _changed(self, item: SelectedBatch, record: Record) -> Record:
        return RedactedRecord.of(self.record(record), partial(self._decoded, item, record))

    def _decoded(self, item: SelectedBatch, record: Record) -> dict[str, Any] | None:
        made: dict[str, Any] | None = values.decoded(item, record)
        self._has_read = True
        if made is None:
            return None
        return made | {side: self._side(side, made[side]) for side in ("key", "value") if made.get(side) is not None}

    def _side(self, side: str, part: dict[str, Any]) -> dict[str, Any]:
        if "problem" in part or "reason" in part or "data" not in part:
            return _undecoded(part)
        if "window" in part and part["framing"] is None:  # ``data`` is the stored application's key
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

        In a list, a name or number selects this field of all items. A number also selects the item with this number.
        """
        if not path or not (value is None or isinstance(value, dict | list)):
            return self._hashed(value), not path
        if isinstance(value, dict):
            return self._in_object(value, path)
        return self._in_list(value, path) if isinstance(value, list) else (None, False)

    def _in_object(self, value: dict[str, Any], path: tuple[str, ...]) -> tuple[dict[str, Any], bool]:
        made, is_there, meets = dict(value), False, False
        for name in value:
            for count in range(1, len(path) + 1):  # a name may contain dots
                if name == ".".join(path[:count]) or (count == 1 and path[0] == ANY):
                    meets = True
                    made[name], found = self._within(made[name], path[count:])
                    is_there |= found
        if not meets and "@type" in value and "value" in value:  # a Protobuf Any with an undecoded message
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
        if value is None:
            return None
        import json

        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return self.hash(text.encode("utf-8", "surrogatepass"))


def _undecoded(part: dict[str, Any]) -> dict[str, Any]:
    """Return a key or value that was not decoded, without the texts that may show parts of the payload."""
    problem, framing = part.get("problem"), part.get("framing")
    left_out = {"data"} | ({"schemaId", "guid"} if problem == "schema-missing" else set())
    made = {name: value for name, value in part.items() if name not in left_out}
    if problem not in _OF_SCHEMA or framing == "file":
        made["reason" if "reason" in part else "why"] = HIDDEN_REASON
    return made
