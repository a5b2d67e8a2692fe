"""An independent writer of Kafka's formats, for valid and broken inputs. It shares no code with kdump."""

from __future__ import annotations

import gzip
import struct
import zlib

import crcmod.predefined

crc32c = crcmod.predefined.mkPredefinedCrcFun("crc-32c")


def crc32(data: bytes) -> int:
    return zlib.crc32(data)


def varint(value: int) -> bytes:
    """Zigzag, least significant seven bits first."""
    raw = (value << 1) ^ (value >> 63)
    out = b""
    while True:
        low, raw = raw & 0x7F, raw >> 7
        if not raw:
            return out + bytes([low])
        out += bytes([low | 0x80])


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(key, value, *, offset=0, timestamp=0, headers=(), attributes=0) -> bytes:
    """A magic 2 record; ``offset`` and ``timestamp`` are deltas."""
    body = struct.pack(">b", attributes) + varint(timestamp) + varint(offset) + sized(key) + sized(value)
    body += varint(len(headers)) + b"".join(sized(k) + sized(v) for k, v in headers)
    return varint(len(body)) + body


def batch(
    records,
    *,
    base_offset=0,
    base_timestamp=0,
    max_timestamp=None,
    attributes=0,
    leader_epoch=0,
    producer_id=-1,
    producer_epoch=-1,
    base_sequence=-1,
    count=None,
    last_offset_delta=None,
    magic=2,
    crc=None,
    size=None,
    payload=None,
) -> bytes:
    """A magic 2 batch of encoded records; every field can be set to a wrong value."""
    payload = b"".join(records) if payload is None else payload
    count = len(records) if count is None else count
    covered = struct.pack(
        ">hiqqqhii",
        attributes,
        count - 1 if last_offset_delta is None else last_offset_delta,
        base_timestamp,
        base_timestamp if max_timestamp is None else max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    covered += payload
    crc = crc32c(covered) if crc is None else crc
    length = 9 + len(covered) if size is None else size
    return struct.pack(">qiibI", base_offset, length, leader_epoch, magic, crc) + covered


def endless(base_offset) -> bytes:
    """A batch whose last record ends in a header whose value size is an endless varint."""
    body = b"\0\0\0" + sized(b"k") + sized(b"v") + varint(1) + sized(b"h") + b"\xff" * 6 + b"\1"
    return batch([varint(len(body)) + body], base_offset=base_offset)


def reaching(base_offset, size=50) -> bytes:
    """Two batches: the header key of the first claims to extend into the second, up to an endless varint."""
    endless = b"\xff" * 6
    second = batch([record(None, b"A" * size + endless + b"z" * 20)], base_offset=base_offset + 1)
    body = b"\0\0\0" + sized(None) + sized(None) + varint(1) + varint(second.index(endless))
    return batch([varint(len(body)) + body], base_offset=base_offset) + second


def message(magic, key, value, *, timestamp=-1, attributes=0, crc=None) -> bytes:
    """A message of magic 0 or 1, without its log overhead."""
    covered = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        covered += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">I", zlib.crc32(covered) if crc is None else crc) + covered


def entry(offset: int, body: bytes) -> bytes:
    return struct.pack(">qi", offset, len(body)) + body


def wrapper(magic, offset, inner, *, timestamp=-1, attributes=1) -> bytes:
    """A gzip wrapper entry around ``inner``, a list of (offset, message)."""
    value = gzip.compress(b"".join(entry(o, m) for o, m in inner), mtime=0)
    return entry(offset, message(magic, None, value, timestamp=timestamp, attributes=attributes))
