"""The result of a dry start: a :class:`BrokerStart` with the logs of partition folders and new empty logs."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias

from kdump.findings.codes import FindingCode

if TYPE_CHECKING:
    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.recovery.segment_end import Cut

Checkpointed: TypeAlias = dict[tuple[str | None, int | None], dict[str, int]]
"""Partition -> the end offsets in the checkpoints of one log dir, by the kind of checkpoint."""
CONTROLLERS_HAVE_IT: Final = (
    "the node fetches the metadata from the controllers: its own copy may lack the newest records"
)
"""The reason why the start of a node does not depend on its own metadata log, if there are other controllers."""
NO_METADATA_LOG: Final = "no metadata log is in these log dirs, so the partitions of the broker are unknown"
"""The reason why the start of a node is unknown, if the paths may lack a log dir."""


class StartOutcome(StrEnum):
    """The state of a partition after the start."""

    LOADED = "loaded"
    """The log is opened without recovery, and no byte of a ``.log`` is removed."""
    RECOVERED = "recovered"
    """Segments from the recovery point on are read after an unclean stop; no byte of a ``.log`` is removed."""
    TRUNCATED = "truncated"
    """Bytes of ``.log`` files are removed: see :attr:`LogStart.cuts`."""
    CREATED_EMPTY = "created-empty"
    """The broker creates an empty log, because the partition has no folder in use."""
    STRAY = "stray"
    """The folder has a ``-stray`` name, or a start gives it one: the broker neither serves nor removes it."""
    DELETED = "deleted"
    """A ``-delete`` folder, or one that a -future folder replaces: the broker removes it after the start."""
    FUTURE = "future"
    """A ``-future`` folder. With the cause ``promoted`` it replaces the current folder."""
    OFFLINE = "offline"
    """The broker does not serve the log dir of the partition."""
    IGNORED = "ignored"
    """The broker does not read the folder."""


class StartCause(NamedTuple):
    """The reason for an outcome. ``file`` is the shown path of the file that causes it; None if there is none."""

    code: FindingCode
    file: str | None
    text: str
    """A sentence; it has Kafka's exception or log message if there is one."""
    expected: str | None = None
    found: str | None = None
    offset: int | None = None
    """The offset of a record of the metadata log."""
    records: int = 0
    """The number of records that the broker does not read because of ``file``; else 0."""


class LogStart(NamedTuple):
    """The outcome of a start for one partition folder, or for a partition without a folder."""

    topic: str
    partition: int
    folder: str | None
    """The name of the folder; None if the partition is assigned to the broker but no folder is in use."""
    log_dir: str | None
    """The log dir as the user gave it; None if the files do not determine it."""
    outcome: StartOutcome | None
    """The state after the start; None if the log cannot be loaded, or if the files do not determine the state."""
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    """The log start offset and log end offset after the start; None for a log not loaded, offline or deleted."""
    causes: tuple[StartCause, ...] = ()
    """The reasons for the outcome and other problems, the gravest first."""
    cuts: "tuple[Cut, ...]" = ()
    recovered: tuple[str, ...] = ()
    """The ``.log`` files that recovery reads."""
    recovered_bytes: int = 0
    splits: tuple[str, ...] = ()
    """The ``.log`` files that are split because they have an offset 2^31 or more above their base offset."""
    topic_id: bytes | None = None
    """The topic id in ``partition.metadata``; None without it, or if the log was not loaded."""
    assigned_id: bytes | None = None
    """The id that the metadata log has for this topic name."""
    is_assigned: bool | None = None
    """Whether the metadata log assigns the partition to this broker; None if the files do not determine it."""
    path: str | None = None
    """The shown path of the folder."""
    high_watermark: int | None = None
    recovery_point: int | None = None
    checkpoint_start: int | None = None
    """The log start offset in the checkpoint of the log dir. The two fields above are from checkpoints, too."""

    def with_causes(self, *causes: StartCause) -> Self:
        """Return the log with ``causes``, which must be graver, before its own causes."""
        return self._replace(causes=(*causes, *self.causes))

    def not_served(self, outcome: StartOutcome | None) -> Self:
        return self._replace(outcome=outcome, log_start_offset=None, log_end_offset=None)


class OfflineDir(NamedTuple):
    """A log dir that the broker does not serve, and the reason. After ``start_alone()``: the path of a folder."""

    log_dir: str
    cause: StartCause


class BrokerStart(NamedTuple):
    """The predicted result of one broker's start, or of ``start_alone()``. ``log_dirs``: as the user gave them."""

    release: str
    node_id: int | None
    cluster_id: str | None
    log_dirs: tuple[str, ...]
    starts: bool | None
    """Whether the broker starts. None after ``start_alone()``, or for the reasons in :attr:`unknown`."""
    fatal: tuple[StartCause, ...] = ()
    """The reasons why the broker does not start. If ``starts`` is None, only ``start_alone()`` sets them."""
    offline: tuple[OfflineDir, ...] = ()
    logs: tuple[LogStart, ...] = ()
    """The logs, including those that a failing start does not reach."""
    closed: Mapping[str, tuple[str, ...]] = {}
    """Log dir -> the shown paths in it that a broker opens for writing, but that its owner may not write."""
    no_writes: Mapping[str, str] = {}
    """Log dir -> the reason why its file system cannot be written: ``full`` or ``mounted read-only``. Else no key."""
    unserved: tuple[StartCause, ...] = ()
    """The reasons why a broker starts, but becomes the leader of no partition."""
    unknown: tuple[StartCause, ...] = ()
    """The reasons why parts of the result are unknown."""
    clean: frozenset[str] = frozenset()
    """The log dirs with ``.kafka_cleanshutdown``, without those that are offline before the logs are loaded."""
    checkpointed: Mapping[str, Checkpointed] = {}
    """Log dir -> the end offsets in its checkpoints."""
    lacks_remote_storage: bool = False
    """Whether no log dir of the broker has a folder of RemoteIndexCache. False if a log dir may be missing."""
    is_sole_controller: bool = False
    """Whether the files and configs name no controller besides the node, and do not make it a broker alone."""
    is_only_controller: bool = False
    """Whether the node is a controller and no broker."""
    image: "ClusterImage | None" = None
    """The image of the broker's own metadata log; None if that is missing, empty or not loaded. It may lack records."""
    bootstrap_release: str | None = None
    """The oldest release that supports the level in ``bootstrap.checkpoint``, if the metadata log is empty."""

    @property
    def name(self) -> str:
        """The name of the node in sentences, such as ``broker 1``; without the id if that is unknown."""
        role = "controller" if self.is_only_controller else "broker"
        return role if self.node_id is None else f"{role} {self.node_id}"

    @property
    def offline_log_dirs(self) -> tuple[str, ...]:
        return tuple(each.log_dir for each in self.offline)
