"""Where the logs of partitions end, and which topic ids their folders have: what lag needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.answers.collector import Collector, Needs, Reading
from kdump.answers.log_dir_pass import size_after
from kdump.answers.producer_state import ProducerReplay
from kdump.segments.log_end import end_of_log
from kdump.segments.regions import Damage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kdump.answers.collector import AnswerLine, Place
    from kdump.records.record_batch import Batches
    from kdump.segments.regions import Trailing

NEAR: Final = 4 << 20
"""Bytes after a snapshot that are read for the last stable offset in any case."""


class StableEnd(NamedTuple):
    """The end of a partition's log, and the topic id of its folder.

    ``offset`` is after the last valid batch; before ``stable`` all transactions have ended, as the log itself has it:
    None if that was not read. ``rank`` is the greater, the nearer a replica is to its leader.
    """

    offset: int
    stable: int | None
    topic_id: bytes | None
    rank: tuple[int, int]


class LogEnds(Collector):
    """A collector of the ends of logs. Of several replicas the one counts that is nearest to its leader.

    The end of a log is found by its index. Which transactions are open there takes reading all that follows its newest
    producer snapshot: that is done with ``stable`` alone where it is more than NEAR. This has no lines of its own:
    other answers look up what it found.
    """

    def __init__(
        self,
        wanted: Collection[tuple[str | bytes, int]] | None = None,
        topic_ids: Mapping[bytes, str] | None = None,
        *,
        stable: bool = False,
    ) -> None:
        """``wanted`` are the partitions whose end counts, by topic or topic id; all by default. Ids are read of all.

        ``topic_ids`` are those known from elsewhere.
        """
        self._wanted = wanted
        self.stable = stable
        self.found: dict[tuple[str, int], StableEnd] = {}
        self.topic_ids = dict(topic_ids or {})
        """Topic id -> name, by the folders and as given."""
        self.passed_over: list[int] = []
        """Bytes to read for each last stable offset that was left out."""
        self._key = ("", 0)
        self._end: StableEnd | None = None
        self._replay: ProducerReplay | None = None

    def begin(self, place: Place) -> Needs | Reading:
        """Turn to a partition."""
        self._end = self._replay = None
        if place.key is None:
            return Needs.FILES
        self._key = place.key
        topic_id = place.partition.topic_id(place.report.damage)
        if topic_id is not None:
            self.topic_ids[topic_id] = self._key[0]
        if self._wanted is not None and not any(
            (name, self._key[1]) in self._wanted for name in (self._key[0], topic_id)
        ):
            return Needs.FILES
        end = end_of_log(place.partition)
        self._end = StableEnd(max(end.offset, place.log_start or 0), None, topic_id, (end.epoch, end.offset))
        replay = ProducerReplay(place, before=end.offset)
        size = size_after(place.partition, replay.since)
        if self.stable or size <= NEAR:
            self._replay = replay
            return Reading(Needs.HEADERS, min(replay.since, end.offset - 1))
        self.passed_over.append(size)
        return Reading(Needs.HEADERS, end.offset - 1)  # what cannot be read near the end is to be said

    def add(self, batches: Batches) -> None:
        """Take the next batches."""
        if self._replay is not None:
            self._replay.add(batches)

    def lose(self, region: Damage | Trailing) -> None:
        """Take a range that cannot be read: a transaction may have begun or ended there."""
        if isinstance(region, Damage):
            self._replay = None

    def end(self) -> None:
        """Close the partition."""
        if self._end is not None:
            if self._replay is not None:
                stable = self._replay.first_open_offset
                self._end = self._end._replace(stable=self._end.offset if stable is None else stable)
            self._keep(self._key, self._end)
        self._end = self._replay = None

    def _keep(self, key: tuple[str, int], end: StableEnd) -> None:
        if key not in self.found or self.found[key].rank < end.rank:
            self.found[key] = end

    def merge(self, other: LogEnds) -> None:
        """Take over what another gathered."""
        for key, end in other.found.items():
            self._keep(key, end)
        self.topic_ids.update(other.topic_ids)
        self.passed_over += other.passed_over

    def answer(self, at: int) -> Iterable[AnswerLine]:  # noqa: ARG002  every collector has it
        """Return no line."""
        return ()
