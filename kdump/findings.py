"""What a check finds wrong, as data: one Finding per fault, with the place, both values and what to do.

Levels: "damage" is lost or wrong data, "derived" a file beside the log that a broker can build again, "remark" what is
odd and harmless: it never changes an exit status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Level: TypeAlias = Literal["damage", "derived", "remark"]

UNREADABLE_STATUS: Final = 1
DAMAGE_STATUS: Final = 3
DERIVED_STATUS: Final = 4


class Finding(NamedTuple):
    """One fault of one file or folder.

    ``kind`` is a short stable word for machines, ``message`` a sentence for people; ``position`` counts bytes in the
    file, ``entry`` the entries of an index or checkpoint from 0, ``offset`` is a log offset. ``advice`` says what to do.
    """

    path: str
    level: Level
    kind: str
    message: str
    position: int | None = None
    entry: int | None = None
    offset: int | None = None
    expected: object = None
    found: object = None
    advice: str = ""


def status(findings: Iterable[Finding]) -> int:
    """Return the exit status: 3 when there is damage, 4 when only derived files are wrong, else 0."""
    levels = {finding.level for finding in findings}
    return DAMAGE_STATUS if "damage" in levels else DERIVED_STATUS if "derived" in levels else 0
