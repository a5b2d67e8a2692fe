"""Where records may be that a log lacks: advice that hangs on the number of replicas."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kdump.findings import Finding

MAY_HAVE: Final = "Another replica may have them."
TAKE_IT: Final = "With the broker stopped, take it from another replica of the partition."
TAKE_PARTITION: Final = "What loads this topic fails at it, or passes it over: take the partition from another replica."
ALONE: Final = "The partition has one replica: no other broker has them. Look for a backup or the disk."
_ALONE: Final = {
    MAY_HAVE: ALONE,
    TAKE_IT: "The partition has one replica: with the broker stopped, take the file from a backup.",
    TAKE_PARTITION: "What loads this topic fails at it, or passes it over. The partition has one replica: take it from "
    "a backup.",
}
"""Advice on another replica -> advice where there is none."""


def of_one_replica(finding: Finding) -> Finding:
    """Return a finding on a partition that has one replica: its advice does not name another."""
    advice = _ALONE.get(finding.advice)
    return finding if advice is None else replace(finding, advice=advice)
