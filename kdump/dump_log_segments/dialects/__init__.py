"""The output of each Kafka release's DumpLogSegments, as data, in one module per kind of output.

A dialect describes the output of consecutive releases, as changes to an earlier dialect. Printers read its fields, and
compare no releases. This module parses release numbers and finds dialects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from kdump.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Dated(Protocol):
    @property
    def since(self) -> tuple[int, ...]:
        """The first release with this dialect or change."""


D = TypeVar("D", bound=Dated)

LAST_MINORS: Final = {0: 11, 1: 1, 2: 8, 3: 9, 4: 4}
"""Major release -> its last minor release."""
OLDEST: Final = (0, 8, 0)


def parse_release(text: str) -> tuple[int, ...]:
    """Return "3.6.1" as (3, 6, 1). Raises UsageError for a text that is not numbers with points."""
    parts = text.split(".")
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise UsageError(f"{text!r} is not a Kafka release: a release looks like 4.4, 3.9.2 or 0.8.2.1")
    return tuple(int(part) for part in parts)


def known_release(text: str) -> tuple[int, ...]:
    """Return a release as numbers. Raises UsageError below OLDEST, for an unknown major or above LAST_MINORS."""
    release = parse_release(text)
    last = LAST_MINORS.get(release[0])
    if last is None or (len(release) > 1 and release[1] > last):
        known = ", ".join(f"{major}.{minor}" for major, minor in LAST_MINORS.items())
        raise UsageError(f"there is no Kafka {text}: the last releases known are {known}")
    if release < OLDEST[: len(release)]:
        oldest = ".".join(map(str, OLDEST))
        raise UsageError(f"Kafka {text} is older than {oldest}, the oldest release that kdump knows")
    return release


def newest(dialects: Sequence[D], text: str) -> D:
    """Return the newest dialect up to release ``text``. A release such as "4.2" means its last patch.

    The first dialect is that of OLDEST. Raises UsageError for an unknown release.
    """
    release = known_release(text)
    return [dialect for dialect in dialects if dialect.since[: len(release)] <= release][-1]
