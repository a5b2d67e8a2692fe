"""The result of a dry start: one :class:`BrokerStart` per broker, with one :class:`LogStart` per partition folder.

The causes are data. A :class:`StartCause` has a code of :class:`kdump.findings.codes.Code`, the file that the broker
stops at, and Kafka's own words. A verdict or an advice is chosen by the code alone.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kdump.findings.codes import Code

CONTROLLERS_HAVE_IT: Final = "the node takes the metadata from the controllers: its own copy does not reach as far"
"""The reason why the metadata log of a node with only the broker role decides nothing."""


class StartOutcome(StrEnum):
    """The outcome for a partition folder, or for a partition without one."""

    LOADED = "loaded"
    """Opened as it is."""
    RECOVERED = "recovered"
    """Unflushed segments were read again after an unclean stop; every byte is kept."""
    TRUNCATED = "truncated"
    """Bytes of ``N.log`` files are gone afterwards: :attr:`LogStart.cuts` has them."""
    CREATED_EMPTY = "created-empty"
    """An empty log is begun: no folder is in use."""
    STRAY = "stray"
    """Renamed to ``TOPIC-N.UUID-stray``, or called so before: not served, not removed."""
    DELETED = "deleted"
    """A ``-delete`` folder: removed after file.delete.delay.ms."""
    FUTURE = "future"
    """A ``-future`` folder, loaded as such."""
    OFFLINE = "offline"
    """Its log dir is not served."""
    IGNORED = "ignored"
    """The broker does not look at it."""


class StartCause(NamedTuple):
    """Why: ``file`` is the path that the broker stops at, as shown (None if no file is named)."""

    code: Code
    file: str | None
    text: str
    """A sentence with Kafka's exception or log message."""
    expected: str | None = None
    found: str | None = None
    offset: int | None = None
    """The offset of the record, of the metadata log."""


class StartCut(NamedTuple):
    """Bytes of one ``.log`` file that are gone after the start: ``size`` bytes from ``position`` to the file's end.

    ``first_offset`` and ``last_offset`` span the offsets of the valid batches in it, ``records`` is their number;
    None and 0 where there are none.
    """

    code: Code
    file: str
    position: int
    size: int
    reason: str
    first_offset: int | None
    last_offset: int | None
    records: int
    replaced_by: str | None = None
    """The ``.swap`` file that takes its place."""
    superseded: int = 0
    """Of the records those that a compaction removes too."""
    is_replaced_by_nothing: bool = False
    """Whether the ``.swap`` file is empty, as a disk leaves it that lost power."""


class LogStart(NamedTuple):
    """The outcome of a start for one partition folder, or for a partition without one in use."""

    topic: str
    partition: int
    folder: str | None
    """The folder's name; None for a partition that is assigned to the broker and has no folder in use."""
    log_dir: str | None
    """The log dir as given; None if the files do not decide it."""
    outcome: StartOutcome | None
    """None if the files do not decide it."""
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    """The next offset, right after the start."""
    causes: tuple[StartCause, ...] = ()
    """Why the outcome is not ``loaded`` or ``recovered`` of the whole log; the gravest first."""
    cuts: tuple[StartCut, ...] = ()
    recovered: tuple[str, ...] = ()
    """The ``.log`` files that are read again."""
    recovered_bytes: int = 0
    splits: tuple[str, ...] = ()
    """The ``.log`` files that are split: they hold an offset 2^31 or more above their base offset."""
    topic_id: bytes | None = None
    """The topic id in ``partition.metadata``."""
    assigned_id: bytes | None = None
    """The id of the topic of this name in the metadata log."""
    is_assigned: bool | None = None
    """Whether the metadata log assigns the partition to this broker; None without a metadata log."""
    path: str | None = None
    """The folder's path, as shown."""
    high_watermark: int | None = None
    recovery_point: int | None = None
    checkpoint_start: int | None = None
    """The entries of the log dir's checkpoints."""


class OfflineDir(NamedTuple):
    """A log dir that the started broker does not serve, and why."""

    log_dir: str
    cause: StartCause


class BrokerStart(NamedTuple):
    """A start of one broker of ``release`` on ``log_dirs`` (as given, in their order)."""

    release: str
    node_id: int | None
    cluster_id: str | None
    log_dirs: tuple[str, ...]
    starts: bool | None
    """None if the files do not decide it: :attr:`unknown` has why."""
    fatal: tuple[StartCause, ...] = ()
    """Why it does not start; empty unless ``starts`` is False."""
    offline: tuple[OfflineDir, ...] = ()
    logs: tuple[LogStart, ...] = ()
    """As far as the start gets. Where it fails, the logs that would have been loaded are there all the same."""
    unknown: tuple[StartCause, ...] = ()
    """Open questions: the reasons why ``starts``, an outcome or an offset is None."""
    clean: frozenset[str] = frozenset()
    """The log dirs with ``.kafka_cleanshutdown``: their logs are not recovered."""

    @property
    def offline_log_dirs(self) -> tuple[str, ...]:
        """The log dirs that are offline, as given."""
        return tuple(each.log_dir for each in self.offline)
