"""Checks the indexes of a partition and, with a LogCheck, its logs in the same pass (:func:`check`)."""

from __future__ import annotations

import posixpath
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.checks.indexes import LOG_ADVICE, IndexCheck, PartitionState, SegmentFiles, log_finding
from kdump.errors import DamageError, Reporter, StoreError, UnreadableError, raise_it
from kdump.findings import Finding, Level
from kdump.findings.codes import Code
from kdump.log_dirs.file_names import INDEX, INDEX_NAME, INDEXES, LOG, SEGMENT_NAME, SWAP, TXN_INDEX, beside_log
from kdump.log_dirs.files import read_file
from kdump.log_dirs.finder import Finder, Wanted
from kdump.records.record_batch import Batches
from kdump.segments import resync, walk
from kdump.segments.regions import DATA, Trailing
from kdump.segments.resync import padding, zero_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Protocol

    from kdump.checks.log import LogCheck
    from kdump.log_dirs.files import OpenSource
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.segments.regions import Damage, Padding, Region

    class Tap(Protocol):
        """Receives what a check reads from a partition, for other questions about the partition."""

        parsed: dict[str, Any]
        """Name of a file beside the log -> its content if valid; of a time index only the last timestamp in ms."""

        def __call__(self, segment: Segment, regions: Iterator[Region]) -> Iterator[Region]:
            """Receive the regions of a segment, and yield them again."""

    class SegmentChecker(Protocol):
        """A check that receives the regions of a segment in order."""

        def add(self, batches: Batches) -> None: ...
        def end(self, region: Damage | Padding | Trailing) -> None: ...


TRIES: Final = 3
"""Maximum number of reads of the active segment, while ``.txnindex`` lacks the entry of a marker."""
PAUSE: Final = 0.1
"""Seconds to wait for the entry that a broker adds to ``.txnindex`` after a marker."""


class _Options(NamedTuple):
    read: Callable[[int], None]
    log: LogCheck | None
    fail: Callable[[UnreadableError], None]
    tap: Tap | None
    jobs: int


class CheckedSegment(NamedTuple):
    """A segment's findings on its indexes and the log's end. The LogCheck has the others. ``size``: bytes of log."""

    name: str
    size: int
    batches: int
    findings: tuple[Finding, ...]


def check(
    partition: Partition,
    read: Callable[[int], None] = lambda _: None,
    log: LogCheck | None = None,
    fail: Callable[[UnreadableError], None] = raise_it,
    tap: Tap | None = None,
    jobs: int = 1,
) -> Iterator[CheckedSegment]:
    """Check the indexes of a partition's segments in order, then index files without a log.

    ``log`` checks the batches in the same pass, and ``tap`` receives batches and damage. Without ``log``, only indexes
    and the end of the log are checked, and ``tap`` is not called. If the user left out a segment, its neighbours are
    not compared with each other. ``read`` receives progress in bytes of log. ``fail`` gets unreadable files (the
    default raises). ``jobs`` processes may share a large segment with a ``log`` and no ``tap``.
    """
    segments, orphans = _with_logs(partition, fail)
    newest = _newest(partition, segments, fail)
    last = partition.segments[-1].path if partition.segments else None
    state = PartitionState()
    options = _Options(read, log, fail, tap, jobs)
    above: int | None = None
    bases = [segment.base_offset or 0 for segment in segments]
    for number, (segment, base) in enumerate(zip(segments, bases, strict=True)):
        if above is not None and any(above < one < base for one in partition.unnamed):
            state = PartitionState()
            if log is not None:
                log.forget()
        above = base
        active = segment.base_offset is None or segment.base_offset >= newest
        is_last = last in {None, segment.path}
        until = bases[number + 1] if number + 1 < len(bases) else None
        try:
            checked = _segment(segment, state, options, active=active, is_last=is_last, until=until)
        except UnreadableError as error:
            fail(error)
            state = PartitionState()
            continue
        yield checked
    if log is not None and above is not None and any(one > above for one in partition.unnamed):
        log.forget()
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
    """Return the segments, also if only an index was given, and the indexes without a log: stem, suffix -> content."""
    named = [found for entry in partition.others if (found := INDEX_NAME.fullmatch(entry.name))]
    logs = {posixpath.basename(segment.path) for segment in partition.segments}
    missing: list[str] = []
    orphans: dict[str, dict[str, bytes]] = {}
    for found in named:
        log = f"{found['stem']}.{LOG}"
        if log in logs:
            continue
        path = posixpath.join(partition.folder, log)
        beside = partition.files.look(path)
        if beside is not None and beside.is_regular:  # a broker ignores all but regular files
            logs.add(log)
            missing.append(path)
            continue
        try:
            content = read_file(partition.files, posixpath.join(partition.folder, found[0]))
            orphans.setdefault(found["stem"], {})[found["suffix"]] = content
        except UnreadableError as error:
            fail(error)
    more: list[Segment] = []
    if missing:
        finder = Finder(Wanted(leftovers=True, max_batch_bytes=partition.limit), Reporter(fail=fail))
        more = [segment for held in finder.find(missing, partition.files) for segment in held.segments]
    segments = sorted([*partition.segments, *more], key=lambda segment: (segment.base_offset or 0, segment.path))
    return segments, orphans


def _newest(partition: Partition, segments: list[Segment], fail: Callable[[UnreadableError], None]) -> int:
    found = [segment.base_offset or 0 for segment in segments]
    if partition.is_listed:
        return max(found, default=0)
    try:
        names = [SEGMENT_NAME.fullmatch(entry.name) for entry in partition.files.entries(partition.folder)]
    except UnreadableError as error:  # the files of the folder may still be readable
        if isinstance(error, StoreError):
            fail(error)
        names = []
    return max([*found, *(int(name["offset"]) for name in names if name and name["state"] is None)], default=0)


def _segment(
    segment: Segment, state: PartitionState, options: _Options, *, active: bool, is_last: bool, until: int | None
) -> CheckedSegment:
    """Check one segment, and update ``state``, the state after the previous segment."""
    log = options.log
    if active:
        state.mark()
    swaps = {
        suffix: segment.files.shown(path)
        for suffix, path in segment.siblings.items()
        if path.endswith(f".{SWAP}") and not segment.path.endswith(f".{SWAP}")
    }
    for left in reversed(range(TRIES if active else 1)):
        contents: dict[str, bytes | None] = {}
        closed: set[object] = set()
        for suffix in INDEXES:
            try:
                contents[suffix] = _beside(segment, suffix, has_begun=active and left < TRIES - 1)
            except UnreadableError as error:  # the log can be checked without this index
                options.fail(error)
                closed.add(error.path)
                contents[suffix] = None
        with segment.open() as source:
            files = SegmentFiles(
                name=segment.name,
                base_offset=segment.base_offset or 0,
                log_size=source.size,
                active=active,
                swaps=swaps,
                **contents,
            )
            checker = IndexCheck(files, state)
            if options.tap is not None and files.timeindex is not None:
                options.tap.parsed[posixpath.basename(files.beside("timeindex"))] = checker.times.index.newest
            indexes = _IndexPass(checker, segment, source, options.read)
            if log is None:
                run(walk.walk(source, runs=DATA), [indexes])
            else:
                _begin(segment, log, is_last=is_last, until=until)
                may_share = options.jobs > 1 and options.tap is None and log.may_share
                if not (may_share and _share(options.jobs, source, log, indexes)):
                    run(_regions(segment, source, log, options.tap), [indexes, log])
                log = None  # when the segment is read again, only its indexes are checked
            indexes.finish()
        if not checker.lacks_transactions:
            break
        if left:
            state.restore()
            state.mark()
            time.sleep(PAUSE)
    readable = not any(finding.level is Level.LOG for finding in indexes.ends)
    derived = (finding for finding in checker.finish(readable=readable) if finding.file not in closed)
    findings = (*indexes.ends, *derived)
    return CheckedSegment(segment.name, source.size, checker.batches, findings)


def _begin(segment: Segment, log: LogCheck, *, is_last: bool, until: int | None) -> None:
    named = SEGMENT_NAME.fullmatch(posixpath.basename(segment.path))
    base = segment.base_offset if named else None  # the number may be the last offset of a compressed set
    log.begin(segment.name, base, active=is_last, segment=segment, until=until)


def _share(jobs: int, source: OpenSource, log: LogCheck, indexes: _IndexPass) -> bool:
    """Let several workers read a segment. Return False, without reading, if one worker is faster."""
    from kdump.segments import shared_segment

    pieces = shared_segment.parts_of(source)
    if not pieces:
        return False
    parts = shared_segment.read(
        jobs, source, pieces, log.next_offset, lambda regions: shared_segment.brief(regions, log.look)
    )
    with closing(parts) as made:
        for each in made:
            run(shared_segment.whole(each, source), [indexes, log])
    return True


def _regions(segment: Segment, source: OpenSource, log: LogCheck, tap: Tap | None) -> Iterator[Region]:
    regions = resync.read(source, on_error="resync", first_offset=log.next_offset, runs=DATA)
    return regions if tap is None else tap(segment, regions)


def run(regions: Iterator[Region], checkers: Sequence[SegmentChecker]) -> None:
    for region in regions:
        for checker in checkers:
            if isinstance(region, Batches):
                checker.add(region)
            else:
                checker.end(region)


def _beside(segment: Segment, suffix: str, *, has_begun: bool) -> bytes | None:
    """Return the content of an index file, also if it appeared after the folder was listed.

    A new ``.txnindex`` beside an ``.index`` counts only if ``has_begun``: the segment is read again.
    """
    content = segment.sibling(suffix)
    if content is None and suffix == TXN_INDEX and INDEX in segment.siblings and not has_begun:
        return None
    path = beside_log(segment.path, suffix)
    found = None if content is not None or not segment.path.endswith(f".{LOG}") else segment.files.look(path)
    return read_file(segment.files, path) if found is not None and found.is_regular else content


class _IndexPass:
    """Passes batches to the check of indexes, up to the byte at which Kafka's reader stops.

    The reader does not stop at a wrong CRC. ``ends`` has the findings on the bytes at which it stops.
    """

    def __init__(self, checker: IndexCheck, segment: Segment, source: OpenSource, read: Callable[[int], None]) -> None:
        self._checker, self._segment, self._source, self._read = checker, segment, source, read
        self._reported = 0
        self._is_over = False
        self.ends: list[Finding] = []

    def add(self, batches: Batches) -> None:
        if not self._is_over:
            self._is_over = not self._takes(batches)
        if batches.end - self._reported >= 1 << 20:
            self._read(batches.end - self._reported)
            self._reported = batches.end

    def end(self, region: Damage | Padding | Trailing) -> None:
        """Read on like Kafka's reader: from a region that is not a valid batch to the byte at which it stops."""
        resync.raise_above_limit(self._source, region)
        if self._is_over:
            return
        self._is_over = True
        for found in walk.walk(self._source, region.position, runs=DATA):
            if not isinstance(found, Batches):
                self.ends = _end(self._segment, self._source, found)
                return
            if not self._takes(found):
                return

    def _takes(self, batches: Batches) -> bool:
        try:
            self._checker.add(batches)
        except DamageError as damage:
            self.ends = [log_finding(self._checker.files.name, walk.as_region(damage, batches.position, batches.size))]
            return False
        return True

    def finish(self) -> None:
        self._read(self._source.size - self._reported)


def _end(segment: Segment, source: OpenSource, region: Damage | Padding | Trailing) -> list[Finding]:
    resync.raise_above_limit(source, region)
    if zero_tail(source, region.position, source.size) == region.position:
        zeros = padding(source, region.position, source.size)
        text = f"{zeros} follow the last batch: the file was preallocated and not trimmed"
        level, advice = Level.REMARK, ""
    elif isinstance(region, Trailing):
        from kdump.segments import log_end

        found = log_end.tail(segment, region)
        text, level, advice = found.text, *((Level.LOG, LOG_ADVICE) if found.is_damage else (Level.REMARK, ""))
    else:
        reason = getattr(region, "reason", "the bytes are damaged")
        text = f"the log cannot be read from byte {region.position} on: {reason}"
        level, advice = Level.LOG, LOG_ADVICE
    return [
        Finding(
            level=level, file=segment.name, kind=Code.END_OF_LOG, text=text, position=region.position, advice=advice
        )
    ]
