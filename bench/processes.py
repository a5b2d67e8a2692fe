"""The descendants of processes, as listed in /proc."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def below(roots: Iterable[int]) -> dict[int, list[str]]:
    """Return these processes and their descendants: process id -> the fields of its stat from the third one on."""
    reported: dict[int, list[str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            reported[int(stat.parent.name)] = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
    wanted, parents = set(roots), set(roots)
    while parents:
        parents = {number for number, fields in reported.items() if int(fields[1]) in parents}
        wanted |= parents
    return {number: reported[number] for number in wanted if number in reported}
