"""What --topic and --partition name and the paths do not hold: a name may be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.primitives.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from kdump.log_dirs.file_names import Name
    from kdump.log_dirs.finder import Wanted
    from kdump.log_dirs.partition import Partition


def absent(wanted: Wanted, met: Collection[Name], paths: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each --topic, or for --partition alone, that means no partition of ``paths``.

    ``met`` are the names that a finder saw there (:attr:`kdump.log_dirs.finder.Finder.met`).
    """
    where = paths[0] if len(paths) == 1 else "these paths"
    numbers = " with a number that --partition names" if wanted.partitions else ""
    for topic in wanted.topics or ([None] if wanted.partitions else []):
        one = wanted._replace(topics=() if topic is None else (topic,))
        if not any(one.takes(name) for name in met):
            of = "" if topic is None else f" of topic {topic!r}"
            yield f"no partition{of}{numbers} is in {where}{_hint(topic, met)}"


def left_out(partition: Partition) -> str:
    """Return the note on a folder, or loose files, that a question about partitions leaves out."""
    return f"{partition.name or '.'} is left out: the name of its folder gives no topic and partition"


def _hint(topic: str | None, met: Collection[Name]) -> str:
    """Return what there is in place of a topic, or of its partitions."""
    numbers = [name.partition for name in met if name.partition is not None and topic in {None, name.topic}]
    if numbers:
        low, high = min(numbers), max(numbers)
        return f"; there {f'is {low}' if low == high else f'are {low} to {high}'}"
    return "" if topic is None else did_you_mean(topic, {name.topic for name in met if name.topic is not None})
