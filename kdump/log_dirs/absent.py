"""Hints for a --topic or --partition that the paths lack, and names for logs whose folder has none."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

from kdump.log_dirs.file_names import Name
from kdump.log_dirs.local import LOCAL
from kdump.primitives.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from kdump.log_dirs.finder import Wanted
    from kdump.log_dirs.partition import Partition


BY_PATH: Final = Name(None, None)
"""The name of a log after its folder."""
COPY: Final = Name("log", 0)
"""A name for logs of several brokers whose folders give none: they are replicas of one partition."""


def absent(wanted: Wanted, met: Collection[Name], paths: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each --topic, or for --partition alone, that selects no partition of ``paths``.

    ``met`` are the names of the partitions there (:attr:`kdump.log_dirs.finder.Finder.met`).
    """
    where = paths[0] if len(paths) == 1 else "these paths"
    numbers = " with a number that --partition names" if wanted.partitions else ""
    for topic in wanted.topics or ([None] if wanted.partitions else []):
        one = wanted._replace(topics=() if topic is None else (topic,))
        if not any(one.takes(name) for name in met):
            of = "" if topic is None else f" of topic {topic!r}"
            yield f"no partition{of}{numbers} is in {where}{_hint(topic, met)}"


def with_names(
    partitions: Iterable[Partition], note: Callable[[str], None], *, name: Name = BY_PATH, every: bool = False
) -> Iterator[Partition]:
    """Yield partitions. A named path whose folder gives no topic gets ``name``, or its path and partition 0.

    Other partitions without a topic are skipped; with ``every`` they are yielded unchanged. ``note`` is called for each
    renamed or skipped one. Folders without a segment are yielded unchanged.
    """
    for one in partitions:
        if one.topic is not None or not one.segments or (every and not one.is_named):
            yield one
        elif not one.is_named:
            note(f"{one.name} is left out: the name of its folder gives no topic and partition")
        else:
            named = one._replace(topic=name.topic or _topic_of(one), partition=name.partition or 0)
            note(f"the name of its folder gives no topic and partition: {named.name} is {_shown(one)}")
            yield named


def _topic_of(loose: Partition) -> str:
    path = loose.files.shown(loose.folder) or posixpath.basename(loose.segments[0].name)
    if posixpath.basename(path) in {"", ".", ".."} and loose.files is LOCAL:
        path = posixpath.abspath(path)
    return path.rstrip("/") or "/"


def _shown(loose: Partition) -> str:
    return loose.segments[0].name if len(loose.segments) == 1 else f"{len(loose.segments)} segments in {loose.name}"


def _hint(topic: str | None, met: Collection[Name]) -> str:
    """Return a hint: the topics or partitions that exist instead."""
    numbers = [name.partition for name in met if name.partition is not None and topic in {None, name.topic}]
    if numbers:
        low, high = min(numbers), max(numbers)
        return f"; there {f'is {low}' if low == high else f'are {low} to {high}'}"
    return "" if topic is None else did_you_mean(topic, {name.topic for name in met if name.topic is not None})
