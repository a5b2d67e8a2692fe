"""Rebuilds the producer state of a partition from a producer snapshot and the log, as a broker does, in memory."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kdump.answers.log_dir_pass import first_segment
from kdump.errors import DamageError, UnreadableError, discard
from kdump.formats import producer_snapshot
from kdump.log_dirs import file_names
from kdump.log_dirs.files import read_file
from kdump.records.record_batch import Batches
from kdump.segments import resync
from kdump.segments.log_end import LogEnd
from kdump.segments.regions import DATA, Damage
from kdump.transaction_replay.replay import OpenTransaction, Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.answers.collector import Place
    from kdump.formats.producer_snapshot import ProducerEntry
    from kdump.log_dirs.partition import Segment
    from kdump.records.record_batch import RecordBatch
    from kdump.segments.regions import Trailing
    from kdump.transaction_replay.replay import EndedTransaction

NO_SEQUENCE = -1


@dataclass(slots=True)
class Producer:
    """The state of a producer in a partition. Times are in ms.

    ``data_offset`` and ``data_timestamp`` belong to its last data batch, ``timestamp`` to this batch or a later marker.
    A snapshot has one timestamp for both. Without such a batch or marker, sequence and timestamps are -1, others None.
    """

    epoch: int
    last_sequence: int = NO_SEQUENCE
    timestamp: int = -1
    coordinator_epoch: int | None = None
    data_offset: int | None = None
    data_timestamp: int = -1


class ProducerState:
    """The producers of a partition at an offset. Callers add batches in offset order."""

    def __init__(self, entries: Sequence[ProducerEntry] = ()) -> None:
        """Begin with the producers of a snapshot."""
        self.producers = {entry.producer_id: _producer(entry) for entry in entries}
        self._replay = Replay(
            OpenTransaction(entry.producer_id, entry.epoch, entry.current_txn_first_offset)
            for entry in entries
            if entry.has_open_transaction
        )

    @property
    def open(self) -> dict[int, OpenTransaction]:
        """The open transactions by producer id."""
        return self._replay.open

    def add(self, batches: Batches) -> EndedTransaction | None:
        """Add the next batches. If they end a transaction, return it. Raises DamageError for an invalid marker."""
        if batches.batch_count > 1:
            self._add_data(batches)
            return None
        batch = batches.first
        producer_id = batch.producer_id
        if producer_id is None or producer_id < 0:
            return None
        ended = self._replay.add(batch)
        epoch = batch.producer_epoch or 0
        if batch.is_control:
            if ended is not None:  # None if compaction removed the marker and kept its empty batch
                known = self._of_epoch(producer_id, epoch)
                known.coordinator_epoch = ended.coordinator_epoch
                known.timestamp = batch.max_timestamp
            return ended
        self._write(producer_id, epoch, batch)
        return None

    def _add_data(self, batches: Batches) -> None:
        """Add data batches. The last batch of each producer determines its state."""
        self._replay.add(batches)
        rows = {producer_id: row for row, producer_id in enumerate(batches.column("producer_id"))}
        for producer_id, row in rows.items():
            if producer_id >= 0:
                batch = batches.batch(row)
                self._write(producer_id, batch.producer_epoch or 0, batch)

    def _write(self, producer_id: int, epoch: int, batch: RecordBatch) -> None:
        known = self._of_epoch(producer_id, epoch)
        last_sequence = batch.last_sequence
        known.last_sequence = NO_SEQUENCE if last_sequence is None else last_sequence
        known.timestamp = known.data_timestamp = batch.max_timestamp
        known.data_offset = batch.last_offset

    def _of_epoch(self, producer_id: int, epoch: int) -> Producer:
        """Return a producer. A new ``epoch`` resets its sequence (``ProducerStateEntry.maybeUpdateProducerEpoch``)."""
        known = self.producers.get(producer_id)
        if known is None:
            known = self.producers[producer_id] = Producer(epoch)
        elif known.epoch != epoch:
            known.epoch, known.last_sequence = epoch, NO_SEQUENCE
        return known


def _producer(entry: ProducerEntry) -> Producer:
    return Producer(
        entry.epoch,
        entry.last_sequence if entry.has_batch else NO_SEQUENCE,
        entry.timestamp,
        entry.coordinator_epoch if entry.coordinator_epoch >= 0 else None,
        entry.last_offset if entry.has_batch else None,
        entry.timestamp,
    )


class ProducerSnapshot(NamedTuple):
    """A valid producer snapshot: the producer state before ``offset``."""

    offset: int
    path: str
    entries: tuple[ProducerEntry, ...]


class ProducerReplay:
    """Rebuilds the producer state that a running broker has for a partition, but keeps expired producers.

    It begins with the newest valid snapshot up to the base offset of the last segment, even below the log start, else
    without producers. A later snapshot replaces the state at its offset. Snapshots after the log end are not used.
    """

    def __init__(self, place: Place, before: int | None = None) -> None:
        """With ``before``, begin with the newest valid snapshot up to this offset, and use no later one."""
        self.state: ProducerState
        self.since = 0
        """The offset of the last snapshot that was used, or 0: earlier batches need not be added."""
        self.end_offset = 0
        self.leader_epoch = -1
        self.from_snapshot = False
        self.doubted: set[int] = set()
        """The producers with an open transaction whose end marker may be in unreadable bytes."""
        self._epochs = place.leader_epochs
        segments = place.partition.segments
        self._last_base = (segments[-1].base_offset or 0) if segments else 0
        limit = self._last_base if before is None else before
        self._later: list[ProducerSnapshot] = []
        for snapshot in _snapshots(place):
            if snapshot.offset > limit:
                self._later.append(snapshot)
                continue
            self._take(snapshot)
            break
        else:
            self.state = ProducerState()
        if before is not None:
            self._later.clear()
        self.end_offset = max(self.since, self._last_base if before is None else 0)
        self._note = place.report.note

    def add(self, batches: Batches) -> EndedTransaction | None:
        """Add batches. Return the transaction that a single control batch ends. Raises DamageError for a bad marker."""
        if batches.batch_count > 1 and not self._is_whole(batches):
            for batch in batches.batches():
                self.add(batch)
            return None
        if batches.last_offset < self.since:
            return None
        while self._later and self._later[-1].offset <= batches.first.base_offset:
            self._take(self._later.pop())
        self.end_offset = batches.last_offset + 1
        self.leader_epoch = batches.last.leader_epoch
        ended = self.state.add(batches)
        if ended is not None:
            self.doubted.discard(ended.producer_id)
        return ended

    def _is_whole(self, batches: Batches) -> bool:
        """Return whether a run can be added at once: neither ``since`` nor the offset of a snapshot is inside it."""
        if batches.least("last_offset") < self.since:
            return batches.greatest("last_offset") < self.since
        return not self._later or self._later[-1].offset > batches.greatest("base_offset")

    def read(self, segments: Sequence[Segment], damage: Callable[[str], None]) -> None:
        """Add the batches and damage of a log from ``since`` on, then call :meth:`end`. ``damage`` gets bad markers."""
        for segment in segments[first_segment(segments, self.since) :]:
            for region in resync.of_segment(segment, DATA):
                if isinstance(region, Damage):
                    self.lose(region)
                elif isinstance(region, Batches):
                    try:
                        self.add(region)
                    except DamageError as reason:
                        damage(f"{segment.name}: byte {region.position}: {reason.reason}")
        self.end()

    def lose(self, region: Damage | Trailing) -> None:
        """Add producers with open transactions to ``doubted``. A truncated batch changes nothing: brokers remove it."""
        if isinstance(region, Damage) and (region.missing_until is None or region.missing_until > self.since):
            self.doubted |= set(self.state.open)

    def end(self) -> None:
        """End the partition. Snapshots after the log end are reported. An empty last segment proves its base offset."""
        self.end_offset = max(self.end_offset, self._last_base)
        while self._later and self._later[-1].offset <= self.end_offset:
            self._take(self._later.pop())
        for snapshot in self._later:
            end = f"the log ends at {self.end_offset}"
            self._note(f"{snapshot.path}: not used, because the snapshot ends at offset {snapshot.offset}, but {end}")
        self._note = discard  # no notes after the partition
        self._later.clear()

    def _take(self, snapshot: ProducerSnapshot) -> None:
        self.state = ProducerState(snapshot.entries)
        self.doubted.clear()
        self.since = snapshot.offset
        self.from_snapshot = True

    @property
    def first_open_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None if no transaction is open."""
        return min((one.first_offset for one in self.state.open.values()), default=None)

    @property
    def rank(self) -> tuple[int, int]:
        return LogEnd(self.end_offset, self.leader_epoch).with_epochs(self._epochs()).rank


def _snapshots(place: Place) -> Iterator[ProducerSnapshot]:
    partition = place.partition
    suffix = f".{file_names.PRODUCER_SNAPSHOT}"
    paths = {entry.path for entry in partition.others if entry.name.endswith(suffix)}
    paths |= {segment.siblings["snapshot"] for segment in partition.segments if "snapshot" in segment.siblings}
    found = {}
    for path in paths:
        name = posixpath.basename(path)
        offset = file_names.offset_of(name)
        if offset is not None and name.partition(".")[2] == file_names.PRODUCER_SNAPSHOT:
            found[offset] = name, path
    for offset, (name, own) in sorted(found.items(), reverse=True):
        path = partition.files.shown(own)
        try:
            if (known := place.known(name)) is not None:
                yield ProducerSnapshot(offset, path, known)
                continue
            data = read_file(partition.files, own)
            if not data:
                place.report.note(f"{path}: not used, because it is empty (for example after the broker was killed)")
                continue
            yield ProducerSnapshot(offset, path, producer_snapshot.read(data))
        except UnreadableError as error:
            place.report.fail(error)
        except DamageError as damage:
            place.report.wrong(f"{path}: {damage}")
