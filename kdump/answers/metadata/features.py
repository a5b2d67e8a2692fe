"""The finalized features of a cluster (KIP-584), among them ``metadata.version``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.answers.metadata import metadata_versions
from kdump.answers.metadata.snapshot_record import SnapshotRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.answers.metadata.records import Fields


class Features:
    """``levels`` has each finalized feature; ``zk_migration`` is the state of a migration from ZooKeeper."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}
        self.zk_migration = 0

    @property
    def metadata_version(self) -> int:
        """The level of ``metadata.version``; the least one where no record names any."""
        return self.levels.get(metadata_versions.FEATURE, metadata_versions.LEAST)

    @property
    def has_elr(self) -> bool:
        """Whether partitions have eligible leader replicas (KIP-966)."""
        return self.levels.get("eligible.leader.replicas.version", 0) > 0

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        """Return what applies each record."""
        return {
            "FeatureLevelRecord": self._set,
            "RemoveFeatureLevelRecord": self._remove,
            "ZkMigrationStateRecord": self._migrate,
        }

    def _set(self, fields: Fields) -> None:
        level = fields["featureLevel"] if "featureLevel" in fields else fields["maxFeatureLevel"]  # before 3.3
        if level or fields["name"] == metadata_versions.FEATURE:
            self.levels[fields["name"]] = level
        else:
            self.levels.pop(fields["name"], None)

    def _remove(self, fields: Fields) -> None:
        self.levels.pop(fields["name"], None)

    def _migrate(self, fields: Fields) -> None:
        self.zk_migration = fields["zkMigrationState"]

    def records(self) -> Iterator[SnapshotRecord]:
        """Yield the records of a snapshot: first ``metadata.version``, by which the others are read."""
        if self.metadata_version < metadata_versions.FEATURES_SINCE:
            return
        for name in sorted(self.levels, key=lambda name: (name != metadata_versions.FEATURE, name)):
            yield SnapshotRecord("FeatureLevelRecord", 0, {"name": name, "featureLevel": self.levels[name]})
        if self.zk_migration and self.metadata_version in metadata_versions.MIGRATION:
            yield SnapshotRecord("ZkMigrationStateRecord", 0, {"zkMigrationState": self.zk_migration})
