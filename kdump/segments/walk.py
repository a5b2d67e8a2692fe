"""Finds the batches of a segment as Kafka's reader does, up to the first damage. ``resync`` also reads after damage.

A DamageError becomes a Damage region here. Files are read in blocks of at most 1 MiB, or of one larger batch, and
never mapped, because a segment may shrink while it is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump import kernel
from kdump.errors import DamageError
from kdump.formats import record_layout
from kdump.records import log_entry, magic_0_1, magic_2
from kdump.records.log_entry import is_sound
from kdump.records.record_batch import RecordBatch
from kdump.segments import batch_runs
from kdump.segments.regions import Damage, Region, Trailing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.log_dirs.files import Source
    from kdump.segments.regions import RunKinds


BLOCK: Final = 1 << 20
"""Largest block in bytes, except for a larger batch."""
FIRST_BLOCK: Final = 1 << 16
"""Size in bytes of the first block, also after a jump. Each further block is twice as large, up to BLOCK."""
ACROSS: Final = 1 << 16
"""Bytes that are read after the end of a part, because its last batch usually ends there."""


class Window:
    """Holds one block of a source in memory, from byte ``start`` on. Views of earlier blocks stay valid."""

    def __init__(self, source: Source, end: int) -> None:
        self._source = source
        self._end = end
        self._next = FIRST_BLOCK
        self._until: int | None = None
        self.start = 0
        self.block = memoryview(b"")

    def narrow(self, start: int, until: int) -> None:
        """Prepare for reads from ``start`` to ``until``: use large blocks, at most to ACROSS bytes after ``until``."""
        self.start, self._until, self._next = start, until + ACROSS, BLOCK

    def load(self, position: int, size: int) -> tuple[memoryview, int]:
        """Return a block with ``size`` bytes from ``position`` on (fewer at the end), and their start in the block."""
        at = position - self.start
        if at < 0 or at + size > len(self.block):
            if not 0 <= at <= len(self.block) + BLOCK:  # a jump: the caller may need little there
                self._next = FIRST_BLOCK
            ahead = self._next if self._until is None else min(self._next, self._until - position)
            wanted = min(max(size, ahead), self._end - position)
            self._next = min(BLOCK, self._next * 2)
            self.block = memoryview(self._source.read(position, max(0, wanted)))
            self.start, at = position, 0
        return self.block, at

    def view(self, position: int, size: int) -> memoryview:
        """Return ``size`` bytes from ``position`` on, fewer at the end."""
        block, at = self.load(position, size)
        return block[at : at + size]

    def ahead(self, position: int, least: int) -> memoryview:
        """Return the bytes in memory from ``position`` on: at least ``least`` bytes, fewer only at the end."""
        block, at = self.load(position, min(least, self._end - position))
        return block[at:]


def walk(
    source: Source,
    start: int = 0,
    end: int | None = None,
    window: Window | None = None,
    *,
    limit: int | None = None,
    runs: RunKinds | None = None,
    stop: int | None = None,
) -> Iterator[Region]:
    """Yield the regions from ``start`` to ``end`` (bytes) as Kafka's reader finds them.

    The regions are batches, then Trailing bytes or the Damage at which the reader stops. As in ``DumpLogSegments``, any
    magic and every possible length up to ``limit`` bytes (default: the source's limit) is accepted, and checksums of
    single batches are not verified. If kdump is compiled, consecutive batches of the kinds ``runs`` that start before
    byte ``stop`` may be one region (:mod:`kdump.segments.batch_runs`).
    """
    end = source.size if end is None else min(end, source.size)
    limit = source.limit if limit is None else limit
    window = window or Window(source, end)
    if runs is None or not kernel.COMPILED:
        return _walk(start, end, window, limit)
    return _walk_runs(start, end, window, limit, runs, stop)


def _walk_runs(start: int, end: int, window: Window, limit: int, runs: RunKinds, stop: int | None) -> Iterator[Region]:
    more = True
    while more:
        more = False
        for region in _walk(start, end, window, limit):
            found: batch_runs.Run | batch_runs.Entries | None = None
            if isinstance(region, magic_2.Batch):
                if not region.header.attributes & runs.excluded:
                    found = batch_runs.run(region, window.block, window.start, stop)
            elif runs.messages and isinstance(region, magic_0_1.Message):
                found = batch_runs.entries(region, window.block, window.start, stop)
            if found is not None:
                yield found
                start, more = found.end, found.end < end
                break
            yield region


def _walk(start: int, end: int, window: Window, limit: int) -> Iterator[Region]:
    position, last = start, end - record_layout.UP_TO_MAGIC
    block, at = window.block, position - window.start
    while position < last:
        if not 0 <= at <= len(block) - record_layout.UP_TO_MAGIC:
            block, at = window.load(position, record_layout.UP_TO_MAGIC)
            if len(block) - at < record_layout.UP_TO_MAGIC:  # the file has shrunk since its size was taken
                break
        offset, size, _, magic = record_layout.ENTRY_START.struct.unpack_from(block, at)
        try:
            log_entry.check_size(size)
            if position > end - record_layout.LOG_OVERHEAD.size - size:
                break
            log_entry.check_limit(size, limit)
            needed = log_entry.needs(size, magic)
            if needed > len(block) - at:
                block, at = window.load(position, needed)
                if len(block) - at < record_layout.LOG_OVERHEAD.size + size:
                    break
            region = log_entry.read(block[at : at + needed], offset, size, magic, position, limit=limit)
        except DamageError as damage:
            yield as_region(damage, position, end - position)
            return
        yield region
        position += region.size
        at += region.size
    if position < end:
        yield Trailing(position, end - position)


def is_sound_at(source: Source, position: int) -> bool:
    """Return whether a valid batch starts at a position (bytes)."""
    region = next(walk(source, position), None)
    return isinstance(region, RecordBatch) and is_sound(region)


def as_region(damage: DamageError, position: int, size: int) -> Damage:
    """Return damage as a region of ``size`` bytes at ``position``. ``damage.position`` is relative to ``position``."""
    return Damage(position, size, damage.kind, damage.reason, position + damage.position, damage.expected, damage.found)


def in_batch(damage: DamageError, batch: RecordBatch) -> Damage:
    """Return a record's damage as damage of its batch. Its ``at`` is the wrong field, or a compressed batch's start."""
    if batch.attributes & record_layout.CODEC_MASK and damage.kind != "codec":
        damage = DamageError(damage.kind, damage.reason, expected=damage.expected, found=damage.found)
    return as_region(damage, batch.position, batch.size)
