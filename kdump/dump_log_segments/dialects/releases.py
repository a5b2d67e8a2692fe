"""Lists the releases that changed the output of DumpLogSegments, from all tables of dialects (for ``kdump compat``)."""

from __future__ import annotations

from typing import Final, NamedTuple

from kdump.dump_log_segments.dialects import newest
from kdump.dump_log_segments.dialects import payload as dialects_payload
from kdump.dump_log_segments.dialects import segments as dialects
from kdump.dump_log_segments.dialects import state as dialects_state

TABLES: Final = (dialects.DIALECTS, dialects_state.DIALECTS, dialects_payload.DIALECTS)


class Change(NamedTuple):
    """A release with changed output, and the changes since the release before."""

    since: tuple[int, ...]
    why: tuple[str, ...]

    @property
    def release(self) -> str:
        return ".".join(map(str, self.since))


def _all() -> tuple[Change, ...]:
    reasons: dict[tuple[int, ...], list[str]] = {}
    for table in TABLES:
        for dialect in table:
            reasons.setdefault(dialect.since, []).append(dialect.why)
    return tuple(Change(since, tuple(dict.fromkeys(why))) for since, why in sorted(reasons.items()))


CHANGES: Final = _all()


def find(text: str) -> Change:
    """Return the newest change up to release ``text``. Raises UsageError like :func:`newest`."""
    return newest(CHANGES, text)
