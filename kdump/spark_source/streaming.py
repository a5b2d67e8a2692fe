"""A growing log dir as a stream: what lies between two points of each partition folder.

An offset of the stream is plain JSON: for each folder the next Kafka offset, and as a help where in which file it
stands. The Kafka offset decides, so that a segment that rolled, was renamed or compacted between two triggers is found
again; the position only spares the way to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kdump import segment as log
from kdump.errors import KdumpError
from kdump.pieces import RecordBatch
from kdump.spark_source import planning
from kdump.spark_source.planning import Split
from kdump.spark_source.survey import is_sound, outcomes, survey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.inputs import Partition, Segment
    from kdump.spark_source.options import Options
    from kdump.spark_source.survey import Outcomes

Offsets: TypeAlias = "dict[str, dict[str, Any]]"
"""Folder -> ``offset`` (the next Kafka offset), ``file`` and ``position`` (where it will stand), ``batch`` (where the
last batch that was taken begins)."""
START: Final[dict[str, Any]] = {"offset": None, "file": "", "position": 0, "batch": 0}


class Limits(NamedTuple):
    """How much one trigger takes at most; None for no limit. At least one batch is taken, so that it goes on."""

    files: int | None = None
    bytes: int | None = None
    records: int | None = None


class DataLossError(KdumpError):
    """Records that were to be read next are gone."""


def latest(options: Options, start: Offsets, limits: Limits, target: Offsets | None = None) -> Offsets:
    """Return how far a trigger that begins at ``start`` gets.

    Only whole batches with a right checksum count as the end: what is half written at the end of the last segment waits
    for the next trigger. Raises UnreadableError.
    """
    meter = _Meter(limits)
    end = dict(start)
    for partition in planning.find(options, lambda _: None):
        key = _key(partition)
        at = start.get(key, START)
        stable = _outcomes(partition, options).last_stable_offset if options.committed else None
        if target is not None:
            if key not in target:
                continue
            stable = min(target[key]["offset"] or 0, stable if stable is not None else 1 << 63)
        meter.go_on()
        for segment, position in _ahead(partition, at):
            if position < segment.size and meter.opens():
                at = _advance(segment, position, at, meter, is_last=segment is partition.segments[-1], stable=stable)
                end[key] = at
            if meter.is_stopped:
                break
    return end


def _outcomes(partition: Partition, options: Options) -> Outcomes:
    return outcomes(survey(segment, options.split_bytes) for segment in partition.segments)


class _Meter:
    """Counts what a trigger takes. A partition in which something did not fit stops there: its order is kept."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._files = self._bytes = self._records = 0
        self.is_stopped = False

    def go_on(self) -> None:
        """Turn to the next partition."""
        self.is_stopped = False

    def stop(self) -> None:
        """End with this partition."""
        self.is_stopped = True

    def opens(self) -> bool:
        """Count a file; tell whether it is still within the limit."""
        if self._limits.files is not None and self._files >= self._limits.files:
            self.stop()
            return False
        self._files += 1
        return True

    def fits(self, size: int, records: int) -> bool:
        """Tell whether a batch still fits; the first one of a trigger always does."""
        limits = self._limits
        return not self._bytes or (
            (limits.bytes is None or self._bytes + size <= limits.bytes)
            and (limits.records is None or self._records + records <= limits.records)
        )

    def take(self, size: int, records: int) -> None:
        """Count what is taken."""
        self._bytes += size
        self._records += records


def _key(partition: Partition) -> str:
    return partition.files.shown(partition.folder)


def _ahead(partition: Partition, at: dict[str, Any]) -> Iterator[tuple[Segment, int]]:
    """Yield the segments that may hold offsets from ``at`` on, with the position to begin at."""
    offset = at["offset"]
    segments = list(partition.segments)
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else None
        is_behind = offset is not None and following is not None and following <= offset
        if not is_behind:
            yield segment, at["position"] if _holds(segment, at) else 0
        elif at["position"] < segment.size and _holds(segment, at):
            yield segment, at["position"]  # it has rolled since: what is left of it is damage


def _holds(segment: Segment, at: dict[str, Any]) -> bool:
    """Tell whether a segment is still the one in which a position was found: compaction writes it anew."""
    if segment.name != at["file"] or at["offset"] is None or segment.size < at["position"]:
        return False
    with segment.open() as source:
        last = next(log.walk(source, at["batch"], at["position"]), None)
    return (
        isinstance(last, RecordBatch)
        and is_sound(last)
        and last.end <= at["position"]
        and last.last_offset + 1 == at["offset"]
    )


def _advance(
    segment: Segment, position: int, at: dict[str, Any], meter: _Meter, *, is_last: bool, stable: int | None
) -> dict[str, Any]:
    """Return where the trigger ends in a segment that it begins to read at ``position``.

    Damage that sound batches follow is taken with them; damage at the end of the last segment may be a batch that is
    still being written, and waits.
    """
    offset, batch, waiting = at["offset"], at["batch"], 0
    end = position
    with segment.open() as source:
        for piece in log.read(source, position, on_error="resync"):
            if not isinstance(piece, RecordBatch):
                waiting += piece.size
                if not is_last:
                    end = piece.position + piece.size  # nothing will follow in a segment that has rolled
                continue
            if stable is not None and piece.last_offset >= stable:
                meter.stop()
                break
            records = piece.count or 1
            if not meter.fits(piece.size + waiting, records):
                meter.stop()
                break
            meter.take(piece.size + waiting, records)
            waiting = 0
            end, batch = piece.end, piece.position
            offset = piece.last_offset + 1
    return {"offset": offset, "file": segment.name, "position": end, "batch": batch}


def between(options: Options, start: Offsets, end: Offsets, lost: Callable[[str], None]) -> list[Split]:
    """Return the splits between two offsets of the stream.

    ``lost`` is told of records that ``start`` waits for and that are gone; where it returns, what is left is read.
    Each split reads by Kafka's offsets: a segment that was compacted in between gives what is left of it.
    """
    splits: list[Split] = []
    folders = {_key(partition): partition for partition in planning.find(options, lambda _: None)}
    for key, until in end.items():
        since = start.get(key, START)
        if since == until:
            continue
        partition = folders.get(key)
        if partition is None or not partition.segments:
            lost(f"{key} is gone, with offsets from {since['offset'] or 0} up to {until['offset']}")
            continue
        splits += _between(partition, since, until, options, lost)
    return splits


def _between(
    partition: Partition, since: dict[str, Any], until: dict[str, Any], options: Options, lost: Callable[[str], None]
) -> Iterator[Split]:
    first = partition.segments[0].base_offset
    if since["offset"] is not None and first is not None and first > since["offset"]:
        lost(f"{_key(partition)}: offsets from {since['offset']} up to {first} are gone")
    if until["offset"] is None:
        return
    fates = _outcomes(partition, options) if options.committed else None
    for segment, position in _ahead(partition, since):
        if segment.base_offset is not None and segment.base_offset >= until["offset"]:
            return
        stop = until["position"] if _holds(segment, until) else segment.size
        if position < stop:
            yield Split(
                files=segment.files,
                path=segment.path,
                topic=partition.topic,
                partition=partition.partition,
                start=position,
                end=stop,
                outcomes=fates,
                offsets=((since["offset"] or 0, until["offset"]),),
            )
