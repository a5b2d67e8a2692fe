"""The changes in the output of DumpLogSegments by release, from all tables of dialects."""

from __future__ import annotations

from typing import Final, NamedTuple

from kdump.dump_log_segments.dialects import newest
from kdump.dump_log_segments.dialects import payload as dialects_payload
from kdump.dump_log_segments.dialects import segments as dialects
from kdump.dump_log_segments.dialects import state as dialects_state

TABLES: Final = (dialects.DIALECTS, dialects_state.DIALECTS, dialects_payload.DIALECTS)
"""The dialects of segments, of the files beside them, and of the payloads of Kafka's own records."""


class Change(NamedTuple):
    """A release that prints something else than the one before it."""

    since: tuple[int, ...]
    """The first release with this output."""
    why: tuple[str, ...]
    """The change."""

    @property
    def release(self) -> str:
        """The release as text: "0.8.2"."""
        return ".".join(map(str, self.since))


def _all() -> tuple[Change, ...]:
    reasons: dict[tuple[int, ...], list[str]] = {}
    for table in TABLES:
        for dialect in table:
            reasons.setdefault(dialect.since, []).append(dialect.why)
    return tuple(Change(since, tuple(dict.fromkeys(why))) for since, why in sorted(reasons.items()))


CHANGES: Final = _all()


def find(text: str) -> Change:
    """Return the last change that release ``text`` has; a short one such as "4.2" means its last patch.

    Raises UsageError when it is no release number or older than the oldest dialect.
    """
    return newest(CHANGES, text)
