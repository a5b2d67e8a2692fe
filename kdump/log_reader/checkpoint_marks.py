"""The offsets that the checkpoints of a log dir have for its partitions: high watermark and log start offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.log_dirs.file_names import HIGH_WATERMARKS, LOG_STARTS
from kdump.log_dirs.finder import raise_it
from kdump.log_dirs.log_dir_state import READERS, LogDirStates, in_words
from kdump.rows.selection import SegmentFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.errors import UnreadableError
    from kdump.log_dirs.partition import Partition


class CheckpointMarks:
    """Reads each checkpoint file once.

    ``wrong`` is called with what is wrong with one, ``fail`` with one that cannot be read; by default that raises.
    """

    def __init__(
        self, wrong: Callable[[str], None] = lambda _: None, fail: Callable[[UnreadableError], None] = raise_it
    ) -> None:
        readers = {name: READERS[name] for name in (HIGH_WATERMARKS, LOG_STARTS)}
        self._states = LogDirStates(in_words(wrong), fail, readers)

    def facts(self, partition: Partition) -> SegmentFacts:
        """Return what rows say of every segment of a partition; the segment's name is still empty."""
        key = partition.topic, partition.partition
        if None in key:
            return SegmentFacts("", *key, None, None)
        state = self._states.of(partition)
        return SegmentFacts("", *key, state.high_watermarks.get(key), state.log_starts.get(key))
