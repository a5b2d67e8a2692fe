"""Which entries of an index the kernel finds right beyond doubt, so that the general path has only the others to judge.

Without the kernel, or where a release judges entries by other rules, there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump import kernel
from kdump.formats.record_layout import LOG_OVERHEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.dump_log_segments.run import DumpRun
    from kdump.formats.offset_index import OffsetIndex
    from kdump.formats.time_index import TimeIndex
    from kdump.kernel.indexes import EntryCheck
    from kdump.log_dirs.local import LocalFile

    Hold = Callable[[EntryCheck, int, int, bytearray], None]

AT_ONCE: Final = 512
"""Entries that are checked between two chances for Ctrl-C."""
NEAR: Final = 1 << 18
"""Bytes of log from one entry to the next up to which what lies between is fetched too, ahead of time."""


def readable(run: DumpRun, log: LocalFile) -> tuple[int, int]:
    """Return the end of a log, and the greatest size of a batch in it, for what is told from headers alone.

    The end is 0 for a release that asks for more than the last offset of a batch.
    """
    most = run.options.max_message_size
    usable = most > 0 and not run.state.names_first_offset and not run.dialect.message
    held = run.options.max_batch_bytes + LOG_OVERHEAD.size
    return (log.size if usable else 0), min(most if run.state.slice_holds_batch else log.size, held)


def by_offset(run: DumpRun, log: LocalFile, index: OffsetIndex) -> bytearray:
    """Return a byte for each entry of an ``.index``, 0 where it is right beyond doubt."""
    end, most = readable(run, log)
    if not end or not kernel.COMPILED:
        return bytearray(b"\1") * index.count
    stretch = 0
    if index.filled and log.size // index.filled <= NEAR:
        stretch = 2 * AT_ONCE * (log.size // index.filled)

    def hold(held: EntryCheck, first: int, stop: int, flags: bytearray) -> None:
        if stretch:
            log.expect(index.stored(first)[1], stretch)
        held.by_offset(index.data, first, stop, flags)

    return _doubtful(log, end, most, index, hold)


def by_time(run: DumpRun, log: LocalFile, index: TimeIndex, offsets: OffsetIndex) -> bytearray:
    """Return a byte for each entry of a ``.timeindex``, 0 where it is right beyond doubt.

    ``offsets`` is the ``.index`` through which the release finds the batches: it must rise to its end for this.
    """
    most = min(log.size, run.options.max_batch_bytes + LOG_OVERHEAD.size)
    if run.dialect.message or not kernel.COMPILED or offsets.zero_tail or not offsets.rises():
        return bytearray(b"\1") * index.count

    def hold(held: EntryCheck, first: int, stop: int, flags: bytearray) -> None:
        held.by_time(index.data, offsets.data, first, stop, flags)

    return _doubtful(log, log.size, most, index, hold)


def _doubtful(log: LocalFile, end: int, most: int, index: OffsetIndex | TimeIndex, hold: Hold) -> bytearray:
    from kdump.kernel.indexes import EntryCheck

    flags = bytearray(b"\1") * index.count
    fd = log.descriptor
    if fd is None:
        return flags
    held = EntryCheck(fd, end, most, index.base_offset)
    for first in range(0, index.filled, AT_ONCE):
        hold(held, first, min(first + AT_ONCE, index.filled), flags)
    return flags


def slots(flags: bytearray, *, every: bool) -> Iterator[int]:
    """Yield the slots of all entries, or of the doubtful ones alone."""
    if every:
        yield from range(len(flags))
        return
    slot = flags.find(1)
    while slot >= 0:
        yield slot
        slot = flags.find(1, slot + 1)
