"""The offsets that the checkpoints of a log dir have for its partitions: high watermark and log start offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.errors import DamageError, UnreadableError
from kdump.formats import checkpoints
from kdump.log_dirs import file_names
from kdump.log_dirs.finder import raise_it
from kdump.rows.selection import SegmentFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition

_KEPT: Final = 8
"""Checkpoint files that are kept in memory."""


class CheckpointMarks:
    """Reads each checkpoint file once.

    ``wrong`` is called with what is wrong with one, ``fail`` with one that cannot be read; by default that raises.
    """

    def __init__(
        self, wrong: Callable[[str], None] = lambda _: None, fail: Callable[[UnreadableError], None] = raise_it
    ) -> None:
        self._wrong, self._fail = wrong, fail
        self._known: dict[tuple[Files, str], dict[tuple[str, int], int]] = {}

    def facts(self, partition: Partition) -> SegmentFacts:
        """Return what rows say of every segment of a partition; the segment's name is still empty."""
        return SegmentFacts(
            "",
            partition.topic,
            partition.partition,
            self._mark(partition, file_names.HIGH_WATERMARKS),
            self._mark(partition, file_names.LOG_STARTS),
        )

    def _mark(self, partition: Partition, name: str) -> int | None:
        if partition.topic is None or partition.partition is None:
            return None
        key = partition.files, partition.path_beside(name)
        known = self._known.get(key)
        if known is None:
            if len(self._known) > _KEPT:
                self._known.clear()
            known = self._known[key] = self._read(partition, name)
        return known.get((partition.topic, partition.partition))

    def _read(self, partition: Partition, name: str) -> dict[tuple[str, int], int]:
        try:
            data = partition.beside(name)
            entries = checkpoints.read(data) if data is not None else ()
        except DamageError as damage:
            self._wrong(f"{partition.path_beside(name)} is not believed: {damage}")
            return {}
        except UnreadableError as error:
            self._fail(error)
            return {}
        return {entry[:2]: entry.offset for entry in entries}
