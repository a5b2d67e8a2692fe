"""The metadata log as folders hold it: the snapshots, and the batches of all copies merged by offset and epoch."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.answers.metadata.records import TOPIC
from kdump.checks import kraft_snapshot
from kdump.errors import UnreadableError
from kdump.log_dirs.file_names import KRAFT_SNAPSHOT_NAME, is_kraft_snapshot
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments import log_end, resync
from kdump.segments.regions import PLAIN_DATA, Damage, RunKinds, Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition, Segment


NOTHING: Final = "it holds no metadata log: __cluster_metadata-0 or a .checkpoint of it"
"""What is to be said of paths without a copy."""


class SnapshotFile(NamedTuple):
    """A snapshot: end offset (exclusive) and epoch of its name, 0 and 0 for ``bootstrap.checkpoint``."""

    end_offset: int
    epoch: int
    files: Files
    path: str
    limit: int

    @property
    def name(self) -> str:
        """The path as messages name it."""
        return self.files.shown(self.path)

    def batches(self) -> Iterator[RecordBatch]:
        """Yield its batches, whose offsets count from 0. Raises UnreadableError."""
        with self.files.open(self.path) as source:
            source.limit = self.limit
            for region in resync.read(source):
                if isinstance(region, RecordBatch):
                    yield region


class Said(NamedTuple):
    """Where to say what was met: damage, what changes nothing, what cannot be read."""

    damage: Callable[[str], None]
    note: Callable[[str], None]
    fail: Callable[[UnreadableError], None]


class Copies:
    """Copies of the metadata log of one cluster, most often one. Of other partitions nothing is taken."""

    def __init__(self, partitions: Iterable[Partition], said: Said) -> None:
        self._said = said
        self.partitions = tuple(part for part in partitions if part.topic in (TOPIC, None))
        self._logs: list[tuple[Segment, ...]] = []
        self.snapshots: list[SnapshotFile] = []
        """By end offset and epoch."""
        for partition in self.partitions:
            self._take(partition)
        self.snapshots.sort(key=lambda found: (found.end_offset, found.epoch, found.name))

    def __bool__(self) -> bool:
        """Whether there is anything to replay."""
        return bool(self._logs or self.snapshots)

    def sources(self) -> Iterator[tuple[Files, str]]:
        """Yield the place and path of each file that is read."""
        yield from ((one.files, one.path) for one in self.snapshots)
        yield from ((one.files, one.path) for log in self._logs for one in log)

    def _take(self, partition: Partition) -> None:
        named = [segment.path for segment in partition.segments if is_kraft_snapshot(segment.path)]
        beside = [entry.path for entry in partition.others if KRAFT_SNAPSHOT_NAME.fullmatch(entry.name)]
        for path in named + beside:
            found = KRAFT_SNAPSHOT_NAME.fullmatch(posixpath.basename(path))
            end, epoch = (int(found["offset"]), int(found["epoch"])) if found else (0, 0)
            self.snapshots.append(SnapshotFile(end, epoch, partition.files, path, partition.limit))
        log = tuple(segment for segment in partition.segments if segment.path not in named)
        if log:
            self._logs.append(log)

    def sound(self, snapshot: SnapshotFile) -> bool:
        """Check a snapshot, and say what is wrong with it."""
        try:
            checked = kraft_snapshot.check(snapshot.files, snapshot.path, limit=snapshot.limit)
        except UnreadableError as error:
            self._said.fail(error)
            return False
        wrong = [finding for finding in checked.findings if not finding.is_remark]
        if wrong:
            self._said.damage(f"{snapshot.name}: {wrong[0].text}; it is not used")
        return not wrong

    def first_offset(self) -> int | None:
        """Return where the logs begin, None where none holds a segment."""
        return min((log[0].base_offset or 0 for log in self._logs), default=None)

    def batches(self, start: int) -> Iterator[Batches]:
        """Yield the batches from offset ``start`` on: where copies differ, those of the newer leader epoch.

        Of one copy alone, like batches in a row come as a run.
        """
        if len(self._logs) == 1:
            return self._log(self._logs[0], start, PLAIN_DATA)
        return self._merged([self._batches(log, start) for log in self._logs])

    def _batches(self, log: tuple[Segment, ...], start: int) -> Iterator[RecordBatch]:
        found = self._log(log, start, None)
        return (batch for batch in found if isinstance(batch, RecordBatch))

    def _log(self, log: tuple[Segment, ...], start: int, runs: RunKinds | None) -> Iterator[Batches]:
        for number, segment in enumerate(log):
            following = log[number + 1].base_offset if number + 1 < len(log) else None
            if following is not None and following <= start:
                continue
            try:
                yield from self._segment(segment, start, runs)
            except UnreadableError as error:
                self._said.fail(error)

    def _segment(self, segment: Segment, start: int, runs: RunKinds | None) -> Iterator[Batches]:
        with segment.open() as source:
            for region in resync.read(source, on_error="resync", first_offset=segment.base_offset, runs=runs):
                if isinstance(region, Batches):
                    if region.last_offset >= start:
                        yield region
                elif isinstance(region, Damage):
                    self._said.damage(f"{segment.name}: byte {region.position}: {region.reason}")
                elif isinstance(region, Trailing):
                    found = log_end.tail(segment, region)
                    say = self._said.damage if found.is_damage else self._said.note
                    say(f"{segment.name}: byte {region.position}: {found.text}")

    def _merged(self, streams: list[Iterator[RecordBatch]]) -> Iterator[RecordBatch]:
        """Merge by offset. At a conflict the higher epoch holds: the quorum cut the other one's tail."""
        heads = [next(stream, None) for stream in streams]
        end, epoch = -1, -1
        while any(head is not None for head in heads):
            there = [head for head in heads if head is not None]
            first = min(there, key=lambda head: (head.base_offset, -_epoch(head)))
            rival = max((head for head in there if head.base_offset <= first.last_offset), key=_epoch)
            if first.base_offset >= end and _epoch(first) >= epoch and _epoch(rival) == _epoch(first):
                for other in there:
                    if _same_place(first, other) and other.crc != first.crc:
                        text = f"offset {first.base_offset}: copies of epoch {_epoch(first)} differ"
                        self._said.damage(f"{text}: one of them is damaged, or they are of two clusters")
                end, epoch = first.last_offset + 1, _epoch(first)
                yield first
            elif _epoch(first) < max(epoch, _epoch(rival)):
                text = f"offset {first.base_offset}: a copy has a batch of epoch {_epoch(first)}"
                self._said.note(f"{text} that no later leader has: it was not committed, and is left out")
            heads = [
                next(stream, None) if head is first or (head is not None and _same_place(first, head)) else head
                for stream, head in zip(streams, heads, strict=True)
            ]


def _epoch(batch: RecordBatch) -> int:
    epoch = batch.partition_leader_epoch
    return -1 if epoch is None else epoch


def _same_place(one: RecordBatch, other: RecordBatch) -> bool:
    return one.base_offset == other.base_offset and _epoch(one) == _epoch(other)
