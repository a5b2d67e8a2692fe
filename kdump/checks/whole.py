"""Everything that can be said of a partition: log, indexes, the files beside them, and a broker's next start."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump import recovery, segment
from kdump.checks import folder, kraft_snapshot, log_dir, partition
from kdump.checks.log import COMPACTED_TOPICS, LogCheck
from kdump.errors import UnreadableError
from kdump.files import LOCAL
from kdump.findings import Finding, Level, many
from kdump.formats import leader_epoch, meta_properties, partition_metadata
from kdump.formats.sparse_index import DEFAULT_INTERVAL
from kdump.inputs import SEGMENT_NAME
from kdump.pieces import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.checks.log_dir import LogDir
    from kdump.inputs import Partition, Segment
    from kdump.pieces import Piece
    from kdump.recovery import Cut, Outcome
    from kdump.segment import Source

IRRELEVANT: Final = frozenset({meta_properties.NAME, partition_metadata.NAME})
"""Files that do not decide what becomes of a log when a broker starts."""


class Options(NamedTuple):
    """What to check: ``records`` looks into batches, ``interval`` is index.interval.bytes, for the dry run."""

    records: bool = True
    interval: int = DEFAULT_INTERVAL


class Checked(NamedTuple):
    """What was gone through in a partition, and what was found; ``size`` is that of its logs in bytes.

    ``folder`` is that of the partition, as it is shown; ``failed`` tells which files could not be read.
    """

    segments: int
    batches: int
    size: int
    findings: tuple[Finding, ...]
    folder: str = ""
    failed: tuple[UnreadableError, ...] = ()


def check(
    part: Partition,
    options: Options,
    seen: dict[str, list[Finding]],
    read: Callable[[int], None] = lambda _: None,
) -> Checked:
    """Check a partition. ``seen`` holds the findings of log dir files by path. Files that cannot be read are named."""
    known = set(seen)
    failed: list[UnreadableError] = []
    place = log_dir.of(part, seen, failed.append)
    around = part.folder if part.topic is None else log_dir.above(part)
    if around not in seen:
        above = around or ("." if part.files is LOCAL else "")
        seen[around] = list(log_dir.check(part.files, above, failed.append))
    findings = [finding for path, told in seen.items() if path not in known for finding in told]
    findings += folder.check(part, seen, failed.append)
    snapshots = []
    for path in _snapshots(part):
        try:
            snapshots.append(kraft_snapshot.check(part.files, path, records=options.records, limit=part.limit))
        except UnreadableError as error:
            failed.append(error)
    findings += (finding for snapshot in snapshots for finding in snapshot.findings)
    log = LogCheck(
        records=options.records,
        topic=part.topic,
        epochs=folder.epochs(part),
        epochs_file=part.files.shown(posixpath.join(part.folder, leader_epoch.NAME)),
        cleaned=True if part.topic in COMPACTED_TOPICS else place.cleaned,
    )
    logs = [segment for segment in part.segments if not segment.path.endswith(kraft_snapshot.SUFFIX)]
    live = [segment for segment in logs if ".log." not in posixpath.basename(segment.path)] or logs
    after: list[Finding] = []
    of_log: list[Finding] = []
    tap = _Tap(log, live, of_log)
    closed: set[object] = set()

    def fail(error: UnreadableError) -> None:
        failed.append(error)
        if any(error.path == each.path for each in live):
            closed.add(error.path)
            log.forget()

    for checked in partition.check(replace(part, segments=tuple(live)), read, tap, fail):
        after += (finding for finding in checked.findings if finding.file != checked.name)
    of_log += log.finish()
    findings += of_log + after
    if live and not any(posixpath.basename(str(error.path)) not in IRRELEVANT for error in failed):
        try:
            findings += _start(part, place, options, log, damaged=any(f.level is Level.LOG for f in of_log))
        except UnreadableError as error:
            failed.append(error)
    if snapshots and part.topic == kraft_snapshot.TOPIC:
        start = max(place.log_start or 0, live[0].base_offset or 0) if live else 0
        end = log.next_offset if live else None
        findings += kraft_snapshot.against_log(part.files.shown(part.folder), snapshots, start, end)
    live = [segment for segment in live if segment.path not in closed]
    size = sum(segment.size for segment in live) + sum(snapshot.size for snapshot in snapshots)
    batches = log.batches + sum(snapshot.batches for snapshot in snapshots)
    count, where = len(live) + len(snapshots), part.files.shown(part.folder)
    return Checked(count, batches, size, tuple(findings), where, tuple(failed))


def _snapshots(part: Partition) -> list[str]:
    """Return the paths of the snapshots of the metadata log."""
    paths = [segment.path for segment in part.segments] + [entry.path for entry in part.others]
    return [path for path in paths if path.endswith(kraft_snapshot.SUFFIX)]


class _Tap:
    """Lets the check of the log take part in the pass of the index check, which wants batches with a wrong crc too."""

    def __init__(self, log: LogCheck, live: list[Segment], findings: list[Finding]) -> None:
        self._log, self._live, self._findings = log, live, findings
        self._seen: set[str] = set()

    def __call__(self, each: Segment, source: Source) -> Iterator[Piece]:
        """Yield the pieces of a segment as the index check reads them."""
        if each.name in self._seen:  # the active segment is read again while a broker writes to it
            yield from segment.walk(source)
            return
        self._seen.add(each.name)
        active = not self._live or each.name == self._live[-1].name
        named = SEGMENT_NAME.fullmatch(posixpath.basename(each.path))
        base = each.base_offset if named else None  # else it is what the file begins with: a wrapper's last offset
        pieces = self._log.segment(each.name, base, source, active=active, findings=self._findings)
        for piece in pieces:
            if not isinstance(piece, RecordBatch):
                for _ in pieces:
                    pass
                yield from segment.walk(source, piece.position)
                return
            yield piece


def _start(part: Partition, place: LogDir, options: Options, log: LogCheck, *, damaged: bool) -> Iterator[Finding]:
    """Say what a broker would do at its next start."""
    where = part.files.shown(part.folder)
    end = log.next_offset
    if damaged or log.wants_recovery:
        point = place.recovery_point or 0
        start = place.log_start or 0
        if place.clean:
            now = recovery.dry_run(part, clean=True, log_start=start, interval=options.interval)
            yield from _outcome(where, now, "after the clean stop that .kafka_cleanshutdown tells of, a broker")
        unclean = recovery.dry_run(part, clean=False, recovery_point=point, log_start=start, interval=options.interval)
        word = "after an unclean stop a broker" if place.clean else "a broker"
        yield from _outcome(where, unclean, word, would=place.clean)
        end = unclean.log_end_offset
    if place.high_watermark is not None and end is not None and place.high_watermark > end:
        yield Finding(
            level=Level.LOG,
            file=where,
            kind="high watermark",
            text=f"consumers had been given offsets below {place.high_watermark}, and the log ends at {end}",
            offset=end,
            expected=f"{place.high_watermark} or more",
            found=end,
            advice="Another replica may have them.",
        )


def _outcome(where: str, outcome: Outcome, who: str, *, would: bool = False) -> Iterator[Finding]:
    """Say what a start does; ``would`` makes it a remark, since the next start is not of that kind."""
    for cut in outcome.cuts:
        harmless = would or not cut.records
        yield Finding(
            level=Level.REMARK if harmless else Level.LOG,
            file=cut.file,
            kind="recovery",
            text=f"{who} would cut it here: {_lost(cut)} would go ({cut.reason})",
            position=cut.position,
            offset=cut.first_offset,
            advice="" if harmless else f"Before a broker starts on it: kdump salvage {quote(where)} --out DIR",
        )
    for name in outcome.splits:
        yield Finding(
            level=Level.REMARK,
            file=name,
            kind="recovery",
            text=f"{who} would split it first: it holds an offset that does not fit behind its base offset",
        )
    if outcome.fails:
        yield Finding(
            level=Level.REMARK if would else Level.LOG,
            file=where,
            kind="recovery",
            text=f"{who} would not load the log: {outcome.fails}",
        )
    else:
        yield Finding(
            level=Level.REMARK,
            file=where,
            kind="recovery",
            text=f"{who} would read {outcome.recovered_bytes} bytes of {many(len(outcome.recovered), 'segment')}, "
            f"and the log would end at offset {outcome.log_end_offset}",
            offset=outcome.log_end_offset,
        )


def _lost(cut: Cut) -> str:
    if not cut.records:
        return f"{cut.size} bytes without a sound batch"
    return f"offsets {cut.first_offset} to {cut.last_offset}, {cut.records} records, {cut.size} bytes"
