"""Where the logs of partitions end, and which topic ids their folders have: what lag needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.answers.collector import Collector, Needs, Reading
from kdump.answers.producer_state import ProducerReplay
from kdump.errors import DamageError
from kdump.formats import partition_metadata
from kdump.log_dirs import file_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kdump.answers.collector import AnswerLine, Place
    from kdump.records.record_batch import RecordBatch


class StableEnd(NamedTuple):
    """The end of a partition's log, and the topic id of its folder.

    ``offset`` is after the last sound batch; before ``stable`` all transactions have ended, as the log itself has it.
    ``rank`` is the greater, the nearer a replica is to its leader.
    """

    offset: int
    stable: int
    topic_id: bytes | None
    rank: tuple[int, int]


class LogEnds(Collector):
    """A collector of the ends of logs. Of several replicas the one counts that is nearest to its leader.

    It has no lines of its own: other answers look up what it found.
    """

    def __init__(
        self, wanted: Collection[tuple[str | bytes, int]] | None = None, topic_ids: Mapping[bytes, str] | None = None
    ) -> None:
        """``wanted`` are the partitions whose end counts, by topic or topic id; all by default. Ids are read of all.

        ``topic_ids`` are those known from elsewhere.
        """
        self._wanted = wanted
        self.found: dict[tuple[str, int], StableEnd] = {}
        self.topic_ids = dict(topic_ids or {})
        """Topic id -> name, by the folders and as given."""
        self._key = ("", 0)
        self._topic_id: bytes | None = None
        self._replay: ProducerReplay | None = None
        self._log_start = 0

    def begin(self, place: Place) -> Needs | Reading:
        """Turn to a partition."""
        self._replay = None
        if place.key is None:
            return Needs.FILES
        self._key = place.key
        self._topic_id = _read_topic_id(place)
        if self._topic_id is not None:
            self.topic_ids[self._topic_id] = self._key[0]
        names = (self._key[0], self._topic_id)
        if self._wanted is not None and not any((name, self._key[1]) in self._wanted for name in names):
            return Needs.FILES
        self._log_start = place.log_start or 0
        self._replay = ProducerReplay(place)
        return Reading(Needs.HEADERS, self._replay.since)

    def add(self, batch: RecordBatch) -> None:
        """Take the next batch."""
        if self._replay is not None:
            self._replay.add(batch)

    def end(self) -> None:
        """Close the partition."""
        if self._replay is not None:
            self._replay.end()
            offset = max(self._replay.end_offset, self._log_start)
            stable = self._replay.first_open_offset
            end = StableEnd(offset, offset if stable is None else stable, self._topic_id, self._replay.rank)
            self._keep(self._key, end)
            self._replay = None

    def _keep(self, key: tuple[str, int], end: StableEnd) -> None:
        if key not in self.found or self.found[key].rank < end.rank:
            self.found[key] = end

    def merge(self, other: LogEnds) -> None:
        """Take over what another gathered."""
        for key, end in other.found.items():
            self._keep(key, end)
        self.topic_ids.update(other.topic_ids)

    def answer(self, at: int) -> Iterable[AnswerLine]:  # noqa: ARG002  every collector has it
        """Return no line."""
        return ()


def _read_topic_id(place: Place) -> bytes | None:
    """Return the topic id of a folder, None where none can be read. Raises UnreadableError."""
    partition = place.partition
    for entry in partition.others:
        if entry.name == file_names.PARTITION_METADATA:
            with partition.files.open(entry.path) as source:
                data = source.read(0, source.size)
            try:
                return partition_metadata.read(data).topic_id
            except DamageError as damage:
                place.wrong(f"{partition.files.shown(entry.path)}: {damage}")
    return None
