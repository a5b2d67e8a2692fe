"""The metadata of a rebuilt cluster: the image read from the old volumes, and the snapshot for the new nodes.

In order: :func:`found` returns the old image, :func:`release_for` the release of the new nodes, and :func:`rebuilt` the
new image. :func:`change_voters` and :func:`what_to_do` serve ``kdump metadata --voters``.

A snapshot for nodes of 3.9.2 to 4.4.0 must have these properties (KIP-630, KIP-853, KIP-858):

- It must end after the log of every remaining copy. Otherwise a broker follows the new leader, but never loads the
  snapshot. The snapshot's epoch must be above the epoch of every ``quorum-state``. Otherwise a node with a higher epoch
  follows no leader.
- Each new broker has a fenced registration. With a registration of the old cluster, a node would wait until the session
  of this registration ends. Without a registration, a follower that loads the snapshot before its leader registers
  would never get the leader's address.
- The leader epoch of a partition must be above the epochs of its batches. The leader must be set: none is elected.
- From metadata.version 4.0-IV1 on, the ISR has only the leader; before, it has all replicas. Since this version, a
  broker that registers after an unclean stop is removed from every ISR (KIP-966). This applies to every new broker. A
  larger ISR would shrink, with new leaders, while the nodes register. The other replicas join it within seconds.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple
from uuid import uuid4

from kdump.answers.metadata.cluster_image import BROKER_RESOURCE, TOPIC_RESOURCE, ClusterImage
from kdump.answers.metadata.image import Copies, MetadataLog, topic_names
from kdump.answers.metadata.records import LEVEL_NAMES, METADATA_VERSION, level_name
from kdump.answers.metadata.topics import PartitionImage
from kdump.broker_start import release
from kdump.broker_start.release import LEAST_LEVEL
from kdump.errors import DamageError, Reporter, UnreadableError, UsageError, without_path
from kdump.formats import leader_epoch, quorum_state
from kdump.formats.partition_metadata import id_text
from kdump.internal_topics import consumer_offsets, remote_log_metadata, share_group_state, transaction_state
from kdump.log_dirs import file_names
from kdump.primitives.encodings import java_config_integer
from kdump.rebuild.coordinators import partition_counts
from kdump.rebuild.nodes import PROTOCOLS, Listeners, address, new_directory_id
from kdump.segments.log_end import LogEnd, end_of_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kdump.answers.metadata.records import Fields
    from kdump.broker_start.release import StartRelease
    from kdump.log_dirs.partition import Partition
    from kdump.rebuild.nodes import NewNode, Replicas, Voter
    from kdump.rebuild.volumes import VolumeFolder, Volumes


BEYOND: Final = 1_000_000
"""The number of offsets between the end of the longest copy and the end of the new snapshot.

A node whose log dir is not in the input may have a longer log: an idle controller appends 864,000 records in five days.
"""
ABOVE: Final = 1_000
"""The epoch of the new snapshot minus the highest known epoch. Failed elections may have raised the real epoch."""
SPARE_IDS: Final = 1_000
"""The size of a block of producer ids. At least one is skipped: a broker may have used it before the loss."""
OLD_LEADER: Final = -1
"""Stands for each replica of a partition whose replicas are unknown."""

INTERNAL_CONFIGS: Final[dict[str, dict[str, str]]] = {
    consumer_offsets.TOPIC: {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    },
    transaction_state.TOPIC: {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    },
    share_group_state.TOPIC: {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "2",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    },
    remote_log_metadata.TOPIC: {"cleanup.policy": "delete", "retention.ms": "-1"},
}
"""The configs with which a broker creates internal topics. A broker adds no config to an existing topic."""
KEEP_ALL: Final = {"retention.bytes": "-1", "retention.ms": "-1"}
"""The configs of user topics that are not in the metadata log. With Kafka's defaults a broker would delete records."""
MIN_ISR: Final = "min.insync.replicas"

# Sources: ``kafka-storage version-mapping`` of 4.0.2 to 4.4.0; ``LogConfig`` and its validators of 3.9.2 to 4.4.0;
# ``MetadataVersion.LATEST_PRODUCTION`` of 3.3 to 3.8; KIP-853 (3.9) for voters in the metadata log.
VOTERS_LEVEL: Final = 21
"""The lowest level of metadata.version for kraft.version 1."""
UNCLEAN_SINCE: Final = 23
"""Level 4.0-IV1 of metadata.version. From this level on, a broker leaves every ISR after an unclean stop (KIP-966)."""

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


@dataclass(frozen=True)
class ClusterChange:
    """A difference from the old cluster. ``value``: the old value of the object; for ``batches`` their position."""

    kind: ClassVar[str] = "dropped"
    what: str
    """``topic config``, ``broker config``, ``feature``, ``folder``, ``topic``, ``partition`` or ``batches``."""
    name: str
    key: str | None
    value: str | None
    why: str


class LostCluster(NamedTuple):
    """The metadata of the lost cluster, as read from its log dirs."""

    image: ClusterImage
    sources: tuple[str, ...]
    """The copies of the metadata log; empty if there is none."""
    breaks: tuple[str, ...]
    """Damage in the copies, and records that cannot be replayed."""
    log_end: int
    epoch: int
    changes: tuple[ClusterChange, ...]

    @property
    def from_log(self) -> bool:
        """Whether a volume has a metadata log. If it is damaged or has no topic, folders may add topics."""
        return bool(self.sources)

    @property
    def end_offset(self) -> int:
        return self.log_end + BEYOND

    @property
    def new_epoch(self) -> int:
        return self.epoch + ABOVE


class CopyEnds(NamedTuple):
    end_offset: int
    epoch: int


def ends(copies: Sequence[Partition], note: Callable[[str], None]) -> CopyEnds:
    """Return the highest end offset and epoch in the copies. ``note`` receives each invalid or unreadable file."""
    end, epoch = 0, 0
    for copy in copies:
        for snapshot in Copies([copy], Reporter(damage=note, note=note, fail=lambda error: note(str(error)))).snapshots:
            end, epoch = max(end, snapshot.end_offset), max(epoch, snapshot.epoch)
        logs = [each for each in copy.segments if not file_names.is_kraft_snapshot(each.path)]
        for segment in logs[-1:]:
            try:
                found = end_of_log(copy._replace(segments=(segment,)))
            except UnreadableError as error:
                note(f"{error}; the new snapshot ends {BEYOND} offsets after the other copies")
                found = LogEnd(segment.base_offset or 0)
            end, epoch = max(end, found.offset), max(epoch, found.epoch)
        epoch = max(epoch, *_epochs(copy, note), 0)
    return CopyEnds(end, epoch)


def _epochs(copy: Partition, note: Callable[[str], None]) -> Iterator[int]:
    readers: dict[str, Callable[[bytes], int]] = {
        file_names.QUORUM_STATE: lambda data: quorum_state.read(data).leader_epoch,
        file_names.LEADER_EPOCHS: lambda data: max((entry.epoch for entry in leader_epoch.read(data)), default=0),
    }
    for name, highest in readers.items():
        try:
            data = copy.file(name)
            if data is not None:
                yield highest(data)
        except (DamageError, UnreadableError) as error:
            path = copy.files.shown(posixpath.join(copy.folder, name))
            note(f"{path}: {without_path(error)}; the new epoch is {ABOVE} above the epochs of all other files")


def found(volumes: Volumes, release: StartRelease | None, report: Reporter) -> LostCluster:
    """Return the metadata of the lost cluster, from its metadata log.

    Without a metadata log the topics come from folder names; if the log is damaged or has no topic, folders add topics
    and partitions. Folders with the id of a known topic always add their partitions: the log may be older than them.
    ``release``: release of the new nodes, used if the log is absent, or damaged without a metadata.version. Raises
    UsageError if it is then None or before 3.3.
    """
    copies, breaks = volumes.metadata_copies, list[str]()

    def damage(text: str) -> None:
        breaks.append(text)
        report.damage(text)

    replay = Copies(copies, report._replace(damage=damage))
    if not replay:
        image = ClusterImage()
        _set_levels(image, release, "no volume has a metadata log (__cluster_metadata-0)")
        changes = _add_topics(image, _topic_folders(volumes, image), report.fail)
        return LostCluster(image, (), (), 0, 0, tuple(changes))
    log = MetadataLog(replay)
    image = log.image()
    if image.open_transaction is not None:
        report.note(f"the metadata transaction at offset {image.open_transaction} has no end, so it is not applied")
    end = ends(copies, report.note)
    changes = []
    folders = _topic_folders(volumes, image)
    if log.breaks or not image.topics.by_name:
        changes += _complete(image, folders, release, report.fail)
    else:
        with_id = [each for each in folders if each.topic_id is not None]
        changes += add_partitions(image, with_id, "the metadata log ends before this partition was added to the topic")
    sources = tuple(copy.files.shown(copy.folder) for copy in copies)
    top = max(end.epoch, image.epoch)
    return LostCluster(image, sources, tuple(breaks), max(end.end_offset, image.end_offset), top, tuple(changes))


_TOPIC_STATES: Final = ("", file_names.FUTURE_FOLDER, file_names.STRAY_FOLDER)
"""The states of folders that count as topics: live, -future and -stray. Wrong metadata makes folders stray."""
MOST_ADDED: Final = 10_000
"""The most partitions that a request adds to a topic (``ReplicationControlManager.MAX_PARTITIONS_PER_BATCH``)."""


def _topic_folders(volumes: Volumes, image: ClusterImage) -> list[VolumeFolder]:
    """Return the folders that count as topics, with whole names of topics where other folders or ``image`` have them.

    Folders of a far too high number are left out, such as a user's copy ``orders-20240101``.
    """
    names = {each.topic_id: each.topic for each in volumes.folders if not each.is_name_cut} | {**topic_names(image)}
    folders = [
        replace(each, topic=names.get(each.topic_id, each.topic)) if each.is_name_cut else each
        for each in volumes.folders
        if each.state in _TOPIC_STATES
    ]
    numbers: dict[str, set[int]] = {name: {*topic.partitions} for name, topic in image.topics.by_name.items()}
    for each in folders:
        numbers.setdefault(each.topic, set()).add(each.number)
    highest = {name: _highest(found) for name, found in numbers.items()}
    return [each for each in folders if each.number <= highest[each.topic]]


def _highest(numbers: Iterable[int]) -> int:
    """Return the highest number that is reached without a gap of MOST_ADDED numbers, or -1."""
    highest = -1
    for number in sorted(numbers):
        if number - highest > MOST_ADDED:
            break
        highest = number
    return highest


def _set_levels(image: ClusterImage, release: StartRelease | None, why: str) -> None:
    """Set the feature levels of a release. Raises UsageError, with the reason ``why``, if none is given."""
    if release is None:
        raise UsageError(f"{why}: give the release of the new nodes, such as --release 4.3.1")
    image.features.levels.update(default_features(release))


def _complete(
    image: ClusterImage,
    folders: Sequence[VolumeFolder],
    release: StartRelease | None,
    fail: Callable[[UnreadableError], None],
) -> list[ClusterChange]:
    """Add topics and partitions that the image lacks, because the metadata log is damaged or has no topic."""
    if METADATA_VERSION not in image.features.levels:
        _set_levels(image, release, "the metadata log is damaged and has no metadata.version")
    known = [
        each for each in folders if each.topic not in image.topics.by_name and each.topic_id not in image.topics.by_id
    ]
    why = "the metadata log is damaged: the record of the partition is lost"
    return [*add_partitions(image, folders, why), *_add_topics(image, known, fail)]


def add_partitions(image: ClusterImage, folders: Sequence[VolumeFolder], why: str) -> list[ClusterChange]:
    """Add the missing partitions of known topics, up to the highest number in the image or in the folders."""
    highest: dict[bytes, int] = {}
    for folder in folders:
        topic = image.topics.by_name.get(folder.topic)
        if topic is not None and folder.topic_id in (topic.id, None):
            highest[topic.id] = max(highest.get(topic.id, 0), folder.number)
    changes = []
    for topic in image.topics.by_id.values():
        factor = max((len(state.replicas) for state in topic.partitions.values()), default=1)
        for number in range(max(max(topic.partitions, default=-1), highest.get(topic.id, -1)) + 1):
            if number not in topic.partitions:
                topic.partitions[number] = _partition((OLD_LEADER,) * factor, 0, 0)
                changes.append(ClusterChange("partition", topic.name, str(number), None, why))
    return changes


def _add_topics(
    image: ClusterImage, folders: Sequence[VolumeFolder], fail: Callable[[UnreadableError], None]
) -> list[ClusterChange]:
    """Add the topics of ``folders``. If a name has several ids, the id with the highest :func:`_rank` is used."""
    by_name: dict[str, dict[bytes | None, list[VolumeFolder]]] = {}
    for folder in folders:
        by_name.setdefault(folder.topic, {}).setdefault(folder.topic_id, []).append(folder)
    changes = []
    counts = partition_counts(folders, fail)
    for name, ids in sorted(by_name.items()):
        number = max(ids, key=lambda one: _rank(one, ids[one]))
        copies = [each for one, held in ids.items() if one in (number, None) for each in held]
        number = new_directory_id() if number is None else number
        _add_topic(image, name, number, copies, counts.get(name, 0))
        for other in ids:
            if other not in (number, None):
                why = f"the topic was deleted and created again: id {id_text(number)} is newer"
                changes.append(ClusterChange("topic", name, "topicId", id_text(other), why))
    return changes


def _rank(number: bytes | None, folders: Sequence[VolumeFolder]) -> tuple[object, ...]:
    """Return a sort key for the ids of a topic name: not None, then a live folder, newest segment, most folders."""
    is_live = any(not each.state for each in folders)
    return number is not None, is_live, max(each.newest_ms for each in folders), len(folders)


def _add_topic(image: ClusterImage, name: str, number: bytes, copies: Sequence[VolumeFolder], least: int) -> None:
    nodes: dict[int, set[object]] = {}
    for copy in copies:
        nodes.setdefault(copy.number, set()).add(copy.log_dir.broker_id or copy.log_dir.path)
    factor = max(map(len, nodes.values()))
    image.handlers["TopicRecord"]({"name": name, "topicId": number})
    topic = image.topics.by_id[number]
    for partition in range(max(max(nodes) + 1, least)):
        topic.partitions[partition] = _partition((OLD_LEADER,) * factor, 0, 0)
    configs = INTERNAL_CONFIGS.get(name, KEEP_ALL)
    image.configs.resources[TOPIC_RESOURCE, name] = dict(configs)


def _partition(replicas: Sequence[int], epoch: int, version: int, directories: Sequence[bytes] = ()) -> PartitionImage:
    return PartitionImage(
        replicas=list(replicas),
        directories=list(directories) or [bytes(16)] * len(replicas),
        isr=list(replicas),
        removing=[],
        adding=[],
        leader=replicas[0],
        recovery_state=0,
        leader_epoch=epoch,
        partition_epoch=version,
        elr=[],
        last_known_elr=[],
    )


def release_for(lost: LostCluster, named: StartRelease | None) -> StartRelease:
    """Return ``named``, or the oldest release for metadata.version. Raises UsageError if none fits or it is too old."""
    level = lost.image.features.metadata_version
    if named is None:
        return oldest_for(level)
    default_features(named)
    if level > named.highest_level:
        least = oldest_for(level)
        raise UsageError(
            f"--release {named.name} is too old: metadata.version is {level_name(level)} ({level}), and "
            f"{named.name} supports levels up to {level_name(named.highest_level)} ({named.highest_level}); "
            f"use {least.name} or later"
        )
    return named


class NewCluster(NamedTuple):
    release: StartRelease
    nodes: Sequence[NewNode]
    replicas: Replicas
    epochs: Mapping[tuple[bytes, int], int]
    """Topic id and partition -> the highest leader epoch of its copies; -1 if there is none."""
    max_producer_id: int
    """The highest producer id in batches and transactions; -1 if there is none."""
    listeners: Listeners = Listeners()


def rebuilt(lost: LostCluster, to: NewCluster) -> tuple[ClusterImage, list[ClusterChange]]:
    """Return the image of the new cluster, and its changed features and configs. ``lost.image`` is not changed."""
    old, image = lost.image, ClusterImage()
    changes: list[ClusterChange] = []
    image.end_offset, image.epoch, image.timestamp = lost.end_offset, lost.new_epoch, old.timestamp
    image.features.levels.update(old.features.levels)
    changes += _lift(image, to.release)
    image.configs.resources.update({key: dict(values) for key, values in old.configs.resources.items()})
    image.quotas, image.acls, image.scram, image.tokens = old.quotas, old.acls, old.scram, old.tokens
    image.producer_ids.next = _next_producer_id(old.producer_ids.next or 0, to.max_producer_id)
    directories = {node.id: node.directory_id for node in to.nodes}
    for number, topic in old.topics.by_id.items():
        image.handlers["TopicRecord"]({"name": topic.name, "topicId": number})
        for partition, state in topic.partitions.items():
            replicas = to.replicas[number, partition]
            epoch = max(state.leader_epoch, to.epochs.get((number, partition), -1)) + 1
            made = _partition(replicas, epoch, state.partition_epoch + 1, [directories[one] for one in replicas])
            if image.features.metadata_version >= UNCLEAN_SINCE:
                made.isr = made.isr[:1]
            image.topics.by_id[number].partitions[partition] = made
    changes += fit_configs(image, to.release, len(to.nodes))
    for node in to.nodes:
        image.cluster.brokers[node.id] = _registration(node, to, lost, image.features.metadata_version)
    if has_voters(to.release):
        image.kraft_version = 1
        image.voters = [
            voter_fields(node.id, node.directory_id, node.host, node.controller_port, to.listeners.controller)
            for node in to.nodes
            if node.controller_port is not None
        ]
    return image, changes


def _lift(image: ClusterImage, release: StartRelease) -> Iterator[ClusterChange]:
    """Raise the metadata.version if it is too low for the release, or for voters in the metadata log."""
    level = image.features.metadata_version
    least = VOTERS_LEVEL if has_voters(release) else LEAST_LEVEL
    if level < least:
        image.features.levels[METADATA_VERSION] = least
        why = f"Kafka {release.name} needs at least {level_name(least)} ({least})"
        yield ClusterChange("feature", METADATA_VERSION, None, str(level), why)


def _next_producer_id(known: int, used: int) -> int:
    """Return the first producer id of a block above all used ids. At least SPARE_IDS ids are skipped."""
    first = max(known, used + 1) + SPARE_IDS
    return -(-first // SPARE_IDS) * SPARE_IDS


def fit_configs(image: ClusterImage, release: StartRelease, brokers: int) -> Iterator[ClusterChange]:
    """Raise topic configs to the least value of a release, and lower min.insync.replicas before 3.7. Yield the changes.

    A broker stops if it loads a log with a topic config below the least value of the release. If min.insync.replicas is
    above the number of replicas, a broker before 3.7 refuses every record with acks=all, and all transactions.
    """
    factors = {
        topic.name: min((len(state.replicas) for state in topic.partitions.values()), default=brokers)
        for topic in image.topics.by_id.values()
    }
    for (kind, name), configs in sorted(image.configs.resources.items()):
        what = "topic config" if kind == TOPIC_RESOURCE else "broker config"
        for least in release.least_values if kind == TOPIC_RESOURCE else ():
            value = configs.get(least.config)
            if value is not None and _int(value) < least.least:
                configs[least.config] = str(least.least)
                why = (
                    f"Kafka {release.name} does not start with a value below {least.least}: kdump has set {least.least}"
                )
                yield ClusterChange(what, name, least.config, value, why)
        most = factors.get(name, brokers) if kind == TOPIC_RESOURCE else brokers
        value = configs.get(MIN_ISR)
        if not release.limits_min_isr and kind in (TOPIC_RESOURCE, BROKER_RESOURCE) and value and _int(value) > most:
            configs[MIN_ISR] = str(most)
            why = (
                f"Kafka {release.name} refuses acks=all with fewer replicas: kdump has set {most}, the number of "
                "replicas"
            )
            yield ClusterChange(what, name, MIN_ISR, value, why)


def _int(text: str) -> int:
    return java_config_integer(text, 32) or 0


def voter_fields(number: int, directory: bytes, host: str, port: int | None, listener: str) -> Fields:
    return {
        "voterId": number,
        "voterDirectoryId": directory,
        "endpoints": [{"name": listener, "host": host, "port": port}],
        "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
    }


def change_voters(image: ClusterImage, voters: Sequence[Voter], copies: CopyEnds) -> None:
    """Replace the quorum in an image, for a cluster that has lost controllers but no broker.

    The end offset of the image is set above the end of every copy, so that brokers load the image. The registrations of
    all controllers are removed, because the remaining controllers register again. If metadata.version supports voters
    in the metadata log, kraft.version becomes 1, and each voter needs its directory id. Else ``voters`` is unused.
    """
    names = (endpoint["name"] for voter in image.voters or () for endpoint in voter["endpoints"])
    listener = next(names, Listeners().controller)
    image.end_offset = max(image.end_offset, copies.end_offset) + BEYOND
    image.epoch = max(image.epoch, copies.epoch) + ABOVE
    image.cut_batch = image.open_transaction = None
    image.cluster.controllers.clear()
    if image.features.metadata_version >= VOTERS_LEVEL:
        image.kraft_version = 1
        image.voters = [
            voter_fields(one.id, one.directory_id or bytes(16), one.host, one.port, listener) for one in voters
        ]


def what_to_do(path: str, voters: Sequence[Voter], image: ClusterImage, *, was_static: bool) -> Iterator[str]:
    """Yield the steps that install a snapshot with other voters, in order."""
    servers = ",".join(address(voter.host, voter.port) for voter in voters)
    ids = ", ".join(str(voter.id) for voter in voters)
    yield f"stop every controller and every broker first. Controllers of the new quorum: {ids}"
    yield (
        "on each of these controllers, move all files except quorum-state out of __cluster_metadata-0, and keep them. "
        f"As the user that runs Kafka, copy {path} into __cluster_metadata-0, under the same name"
    )
    if image.kraft_version:
        yield f"in the server.properties of every node: controller.quorum.bootstrap.servers={servers}"
    if was_static:
        quorum = ",".join(f"{voter.id}@{address(voter.host, voter.port)}" for voter in voters)
        yield f"if server.properties has controller.quorum.voters, set it to this value on every node: {quorum}"
    yield (
        "start these controllers, then the brokers. Do not change the log dirs of the brokers. Never start any other "
        "controller on its old log dir: format the log dir, and add the controller with kafka-metadata-quorum.sh"
    )


def _registration(node: NewNode, to: NewCluster, lost: LostCluster, level: int) -> Fields:
    """Return the fenced registration of a broker, in the fields of RegisterBrokerRecord."""
    name = to.listeners.broker
    return {
        "brokerId": node.id,
        "isMigratingZkBroker": False,
        "incarnationId": uuid4().bytes,
        "brokerEpoch": lost.end_offset - 1,
        "endPoints": [
            {"name": name, "host": node.host, "port": node.port, "securityProtocol": protocol_of(name, lost.image)}
        ],
        "features": [
            {
                "name": METADATA_VERSION,
                "minSupportedVersion": min(level, LEAST_LEVEL),
                "maxSupportedVersion": max(level, to.release.highest_level),
            }
        ],
        "rack": None,
        "fenced": True,
        "inControlledShutdown": False,
        "logDirs": [node.directory_id],
        "cordonedLogDirs": None,
    }


def protocol_of(listener: str, image: ClusterImage) -> int:
    """Return the number of a listener's security protocol, from its name or the old brokers, else 0 (PLAINTEXT)."""
    if listener in PROTOCOLS:
        return PROTOCOLS[listener]
    endpoints = (one for broker in image.cluster.brokers.values() for one in broker["endPoints"])
    return next((int(one["securityProtocol"]) for one in endpoints if one["name"] == listener), 0)


def default_features(to: StartRelease) -> dict[str, int]:
    """Return the feature levels of a cluster that a release formats. Raises UsageError for a release before 3.3."""
    known = [minor for minor in FEATURES if minor <= to.number[:2]]
    if not known:
        raise UsageError(f"--release {to.name} has no KRaft: use 3.3 or later")
    return dict(FEATURES[max(known)])


def oldest_for(level: int) -> StartRelease:
    """Return the oldest release that supports a level of metadata.version. Raises UsageError for a newer level."""
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
    """Return whether this release can have the voters in the metadata log (KIP-853)."""
    return to.highest_of("kraft.version") > 0
