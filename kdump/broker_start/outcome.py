"""The result of a dry start: one :class:`BrokerStart` per broker, with one :class:`LogStart` per partition folder."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kdump.findings.codes import Code
    from kdump.recovery.segment_end import Cut

CONTROLLERS_HAVE_IT: Final = (
    "the node fetches the metadata from the controllers: its own copy may lack the newest records"
)
"""The reason why the metadata log of a node that is not a controller does not decide a start."""


class StartOutcome(StrEnum):
    """The state of a partition after the start."""

    LOADED = "loaded"
    """Opened unchanged."""
    RECOVERED = "recovered"
    """Segments from the recovery point on are read after an unclean stop; every byte is kept."""
    TRUNCATED = "truncated"
    """Bytes of ``.log`` files are removed: see :attr:`LogStart.cuts`."""
    CREATED_EMPTY = "created-empty"
    """The broker creates an empty log, because no folder is in use."""
    STRAY = "stray"
    """A ``-stray`` folder, or renamed to one: neither served nor removed."""
    DELETED = "deleted"
    """A ``-delete`` folder: removed after file.delete.delay.ms."""
    FUTURE = "future"
    """A ``-future`` folder that is not promoted."""
    OFFLINE = "offline"
    """The broker does not serve the log dir of the partition."""
    IGNORED = "ignored"
    """The broker does not read the folder."""


class StartCause(NamedTuple):
    """A reason for an outcome; ``file`` is the shown path of the file that causes it, or None."""

    code: Code
    file: str | None
    text: str
    """A sentence with Kafka's exception or log message."""
    expected: str | None = None
    found: str | None = None
    offset: int | None = None
    """The offset of a record of the metadata log."""


class LogStart(NamedTuple):
    """The outcome of a start for one partition folder, or for a partition without a folder."""

    topic: str
    partition: int
    folder: str | None
    """The folder's name; None if the partition is assigned to the broker and no folder is in use."""
    log_dir: str | None
    """The log dir as given; None if the files do not determine it."""
    outcome: StartOutcome | None
    """None if the files do not determine it."""
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    """The log start offset and the log end offset right after the start."""
    causes: tuple[StartCause, ...] = ()
    """The reasons for any outcome other than an intact log; the gravest first."""
    cuts: tuple[Cut, ...] = ()
    recovered: tuple[str, ...] = ()
    """The ``.log`` files that recovery reads."""
    recovered_bytes: int = 0
    splits: tuple[str, ...] = ()
    """The ``.log`` files that are split because of an offset 2^31 or more above their base offset."""
    topic_id: bytes | None = None
    """The topic id in ``partition.metadata``."""
    assigned_id: bytes | None = None
    """The id that the metadata log has for this topic name."""
    is_assigned: bool | None = None
    """Whether the metadata log assigns the partition to this broker; None without a metadata log."""
    path: str | None = None
    """The shown path of the folder."""
    high_watermark: int | None = None
    recovery_point: int | None = None
    checkpoint_start: int | None = None
    """The values in the checkpoints of the log dir."""

    def with_causes(self, *causes: StartCause) -> LogStart:
        """Return the log with graver causes before its own."""
        return self._replace(causes=(*causes, *self.causes))

    def not_served(self, outcome: StartOutcome | None) -> LogStart:
        """Return the log with this outcome and without offsets."""
        return self._replace(outcome=outcome, log_start_offset=None, log_end_offset=None)


class OfflineDir(NamedTuple):
    """A log dir that the broker does not serve, and the reason."""

    log_dir: str
    cause: StartCause


class BrokerStart(NamedTuple):
    """The result of a start of one broker on ``log_dirs`` (as given, in order)."""

    release: str
    node_id: int | None
    cluster_id: str | None
    log_dirs: tuple[str, ...]
    starts: bool | None
    """Whether the broker starts. None if the files do not determine it: :attr:`unknown` has the reasons."""
    fatal: tuple[StartCause, ...] = ()
    """The reasons why it does not start; empty unless ``starts`` is False."""
    offline: tuple[OfflineDir, ...] = ()
    logs: tuple[LogStart, ...] = ()
    """All logs, also those that a failing start does not reach."""
    unknown: tuple[StartCause, ...] = ()
    """The reasons why ``starts``, an outcome or an offset is None."""
    clean: frozenset[str] = frozenset()
    """The log dirs with ``.kafka_cleanshutdown``."""

    @property
    def offline_log_dirs(self) -> tuple[str, ...]:
        """The log dirs that are offline, as given."""
        return tuple(each.log_dir for each in self.offline)
