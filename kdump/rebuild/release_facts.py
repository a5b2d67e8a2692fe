"""Facts of releases that a rebuilt cluster depends on: features, and the bounds of topic configs.

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
"""The level of metadata.version that kraft.version 1 depends on."""
UNCLEAN_SINCE: Final = 23
"""4.0-IV1: from this level on a broker leaves every ISR after an unclean stop (KIP-966)."""
LEAST_LEVEL: Final = 7
"""3.3-IV3: 4.0 and later support no older level."""

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
"""Minor release -> the features that it finalizes when it formats a cluster."""


class LeastValue(NamedTuple):
    """The least value of a topic config in a release: a broker does not start with a smaller one."""

    config: str
    since: tuple[int, int]
    least: int


LEAST_VALUES: Final = (LeastValue("segment.bytes", (4, 1), 1 << 20),)
"""The only bound that changed from 3.9 to 4.4. 4.0 accepts segments of 14 bytes, as 3.9 does."""


def least_values(to: StartRelease) -> list[LeastValue]:
    return [each for each in LEAST_VALUES if each.since <= to.number]


def default_features(to: StartRelease) -> dict[str, int]:
    """Return the features that a release finalizes in a new cluster. Raises UsageError for a release without KRaft."""
    known = [minor for minor in FEATURES if minor <= to.number[:2]]
    if not known:
        raise UsageError(f"--release {to.name} runs no KRaft: 3.3 and later do")
    return dict(FEATURES[max(known)])


def oldest_for(level: int) -> StartRelease:
    """Return the oldest release that supports a level of metadata.version. Raises UsageError for an unknown level."""
    for minor in FEATURES:
        found = release.of(".".join(map(str, minor)))
        if found.highest_level >= level:
            return found
    newest = level_name(max(LEVEL_NAMES))
    raise UsageError(
        f"metadata.version is {level}, and kdump knows levels up to {newest}: "
        "use a newer kdump, or name the release with --release"
    )


def has_voters(to: StartRelease) -> bool:
    """Return whether the voters of a cluster of this release may be in its metadata log."""
    return to.number >= VOTERS_SINCE


def caps_min_isr(to: StartRelease) -> bool:
    """Return whether a min.insync.replicas above the number of replicas counts as that number (``effectiveMinIsr``)."""
    return to.number >= (3, 7)


def has_share_groups(to: StartRelease) -> bool:
    """Return whether a broker has a coordinator of share groups, with a topic of its own (KIP-932, 4.1)."""
    return to.number >= (4, 1)
