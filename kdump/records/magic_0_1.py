"""Magic 0 and 1: one message per entry. A wrapper is a message whose value is a compressed set of messages.

Magic 0: Kafka 0.8. Magic 1 (KIP-32, Kafka 0.10) adds the timestamp and its type, and relative inner offsets (KIP-31).
Source: ``org.apache.kafka.common.record.LegacyRecord`` and ``AbstractLegacyRecordBatch``.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import DamageError
from kdump.formats.record import Record
from kdump.formats.record_layout import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MESSAGE_HEADER_0,
    MESSAGE_HEADER_1,
    SMALLEST_MESSAGE,
    TIMESTAMP_TYPE_FLAG,
)
from kdump.primitives import compression
from kdump.primitives.crc import crc32
from kdump.primitives.wire import to_int64
from kdump.records.record_batch import RecordBatch, RecordBytes, end_of_lz4_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.primitives.wire import Bytes

_ATTRIBUTES: Final = MESSAGE_HEADER_0.offsets["attributes"]
_MAGIC: Final = MESSAGE_HEADER_0.offsets["magic"]
_TIMESTAMP: Final = MESSAGE_HEADER_1.offsets["timestamp"]


class LyingSizeError(DamageError):
    """The size of a key or value (``found``) exceeds the bytes left in its message (``room``)."""

    room = 0


class Message(RecordBatch):
    """One entry of magic 0 or 1: a message, or a wrapper around a compressed set of messages.

    As in Kafka, an entry is a batch and, if it is not compressed, also its only record. Fields after the attributes are
    read on first use, because DumpLogSegments prints the fields before an invalid one. They raise DamageError if the
    message is too short. Inner messages of magic 1 have their wrapper's timestamp type and, for LogAppendTime, its
    timestamp.
    """

    __slots__ = (
        "_data",
        "_header",
        "_key_size",
        "_magic",
        "_newest",
        "_offset",
        "_timestamp",
        "_valid",
        "_value_size",
        "_wrapper",
    )

    def __init__(
        self,
        data: memoryview,
        offset: int,
        position: int,
        wrapper: Message | None = None,
        newest: int | None = None,
        *,
        limit: int = compression.DEFAULT_LIMIT,
    ) -> None:
        """Read the message in ``data``, without its log overhead. ``position`` is where the log overhead begins.

        ``newest``: imitate an old release with this newest magic (0 or 1). It reads a message of a higher or unknown
        magic like one of ``newest``; :attr:`magic` stays as stored.
        """
        self.position = position
        self.size = LOG_OVERHEAD.size + len(data)
        self._data = data
        self._offset = offset
        self._wrapper = wrapper
        self._newest = newest
        self.limit = limit
        self._header = MESSAGE_HEADER_0.read(data)
        self._magic = self._header.magic
        self._valid: bool | None = None
        self._timestamp: int | None = None
        self._key_size: int | None = None
        self._value_size: int | None = None
        if newest is not None and (newest == 0 or self._magic != 0):
            self._magic = newest

    def _int(self, position: int, size: int, field: str) -> int:
        if position + size > len(self._data):
            raise DamageError(
                "message size",
                f"the message ends before its {field}",
                position=LOG_OVERHEAD.size + position,
                expected=f"{size} bytes",
                found=max(0, len(self._data) - position),
            )
        return int.from_bytes(self._data[position : position + size], "big", signed=True)

    def read_as(self, newest: int) -> Message:
        return Message(self._data, self._offset, self.position, self._wrapper, newest, limit=self.limit)

    @property
    def magic(self) -> int:
        return self._header.magic

    @property
    def offset(self) -> int:
        """The offset as stored, or made absolute for an inner message of magic 1."""
        return self._offset

    @property
    def base_offset(self) -> int:
        return self._offset if self.codec == compression.NONE else next(self.messages()).offset

    @property
    def last_offset(self) -> int:
        return self._offset

    @property
    def crc(self) -> int:
        return self._header.crc

    @property
    def crc_valid(self) -> bool:
        if self._valid is None:
            self._valid = len(self._data) >= SMALLEST_MESSAGE[0] and self.crc == crc32(self._data[_MAGIC:])
        return self._valid

    @property
    def attributes(self) -> int:
        return self._header.attributes

    @property
    def timestamp_type(self) -> int | None:
        if self._magic == 0:
            return None
        if self._magic != 1:
            raise DamageError(
                "magic",
                f"magic {self._magic} is unknown",
                position=MAGIC_POSITION,
                expected="0, 1 or 2",
                found=self._magic,
            )
        if self._wrapper is not None:
            return self._wrapper.timestamp_type
        return LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_FLAG else CREATE_TIME

    @property
    def timestamp(self) -> int:
        """The timestamp in ms; -1 in magic 0."""
        if self._magic == 0:
            return -1
        if self._magic == 1 and self._wrapper is not None and self._wrapper.timestamp_type == LOG_APPEND_TIME:
            return self._wrapper.timestamp
        if self._timestamp is None:
            self._timestamp = self._int(_TIMESTAMP, 8, "timestamp")
        return self._timestamp

    @property
    def max_timestamp(self) -> int:
        return self.timestamp

    @property
    def raw(self) -> memoryview:
        return memoryview(write_entry(self._offset, self._data))

    @property
    def _attributes_position(self) -> int:
        return LOG_OVERHEAD.size + _ATTRIBUTES

    @property
    def _key_position(self) -> int:
        return MESSAGE_HEADER_0.size if self._magic == 0 else MESSAGE_HEADER_1.size

    @property
    def key_size(self) -> int:
        """The key's size in bytes as stored; below 0 for null."""
        if self._key_size is None:
            self._key_size = self._int(self._key_position, 4, "key size")
        return self._key_size

    @property
    def value_size(self) -> int:
        """The value's size in bytes as stored; below 0 for null."""
        if self._value_size is None:
            self._value_size = self._int(self._value_position, 4, "value size")
        return self._value_size

    @property
    def _value_position(self) -> int:
        return self._key_position + 4 + max(0, self.key_size)

    @property
    def key(self) -> bytes | None:
        return self._sized(self._key_position, self.key_size, "key")

    @property
    def value(self) -> bytes | None:
        return self._sized(self._value_position, self.value_size, "value")

    def _sized(self, position: int, size: int, name: str) -> bytes | None:
        if size < 0:
            return None
        start = position + 4
        if start + size > len(self._data):
            room = max(0, len(self._data) - start)
            error = LyingSizeError(
                f"{name} size",
                f"the {name} does not fit into the message",
                position=LOG_OVERHEAD.size + position,
                expected=f"at most {room} bytes",
                found=size,
            )
            error.room = room
            raise error
        return bytes(self._data[start : start + size])

    def record(self) -> Record:
        """Return the message as a record. Raises DamageError if a field does not fit into the message."""
        smallest = SMALLEST_MESSAGE[min(max(self._magic, 0), 1)]
        if len(self._data) < smallest:
            raise DamageError(
                "message size",
                f"a message of magic {self._magic} is too short for its own header",
                position=LOG_OVERHEAD.offsets["size"],
                expected=f"{smallest} bytes or more",
                found=len(self._data),
            )
        return Record(
            self._offset,
            self.timestamp,
            self.key,
            self.value,
            (),
            None,
            self.attributes & 0xFF,
            self.key_size,
            self.value_size,
            self.size,
            self.crc,
            self.crc_valid,
        )

    def records(self, limit: int | None = None) -> Iterator[Record]:
        for message in self.messages(limit):
            yield message.record()

    def messages(self, limit: int | None = None, *, in_chunks: bool = False) -> Iterator[Message]:
        """Yield this message or, for a wrapper, those inside. ``in_chunks`` and errors: as in :meth:`unpacked`."""
        codec = self.codec
        if codec == compression.NONE:
            yield self
            return
        yield from self.inner_messages(self.unpacked(codec, limit, in_chunks=in_chunks))

    def inner_messages(self, data: memoryview) -> Iterator[Message]:
        """Yield the messages in the decompressed ``data`` of this wrapper. Raises DamageError."""
        last = deque(frames(data), maxlen=1)  # like Kafka, check all sizes before the first message
        if not last:
            raise DamageError("inner messages", "a compressed message set has no messages", position=LOG_OVERHEAD.size)
        base = self.inner_base(last[0].offset)
        for frame in frames(data):
            message = self._inside(data, frame, base)
            if message.codec != compression.NONE:
                raise DamageError("codec", "a message inside a wrapper is compressed again", position=LOG_OVERHEAD.size)
            yield message

    def unpacked(self, codec: int, limit: int | None = None, *, in_chunks: bool = False) -> memoryview:
        """Return the message set inside this wrapper, decompressed with ``codec``. Raises DamageError and LimitError.

        With ``in_chunks`` the set ends at an empty LZ4 block that Kafka from 3.6 on takes for the end of the stream.
        """
        if self._magic not in (0, 1):
            raise DamageError("magic", f"a wrapper has magic {self._magic}", position=MAGIC_POSITION, expected="0 or 1")
        if codec == compression.ZSTD:
            raise DamageError(
                "codec", f"magic {self._magic} does not allow zstd", position=self._attributes_position, found=codec
            )
        value = self.value
        if value is None:
            raise DamageError("value size", "the value of a wrapper is null", position=LOG_OVERHEAD.size)
        limit = self.limit if limit is None else limit
        if codec != compression.LZ4:
            return memoryview(compression.decompress(codec, value, magic=self._magic, limit=limit))
        unpacked, empty = compression.decompress_lz4(value, magic=self._magic, limit=limit)
        data = memoryview(unpacked)
        if not (in_chunks and empty):
            return data
        messages = (RecordBytes(start - LOG_OVERHEAD.size, start, end) for _, start, end in frames(data))
        return data[: end_of_lz4_chunks(empty, messages)]

    def inner(self, data: memoryview, at: int, base: int) -> Message:
        """Return the message at position ``at`` of the decompressed ``data``; ``base`` is from :meth:`inner_base`."""
        return self._inside(data, frame_at(data, at), base)

    def _inside(self, data: memoryview, frame: Frame, base: int) -> Message:
        return Message(data[frame.start : frame.end], to_int64(frame.offset + base), self.position, self)

    def inner_base(self, last_inner: int) -> int:
        """Return the number to add to inner offsets: 0 in magic 0, and if the producer left the wrapper's offset at 0.

        Inner offsets are relative in magic 1 (KIP-31). Raises DamageError if the number is below 0.
        """
        if self._magic == 0 or self._offset == 0:
            return 0
        if self._offset < last_inner:
            raise DamageError(
                "wrapper offset",
                "the wrapper's offset is below that of its last inner message",
                expected=f"{last_inner} or more",
                found=self._offset,
            )
        return self._offset - last_inner


class Frame(NamedTuple):
    """The offset and byte range of a message in a decompressed set, without its log overhead."""

    offset: int
    start: int
    end: int


def frame_at(data: memoryview, at: int) -> Frame:
    """Return the frame whose log overhead is at position ``at``. It may extend past the end of ``data``."""
    offset, size = LOG_OVERHEAD.read(data, at)
    start = at + LOG_OVERHEAD.size
    return Frame(offset, start, start + size)


def frames(data: memoryview) -> Iterator[Frame]:
    """Yield the frames of a decompressed set, except a truncated last one. Raises DamageError for a too small size."""
    position = 0
    while position + LOG_OVERHEAD.size <= len(data):
        frame = frame_at(data, position)
        size = frame.end - frame.start
        if size < SMALLEST_MESSAGE[0]:
            raise DamageError(
                "message size",
                "an inner message is smaller than any message can be",
                position=position + LOG_OVERHEAD.offsets["size"],
                expected=f"{SMALLEST_MESSAGE[0]} or more",
                found=size,
            )
        if frame.end > len(data):
            return
        yield frame
        position = frame.end


def write_entry(offset: int, message: Bytes) -> bytes:
    return b"".join([offset.to_bytes(8, "big", signed=True), len(message).to_bytes(4, "big"), message])
