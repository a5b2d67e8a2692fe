"""The facts of releases that a rebuilt cluster depends on: features, and the bounds of topic configs.

Sources: ``kafka-storage version-mapping`` of 4.0.2 to 4.4.0; ``LogConfig`` and its validators of 3.9.2 to 4.4.0;
``MetadataVersion.LATEST_PRODUCTION`` of 3.3 to 3.8; KIP-853 (3.9) for voters in the metadata log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.answers.metadata.records import LEVEL_NAMES, level_name
from kdump.broker_start import release
from kdump.errors import UsageError

if TYPE_CHECKING:
    from kdump.broker_start.release import StartRelease

VOTERS_SINCE: Final = (3, 9)
"""The first release whose voters may be in the metadata log (kraft.version 1, KIP-853)."""
VOTERS_LEVEL: Final = 21
"""The lowest level of metadata.version for kraft.version 1."""
UNCLEAN_SINCE: Final = 23
"""4.0-IV1: from this level on, a broker leaves every ISR after an unclean stop (KIP-966)."""
LEAST_LEVEL: Final = 7
"""3.3-IV3: the lowest level that 4.0 and later support."""

_GROUPS: Final = {"group.version": 1, "transaction.version": 2}
_SHARES: Final = {"eligible.leader.replicas.version": 1, "share.version": 1, "streams.version": 1}
FEATURES: Final[dict[tuple[int, int], dict[str, int]]] = {
    (3, 3): {"metadata.version": 7},
    (3, 4): {"metadata.version": 8},
    (3, 5): {"metadata.version": 11},
    (3, 6): {"metadata.version": 14},
    (3, 7): {"metadata.version": 19},
    (3, 8): {"metadata.version": 20},
    (3, 9): {"metadata.version": 21},
    (4, 0): {"metadata.version": 25, **_GROUPS},
    (4, 1): {"metadata.version": 27, **_GROUPS, "eligible.leader.replicas.version": 1},
    (4, 2): {"metadata.version": 29, **_GROUPS, **_SHARES},
    (4, 3): {"metadata.version": 30, **_GROUPS, **_SHARES},
    (4, 4): {"metadata.version": 33, **_GROUPS, **_SHARES, "share.version": 2},
}
"""Minor release -> the feature levels of a cluster that this release formats."""


class LeastValue(NamedTuple):
    """The least value of a topic config from release ``since`` on: a broker does not start with a smaller value."""

    config: str
    since: tuple[int, int]
    least: int


LEAST_VALUES: Final = (LeastValue("segment.bytes", (4, 1), 1 << 20),)
"""The only bound that changed between 3.9 and 4.4. Releases 3.9 and 4.0 accept segments of 14 bytes."""


def least_values(to: StartRelease) -> list[LeastValue]:
    return [each for each in LEAST_VALUES if each.since <= to.number]


def default_features(to: StartRelease) -> dict[str, int]:
    """Return the feature levels of a cluster that a release formats. Raises UsageError for a release before 3.3."""
    known = [minor for minor in FEATURES if minor <= to.number[:2]]
    if not known:
        raise UsageError(f"--release {to.name} has no KRaft: use 3.3 or later")
    return dict(FEATURES[max(known)])


def oldest_for(level: int) -> StartRelease:
    """Return the oldest release that supports a level of metadata.version. Raises UsageError for an unknown level."""
    for minor in FEATURES:
        found = release.of(".".join(map(str, minor)))
        if found.highest_level >= level:
            return found
    newest = level_name(max(LEVEL_NAMES))
    raise UsageError(
        f"metadata.version is {level}, but kdump knows only levels up to {newest}: "
        "use a newer kdump, or give the release with --release"
    )


def has_voters(to: StartRelease) -> bool:
    """Return whether this release can have the voters in the metadata log."""
    return to.number >= VOTERS_SINCE


def caps_min_isr(to: StartRelease) -> bool:
    """Return whether this release limits min.insync.replicas to the number of replicas (``effectiveMinIsr``)."""
    return to.number >= (3, 7)


def has_share_groups(to: StartRelease) -> bool:
    """Return whether this release has the coordinator of share groups, and the topic for it (KIP-932, 4.1)."""
    return to.number >= (4, 1)
