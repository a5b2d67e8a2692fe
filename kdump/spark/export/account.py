"""The manifest counts each byte of the listed files once: batch, damaged, trailing, padding, unreadable or not read."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.errors import UsageError, first_of
from kdump.segments.regions import Damage
from kdump.spark.source.reading import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kdump.spark.source.planning import Planned

VERSION: Final = 1


class SplitAccount(NamedTuple):
    batches: int = 0
    rows: int = 0
    batch_bytes: int = 0
    damaged_ranges: int = 0
    damaged_bytes: int = 0
    padding_bytes: int = 0
    trailing_bytes: int = 0
    unreadable_bytes: int = 0

    def plus(self, other: SplitAccount) -> SplitAccount:
        return SplitAccount(*map(operator.add, self, other))

    @property
    def size(self) -> int:
        lost = self.damaged_bytes + self.trailing_bytes + self.unreadable_bytes
        return self.batch_bytes + lost + self.padding_bytes


def unread(runs: Iterable[dict[str, Any]]) -> list[str]:
    """Return the names of files with unreadable bytes, from the manifest entries ``runs``."""
    return [
        file["file"]
        for run in runs
        for file in run["files"]
        if file["bytes"]["unreadable"] or any(one["damage"] == UNREADABLE for one in file["damaged"])
    ]


def refuse_unread(runs: Sequence[dict[str, Any]], path: str, *, skip_unreadable: bool, hint: str) -> None:
    """Raise UsageError if an earlier run into ``path`` left out unreadable bytes. More rows would hide this gap.

    If ``skip_unreadable``, earlier runs with this option are accepted. ``hint`` is the end of the message.
    """
    left = unread(run for run in runs if not (skip_unreadable and run["options"].get("skipUnreadable") == "true"))
    if left:
        raise UsageError(
            f"{path}: records are missing, because {first_of(left, 1)} could not be read (see _manifest.json): {hint}"
        )


def damaged_ranges(run: dict[str, Any]) -> Iterator[tuple[str, Damage]]:
    """Yield the file and range of each damaged range in a run's manifest entry, with adjacent parts merged."""
    for file in run["files"]:
        merged: list[Damage] = []
        for one in file["damaged"]:
            new = Damage(one["position"], one["length"], one["damage"], one["reason"], one["position"])
            last = merged[-1] if merged else None
            if last is not None and (last.end, last.kind, last.reason) == (new.position, new.kind, new.reason):
                merged[-1] = last._replace(size=last.size + new.size)
            else:
                merged.append(new)
        yield from ((file["file"], damage) for damage in merged)


def manifest(
    planned: Iterable[Planned],
    parts: dict[int, SplitAccount],
    lost: Mapping[str, list[dict[str, Any]]],
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Return the manifest entry of one run: ``settings``, the totals, and the outcome of each file's bytes.

    ``parts`` maps the number of each split to its account, ``lost`` each file to its damaged ranges. ``notRead`` counts
    the bytes outside all splits: they have no selected records. The counts of a file add up to its size.
    """
    files = []
    for segment in planned:
        part = SplitAccount()
        for split in segment.splits:
            part = part.plus(parts[split.number])
        files.append(
            {
                "file": segment.name,
                "topic": segment.topic,
                "partition": segment.partition,
                "size": segment.size,
                **_counts(part, segment.size - part.size),
                "damaged": lost.get(segment.name, []),
            }
        )
    return {**settings, "totals": totals(files), "files": files}


def plus(run: dict[str, Any], steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a run's manifest entry with the counts, files and losses of ``steps`` added: one entry per input file."""
    files = {file["file"]: file for file in run["files"]}
    for file in [file for step in steps for file in step["files"]]:
        name = file["file"]
        files[name] = {**_sum(files[name], file), "end": file["end"]} if name in files else file
    return {
        **run,
        "rowsWritten": run["rowsWritten"] + sum(step["rowsWritten"] for step in steps),
        "output": run["output"] + [file for step in steps for file in step["output"]],
        "lost": run["lost"] + [text for step in steps for text in step["lost"]],
        "totals": totals(files.values()),
        "files": list(files.values()),
    }


def totals(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the sum of the entries of a run's files, or of the totals of several runs."""
    total = NOTHING
    for part in parts:
        total = {**_sum(total, part), "files": total["files"] + part.get("files", 1)}
    return total


def _sum(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    names = ["size", "batches", "rows", "damagedRanges", *(["damaged"] if "damaged" in one else [])]
    return {
        **one,
        **{name: one[name] + other[name] for name in names},
        "bytes": {name: one["bytes"][name] + other["bytes"][name] for name in one["bytes"]},
    }


def _counts(part: SplitAccount, not_read: int) -> dict[str, Any]:
    return {
        "batches": part.batches,
        "rows": part.rows,
        "damagedRanges": part.damaged_ranges,
        "bytes": {
            "batches": part.batch_bytes,
            "damaged": part.damaged_bytes,
            "trailing": part.trailing_bytes,
            "padding": part.padding_bytes,
            "unreadable": part.unreadable_bytes,
            "notRead": not_read,
        },
    }


NOTHING: Final[dict[str, Any]] = {"files": 0, "size": 0, **_counts(SplitAccount(), 0)}
