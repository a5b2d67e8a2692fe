"""The release of a broker: the metadata and configs that it accepts, and its rules for loading logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.broker_start.outcome import StartCause
from kdump.dump_log_segments.dialects import LAST_MINORS, known_release
from kdump.errors import DamageError
from kdump.findings.codes import Code
from kdump.internal_topics import CLUSTER_METADATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kdump.internal_topics.schema import MessageSchema
    from kdump.records.record_batch import Batches

NEWEST: Final = ".".join(map(str, max(LAST_MINORS.items())))

LEAST_LEVEL: Final = 7
"""3.3-IV3: the lowest level of metadata.version that 4.0 and later support."""
FEATURES: Final[Mapping[str, Mapping[tuple[int, ...], int]]] = {
    "kraft.version": {(3, 9): 1},
    "group.version": {(4, 0): 1},
    "transaction.version": {(4, 0): 2},
    "eligible.leader.replicas.version": {(4, 0): 1},
    "share.version": {(4, 1): 1, (4, 4): 2},
    "streams.version": {(4, 2): 1},
}
"""Feature -> first release -> the highest level from it on. Source: ``QuorumFeatures.defaultSupportedFeatureMap``."""


PREVIEW_RECORD: Final = (
    "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release of "
    "KRaft in 2.8 to newer versions are not supported"
)
"""Why no release after 2.8 reads a record of that frame version (``AbstractApiMessageSerde.read``)."""


class LeastValue(NamedTuple):
    """The least value of a topic config from release ``since`` on: a broker does not start with a smaller value."""

    config: str
    since: tuple[int, int]
    least: int


LEAST_VALUES: Final = (LeastValue("segment.bytes", (4, 1), 1 << 20),)
"""The only least value that changed between 3.9 and 4.4: releases 3.9 and 4.0 accept a segment.bytes of 14."""


class StartRelease(NamedTuple):
    """A release: its name as the user gave it, and its number."""

    name: str
    number: tuple[int, ...]

    @property
    def highest_level(self) -> int:
        """The highest level of metadata.version that the release supports."""
        from kdump.answers.metadata.records import LEVEL_NAMES

        known = (level for level, name in LEVEL_NAMES.items() if _minor(name) <= self.number[:2])
        return max(known, default=0)

    @property
    def lowest_level(self) -> int:
        return LEAST_LEVEL if self.number >= (4, 0) else 1

    def highest_of(self, feature: str) -> int:
        """Return the highest supported level of a feature other than metadata.version; 0 if the release lacks it."""
        return max((level for since, level in FEATURES.get(feature, {}).items() if since <= self.number), default=0)

    @property
    def limits_min_isr(self) -> bool:
        """Whether a broker limits min.insync.replicas to the number of replicas (``effectiveMinIsr``)."""
        return self.number >= (3, 7)

    @property
    def searches_bases(self) -> bool:
        """Whether a search for an offset compares the base offsets of batches, not their last offsets (KAFKA-18989)."""
        return self.number >= (4, 1)

    @property
    def forgives_io(self) -> bool:
        """Whether recovery empties a segment after an I/O error, so that its log dir stays online (``recoverLog``)."""
        return self.number >= (4, 0)

    @property
    def checks_marker_size(self) -> bool:
        """Whether a short value of a transaction marker counts as an invalid record (KAFKA-10864)."""
        return self.number < (4, 1)

    @property
    def ends_leaderships(self) -> bool:
        """Whether a killed broker's partitions lose their leader when the broker registers again (measured)."""
        return self.number >= (4, 0)

    @property
    def needs_metadata_version(self) -> bool:
        """Whether a node fails without a record of metadata.version (``FeaturesImage.metadataVersionOrThrow``)."""
        return self.number >= (4, 0)

    @property
    def least_values(self) -> list[LeastValue]:
        return [each for each in LEAST_VALUES if each.since <= self.number]

    @property
    def is_newest(self) -> bool:
        return self.number[:2] == max(LAST_MINORS.items())

    def too_new(self, found: Batches, file: str, *, replayed: bool = True) -> Iterator[StartCause]:
        """Yield the first reason, if any, why the release cannot read these batches of the metadata log.

        ``replayed``: the records are not only read, but applied, so that the release must support the feature levels.
        Only older releases than the newest have such reasons: a replay finds the records that no release can read.
        """
        if self.is_newest:
            return
        from kdump.internal_topics import cluster_metadata
        from kdump.internal_topics.schema import by_type

        messages = by_type(cluster_metadata.MESSAGES, "Record", self.number)
        for batch in found.batches():
            if batch.is_control:
                continue
            try:
                for record in batch.records():
                    value = record.value or b""
                    error, reason = "MetadataParseException", PREVIEW_RECORD if value[:1] == b"\0" else ""
                    if not reason:
                        error, reason = "UnsupportedVersionException", _unread(value, messages, self.number)
                    if not reason and replayed:
                        error, reason = "RuntimeException", self._unsupported(value, messages)
                    if reason:
                        text = f"{error}: offset {record.offset}: {reason}"
                        yield StartCause(code=Code.METADATA_TOO_NEW, file=file, text=text)
                        return
            except DamageError:
                return

    def _unsupported(self, value: bytes, messages: dict[int, MessageSchema]) -> str:
        """Return why a controller refuses a feature level in a record, or "" (``FeatureControlManager.replay``)."""
        known = messages.get(value[1]) if len(value) > 2 else None
        if known is None or known.name != "FeatureLevelRecord":
            return ""
        from kdump.answers.metadata.records import METADATA_VERSION
        from kdump.internal_topics.decode import decode

        found = decode(CLUSTER_METADATA, None, value)
        fields: Any = None if found is None or found.value is None else found.value.values
        if not fields or fields["name"] == METADATA_VERSION:  # the image has the level of metadata.version
            return ""
        name, level = fields["name"], fields["featureLevel"]
        if level <= self.highest_of(name):
            return ""
        return f"{name} has level {level}, but {self.name} supports at most level {self.highest_of(name)}"


def _unread(value: bytes, messages: dict[int, MessageSchema], release: tuple[int, ...]) -> str:
    """Return why a release cannot read a record, or "". ``value`` has the type in byte 1, the version in byte 2."""
    from kdump.internal_topics import cluster_metadata
    from kdump.internal_topics.interpreter import FRAME
    from kdump.internal_topics.schema import by_type

    if len(value) < 3 or max(value[:3]) > 0x7F:
        return ""
    if value[0] != FRAME:
        return f"frame version {value[0]} is unknown"
    number, version = value[1], value[2]
    message = messages.get(number)
    if message is None:
        newest = by_type(cluster_metadata.MESSAGES, "Record").get(number)
        return f"{f'record type {number}' if newest is None else newest.name} is unknown"
    versions = message.versions(release)
    return "" if versions is None or version <= versions.highest else f"can't read version {version} of {message.name}"


def _minor(name: str) -> tuple[int, ...]:
    """Return the minor release of a metadata.version: (4, 2) for 4.2-IV1."""
    return tuple(int(part) for part in name.partition("-")[0].split("."))


def minor_of(level: int) -> tuple[int, ...]:
    """Return the oldest minor release with a level of metadata.version, such as (4, 2); () for an unknown level."""
    from kdump.answers.metadata.records import LEVEL_NAMES

    return _minor(LEVEL_NAMES[level]) if level in LEVEL_NAMES else ()


def of(name: str) -> StartRelease:
    """Return the release of a number such as 4.2.2, 4.2 or 4 (its last minor). Raises UsageError for an unknown one."""
    number = known_release(name)
    return StartRelease(name, number if len(number) > 1 else (*number, LAST_MINORS[number[0]]))
