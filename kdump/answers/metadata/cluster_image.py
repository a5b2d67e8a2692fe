"""The image of a cluster: what all records of the metadata log below an offset come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.metadata.image_parts import Acls, Cluster, Configs, ProducerIds, Quotas, Scram, Tokens
from kdump.answers.metadata.records import Fields, ReplayError
from kdump.answers.metadata.snapshot_record import SCRAM_SINCE, TOKENS_SINCE, Features
from kdump.answers.metadata.topics import Topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.answers.metadata.snapshot_record import SnapshotRecord


class ClusterImage:
    """What the metadata log says at an offset, area by area, as ``MetadataImage`` of Kafka.

    ``topics.by_name`` and ``topics.by_id`` have the topics, each with its partitions; ``configs.topic(name)`` a
    topic's own configs, ``configs.broker_defaults`` and ``configs.broker(id)`` the dynamic ones of brokers.
    """

    def __init__(self) -> None:
        self.end_offset = 0
        """Every record below this offset is applied."""
        self.epoch = 0
        """The leader epoch of the last of them."""
        self.timestamp = -1
        """When the last of them was appended, in ms; -1 for none."""
        self.open_transaction: int | None = None
        """Where a metadata transaction (KIP-868) begins that has no end below ``end_offset``: it is not applied."""
        self.cut_batch: int | None = None
        """The base offset of a batch that ``end_offset`` lies in, None between batches."""
        self.features = Features()
        self.cluster = Cluster()
        self.topics = Topics()
        self.configs = Configs()
        self.quotas = Quotas()
        self.producer_ids = ProducerIds()
        self.acls = Acls()
        self.scram = Scram()
        self.tokens = Tokens()
        self.voters: list[Fields] | None = None
        """The voters of the last VotersRecord (KIP-853), or None if they are static."""
        self.voter_ids: list[int] = []
        """The voters that the log names last; with one alone all that is there is committed."""
        self.kraft_version = 0
        areas = (self.features, self.cluster, self.topics, self.configs, self.quotas, self.producer_ids, self.acls)
        self.handlers: Final = _Handlers(
            {name: handler for area in (*areas, self.scram, self.tokens) for name, handler in area.handlers().items()}
            | {
                "RemoveTopicRecord": self._remove_topic,
                "VotersRecord": self._set_voters,
                "KRaftVersionRecord": self._set_kraft_version,
                "LeaderChangeMessage": self._set_leader,
            }
            | dict.fromkeys(_WITHOUT_EFFECT, _nothing)
        )
        """By name what applies the fields of a record.

        Each raises ReplayError, with the image unchanged, for a record that does not fit it.
        """

    def _remove_topic(self, fields: Fields) -> None:
        self.configs.remove_topic(self.topics.remove(fields["topicId"]))

    def _set_voters(self, fields: Fields) -> None:
        self.voters = fields["voters"]
        self._set_leader(fields)

    def _set_leader(self, fields: Fields) -> None:
        self.voter_ids = [voter["voterId"] for voter in fields["voters"]]

    def _set_kraft_version(self, fields: Fields) -> None:
        self.kraft_version = fields["kRaftVersion"]

    def records(self) -> Iterator[SnapshotRecord]:
        """Yield the records of Kafka's snapshot of this image, in its order; within an area by key."""
        level = self.features.metadata_version
        yield from self.features.records()
        yield from self.cluster.records(level)
        yield from self.topics.records(self.features)
        yield from self.configs.records()
        yield from self.quotas.records()
        yield from self.producer_ids.records()
        yield from self.acls.records()
        if level >= SCRAM_SINCE:
            yield from self.scram.records()
        if level >= TOKENS_SINCE:
            yield from self.tokens.records()


class _Handlers(dict[str, "Callable[[Fields], None]"]):
    """Record name -> the function that applies its fields. Raises ReplayError for a record that no release replays."""

    def __missing__(self, name: str) -> Callable[[Fields], None]:
        raise ReplayError(f"no release replays a {name}")


_WITHOUT_EFFECT: Final = ("NoOpRecord", "SnapshotHeaderRecord", "SnapshotFooterRecord")


def _nothing(_: Fields) -> None:
    pass
