"""The values of columns (except encodings and the scopes ``shown`` and ``typed``), before they become text."""

from __future__ import annotations

from functools import cached_property, lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from kdump.errors import DamageError
from kdump.formats.partition_metadata import id_text
from kdump.formats.record import LARGE, Record
from kdump.internal_topics import DECODER_SWITCHES
from kdump.records import control
from kdump.rows import columns as rows
from kdump.rows.selection import DamagedRange, SelectedBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.internal_topics.decode import Decoded
    from kdump.rows.columns import Column


class RedactedRecord(Record):
    """A record with hashes in place of payloads. The value of its column ``decoded`` is made on first use."""

    _read: Callable[[], dict[str, Any] | None]

    @classmethod
    def of(cls, record: Record, read: Callable[[], dict[str, Any] | None]) -> RedactedRecord:
        made = cls(*record)
        made._read = read
        return made

    @cached_property
    def decoded(self) -> dict[str, Any] | None:
        return self._read()


def value(column: Column, found: SelectedBatch | DamagedRange, record: Record | None = None) -> object:
    """Return the value of a column, None for null. Columns of scope ``record`` need ``record``."""
    return source(column)(found, record)


def is_constant(column: Column, found: SelectedBatch) -> bool:
    """Return whether it is certain, without reading records, that all of a batch share the value of a column."""
    if column.source == "batch.crc_valid":
        return found.batch.magic > 1
    if column.source in MARKS:
        return not crosses(column, found, (found.base_offset, found.batch.last_offset))
    if column.source in _OF_CONTROL:
        return not found.batch.is_control
    if column.source == "state.decoded":
        return found.batch.is_control or (found.file.decoder is None and not has_words(found.file.layout))
    return column.scope in {"file", "batch"} or column.source in {"state.kind", "state.transaction"}


def constant(column: Column, found: SelectedBatch) -> object:
    """Return the value that all records of a batch share, without reading a record."""
    return "record" if column.source == "state.kind" and found.records else value(column, found)


@lru_cache
def source(column: Column) -> Callable[[SelectedBatch | DamagedRange, Record | None], object]:
    special = SOURCES.get(column.source)
    if special is not None:
        return special
    if column.scope == rows.FIELD:
        side, _, path = column.attribute.partition(".")
        return partial(_field, side, tuple(path.split(".")))
    get = attrgetter(column.attribute)
    if column.scope == "record":
        return lambda _, record: get(record)
    if column.scope == "batch":
        return lambda found, _: get(found.batch)  # type: ignore[union-attr]  # only batches have such columns
    if column.scope == "damage":
        return lambda lost, _: get(lost.damage)  # type: ignore[union-attr]  # only damage has such columns
    return lambda found, _: get(found.file)


def _kind(found: SelectedBatch | DamagedRange, record: Record | None) -> str:
    if not isinstance(found, SelectedBatch):
        return "damage"
    return "batch" if record is None else "record"


def _above(found: SelectedBatch, record: Record | None) -> bool | None:
    mark = found.file.high_watermark
    offset = found.batch.last_offset if record is None else record.offset
    return True if mark is not None and offset >= mark else None


def _below(found: SelectedBatch, record: Record | None) -> bool | None:
    mark = found.file.log_start
    offset = found.batch.last_offset if record is None else record.offset
    return True if mark is not None and offset < mark else None


ITEM_DIGITS: Final = 9
"""Maximum number of digits in the number of a list item. Python does not parse thousands of digits."""
_OF_CONTROL: Final = {"state.control_type", "state.coordinator_epoch"}
MARKS: Final = {"state.above_high_watermark": "high_watermark", "state.below_log_start": "log_start"}


def mark(column: Column, found: SelectedBatch) -> int | None:
    """Return the high watermark or log start offset: a column of MARKS compares offsets with it. None if unknown."""
    offset: int | None = getattr(found.file, MARKS[column.source])
    return offset


def crosses(column: Column, found: SelectedBatch, offsets: tuple[int, int]) -> bool:
    """Return whether a column of MARKS changes within the records from ``offsets[0]`` to ``offsets[1]``."""
    offset = mark(column, found)
    return offset is not None and offsets[0] < offset <= offsets[1]


def against_marks(column: Column, found: SelectedBatch, record: Record | None = None) -> object:
    """Like :func:`value`, but with False instead of None in a column of MARKS whose offset is known."""
    shown = value(column, found, record)
    return False if shown is None and column.source in MARKS and mark(column, found) is not None else shown


def _control_type(found: SelectedBatch, record: Record | None) -> str | None:
    if not found.batch.is_control or record is None or record.key is None or len(record.key) < control.KEY.size:
        return None
    try:
        code = control.read_key(record.key).type
    except DamageError:  # the row shows the key; ``kdump check`` reports the problem
        return None
    return control.TYPES.get(code, f"UNKNOWN({code})")


def _coordinator_epoch(found: SelectedBatch, record: Record | None) -> int | None:
    if _control_type(found, record) not in control.MARKERS.values() or record is None or record.value is None:
        return None
    try:
        return control.read_marker(record.value).coordinator_epoch
    except DamageError:  # the row shows the value; ``kdump check`` reports the problem
        return None


def has_words(topic: str | None) -> bool:
    """Return whether a topic is Kafka's own, so that kdump decodes it without a registry."""
    return topic in DECODER_SWITCHES


def needs_frame(topic: str | None) -> bool:
    """Return whether payloads of a topic are decoded only if they name a schema."""
    from kdump.schemas.decoder import has_own_layouts

    return not (has_words(topic) or has_own_layouts(topic or ""))


def decoded(found: SelectedBatch, record: Record | None) -> Any:
    """Return a record decoded by Kafka's own layouts or the decoder; None for others and in control batches."""
    if isinstance(record, RedactedRecord):
        return record.decoded
    if record is None or found.batch.is_control:
        return None
    if found.file.layout is not None and has_words(found.file.layout):
        return _in_words(found.file.layout, record)
    decoder = found.file.decoder
    if decoder is None:
        return None
    return decoder.decode(found.file.topic or "", record.key, record.value, record.headers)


def _in_words(topic: str, record: Record) -> dict[str, Any] | None:
    """Return a decoded record as JSON values: key and value, each with name, version, and data or a reason.

    Bytes and uuids are URL-safe base64 without padding, as Kafka writes uuids.
    """
    from kdump.internal_topics.decode import decode

    made = decode(topic, record.key, record.value)
    return None if made is None else {"type": made.type, "key": _part(made.key), "value": _part(made.value)}


def _part(side: Decoded | None) -> dict[str, Any] | None:
    if side is None:
        return None
    shown: dict[str, Any] = {"name": side.name, "version": side.version} if side.name else {}
    if side.values is not None:
        shown["data"] = _plain(side.values)
    if side.reason:
        shown["reason"] = side.reason
    return shown


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        from kdump.internal_topics.secrets import HIDDEN, HIDDEN_BYTES

        return HIDDEN if value == HIDDEN_BYTES else id_text(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


_last: tuple[Record | None, Any] = (None, None)
"""The last record from which a field was read, and its decoded form. A large record is not kept."""


def decoded_side(found: SelectedBatch, record: Record | None, side: str) -> dict[str, Any] | None:
    """Return the key or value (``side``) of the result of :func:`decoded`; None if it is not decoded."""
    global _last  # noqa: PLW0603  the fields of a record are read one after the other: decode it once
    last = _last
    if record is None or last[0] is not record:
        last = (record, decoded(found, record))
        _last = last if record is not None and record.size < LARGE else (None, None)
    made = last[1]
    part = None if made is None else made.get(side)
    return part if isinstance(part, dict) else None


def _field(side: str, path: tuple[str, ...], found: SelectedBatch, record: Record | None) -> object:
    part = decoded_side(found, record, side)
    return None if part is None else within(part.get("data"), path)


def within(value: object, path: tuple[str, ...]) -> object:
    """Return the part of a JSON value at a path of names and numbers of list items, or None.

    A name with dots may be several consecutive elements of the path; the longest such name is used.
    """
    if not path:
        return value
    if isinstance(value, dict):
        for count in range(len(path), 0, -1):
            name = ".".join(path[:count])
            if name in value:
                return within(value[name], path[count:])
    if isinstance(value, list) and path[0].isdecimal() and len(path[0]) <= ITEM_DIGITS and int(path[0]) < len(value):
        return within(value[int(path[0])], path[1:])
    return None


SOURCES: Final[dict[str, Callable[..., object]]] = {
    "state.kind": _kind,
    "state.transaction": lambda found, _: found.transaction,
    "state.above_high_watermark": _above,
    "state.below_log_start": _below,
    "state.decoded": decoded,
    "state.control_type": _control_type,
    "state.coordinator_epoch": _coordinator_epoch,
    "batch.base_offset": lambda found, _: found.base_offset,
    "batch.crc_valid": lambda found, record: found.crc_valid and (record is None or record.crc_valid is not False),
}
"""Source of a column -> the function for its value, if the value is more than an attribute."""
