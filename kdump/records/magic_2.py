"""Magic 2: the record batch of KIP-98 (Kafka 0.11), and its records.

Sources: KIP-98, ``org.apache.kafka.common.record.DefaultRecordBatch`` and ``DefaultRecord``; delete horizon: KIP-534.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump import kernel
from kdump.errors import DamageError, many
from kdump.formats.record import MANY_HEADERS, Header, ManyHeaders, Record
from kdump.formats.record_layout import (
    BATCH_HEADER,
    CODEC_MASK,
    CONTROL_FLAG,
    CRC_COVERS_FROM,
    CREATE_TIME,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
)
from kdump.primitives import compression
from kdump.primitives.crc import crc32c
from kdump.primitives.wire import (
    INT32_MAX,
    Bytes,
    read_varint,
    to_int32,
    to_int64,
    write_varint,
)
from kdump.records.record_batch import RecordBatch, RecordBytes, end_of_lz4_bytes, end_of_lz4_chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
if kernel.COMPILED:
    from kdump.kernel.records import Records

AHEAD: Final = 16 << 20
"""Maximum decompressed size, in bytes, of a batch that a thread decompresses ahead of the reader."""
CHUNK: Final = 1000
"""Maximum number of records that compiled code reads per call."""
_HELD: Final = 1 << 16
"""Maximum number of records of a compressed batch to hold in memory. The records of a larger batch are read twice."""
_HELD_BYTES: Final = 4 << 20
"""Maximum size in bytes of the records to hold. A record header of 3 bytes takes about 110 bytes as an object."""


class Batch(RecordBatch):
    """A magic 2 batch. ``data`` starts with the bytes of the batch, and has at least the 61 bytes of a header."""

    __slots__ = ("_data", "_empty", "_unpacked", "_valid", "header")

    def __init__(
        self,
        data: memoryview,
        position: int,
        size: int,
        limit: int = compression.DEFAULT_LIMIT,
        *,
        crc_valid: bool | None = None,
    ) -> None:
        self.header = BATCH_HEADER.read(data)
        self.position = position
        self.size = size
        self._data = data
        self.limit = limit
        self._unpacked: bytes | None = None
        self._empty: list[int] = []
        self._valid = crc_valid

    @property
    def magic(self) -> int:
        return self.header.magic

    @property
    def base_offset(self) -> int:
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        return to_int64(self.header.base_offset + self.header.last_offset_delta)

    @property
    def count(self) -> int:
        return self.header.records_count

    @property
    def crc(self) -> int:
        return self.header.crc

    @property
    def crc_valid(self) -> bool:
        if self._valid is None:
            covered = self._data[CRC_COVERS_FROM : self.size]
            self._valid = self.size >= BATCH_HEADER.size and self.header.crc == crc32c(covered)
        return self._valid

    @property
    def attributes(self) -> int:
        return self.header.attributes

    @property
    def timestamp_type(self) -> int:
        return LOG_APPEND_TIME if self.header.attributes & TIMESTAMP_TYPE_FLAG else CREATE_TIME

    @property
    def base_timestamp(self) -> int:
        """The timestamp in ms to which the records' deltas are added. It is the delete horizon if the batch has one."""
        return self.header.base_timestamp

    @property
    def max_timestamp(self) -> int:
        return self.header.max_timestamp

    @property
    def partition_leader_epoch(self) -> int:
        return self.header.partition_leader_epoch

    @property
    def producer_id(self) -> int:
        return self.header.producer_id

    @property
    def producer_epoch(self) -> int:
        return self.header.producer_epoch

    @property
    def base_sequence(self) -> int:
        return self.header.base_sequence

    @property
    def last_sequence(self) -> int:
        base = self.header.base_sequence
        return base if base == -1 else increment_sequence(base, self.header.last_offset_delta)

    @property
    def is_transactional(self) -> bool:
        return bool(self.header.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        return bool(self.header.attributes & CONTROL_FLAG)

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.header.base_timestamp if self.header.attributes & DELETE_HORIZON_FLAG else None

    @property
    def raw(self) -> memoryview:
        return self._data[: self.size]

    @property
    def _attributes_position(self) -> int:
        return CRC_COVERS_FROM

    def payload(self, limit: int | None = None, *, in_chunks: bool = True) -> tuple[Bytes, int]:
        """Return a buffer with the decompressed records, and their position in it.

        ``in_chunks`` selects Kafka's LZ4 reader from 3.6 on (:func:`kdump.records.record_batch.end_of_lz4_chunks`).
        Raises DamageError if the batch is shorter than its header, its codec is unknown or its stream is malformed, and
        LimitError for a compressed batch above ``limit`` bytes (default: own limit).
        """
        if self.size < BATCH_HEADER.size:
            raise DamageError(
                "batch size", "the batch is smaller than its header", expected=BATCH_HEADER.size, found=self.size
            )
        if self.codec == compression.NONE:
            return self._data[: self.size], BATCH_HEADER.size
        limit = self.limit if limit is None else limit
        if self._unpacked is not None and len(self._unpacked) <= limit:
            data, empty = self._unpacked, self._empty
        else:
            data, empty = self._decompress(limit)
        if empty:
            end_of = end_of_lz4_chunks if in_chunks else end_of_lz4_bytes
            end = end_of(empty, _record_bytes(data, self.header.records_count))
            if end is not None:
                raise DamageError("compression", f"the lz4 stream is broken: an empty block ends it at byte {end}")
        return data, 0

    def _decompress(self, limit: int) -> tuple[bytes, list[int]]:
        """Return the records, and the positions of empty LZ4 blocks in them. Raises DamageError."""
        stream = self._data[BATCH_HEADER.size : self.size]
        if self.codec == compression.LZ4:
            return compression.decompress_lz4(stream, limit=limit)
        return compression.decompress(self.codec, stream, limit=limit), []

    def unpack(self, room: int = AHEAD) -> int:
        """Decompress the records for a later :meth:`payload`. Return their size, 0 if there is nothing to decompress.

        Raises DamageError for a malformed stream, LimitError for more bytes than ``room`` or the batch's own limit.
        """
        if self.size >= BATCH_HEADER.size and self.header.attributes & CODEC_MASK and self.header.records_count:
            data, self._empty = self._decompress(min(room, self.limit))
            self._unpacked = bytes(data)
        return self.unpacked_size

    def uncompressed_size(self) -> int | None:
        """Return the decompressed size of the records in bytes, or None as :func:`compression.uncompressed_size`."""
        return compression.uncompressed_size(self.codec, self._data[BATCH_HEADER.size : self.size])

    @property
    def unpacked_size(self) -> int:
        """The size of the records that :meth:`unpack` decompressed, in bytes."""
        return len(self._unpacked or b"")

    def records(self, limit: int | None = None, *, in_chunks: bool = True) -> Iterator[Record]:
        if self.size >= BATCH_HEADER.size and self.count == 0:
            return iter(())
        data, start = self.payload(limit, in_chunks=in_chunks)
        if self.count < 0:
            raise DamageError(
                "record count",
                "the batch has a negative number of records",
                position=BATCH_HEADER.offsets["records_count"],
                expected="0 or more",
                found=self.count,
            )
        if self.codec == compression.NONE:
            return self._read(data, start)
        if self.count <= _HELD and len(data) - start <= _HELD_BYTES:
            return iter(list(self._read(data, start)))
        for _ in self._read(data, start):  # check all records before the first is yielded
            pass
        return self._read(data, start)

    def _read(self, data: Bytes, position: int) -> Iterator[Record]:
        """Yield the records. Compiled code reads them up to a malformed one; :meth:`_read_on` reads the rest."""
        done = 0
        for records in self._read_well_formed(data, position) if kernel.COMPILED else ():
            done += len(records)
            position += sum([record.size for record in records])
            yield from records
        yield from self._read_on(data, position, done)

    def _read_well_formed(self, data: Bytes, position: int) -> Iterator[list[Record]]:
        reader = Records()
        more = reader.begin(data, position, self.header, ())
        while more:
            records = reader.records(CHUNK)
            yield records
            more = len(records) == CHUNK

    def _read_on(self, data: Bytes, position: int, done: int) -> Iterator[Record]:
        """Yield the records from ``position`` on; ``done`` records come before it. Raises DamageError."""
        header = self.header
        appended = header.max_timestamp if self.timestamp_type == LOG_APPEND_TIME else None
        end = len(data)
        for number in range(done + 1, header.records_count + 1):
            try:
                record, position = read_record(data, position, end, header, appended)
            except DamageError as damage:
                damage.reason = f"record {number} of {header.records_count}: {damage.reason}"
                raise
            if number == header.records_count and position != end:
                raise DamageError(
                    "record count",
                    f"bytes are left after the last of {header.records_count} records",
                    position=position,
                    expected="none",
                    found=end - position,
                )
            yield record


def _record_bytes(data: bytes, count: int) -> Iterator[RecordBytes]:
    """Yield the positions of records in a decompressed batch. The first one whose size does not fit is the last."""
    start = 0
    for _ in range(count):
        try:
            size, content = read_varint(data, start)
        except DamageError:  # read_record() reports it
            return
        yield RecordBytes(start, content, content + size)
        if size < 0 or content + size > len(data):
            return
        start = content + size


def increment_sequence(sequence: int, increment: int) -> int:
    """Return ``sequence + increment``, where 0 follows 2147483647 (``DefaultRecordBatch.incrementSequence``)."""
    room = to_int32(INT32_MAX - increment)
    if sequence > room:
        return to_int32(increment - (INT32_MAX - sequence) - 1)
    return to_int32(sequence + increment)


def read_record(data: Bytes, start: int, end: int, header: BatchHeader, appended: int | None) -> tuple[Record, int]:
    """Return the record at ``start`` and the position after it; ``end`` is the end of the records.

    ``appended`` is the batch's log append time in ms, or None under CreateTime. Raises DamageError where Kafka's
    reader throws, such as at a size or a header count that does not fit, or fields that do not fill the record.
    """
    size, position = read_varint(data, start)
    body = position
    stop = body + size
    if size < 0 or stop > end:
        raise DamageError(
            "record size",
            "its size does not fit into the batch",
            position=start,
            expected=f"0 to {end - body} bytes",
            found=size,
        )
    if body == stop:
        raise DamageError("record size", "it has no attributes", position=body, expected="1 byte or more", found=0)
    attributes = data[body]
    timestamp_delta, position = read_varint(data, body + 1, 64)
    offset_delta, position = read_varint(data, position)
    key_size, position = read_varint(data, position)
    key, position = _read_bytes(data, position, key_size, stop, "key")
    value_size, position = read_varint(data, position)
    value, position = _read_bytes(data, position, value_size, stop, "value")
    count_position = position
    header_count, position = read_varint(data, position)
    headers: Sequence[Header] = ()
    if header_count:
        if header_count < 0 or header_count > stop - position:
            raise DamageError(
                "header count",
                f"it claims {many(header_count, 'header')}",
                position=count_position,
                expected=f"0 to {max(0, stop - position)}",
                found=header_count,
            )
        headers, position = _read_headers(data, position, header_count, stop)
    if position != stop:
        raise DamageError(
            "record size", "the size of its fields is wrong", position=start, expected=size, found=position - body
        )
    sequence = increment_sequence(header.base_sequence, offset_delta) if header.base_sequence >= 0 else -1
    timestamp = appended if appended is not None else to_int64(header.base_timestamp + timestamp_delta)
    return Record(
        to_int64(header.base_offset + offset_delta),
        timestamp,
        key,
        value,
        headers,
        sequence,
        attributes,
        -1 if key is None else key_size,
        -1 if value is None else value_size,
        stop - start,
    ), stop


def _read_bytes(data: Bytes, position: int, size: int, stop: int, name: str) -> tuple[bytes | None, int]:
    """Read ``size`` bytes; any negative size is null, as in ``Utils.readBytes``."""
    if size < 0:
        return None, position
    after = position + size
    if after > stop:
        raise DamageError(
            f"{name} size",
            f"its {name} does not fit into the record",
            position=position,
            expected=f"at most {max(0, stop - position)} bytes",
            found=size,
        )
    return bytes(data[position:after]), after


def _read_headers(data: Bytes, position: int, count: int, stop: int) -> tuple[Sequence[Header], int]:
    headers, first = [], position
    for _ in range(count):
        size, after = read_varint(data, position)
        if size < 0:
            raise DamageError(
                "header key size", "a header's key is null", position=position, expected="0 or more", found=size
            )
        key, position = _read_bytes(data, after, size, stop, "header key")
        size, position = read_varint(data, position)
        value, position = _read_bytes(data, position, size, stop, "header value")
        if count <= MANY_HEADERS:
            headers.append(Header(key or b"", value))
    if count > MANY_HEADERS:
        return ManyHeaders(bytes(data[first:position]), count), position
    return tuple(headers), position


def write_record(
    *,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[bytes, bytes | None]] = (),
    attributes: int = 0,
) -> bytes:
    headers = tuple(headers)
    body = bytearray([attributes])
    body += write_varint(timestamp_delta) + write_varint(offset_delta)
    body += _sized(key) + _sized(value) + write_varint(len(headers))
    for name, content in headers:
        body += _sized(name) + _sized(content)
    return write_varint(len(body)) + bytes(body)


def _sized(data: bytes | None) -> bytes:
    return write_varint(-1) if data is None else write_varint(len(data)) + data


def write_batch(header: BatchHeader, records: bytes) -> bytes:
    """Return a batch of ``records``, already compressed with the header's codec. Compute length and checksum."""
    sized = header._replace(
        length=BATCH_HEADER.size - BATCH_HEADER.offsets["partition_leader_epoch"] + len(records), crc=0
    )
    covered = BATCH_HEADER.write(sized)[CRC_COVERS_FROM:] + records
    return BATCH_HEADER.write(sized._replace(crc=crc32c(covered)))[:CRC_COVERS_FROM] + covered
