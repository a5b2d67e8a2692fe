"""The levels of ``metadata.version``, and the version that each gives to a snapshot's records.

Source: ``org.apache.kafka.server.common.MetadataVersion`` of 3.9, 4.3.1 and 4.4.0.
"""

from __future__ import annotations

from typing import Final

FEATURE: Final = "metadata.version"

NAMES: Final = dict(
    enumerate(
        (
            *("3.0-IV1", "3.1-IV0", "3.2-IV0"),
            *("3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0"),
            *("3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
            *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
            *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1"),
            *("4.2-IV0", "4.2-IV1", "4.3-IV0", "4.4-IV0", "4.4-IV1", "4.4-IV2"),
        ),
        start=1,
    )
)
"""Level -> name."""

LEAST: Final = 1
"""What holds where the log names no level: releases before 3.3 wrote none."""
FEATURES_SINCE: Final = 4
MIGRATION: Final = range(8, 22)
"""The levels that know a migration from ZooKeeper: 3.4 to 3.9."""
SCRAM_SINCE: Final = 11
TOKENS_SINCE: Final = 14
CONTROLLERS_SINCE: Final = 15

_RECORD_VERSIONS: Final = {
    "RegisterBrokerRecord": ((30, 4), (17, 3), (8, 2), (7, 1)),
    "PartitionRecord": ((23, 2), (17, 1)),
}


def record_version(name: str, level: int) -> int:
    """Return the version in which a snapshot of ``level`` has a record."""
    return next((version for since, version in _RECORD_VERSIONS.get(name, ()) if level >= since), 0)


def level_name(level: int) -> str:
    """Return "4.2-IV1" for 29; the number for a level that is not known."""
    return NAMES.get(level, str(level))
