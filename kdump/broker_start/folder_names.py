"""The names of folders in a log dir as a broker reads them. Source: UnifiedLog.parseTopicPartitionName (0.10.2)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kdump.log_dirs.file_names import DELETE_FOLDER, FUTURE_FOLDER, STRAY_FOLDER

_STATES: Final = (DELETE_FOLDER, FUTURE_FOLDER, STRAY_FOLDER)
_WITH_STATE: Final = re.compile(r"(\S+)-(\S+)\.(\S+)-(?:delete|future|stray)")
_INT: Final = re.compile(r"[+-]?[0-9]{1,10}")


class Parsed(NamedTuple):
    """Topic and partition of a folder; ``state`` is empty, or delete, future or stray."""

    topic: str
    partition: int
    state: str


def parse(name: str) -> Parsed | None:
    """Return the kind of a folder; None for a name that stops a broker's start."""
    state = next((each for each in _STATES if name.endswith(f"-{each}")), "")
    if "-" not in name or (state and not _WITH_STATE.fullmatch(name)):
        return None
    topic, dash, number = (name.rpartition(".")[0] if state else name).rpartition("-")
    if not dash or not topic or not _INT.fullmatch(number) or not -(1 << 31) <= int(number) < 1 << 31:
        return None
    return Parsed(topic, int(number), state)


_OFFSET: Final = re.compile(r"[+-]?[0-9]{1,30}")


def offset_of(name: str) -> int | None:
    """Return the offset that a file's name begins with (LogFileUtils.offsetFromFile), or None if Java throws."""
    stem, dot, _ = name.partition(".")
    if not dot or not _OFFSET.fullmatch(stem) or not -(1 << 63) <= int(stem) < 1 << 63:
        return None
    return int(stem)
