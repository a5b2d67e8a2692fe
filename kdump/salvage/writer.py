"""Writing what was had back: fresh segments with fresh indexes that a broker can open, and an account of the rest.

    DIR/logs/TOPIC-PARTITION/       segments, indexes, leader-epoch-checkpoint, partition.metadata
    DIR/lost+found/TOPIC-PARTITION/ the bytes that could not be placed, and account.json

(A broker does not start on a log dir that holds a folder of another name.)
"""

from __future__ import annotations

import json
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import DamageError, UnreadableError
from kdump.formats import leader_epoch, record_layout
from kdump.formats.leader_epoch import EpochEntry
from kdump.formats.sparse_index import DEFAULT_INTERVAL, MAX_RELATIVE_OFFSET
from kdump.log_dirs import file_names
from kdump.log_dirs.finder import raise_it
from kdump.primitives.terminal import path_text
from kdump.records.record_batch import RecordBatch
from kdump.recovery.index_builder import IndexBuilder
from kdump.salvage.merge import UNREADABLE, places
from kdump.segments import read, resync
from kdump.segments.batch_runs import Run, of_data
from kdump.transaction_replay.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kdump.log_dirs.partition import Partition
    from kdump.primitives.wire import Bytes
    from kdump.salvage.merge import BatchPlace, LeftOutRange, Merged

VERSION: Final = 2
"""The version of account.json: 1 called missing offsets otherwise."""
COPIED: Final = 1 << 20


class SegmentLimits(NamedTuple):
    """``segment`` is the greatest size of a segment in bytes, ``interval`` that between two index entries."""

    segment: int = 1 << 30
    interval: int = DEFAULT_INTERVAL


class WrittenLog(NamedTuple):
    """What came out: segments, batches, bytes of log, and records as the batches' headers say; None below magic 2."""

    segments: int
    batches: int
    size: int
    records: int | None = None
    below_log_start: BelowLogStart | None = None


class BelowLogStart(NamedTuple):
    """Batches that end below the log start offset: their number, bytes, and first and last offset."""

    batches: int
    bytes: int
    first_offset: int
    last_offset: int


def write(
    merged: Merged,
    name: str,
    copies: list[Partition],
    out: Path,
    limits: SegmentLimits,
    *,
    log_start: int | None = None,
    fail: Callable[[UnreadableError], None] = raise_it,
) -> WrittenLog:
    """Write one partition below ``out``. ``fail`` is told of a partition.metadata that cannot be read.

    ``log_start`` is the log start offset, None where no checkpoint has it: what lies below it was removed by
    DeleteRecords or by retention.

    Raises UnreadableError, and OSError where the disk refuses.
    """
    folder = out / "logs" / name
    folder.mkdir(parents=True)
    replay = Replay()
    epochs: list[EpochEntry] = []
    segments = size = 0
    records: int | None = 0
    for run in _runs(merged.placed, limits.segment):
        segments += 1
        builder = IndexBuilder(run[0].base_offset, interval=limits.interval)
        stem = f"{run[0].base_offset:020}"
        with (folder / f"{stem}.{file_names.LOG}").open("xb") as file:
            for region, data in _content(run):
                at = file.tell()
                file.write(data)
                if isinstance(region, Run):
                    replay.add_data(region)
                    builder.add_run(region, at)
                    count: int | None = region.records(0, region.count)
                else:
                    try:
                        ended = replay.add(region) if region.magic >= record_layout.MAGIC_2 else None
                    except DamageError:  # a marker of another kind than a transaction's: no index names it
                        ended = None
                    builder.add(region, ended, position=at)
                    count = region.count
                records = None if records is None or count is None else records + count
            size += file.tell()
        for place in run:
            if place.epoch >= 0 and (not epochs or place.epoch > epochs[-1].epoch):
                epochs.append(EpochEntry(place.epoch, place.base_offset))
        indexes = builder.finish()
        (folder / f"{stem}.{file_names.INDEX}").write_bytes(indexes.offset_index)
        (folder / f"{stem}.{file_names.TIME_INDEX}").write_bytes(indexes.time_index)
        if indexes.txn_index:
            (folder / f"{stem}.{file_names.TXN_INDEX}").write_bytes(indexes.txn_index)
    (folder / file_names.LEADER_EPOCHS).write_bytes(leader_epoch.encode(epochs))
    _copy_metadata(copies, folder, fail)
    written = WrittenLog(segments, len(merged.placed), size, records, _below(merged.placed, log_start))
    _account(merged, name, copies, out / "lost+found" / name, written, log_start)
    return written


def _below(placed: list[BatchPlace], log_start: int | None) -> BelowLogStart | None:
    """Return what ends below the log start offset, None where nothing does or none is known."""
    found = [] if log_start is None else [place for place in placed if place.last_offset < log_start]
    if not found:
        return None
    return BelowLogStart(len(found), sum(place.size for place in found), found[0].base_offset, found[-1].last_offset)


def _runs(placed: list[BatchPlace], limit: int) -> Iterator[list[BatchPlace]]:
    """Yield what goes into each segment."""
    run: list[BatchPlace] = []
    size = 0
    for place in placed:
        if run and (size + place.size > limit or place.last_offset - run[0].base_offset > MAX_RELATIVE_OFFSET):
            yield run
            run, size = [], 0
        run.append(place)
        size += place.size
    if run:
        yield run


def _content(run: list[BatchPlace]) -> Iterator[tuple[RecordBatch | Run, Bytes]]:
    """Yield the batches with their bytes, data that are alike in one go; a source stays open as long as they are its.

    Raises UnreadableError where a file is not any more what it was when its batches were placed.
    """
    at = 0
    while at < len(run):
        segment = run[at].segment
        with segment.open() as source:
            while at < len(run) and run[at].segment is segment:
                start = end = run[at].position
                stop = at
                while stop < len(run) and run[stop].segment is segment and run[stop].position == end:
                    end += run[stop].size
                    stop += 1
                for region in of_data(read.read_runs(source, start, end, on_error="stop")):
                    found = list(places(segment, [region]))
                    if found != run[at : at + len(found)] or not isinstance(region, (Run, RecordBatch)):
                        raise _changed(run[at])
                    at += len(found)
                    yield region, region.raw
                if at < stop:
                    raise _changed(run[at])


def _changed(place: BatchPlace) -> UnreadableError:
    where = f"byte {place.position}: it has changed since kdump read it first"
    return UnreadableError(place.segment.name, where, "salvage a copy that nobody writes to")


def _copy_metadata(copies: list[Partition], folder: Path, fail: Callable[[UnreadableError], None]) -> None:
    for copy in copies:
        for entry in copy.others:
            if entry.name == file_names.PARTITION_METADATA:
                try:
                    with copy.files.open(entry.path) as source:
                        data = source.read(0, source.size)
                except UnreadableError as error:
                    fail(error)
                    continue
                (folder / entry.name).write_bytes(data)
                return


def _account(
    merged: Merged, name: str, copies: list[Partition], folder: Path, written: WrittenLog, log_start: int | None
) -> None:
    """Write account.json, and the bytes of what was not placed."""
    folder.mkdir(parents=True)
    ranges = []
    for number, lost in enumerate(merged.lost):
        saved = f"{number:06}-{lost.segment.path.rpartition('/')[2]}@{lost.position}"
        if not _save(lost, folder / saved):
            saved = ""
        ranges.append(
            {
                "file": path_text(lost.segment.name),
                "position": lost.position,
                "size": lost.size,
                "kind": lost.kind,
                "reason": path_text(lost.reason),
                "missingFrom": lost.missing_from,
                "missingUntil": lost.missing_until,
                "belowLogStart": _is_below(lost.missing_until, log_start),
                "savedAs": path_text(saved) or None,
            }
        )
    placed, below = merged.placed, written.below_log_start
    account = {
        "version": VERSION,
        "partition": path_text(name),
        "copies": [path_text(copy.files.shown(copy.folder)) for copy in copies],
        "firstOffset": placed[0].base_offset if placed else None,
        "lastOffset": placed[-1].last_offset if placed else None,
        "logStartOffset": log_start,
        "belowLogStart": None
        if below is None
        else dict(zip(("batches", "bytes", "firstOffset", "lastOffset"), below, strict=True)),
        "batches": written.batches,
        "bytes": written.size,
        "duplicates": merged.duplicates,
        "paddingBytes": merged.padding,
        "missingOffsets": list(_missing(merged.gaps, log_start)),
        "lost": ranges,
    }
    (folder / "account.json").write_text(json.dumps(account, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _missing(gaps: list[range], log_start: int | None) -> Iterator[dict[str, int | bool | None]]:
    """Yield the missing offsets; what begins below the log start offset and ends above it is told in two parts."""
    for gap in gaps:
        inside = [log_start] if log_start is not None and gap.start < log_start < gap.stop else []
        for start, until in pairwise([gap.start, *inside, gap.stop]):
            yield {"missingFrom": start, "missingUntil": until, "belowLogStart": _is_below(until, log_start)}


def _is_below(until: int | None, log_start: int | None) -> bool | None:
    """Tell whether offsets before ``until`` are all below the log start offset, None where nothing tells."""
    return None if until is None or log_start is None else until <= log_start


def _save(lost: LeftOutRange, path: Path) -> bool:
    """Copy lost bytes; zeros alone are not worth a file."""
    if lost.kind == UNREADABLE:
        return False
    with lost.segment.open() as source:
        end = lost.position + lost.size
        if resync.zero_tail(source, lost.position, end) == lost.position:
            return False
        with closing(path.open("xb")) as file:
            for at in range(lost.position, end, COPIED):
                file.write(source.read(at, min(COPIED, end - at)))
    return True
