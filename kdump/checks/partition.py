"""The indexes of a whole partition, segment after segment, so that transactions are followed from one to the next."""

from __future__ import annotations

import posixpath
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from kdump.checks.indexes import LOG_ADVICE, IndexCheck, PartitionState, SegmentFiles, log_finding
from kdump.errors import DamageError, UnreadableError
from kdump.findings import Finding, Level
from kdump.log_dirs.file_names import INDEX_NAME, INDEXES, LOG, SEGMENT_NAME, beside_log
from kdump.log_dirs.finder import Finder, Wanted, raise_it
from kdump.records.record_batch import RecordBatch
from kdump.segments.regions import Trailing
from kdump.segments.resync import zero_tail
from kdump.segments.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.log_dirs.files import OpenSource
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.segments.regions import Damage, Padding, Region

    Tap: TypeAlias = Callable[[Segment, OpenSource], Iterator[Region]]

TRIES: Final = 3
"""How often the youngest segment is looked at while a broker may write to it."""
PAUSE: Final = 0.1
"""Seconds that a broker is given to write to ``.txnindex`` what it wrote to the log."""


@dataclass(frozen=True, slots=True)
class CheckedSegment:
    """What was found in one segment; ``size`` is what was read of its log, in bytes."""

    name: str
    size: int
    batches: int
    findings: tuple[Finding, ...]


def check(
    partition: Partition,
    read: Callable[[int], None] = lambda _: None,
    tap: Tap | None = None,
    fail: Callable[[UnreadableError], None] = raise_it,
) -> Iterator[CheckedSegment]:
    """Check the indexes of a partition's segments in order, then those without a log.

    ``read`` is told how many more bytes of log were read. ``tap`` gives the regions of a segment instead of the walk,
    and is read to its end: so another check takes part in the same pass. ``fail`` is told of files that cannot be
    read, which are passed over; by default that raises.
    """
    segments, orphans = _with_logs(partition, fail)
    newest = _newest(partition, segments)
    state = PartitionState()
    for segment in segments:
        active = segment.base_offset is None or segment.base_offset >= newest
        try:
            checked, state = _segment(segment, state, read, tap, fail, active=active)
        except UnreadableError as error:
            fail(error)
            state = PartitionState()
            continue
        yield checked
    for stem, contents in orphans.items():
        files = SegmentFiles(
            name=partition.files.shown(posixpath.join(partition.folder, f"{stem}.{LOG}")),
            base_offset=int(stem.split("-")[0]),
            log_size=None,
            index=contents.get("index"),
            timeindex=contents.get("timeindex"),
            txnindex=contents.get("txnindex"),
            active=False,
        )
        yield CheckedSegment(files.name, 0, 0, tuple(IndexCheck(files).finish()))


def _with_logs(
    partition: Partition, fail: Callable[[UnreadableError], None]
) -> tuple[list[Segment], dict[str, dict[str, bytes]]]:
    """Return the segments, also those of index files that were named alone, and the index files without a log."""
    named = [found for entry in partition.others if (found := INDEX_NAME.fullmatch(entry.name))]
    logs = {posixpath.basename(segment.path) for segment in partition.segments}
    missing: list[str] = []
    orphans: dict[str, dict[str, bytes]] = {}
    for found in named:
        log = f"{found['stem']}.{LOG}"
        path = posixpath.join(partition.folder, log)
        if log in logs:
            continue
        if partition.files.look(path) is not None:
            logs.add(log)
            missing.append(path)
            continue
        try:
            with partition.files.open(posixpath.join(partition.folder, found[0])) as source:
                orphans.setdefault(found["stem"], {})[found["suffix"]] = source.read(0, source.size)
        except UnreadableError as error:
            fail(error)
    finder = Finder(Wanted(leftovers=True, max_batch_bytes=partition.limit), fail=fail)
    more = [segment for held in finder.find(missing, partition.files) for segment in held.segments]
    segments = sorted([*partition.segments, *more], key=lambda segment: (segment.base_offset or 0, segment.path))
    return segments, orphans


def _newest(partition: Partition, segments: list[Segment]) -> int:
    """Return the base offset of the folder's youngest segment: the only one that a broker writes to."""
    found = [segment.base_offset or 0 for segment in segments]
    try:
        names = [SEGMENT_NAME.fullmatch(entry.name) for entry in partition.files.entries(partition.folder)]
    except UnreadableError:  # a folder may be closed to us and its files open: the youngest that was named counts
        names = []
    return max([*found, *(int(name["offset"]) for name in names if name and name["state"] is None)], default=0)


def _segment(
    segment: Segment,
    state: PartitionState,
    read: Callable[[int], None],
    tap: Tap | None,
    fail: Callable[[UnreadableError], None],
    *,
    active: bool,
) -> tuple[CheckedSegment, PartitionState]:
    """Check one segment. While a broker appends, a marker may be in the log before its entry is in ``.txnindex``."""
    for left in reversed(range(TRIES if active else 1)):
        after = state.copy()
        contents: dict[str, bytes | None] = {}
        closed: set[object] = set()
        for suffix in INDEXES:
            try:
                contents[suffix] = _beside(segment, suffix)
            except UnreadableError as error:  # the log can be checked without it
                fail(error)
                closed.add(error.path)
                contents[suffix] = None
        with segment.open() as source:
            files = SegmentFiles(
                name=segment.name,
                base_offset=segment.base_offset or 0,
                log_size=source.size,
                active=active,
                **contents,
            )
            checker = IndexCheck(files, after)
            regions = tap(segment, source) if tap else walk(source)
            ends = _walk(checker, source, regions, read)
            for _ in regions if tap else ():
                pass
        if not checker.lacks_transactions:
            break
        if left:
            time.sleep(PAUSE)
    readable = not any(finding.level is Level.LOG for finding in ends)
    derived = (finding for finding in checker.finish(readable=readable) if finding.file not in closed)
    findings = (*ends, *derived)
    return CheckedSegment(segment.name, source.size, checker.batches, findings), after


def _beside(segment: Segment, suffix: str) -> bytes | None:
    """Return the content of another file of the segment, also of one that came after the folder was listed."""
    content = segment.sibling(suffix)
    path = beside_log(segment.path, suffix)
    if content is not None or not segment.path.endswith(f".{LOG}") or segment.files.look(path) is None:
        return content
    with segment.files.open(path) as source:
        return source.read(0, source.size)


def _walk(
    checker: IndexCheck, source: OpenSource, regions: Iterator[Region], read: Callable[[int], None]
) -> list[Finding]:
    """Feed the batches; return what is to be said of where they end."""
    told = 0
    for region in regions:
        if not isinstance(region, RecordBatch):
            return _end(checker, source, region)
        try:
            checker.batch(region)
        except DamageError as damage:
            return [log_finding(checker.files.name, region.position, damage)]
        if region.end - told >= 1 << 20:
            read(region.end - told)
            told = region.end
    read(source.size - told)
    return []


def _end(checker: IndexCheck, source: OpenSource, region: Damage | Padding | Trailing) -> list[Finding]:
    """Say what follows the last batch: zeros, a batch that is still being written, or damage."""
    files = checker.files
    if zero_tail(source, region.position, source.size) == region.position:
        text = f"{region.size} bytes of zeros follow the last batch: a preallocated file that was not trimmed"
        level, advice = Level.REMARK, ""
    elif isinstance(region, Trailing) and files.active:
        text = f"the last {region.size} bytes are the beginning of a batch: copied while it was written, or torn"
        level, advice = Level.REMARK, "A broker that starts on this copy cuts them off."
    elif isinstance(region, Trailing):
        text = f"the last {region.size} bytes are no whole batch"
        level, advice = Level.LOG, LOG_ADVICE
    else:
        reason = getattr(region, "reason", "it is damaged")
        text = f"the log cannot be read from byte {region.position} on: {reason}"
        level, advice = Level.LOG, LOG_ADVICE
    return [
        Finding(level=level, file=files.name, kind="end of log", text=text, position=region.position, advice=advice)
    ]
