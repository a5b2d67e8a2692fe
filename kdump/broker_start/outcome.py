"""The result of a dry start: one :class:`BrokerStart` per broker, with one :class:`LogStart` per partition folder.

The causes are data. A :class:`StartCause` has a code of :class:`Code`, the file that the broker stops at, and Kafka's
own words. A verdict or an advice is chosen by the code alone.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

CONTROLLERS_HAVE_IT: Final = "the node takes the metadata from the controllers: its own copy does not reach as far"
"""Why the own metadata log of a node that is a broker alone decides nothing."""


class StartOutcome(StrEnum):
    """What becomes of a partition folder, or of a partition that has none."""

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


class Code(StrEnum):
    """Why a broker, a log dir or a log does not become what its files would make of it."""

    # meta.properties and log dirs (MetaPropertiesEnsemble, KafkaRaftServer.initializeLogDirs, LogManager)
    META_PROPERTIES_MISSING = "meta-properties-missing"
    META_PROPERTIES_UNREADABLE = "meta-properties-unreadable"
    NODE_ID_MISSING = "node-id-missing"
    NODE_ID_DIFFERS = "node-id-differs"
    CLUSTER_ID_DIFFERS = "cluster-id-differs"
    DIRECTORY_ID_TWICE = "directory-id-twice"
    DIRECTORY_ID_RESERVED = "directory-id-reserved"
    LOG_DIR_MISSING = "log-dir-missing"
    LOG_DIR_NO_FOLDER = "log-dir-no-folder"
    LOG_DIR_UNREADABLE = "log-dir-unreadable"
    METADATA_LOG_MISPLACED = "metadata-log-misplaced"
    BOOTSTRAP_BROKEN = "bootstrap-broken"
    # the metadata log (KafkaMetadataLog, KafkaRaftLog, FileQuorumStateStore, RecordsSnapshotReader)
    QUORUM_STATE_BROKEN = "quorum-state-broken"
    METADATA_LOG_BROKEN = "metadata-log-broken"
    METADATA_LOG_EMPTY = "metadata-log-empty"
    METADATA_LOG_BEHIND = "metadata-log-behind"
    """The metadata log ends below what its files say of it: what was decided later is forgotten."""
    METADATA_SNAPSHOT_BROKEN = "metadata-snapshot-broken"
    METADATA_REPLAY_BROKEN = "metadata-replay-broken"
    METADATA_TOO_NEW = "metadata-too-new"
    METADATA_ID_DIFFERS = "metadata-id-differs"
    METADATA_ELSEWHERE = "metadata-elsewhere"
    """A node that is no controller takes metadata from the controllers: its own copy does not decide."""
    # a log dir's own files
    CHECKPOINT_BROKEN = "checkpoint-broken"
    CLEANER_CHECKPOINT_BROKEN = "cleaner-checkpoint-broken"
    # folders of a log dir
    FOREIGN_FOLDER = "foreign-folder"
    FOLDER_IS_FILE = "folder-is-file"
    FOLDER_IS_DANGLING = "folder-is-dangling"
    TWO_FOLDERS = "two-folders"
    FUTURE_BESIDE_CURRENT = "future-beside-current"
    # files of a partition folder
    PARTITION_METADATA_BROKEN = "partition-metadata-broken"
    LEADER_EPOCHS_BROKEN = "leader-epochs-broken"
    NAME_NO_OFFSET = "name-no-offset"
    INDEX_UNREADABLE = "index-unreadable"
    TXN_INDEX_VERSION = "txn-index-version"
    SNAPSHOT_UNREADABLE = "snapshot-unreadable"
    LOG_UNREADABLE = "log-unreadable"
    RECORD_SIZE = "record-size"
    """CorruptRecordException: a length too small, met where nothing is recovered."""
    CONTROL_RECORD = "control-record"
    SPLIT_REFUSED = "split-refused"
    OFFSET_REFUSED = "offset-refused"
    FILE_UNREADABLE = "file-unreadable"
    """The system does not give kdump a file that decides: the broker may be able to read it."""
    # why a log is not served as it was
    NO_TOPIC_ID = "no-topic-id"
    TOPIC_UNKNOWN = "topic-unknown"
    PARTITION_UNKNOWN = "partition-unknown"
    NOT_ASSIGNED = "not-assigned"
    NAMED_STRAY = "named-stray"
    NAMED_DELETE = "named-delete"
    NAMED_FUTURE = "named-future"
    PROMOTED = "promoted"
    """A ``-future`` folder becomes the current log."""
    NO_FOLDER = "no-folder"
    """The metadata assigns the partition here, and no folder in use holds it."""
    NO_SEGMENT = "no-segment"
    """The folder is there and holds no segment: the log begins at its log start offset."""
    LOG_DIR_OFFLINE = "log-dir-offline"
    # why bytes are gone, or records hidden
    BAD_BATCH = "bad-batch"
    SWAPPED = "swapped"
    """A ``.swap`` file takes the place of the segments that it covers, unread."""
    START_BEYOND_END = "start-beyond-end"
    OFFSETS_GO_BACK = "offsets-go-back"
    LATER_SEGMENT = "later-segment"
    """An earlier segment is truncated, so this one is deleted."""
    SNAPSHOT_AHEAD = "snapshot-ahead"
    """The metadata log is dropped: a snapshot ends beyond it."""
    INDEX_BEYOND_LOG = "index-beyond-log"
    """After a clean stop the newest index entry points at or past the end: the log ends at that segment's base."""
    CLEANED_DISCARDS_SWAP = "cleaned-discards-swap"
    """A ``.cleaned`` file of a lower or equal base offset: the ``.swap`` is deleted."""


class StartCause(NamedTuple):
    """Why: ``file`` is the path that the broker stops at, as shown (None where no file is named)."""

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
    """What a start makes of one partition folder, or of a partition that has none in use."""

    topic: str
    partition: int
    folder: str | None
    """The folder's name; None for a partition that is assigned to the broker and has no folder in use."""
    log_dir: str | None
    """The log dir as given; None where it does not follow from the files."""
    outcome: StartOutcome | None
    """None where files cannot tell."""
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
    """What ``partition.metadata`` has."""
    assigned_id: bytes | None = None
    """The id of the topic of this name in the metadata log."""
    is_assigned: bool | None = None
    """Whether the metadata log assigns the partition to this broker; None where no metadata log tells."""
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
    """None where files cannot tell: :attr:`unknown` has why."""
    fatal: tuple[StartCause, ...] = ()
    """Why it does not start; empty unless ``starts`` is False."""
    offline: tuple[OfflineDir, ...] = ()
    logs: tuple[LogStart, ...] = ()
    """As far as the start gets. Where it fails, the logs that would have been loaded are there all the same."""
    unknown: tuple[StartCause, ...] = ()
    """What the files leave open: why ``starts``, an outcome or an offset is None."""
    clean: frozenset[str] = frozenset()
    """The log dirs with ``.kafka_cleanshutdown``: their logs are not recovered."""

    @property
    def offline_log_dirs(self) -> tuple[str, ...]:
        """The log dirs that are offline, as given."""
        return tuple(each.log_dir for each in self.offline)
