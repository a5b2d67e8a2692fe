"""The fields of a batch in byte order, each with position, bytes, name and value (for ``kdump get``).

Names: Kafka's protocol guide, KIP-98 (magic 2), KIP-32 (magic 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import DamageError
from kdump.formats import record_layout
from kdump.primitives import compression
from kdump.primitives.crc import crc32, crc32c
from kdump.primitives.timestamps import iso
from kdump.primitives.wire import read_varint
from kdump.records import control
from kdump.records import magic_2 as v2
from kdump.records.magic_0_1 import Message
from kdump.records.magic_2 import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.internal_topics.secrets import Mask
    from kdump.primitives.wire import Bytes
    from kdump.records.record_batch import RecordBatch


class FieldBytes(NamedTuple):
    """One field. ``position`` is a byte offset in the file or, if ``unpacked``, in the decompressed records."""

    position: int
    data: Bytes
    name: str
    value: str
    unpacked: bool = False


HIDDEN: Final = "hidden (--show-secrets shows it)"
_UNREAD: Final = "unread"
PAYLOADS: Final = {"key", "value", "headerKey", "headerValue", _UNREAD}
"""The names of the fields with data of a producer."""
_NAMES: Final = {
    "base_offset": "baseOffset",
    "length": "batchLength",
    "partition_leader_epoch": "partitionLeaderEpoch",
    "last_offset_delta": "lastOffsetDelta",
    "base_timestamp": "baseTimestamp",
    "max_timestamp": "maxTimestamp",
    "producer_id": "producerId",
    "producer_epoch": "producerEpoch",
    "base_sequence": "baseSequence",
    "records_count": "recordsCount",
}
_FLAGS: Final = {
    record_layout.TIMESTAMP_TYPE_FLAG: "LogAppendTime",
    record_layout.TRANSACTIONAL_FLAG: "transactional",
    record_layout.CONTROL_FLAG: "control",
    record_layout.DELETE_HORIZON_FLAG: "deleteHorizon",
}
_TIMES: Final = {"base_timestamp", "max_timestamp"}


def parts(batch: RecordBatch, offset: int | None = None) -> Iterator[FieldBytes]:
    """Yield the fields of a batch: its header, then the record at ``offset``, or all. A plain message comes whole.

    A malformed record of magic 2 and all bytes after its start are yielded as one field. Records that cannot be
    decompressed are one field too. Then, and at a malformed message, DamageError is raised.
    """
    if isinstance(batch, Batch):
        yield from _header(batch)
        yield from _records(batch, offset)
    elif isinstance(batch, Message):
        yield from _entry(batch.raw, batch.position, unpacked=False)
        if batch.codec != compression.NONE:
            yield from _inner(batch, offset)


def hidden(parts: Iterable[FieldBytes], hashed: Callable[[bytes], str] | None = None) -> Iterator[FieldBytes]:
    """Yield fields without the bytes of payloads. ``hashed`` adds a hash to their ``value``; then header keys stay."""
    for part in parts:
        if part.name not in PAYLOADS or (hashed is not None and part.name == "headerKey"):
            yield part
        elif hashed is None or not part.data:
            yield part._replace(data=b"")
        else:
            yield part._replace(data=b"", value=f"{part.value}, {hashed(bytes(part.data))}")


def masked(parts: Iterable[FieldBytes], mask: Mask) -> Iterator[FieldBytes]:
    """Yield fields without the bytes of unread records and of the values that ``mask`` changes."""
    key: bytes | None = None
    for part in parts:
        if part.name == "keyLength":
            key = None
        elif part.name == "key":
            key = bytes(part.data)
        is_hidden = part.name == "value" and mask(key, bytes(part.data)) != part.data
        if is_hidden or part.name == _UNREAD:
            yield part._replace(data=b"", value=f"{part.value}, {HIDDEN}")
        else:
            yield part


def _header(batch: Batch) -> Iterator[FieldBytes]:
    raw = bytes(batch.raw[: record_layout.BATCH_HEADER.size])
    for name, (start, end) in record_layout.BATCH_HEADER.spans.items():
        value = getattr(batch.header, name)
        shown = str(value)
        if name in _TIMES:
            shown = _time(value)
        elif name == "crc":
            shown = _checksum(value, crc32c(batch.raw[record_layout.CRC_COVERS_FROM :]))
        elif name == "attributes":
            shown = _attributes(value)
        yield FieldBytes(batch.position + start, raw[start:end], _NAMES.get(name, name), shown)


def _records(batch: Batch, offset: int | None) -> Iterator[FieldBytes]:
    try:
        data, at = batch.payload()
    except DamageError:
        start = record_layout.BATCH_HEADER.size
        packed = bytes(batch.raw[start:])
        yield FieldBytes(batch.position + start, packed, _UNREAD, f"{len(packed)} bytes that cannot be decompressed")
        raise
    unpacked = batch.codec != compression.NONE
    place = 0 if unpacked else batch.position
    if unpacked:
        size = batch.size - record_layout.BATCH_HEADER.size
        shown = f"{size} bytes of {compression.NAMES[batch.codec]}, {len(data)} decompressed"
        yield FieldBytes(batch.position + record_layout.BATCH_HEADER.size, b"", "records", shown)
    for _ in range(batch.count):
        try:
            record, end = v2.read_record(data, at, len(data), batch.header, None)
        except DamageError:
            rest = bytes(data[at:])
            yield FieldBytes(place + at, rest, _UNREAD, f"{len(rest)} bytes that cannot be read", unpacked)
            raise
        is_wanted = offset is None or record.offset == offset
        del record  # frees the record, which may be large
        if is_wanted:
            for part in _record(data, at, batch):
                yield part._replace(position=place + part.position, unpacked=unpacked)
        at = end


def _record(data: Bytes, at: int, batch: Batch) -> Iterator[FieldBytes]:

    def number(name: str, shown: str = "{}", bits: int = 32) -> tuple[FieldBytes, int, int]:
        value, end = read_varint(data, at, bits)
        return FieldBytes(at, bytes(data[at:end]), name, shown.format(value)), value, end

    def sized(*names: str, is_control: bool) -> Iterator[FieldBytes]:
        nonlocal at
        for name in names:
            part, size, at = number(f"{name}Length")
            yield part if size >= 0 else part._replace(value=f"{size}: null")
            if size >= 0:
                content = memoryview(data)[at : at + size]
                yield FieldBytes(at, content, name, _control(name, bytes(content)) if is_control else _shown(content))
                at += size

    part, _, at = number("length", "{} bytes follow")
    yield part
    yield FieldBytes(at, bytes(data[at : at + 1]), "attributes", str(data[at]))
    at += 1
    part, delta, at = number("timestampDelta", bits=64)
    yield part._replace(value=f"{delta}: {_time(batch.base_timestamp + delta)}")
    part, delta, at = number("offsetDelta")
    yield part._replace(value=f"{delta}: offset {batch.base_offset + delta}")
    yield from sized("key", "value", is_control=batch.is_control)
    part, count, at = number("headersCount")
    yield part
    for _ in range(count):
        yield from sized("headerKey", "headerValue", is_control=False)


def _entry(raw: Bytes, position: int, *, unpacked: bool) -> Iterator[FieldBytes]:

    def fixed(name: str, at: int, size: int) -> FieldBytes:
        data = raw[at : at + size]
        if len(data) < size:
            raise DamageError("message size", f"the message ends before its {name}", position=at, expected=size)
        return FieldBytes(position + at, data, name, str(int.from_bytes(data, "big", signed=True)), unpacked)

    for name, (start, end) in record_layout.LOG_OVERHEAD.spans.items():
        yield fixed("messageSize" if name == "size" else name, start, end - start)
    at = record_layout.LOG_OVERHEAD.size
    magic = raw[record_layout.MAGIC_POSITION : record_layout.UP_TO_MAGIC]
    header = record_layout.MESSAGE_HEADER_1 if magic == b"\1" else record_layout.MESSAGE_HEADER_0
    packed = 0
    for name, (start, end) in header.spans.items():
        part = fixed(name, at + start, end - start)
        if name == "crc":
            covered = raw[record_layout.MAGIC_POSITION :]
            part = part._replace(value=_checksum(int.from_bytes(part.data, "big"), crc32(covered)))
        elif name == "attributes":
            packed = part.data[0] & record_layout.CODEC_MASK
            part = part._replace(value=_attributes(part.data[0]))
        elif name == "timestamp":
            part = part._replace(value=_time(int(part.value)))
        yield part
    at += header.size
    for name in ("key", "value"):
        part = fixed(f"{name}Length", at, 4)
        size = int.from_bytes(part.data, "big", signed=True)
        yield part if size >= 0 else part._replace(value=f"{size}: null")
        at += 4
        if size >= 0:
            content = raw[at : at + size]
            if name == "value" and packed:
                shown = f"{size} bytes of {compression.NAMES[packed] if packed < len(compression.NAMES) else packed}"
                yield FieldBytes(position + at, b"", name, shown, unpacked)
            else:
                yield FieldBytes(position + at, content, name, _shown(content), unpacked)
            at += size


def _inner(wrapper: Message, offset: int | None) -> Iterator[FieldBytes]:
    try:
        data = wrapper.unpacked(wrapper.codec)
    except DamageError:
        packed = bytes(wrapper.value or b"")
        shown = f"{len(packed)} bytes that cannot be decompressed"
        yield FieldBytes(wrapper.end - len(packed), packed, _UNREAD, shown)
        raise
    at = 0
    for inner in wrapper.inner_messages(data):
        if offset is None or inner.offset == offset:
            yield from _entry(data[at : at + inner.size], at, unpacked=True)
        at += inner.size


def _time(value: int) -> str:
    text = iso(value)
    return str(value) if text is None else f"{value} ({text})"


def _checksum(stored: int, computed: int) -> str:
    return f"{stored} (right)" if stored == computed else f"{stored} (WRONG: the bytes have {computed})"


def _attributes(value: int) -> str:
    codec = value & record_layout.CODEC_MASK
    words = [compression.NAMES[codec] if codec < len(compression.NAMES) else f"codec {codec}"]
    words += [word for flag, word in _FLAGS.items() if value & flag]
    return f"{value} ({', '.join(words)})"


def _control(name: str, content: bytes) -> str:
    try:
        if name == "key":
            key = control.read_key(content)
            return f"version {key.version}, type {key.type} ({control.TYPES.get(key.type, 'unknown')})"
        marker = control.read_marker(content)
    except DamageError as damage:
        return damage.reason
    return f"version {marker.version}, coordinatorEpoch {marker.coordinator_epoch}"


def _shown(content: Bytes) -> str:
    return f"{len(content)} bytes"
