"""A record and its headers, as a batch of any magic holds them."""

from __future__ import annotations

from kdump.primitives.named_tuple import NamedTuple


class Header(NamedTuple):
    """A record header (KIP-82): a key, and a value that may be null."""

    key: bytes
    value: bytes | None


class Record(NamedTuple):
    """One record. ``None`` is Kafka's null for key and value, and "this magic has no such field" elsewhere.

    ``timestamp`` is in ms; ``size`` is the record's whole size in bytes in the (decompressed) batch; ``key_size`` and
    ``value_size`` are the sizes as stored (-1 for null in magic 2; magic 0 and 1 may hold any negative number).
    ``crc`` and ``crc_valid`` stand only in magic 0 and 1, where each message has its own checksum.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    sequence: int | None
    attributes: int
    key_size: int
    value_size: int
    size: int
    crc: int | None = None
    crc_valid: bool | None = None
