"""Offset and time indexes as DumpLogSegments prints them.

Their entries are held against the log while they are printed; the run reports at its end what does not fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.dump_log_segments import confirmed_entries, index_checks
from kdump.dump_log_segments.java_paths import absolute, offset_in_name, sibling
from kdump.dump_log_segments.mapped_file import content
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.time_index import NO_TIMESTAMP, TimeIndex
from kdump.log_dirs.file_names import INDEX, LOG
from kdump.log_dirs.local import LocalFile

if TYPE_CHECKING:
    from kdump.dump_log_segments.run import DumpRun

OFFSET_ENTRY: Final = "offset: {offset} position: {position}"
TIME_ENTRY: Final = "timestamp: {timestamp} offset: {offset}"
SANE: Final = "{path} passed sanity check."


def dump_offset_index(run: DumpRun, path: str) -> None:
    """Print an ``.index`` and hold each entry against the log beside it."""
    base, state = offset_in_name(path), run.state
    with LocalFile(f"{absolute(path).split('.')[0]}.{LOG}" if state.log_up_to_first_dot else sibling(path, LOG)) as log:
        index = OffsetIndex(content(path), base)
        if not index.count and state.empty_index:
            run.print(state.empty_index.format(path=path))
        elif run.options.index_sanity_check:
            index_checks.offset_index_is_sane(state, path, index)
            run.print(SANE.format(path=path))
        else:
            _offset_entries(run, index_checks.OffsetEntries(run, path, log, index), index)


def _offset_entries(run: DumpRun, entries: index_checks.OffsetEntries, index: OffsetIndex) -> None:
    every = not run.options.verify_index_only
    for slot in confirmed_entries.slots(entries.doubtful, every=every):
        relative, position = index.stored(slot)
        offset = index.base_offset + relative
        ends = slot > 0 and relative == 0
        if ends and run.state.stops_before_checks:
            return
        if entries.doubtful[slot]:
            entries.check(offset, position)
        if ends:
            return
        if every:
            run.print(OFFSET_ENTRY.format(offset=offset, position=position))


def dump_time_index(run: DumpRun, path: str) -> None:
    """Print a ``.timeindex`` and hold each entry against the log, which is found through the ``.index``."""
    base = offset_in_name(path)
    with LocalFile(sibling(path, LOG)) as log:
        offsets = OffsetIndex(content(sibling(path, INDEX)), base)
        index = TimeIndex(content(path), base)
        if run.options.index_sanity_check:
            index_checks.time_index_is_sane(path, index)
            run.print(SANE.format(path=path))
        else:
            _time_entries(run, index_checks.TimeEntries(run, path, log, index, offsets), index)


def _time_entries(run: DumpRun, entries: index_checks.TimeEntries, index: TimeIndex) -> None:
    every = not run.options.verify_index_only
    for slot in confirmed_entries.slots(entries.doubtful, every=every):
        entry = index[slot]
        ends = slot > 0 and entry.offset == index.base_offset
        if ends and run.state.stops_before_checks:
            return
        if entries.doubtful[slot]:
            previous = index[slot - 1].timestamp if slot else NO_TIMESTAMP
            if entries.check(entry, previous) and ends:
                return
        if every:
            run.print(TIME_ENTRY.format(timestamp=entry.timestamp, offset=entry.offset))
