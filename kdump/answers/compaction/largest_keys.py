"""The keys with the most bytes in a log. Where they are too many for memory, it is read once for each part of them."""

from __future__ import annotations

from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from kdump.answers.compaction.key_tables import all_keys, key_sizes
from kdump.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.answers.compaction.cleaner_walk import CleanerBatch
    from kdump.answers.compaction.key_tables import AnyKeySizes
    from kdump.log_dirs.partition import Segment

    Log: TypeAlias = Iterable[tuple[Segment, CleanerBatch]]
    Place: TypeAlias = tuple[int, int]


def largest_keys(name: str, log: Callable[[], Log], most: int, max_keys: int) -> list[tuple[bytes, int, int]]:
    """Return ``most`` keys with their records and bytes; ``log`` begins at the start of the log each time.

    Some ``max_keys`` keys are in memory at a time. Raises UnreadableError where a log changes from one time to another.
    """
    found: list[tuple[int, int, int, int]] = []
    part = all_keys()
    while part.number < part.of:
        sizes = key_sizes(max_keys, part)
        if not _measure(sizes, log(), max_keys):
            found, part = [], part._replace(number=0, of=part.of * 2)
            continue
        found = nlargest(most, found + sizes.largest(most))
        part = part._replace(number=part.number + 1)
    keys = dict(_keys_at(log(), {(-batch, -record) for _, batch, record, _ in found}))
    if len(keys) < len(found):
        raise UnreadableError(name, "it changes while it is read")
    return [(keys[-batch, -record], records, size) for size, batch, record, records in found]


def _measure(sizes: AnyKeySizes, log: Log, max_keys: int) -> bool:
    """Count records and bytes; return whether there is room for the keys of the part."""
    for _, data in log:
        for _ in () if data.first.is_control else data.read_into(sizes):
            sizes.measure()
            if sizes.keys > max_keys:
                return False
    return True


def _keys_at(log: Log, places: set[Place]) -> Iterator[tuple[Place, bytes]]:
    """Yield places (number of a batch of data, of a record in it) with the keys that stand there."""
    wanted = sorted(places, reverse=True)
    done = 0
    for _, data in log:
        if data.first.is_control:
            continue
        while wanted and wanted[-1][0] < done + data.count:
            place = wanted.pop()
            for record in islice(data.batch(place[0] - done).records(), place[1], place[1] + 1):
                yield place, record.key or b""
        if not wanted:
            return
        done += data.count
