"""The leader epochs of a log, from ``leader-epoch-checkpoint`` and batches (KIP-101, class LeaderEpochFileCache)."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from kdump.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kdump.formats.leader_epoch import EpochEntry
    from kdump.log_dirs.partition import Partition

NEVER: Final = 1 << 63
"""The end of an epoch that has not ended: above all offsets."""
BUT: Final = "the leader epochs come from the batches and other copies"

_epoch = attrgetter("epoch")


class EpochHistory:
    """Rising leader epochs with start offsets. A newer epoch replaces all epochs that start at its offset or later."""

    def __init__(self, entries: Iterable[EpochEntry]) -> None:
        self.entries: list[EpochEntry] = []
        for entry in sorted(entries):
            while self.entries and entry.start_offset <= self.entries[-1].start_offset:
                self.entries.pop()
            if not self.entries or entry.epoch > self.entries[-1].epoch:
                self.entries.append(entry)
        self._starts = [entry.start_offset for entry in self.entries]

    @property
    def newest(self) -> int:
        """The newest epoch; -1 if there is no epoch."""
        return self.entries[-1].epoch if self.entries else -1

    def at(self, offset: int) -> int | None:
        """Return the epoch at an offset, or None before the first entry."""
        number = bisect_right(self._starts, offset)
        return self.entries[number - 1].epoch if number else None

    def limit(self, base_offset: int, epoch: int) -> int:
        """Return the offset at which the ``epoch`` of a batch ends. The batch begins at ``base_offset``.

        Return NEVER for -1 and for an empty history. Return ``base_offset`` if the batch does not belong to the log:
        the history has another epoch at this offset, or the batch is before the first entry and has a newer epoch.
        Otherwise return the start offset of the next epoch, or NEVER for the newest epoch.
        """
        if epoch < 0 or not self.entries:
            return NEVER
        expected = self.at(base_offset)
        if expected is None:
            expected = epoch if epoch <= self.entries[0].epoch else -1
        if expected != epoch:
            return base_offset
        following = bisect_right(self.entries, epoch, key=_epoch)
        return self._starts[following] if following < len(self._starts) else NEVER

    def completed(self, others: Iterable[EpochHistory]) -> EpochHistory:
        """Return this history with the older entries of ``others``, or with all of them if it is empty.

        The first epoch starts at the lowest offset at which any of the histories begins it.
        """
        if not self.entries:
            return EpochHistory(entry for other in others for entry in other.entries)
        first = self.entries[0]
        older = [
            entry
            for other in others
            for entry in other.entries
            if entry.epoch <= first.epoch and entry.start_offset < first.start_offset
        ]
        begin = min((entry.start_offset for entry in older if entry.epoch == first.epoch), default=first.start_offset)
        before = [entry for entry in older if entry.epoch < first.epoch and entry.start_offset < begin]
        return EpochHistory([*before, first._replace(start_offset=begin), *self.entries[1:]])


def noted(
    partition: Partition, damage: Callable[[str], None], fail: Callable[[UnreadableError], None]
) -> tuple[EpochEntry, ...]:
    """Return the sorted ``leader-epoch-checkpoint`` of a listed folder; () if missing, or unusable (reported)."""
    found: tuple[EpochEntry, ...] | None = None
    try:
        if partition.is_listed:
            found = partition.leader_epochs(lambda text: damage(f"{text}; {BUT}"))
    except UnreadableError as error:
        fail(error)
    return tuple(sorted((each for each in found or () if each.epoch >= 0), key=attrgetter("epoch", "start_offset")))
