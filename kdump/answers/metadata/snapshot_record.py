"""A record of a snapshot: what an image is made of, in the form of Kafka's own tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.internal_topics.cluster_metadata import MESSAGES

if TYPE_CHECKING:
    from kdump.answers.metadata.records import Fields
    from kdump.internal_topics.schema import Struct

_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "FeatureLevelRecord": ("name",),
    "ZkMigrationStateRecord": (),
    "RegisterBrokerRecord": ("brokerId",),
    "RegisterControllerRecord": ("controllerId",),
    "TopicRecord": ("topicId",),
    "PartitionRecord": ("topicId", "partitionId"),
    "ConfigRecord": ("resourceType", "resourceName", "name"),
    "ClientQuotaRecord": ("entity", "key"),
    "ProducerIdsRecord": (),
    "AccessControlEntryRecord": ("id",),
    "UserScramCredentialRecord": ("mechanism", "name"),
    "DelegationTokenRecord": ("tokenId",),
}
"""Message -> the fields that say which thing it is about."""


class SnapshotRecord(NamedTuple):
    """One record of an image."""

    name: str
    version: int
    fields: Fields

    @property
    def struct(self) -> Struct:
        """The layout of the record in its version."""
        return MESSAGES[self.name].struct(self.version)

    @property
    def key(self) -> str:
        """What it is about: two images have one record of a key at most."""
        return repr((self.name, [self.fields[field] for field in _KEYS[self.name]]))

    @property
    def text(self) -> str:
        """The JSON of ``--cluster-metadata-decoder``: type, version, data."""
        from kdump.dump_log_segments.decoders import java  # a replay needs neither
        from kdump.dump_log_segments.decoders.framed import metadata_head

        return f"{metadata_head(self.struct, self.version)}{java.json(self.struct, self.fields)}}}"

    @property
    def plain(self) -> dict[str, Any]:
        """The same as an object."""
        import json  # slow to import, and few runs print an image

        plain: dict[str, Any] = json.loads(self.text)
        return plain
