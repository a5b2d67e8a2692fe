"""The cleaner's map of keys to their newest offsets, and a table of the sizes of keys. Both hold digests of keys.

:func:`offset_map` and :func:`key_sizes` return compiled classes if the compiled kernel is in use. Compiled classes
use other digests; all parts together have the same results unless digests collide. Source: Kafka's class
SkimpyOffsetMap.
"""

from __future__ import annotations

import hashlib
from heapq import nlargest
from os import urandom
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias
from zlib import crc32

from kdump import kernel

if TYPE_CHECKING:
    from kdump.kernel import digests as compiled

    Judged: TypeAlias = tuple[int, int, list[int], int, list[tuple[int, int]]]

    AnyFacts: TypeAlias = "KeyFacts | compiled.FactBuffer"
    AnyOffsetMap: TypeAlias = "OffsetMap | compiled.OffsetTable"
    AnyKeySizes: TypeAlias = "KeySizes | compiled.SizeTable"

DIGEST: Final = 16
"""Size of a digest in bytes. In :class:`KeyFacts` a shorter key is its own digest."""
REASONS: Final = ("stays", "superseded", "tombstone", "aborted", "keyless", "marker")
"""The outcomes of a record by number. Compiled code uses the same numbers."""
_STAYS, _SUPERSEDED, _TOMBSTONE, _ABORTED, _KEYLESS, MARKER = range(6)


class KeyPart(NamedTuple):
    """One of ``of`` parts of keys, ``number`` from 0. Part 0 also judges the records without a key."""

    number: int
    of: int
    secret: bytes
    """The secret of compiled digests, so that keys in a hostile file do not collide."""


def all_keys() -> KeyPart:
    return KeyPart(0, 1, urandom(16))


def offset_map(since: int, most: int, keys: int, part: KeyPart) -> AnyOffsetMap:
    if not kernel.COMPILED:
        return OffsetMap(since, most, keys, part)
    from kdump.kernel import digests as compiled

    return compiled.OffsetTable(since, most, keys, part)


def key_sizes(keys: int, part: KeyPart) -> AnyKeySizes:
    if not kernel.COMPILED:
        return KeySizes(keys, part)
    from kdump.kernel import digests as compiled

    return compiled.SizeTable(keys, part)


class KeyFacts:
    """A list of facts of records: offset, size in bytes, digest of the key, and whether the record has a value.

    After the facts of a batch comes one more fact. It has only the last offset of the batch.
    """

    def __init__(self, part: KeyPart) -> None:
        self._part = part
        self._facts: list[tuple[int] | tuple[int, int, bytes | None, bool]] = []

    def __len__(self) -> int:
        return len(self._facts)

    def __getitem__(self, at: int) -> tuple[int] | tuple[int, int, bytes | None, bool]:
        return self._facts[at]

    def clear(self) -> None:
        self._facts.clear()

    def add(self, offset: int, size: int, key: bytes | None, has_value: bool) -> None:
        self._facts.append((offset, size, None if key is None else _digest(key), has_value))

    def end_batch(self, last_offset: int) -> None:
        self._facts.append((last_offset,))

    def _is_ours(self, digest: bytes) -> bool:
        """Return whether the key with this digest belongs to the table's part of the keys."""
        return self._part.of == 1 or crc32(digest) % self._part.of == self._part.number


class OffsetMap(KeyFacts):
    """The last added offset of each key. The log was added up to ``latest``. ``most`` is the capacity in keys."""

    def __init__(self, since: int, most: int, keys: int, part: KeyPart) -> None:  # noqa: ARG002  a dict makes its own room
        """:meth:`put` ignores offsets below ``since``. ``keys`` limits the first growth of the compiled class."""
        super().__init__(part)
        self._since, self.most, self.latest = since, most, since - 1
        self._newest: dict[bytes, int] = {}

    @property
    def keys(self) -> int:
        return len(self._newest)

    def put(self, begin: int, end: int) -> int:
        """Add the facts ``begin`` to ``end`` - 1. Return the index after the last one that fits."""
        for at in range(begin, min(end, len(self._facts))):
            offset, *fact = self._facts[at]
            digest = fact[1] if fact else None
            if offset < self._since or (fact and digest is None):
                continue
            if isinstance(digest, bytes):
                if len(self._newest) >= self.most:
                    return at
                if self._is_ours(digest):
                    self._newest[digest] = offset
            self.latest = offset
        return min(end, len(self._facts))

    def judge(self, *, discards: bool, keeps: bool, listed: bool) -> Judged:
        """Count the records up to ``latest`` whose keys belong to the part of this map, by outcome.

        Returns five values: the numbers of records, of tombstones, and of records by index in REASONS; the bytes of
        superseded records; and with ``listed`` the offset and reason of each removed record. ``discards``: the cleaning
        removes all records, also those after ``latest``. ``keeps``: it keeps the newest tombstone of a key.
        """
        records = tombstones = size = 0
        gone = [0] * len(REASONS)
        removed: list[tuple[int, int]] = []
        for fact in self._facts:
            if len(fact) == 1 or (fact[0] > self.latest and not discards):
                continue
            offset, bytes_, digest, has_value = fact
            if not (self._part.number == 0 if digest is None else self._is_ours(digest)):
                continue
            why = _ABORTED if discards else self._why(offset, digest, keeps=keeps or has_value)
            records += 1
            tombstones += not has_value
            gone[why] += 1
            size += bytes_ if why == _SUPERSEDED else 0
            if listed and why:
                removed.append((offset, why))
        return records, tombstones, gone, size, removed

    def _why(self, offset: int, digest: bytes | None, *, keeps: bool) -> int:
        """Return the outcome of a record as an index in REASONS. ``keeps``: the newest record of a key stays."""
        if digest is None:
            return _KEYLESS
        newest = self._newest.get(digest)
        if newest is not None and offset < newest:
            return _SUPERSEDED
        return _STAYS if keeps else _TOMBSTONE


class KeySizes(KeyFacts):
    """The bytes and records of each key, and its first record: the indexes of the batch and of the record in it."""

    def __init__(self, keys: int, part: KeyPart) -> None:  # noqa: ARG002  a dict makes its own room
        super().__init__(part)
        self._sizes: dict[bytes, tuple[int, int, int, int]] = {}
        self._batch = self._record = 0

    @property
    def keys(self) -> int:
        return len(self._sizes)

    def measure(self) -> None:
        for fact in self._facts:
            if len(fact) == 1:
                self._batch += 1
                self._record = 0
                continue
            _, size, digest, _ = fact
            if digest is not None and self._is_ours(digest):
                known, batch, record, count = self._sizes.get(digest, (0, -self._batch, -self._record, 0))
                self._sizes[digest] = (known + size, batch, record, count + 1)
            self._record += 1

    def largest(self, most: int) -> list[tuple[int, int, int, int]]:
        """Return (bytes, -batch, -record, number of records) of the ``most`` keys with the most bytes, in any order.

        The indexes are negated, so that of two keys with equal bytes the earlier one ranks higher.
        """
        return nlargest(most, self._sizes.values())


def _digest(key: bytes) -> bytes:
    return key if len(key) < DIGEST else hashlib.md5(key, usedforsecurity=False).digest()
