"""What answers over log dirs say of records that should be there and are not: an answer without it would mislead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.errors import StoreError, many

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.broker_start.shortfall import Shortfall
    from kdump.commands.session import Session
    from kdump.log_dirs.partition import Partition

SHOWN: Final = 10
"""Partitions that are named one by one."""


def report(
    run: Session, paths: tuple[str, ...], partitions: Sequence[Partition], takes: Callable[[str, int], bool]
) -> list[Shortfall]:
    """Report the partitions that lack all their records in log dirs, also with --quiet; return them.

    Paths that are no whole log dirs have none: what else belongs there is not known.
    """
    from kdump import checking  # many modules: --help does without

    try:
        places = checking.log_dirs(paths, partitions, {})
        if not places:
            return []
        from kdump.broker_start.shortfall import shortfalls

        found = list(shortfalls(places, partitions, takes, run.fail))
    except StoreError as error:
        run.fail(error)
        return []
    held = {(part.topic, part.partition) for part in partitions if any(each.size for each in part.segments)}
    for each in found[:SHOWN]:
        is_elsewhere = (each.topic, each.partition) in held and not each.strays
        other = "; another folder in these paths has records of it" if is_elsewhere else ""
        run.insist(f"{each.file}: {each.text}{other}")
    if len(found) > SHOWN:
        run.insist(f"{many(len(found) - SHOWN, 'more partition')} lack all records: kdump check has them")
    return [each for each in found if (each.topic, each.partition) not in held]
