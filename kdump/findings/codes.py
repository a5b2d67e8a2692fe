# ruff: noqa: E501  a table is easiest to read with one row per line
"""The table of finding codes: level, condition, action, and the source of the rule, such as a class of Kafka.

A code is stable: scripts may rely on it. A finding may have a lower level than its code, for example on a copy, or in a
folder that a broker removes. ``python -m tools.docs.finding_codes`` writes the docs page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_SALVAGE: Final = "kdump salvage"
_REBUILD: Final = "kdump rebuild-index"
_START: Final = "Run the command of the finding, if it has one."


class FindingCode(str):
    """A row: the code, the gravest level of its findings, the condition, the action (may be empty), and the source."""

    level: str
    sentence: str
    hint: str
    source: str

    def __new__(cls, code: str, level: str = "", sentence: str = "", hint: str = "", source: str = "") -> FindingCode:
        row = str.__new__(cls, code)
        row.level, row.sentence, row.hint, row.source = level, sentence, hint, source
        return row

    def __reduce__(self) -> tuple[Callable[[str], FindingCode], tuple[str]]:
        """Make ``copy`` and ``pickle`` return this row itself, so that rows can be compared with ``is``."""
        return row, (str(self),)

    @property
    def kind(self) -> str:
        """The code with blanks for hyphens, as in the ``kind`` of a finding."""
        return self.replace("-", " ")


class Code:
    """The codes. They are not members of an enum, because so many members take long to import."""

    # fmt: off
    # the effects of a start
    PARTITION_MISSING = FindingCode("partition-missing", "log", "The metadata log assigns a partition to this broker, and no folder holds it.", "Find the folder or disk; another replica or a backup may have the records.", "BrokerMetadataPublisher")
    RECORDS_MISSING = FindingCode("records-missing", "log", "Records are missing at the beginning or end of a log, or the log is empty, but other files prove that they were written.", "Restore the segments; another replica or a backup may have the records.", "LogLoader")
    HIGH_WATERMARK = FindingCode("high-watermark", "log", "The log ends below its high watermark: committed records are missing.", "Another replica or a backup may have the records.", "UnifiedLog")
    BECOMES_STRAY = FindingCode("becomes-stray", "log", "A start renames the folder to -stray: its topic id is missing or wrong.", "Write partition.metadata before a start.", "LogManager.isStrayReplica")
    ONLY_COPY_IS_STRAY = FindingCode("only-copy-is-stray", "log", "A -stray, -delete or -future folder holds the only copy of records.", "Rename the folder to TOPIC-PARTITION.", "LogManager.isStrayReplica, ReplicaAlterLogDirsThread")
    ONLY_IN_DELETED = FindingCode("only-in-deleted", "log", "A segment that is marked for deletion holds records that no other segment has: a start removes the segment.", "Remove .deleted from the file's name before a start.", "LogLoader.removeTempFilesAndCollectSwapFiles")
    SEGMENT_IGNORED = FindingCode("segment-ignored", "log", "A broker does not read a file such as N.log.gz or N.log.bak. The level is log if no segment has its records, else remark.", "Decompress, extract or rename it to N.log before a start.", "LogFileUtils.isLogFile")
    STRAY_FOLDER = FindingCode("stray-folder", "remark", "A -stray folder: no broker serves or removes it.", "Compare the folder with the live replica before you remove it.", "LogManager.isStrayReplica")
    METADATA_LOG_MISSING = FindingCode("metadata-log-missing", "log", "The metadata log is missing or empty: a start makes every partition stray.", "Restore __cluster_metadata-0 before a start.", "KafkaMetadataLog")
    METADATA_REPLAY = FindingCode("metadata-replay", "log", "A record of the metadata log cannot be replayed: a controller does not start.", "kdump metadata reports the record.", "MetadataLoader")
    METADATA_ELSEWHERE = FindingCode("metadata-elsewhere", "log", "The given paths hold no metadata log, so the assigned partitions are unknown.", "Name all log dirs of the broker.", "KafkaMetadataLog")
    SWAP = FindingCode("swap", "log", "An empty or damaged .swap file replaces a segment at the next start.", "Move the .swap file away.", "LogLoader.removeTempFilesAndCollectSwapFiles")
    INDEX_SWAPPED = FindingCode("index-swapped", "derived", "An index .swap file without entries replaces an index at the next start.", "Move the .swap file away.", "LogLoader.load")
    LOG_START_BEYOND_END = FindingCode("log-start-beyond-end", "log", "The log start offset is above the log end: a start deletes all segments.", "Run the command of the finding: salvage, or a corrected line of log-start-offset-checkpoint.", "LogLoader.load")
    LOG_START_RAISED = FindingCode("log-start-raised", "log", "A log start offset hides records that no broker deleted: the leader epochs begin at a lower offset.", "Correct the line of log-start-offset-checkpoint.", "UnifiedLog.maybeIncrementLogStartOffset")
    INDEX_BEYOND_LOG = FindingCode("index-beyond-log", "log", "After a clean stop the newest index entry points past the log: a broker does not serve the segment.", "Move the indexes of the segment away: a broker rebuilds them.", "LogSegment.readNextOffset")
    INDEX_SKIPS = FindingCode("index-skips", "log", "With wrong entries of an index, a search begins after the start of the batch: consumers skip records.", "Move the index away: a broker rebuilds it.", "LogSegment.translateOffset")
    CLEAN_MARKER = FindingCode("clean-marker", "log", "A clean shutdown marker makes a broker skip the recovery of a damaged log.", "Move .kafka_cleanshutdown away.", "LogManager.loadLogs")
    RECOVERY = FindingCode("recovery", "log", "Recovery truncates a damaged log when a broker starts.", _SALVAGE, "LogLoader.recoverLog")
    FILE_NAME = FindingCode("file-name", "derived", "A file name does not begin with an offset: a broker does not start.", "Move the file away.", "LogFileUtils.offsetFromFile")
    DANGLING_LINK = FindingCode("dangling-link", "log", "The path of a partition folder is a broken link or a file.", "Mount the disk.", "LogManager.createLogDirectory")
    FOLDER = FindingCode("folder", "derived", "A folder whose name is not TOPIC-PARTITION: a broker does not start.", "Move the folder away.", "LogManager.loadLogs")
    FOREIGN_FOLDER = FindingCode("foreign-folder", "remark", "A folder that does not belong to a broker; its files were not checked.", "", "LogManager.loadLogs")
    TWICE = FindingCode("twice", "derived", "Two log dirs of one broker hold the same partition: the broker does not start.", "Move one of the two folders away.", "LogManager.loadLogs")
    CLUSTER_ID = FindingCode("cluster-id", "log", "Two log dirs of one broker have different cluster ids: the broker does not start.", "Take the log dir of the other cluster out of log.dirs.", "MetaPropertiesEnsemble.verify")
    DIRECTORY_ID = FindingCode("directory-id", "derived", "Two log dirs have the same directory.id: a broker does not start.", "Remove the line directory.id from one of them.", "MetaPropertiesEnsemble.verify")
    ABSENT = FindingCode("absent", "derived", "An index or meta.properties is missing.", "", "LogSegment, MetaPropertiesEnsemble")
    START = FindingCode("start", "log", "A broker does not start: the text of the finding has Kafka's exception or message.", "", "LogManager")
    # the causes in the outcomes of a dry start (broker_start/outcome.py)
    # a start: log dirs and their ids
    META_PROPERTIES_MISSING = FindingCode("meta-properties-missing", "log", "A log dir of a formatted node has no meta.properties.", _START, "MetaPropertiesEnsemble, LogManager")
    META_PROPERTIES_UNREADABLE = FindingCode("meta-properties-unreadable", "log", "meta.properties cannot be read, or lacks a line.", _START, "MetaPropertiesEnsemble, LogManager")
    NODE_ID_MISSING = FindingCode("node-id-missing", "log", "meta.properties has no node id or no cluster id.", _START, "MetaPropertiesEnsemble, LogManager")
    NODE_ID_DIFFERS = FindingCode("node-id-differs", "log", "meta.properties names another node than the broker's configuration or its other log dirs.", _START, "MetaPropertiesEnsemble, LogManager")
    CLUSTER_ID_DIFFERS = FindingCode("cluster-id-differs", "log", "meta.properties names another cluster than the other log dirs.", _START, "MetaPropertiesEnsemble, LogManager")
    DIRECTORY_ID_TWICE = FindingCode("directory-id-twice", "log", "Two log dirs have the same directory.id.", _START, "MetaPropertiesEnsemble, LogManager")
    DIRECTORY_ID_RESERVED = FindingCode("directory-id-reserved", "log", "A log dir has a directory.id that Kafka reserves.", _START, "MetaPropertiesEnsemble, LogManager")
    VOTER_DIRECTORY_DIFFERS = FindingCode("voter-directory-differs", "log", "The voters in the metadata log list this node with another directory.id than its meta.properties.", _START, "VoterSet, KafkaRaftClient")
    LOG_DIR_TWICE = FindingCode("log-dir-twice", "log", "Two paths of log.dirs, or of log.dirs and metadata.log.dir, are the same folder.", "Write one path of the folder in the configuration.", "MetaPropertiesEnsemble, LogManager")
    LOG_DIR_MISSING = FindingCode("log-dir-missing", "log", "A log dir is missing.", _START, "MetaPropertiesEnsemble, LogManager")
    LOG_DIR_NO_FOLDER = FindingCode("log-dir-no-folder", "log", "The path of a log dir is not a folder.", _START, "MetaPropertiesEnsemble, LogManager")
    LOG_DIR_UNREADABLE = FindingCode("log-dir-unreadable", "log", "A log dir cannot be listed.", _START, "MetaPropertiesEnsemble, LogManager")
    LOG_DIR_OFFLINE = FindingCode("log-dir-offline", "log", "The log dir of a partition is offline: a start does not serve the partition.", _START, "MetaPropertiesEnsemble, LogManager")
    # a start: the metadata log
    METADATA_LOG_MISPLACED = FindingCode("metadata-log-misplaced", "log", "The metadata log is not in the log dir that the node reads.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader")
    BOOTSTRAP_BROKEN = FindingCode("bootstrap-broken", "log", "bootstrap.checkpoint cannot be read.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader")
    QUORUM_STATE_BROKEN = FindingCode("quorum-state-broken", "log", "quorum-state cannot be read.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader")
    METADATA_LOG_BROKEN = FindingCode("metadata-log-broken", "log", "The folder of the metadata log cannot be loaded.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader")
    METADATA_LOG_EMPTY = FindingCode("metadata-log-empty", "log", "The metadata log is missing or empty: every partition becomes stray.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader")
    METADATA_LOG_SHORT = FindingCode("metadata-log-behind", "log", "The metadata log ends below an offset in its own files: later changes are lost.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader")
    METADATA_SNAPSHOT_BROKEN = FindingCode("metadata-snapshot-broken", "log", "A snapshot of the metadata log cannot be read.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader")
    METADATA_REPLAY_BROKEN = FindingCode("metadata-replay-broken", "log", "A record of the metadata log cannot be replayed.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader")
    METADATA_TOO_NEW = FindingCode("metadata-too-new", "log", "The broker's release does not support the level of a feature in the metadata log, such as metadata.version.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader")
    CONFIG_REFUSED = FindingCode("config-refused", "log", "The release refuses the value of a topic's config in the metadata log.", "Set a valid value with the old release first.", "LogConfig, LogManager.fetchTopicConfigOverrides")
    METADATA_ID_DIFFERS = FindingCode("metadata-id-differs", "log", "partition.metadata of the metadata log does not have the fixed topic id of metadata logs.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader")
    SNAPSHOT_AHEAD = FindingCode("snapshot-ahead", "log", "A snapshot ends after the metadata log: a node deletes the log.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader")
    # a start: files of a log dir
    CHECKPOINT_BROKEN = FindingCode("checkpoint-broken", "log", "A checkpoint file of the log dir cannot be read.", _START, "LogManager")
    CHECKPOINT_OFFSET = FindingCode("checkpoint-offset", "derived", "A recovery point or high watermark is so high that no log reaches it.", _START, "LogLoader.recoverLog, UnifiedLog")
    CLEANER_CHECKPOINT_BROKEN = FindingCode("cleaner-checkpoint-broken", "log", "cleaner-offset-checkpoint cannot be read.", _START, "LogManager")
    FOLDER_IS_FILE = FindingCode("folder-is-file", "log", "The path of a partition folder is a file.", _START, "LogManager")
    FOLDER_IS_DANGLING = FindingCode("folder-is-dangling", "log", "The path of a partition folder is a broken link.", _START, "LogManager")
    TWO_FOLDERS = FindingCode("two-folders", "log", "Two log dirs have a folder of the same partition.", _START, "LogManager")
    FUTURE_BESIDE_CURRENT = FindingCode("future-beside-current", "log", "A log dir has both the folder and the -future folder of a partition.", _START, "LogManager")
    # a start: files of a partition
    PARTITION_METADATA_BROKEN = FindingCode("partition-metadata-broken", "log", "partition.metadata cannot be read.", _START, "LogLoader, UnifiedLog")
    LEADER_EPOCHS_BROKEN = FindingCode("leader-epochs-broken", "log", "leader-epoch-checkpoint cannot be read.", _START, "LogLoader, UnifiedLog")
    NAME_NO_OFFSET = FindingCode("name-no-offset", "log", "The name of a log or index file does not begin with an offset.", _START, "LogLoader, UnifiedLog")
    SEGMENT_NAME = FindingCode("segment-name", "log", "The name of a .log file is not 20 digits and .log: a broker does not read the file, and creates an empty one with such a name.", "Move the file away, or give it the name that a broker opens.", "LogLoader.loadSegmentFiles, LogSegment.open")
    INDEX_UNREADABLE = FindingCode("index-unreadable", "log", "An index cannot be opened.", _START, "LogLoader, UnifiedLog")
    SEGMENT_TOO_LARGE = FindingCode("segment-too-large", "log", "A segment is larger than 2147483647 bytes: no broker starts with it.", _START, "FileRecords")
    INDEX_TOO_LARGE = FindingCode("index-too-large", "log", "An index, or an index that recovery rebuilds, is larger than segment.index.bytes.", "Set a larger segment.index.bytes before the broker starts.", "AbstractIndex.resize, LogSegment.recover")
    TXN_INDEX_VERSION = FindingCode("txn-index-version", "log", "A transaction index has a version that the release does not support.", _START, "LogLoader, UnifiedLog")
    SNAPSHOT_UNREADABLE = FindingCode("snapshot-unreadable", "log", "A producer snapshot cannot be opened.", _START, "LogLoader, UnifiedLog")
    LOG_UNREADABLE = FindingCode("log-unreadable", "log", "A segment cannot be read.", _START, "LogLoader, UnifiedLog")
    SPLIT_REFUSED = FindingCode("split-refused", "log", "The files of an interrupted split of a segment do not fit together.", _START, "LogLoader, UnifiedLog")
    OFFSET_REFUSED = FindingCode("offset-refused", "log", "A broker loads a segment without recovery, and the offsets of the segment do not rise.", _START, "LogLoader, UnifiedLog")
    FILE_UNREADABLE = FindingCode("file-unreadable", "log", "kdump cannot read a file that the result of the start depends on. The broker may be able to read it.", _START, "LogLoader, UnifiedLog")
    # a start: the outcome of a folder
    NO_TOPIC_ID = FindingCode("no-topic-id", "log", "The folder has no topic id: it becomes stray.", _START, "LogManager, BrokerMetadataPublisher")
    TOPIC_UNKNOWN = FindingCode("topic-unknown", "log", "The metadata log has no topic of this id: the folder becomes stray.", _START, "LogManager, BrokerMetadataPublisher")
    PARTITION_UNKNOWN = FindingCode("partition-unknown", "log", "The topic has no partition of this number: the folder becomes stray.", _START, "LogManager, BrokerMetadataPublisher")
    NOT_ASSIGNED = FindingCode("not-assigned", "log", "The metadata log does not assign the partition to this broker: the folder becomes stray.", _START, "LogManager, BrokerMetadataPublisher")
    NAMED_STRAY = FindingCode("named-stray", "log", "The folder name ends in -stray: a broker neither serves nor removes it.", _START, "LogManager, BrokerMetadataPublisher")
    NAMED_DELETE = FindingCode("named-delete", "log", "The folder name ends in -delete: a broker deletes it.", _START, "LogManager, BrokerMetadataPublisher")
    NAMED_FUTURE = FindingCode("named-future", "log", "A -future folder: a replica that moves from another log dir.", _START, "LogManager, BrokerMetadataPublisher")
    PROMOTED = FindingCode("promoted", "log", "A -future folder becomes the current folder.", _START, "LogManager, BrokerMetadataPublisher")
    NO_FOLDER = FindingCode("no-folder", "log", "The partition is assigned to this broker and has no folder: it begins empty.", _START, "LogManager, BrokerMetadataPublisher")
    FILE_IMMUTABLE = FindingCode("file-immutable", "log", "A log dir, a partition folder, the newest segment of a log or an index of it, .lock or .kafka_cleanshutdown has the attribute immutable or append-only: the log dir goes offline.", "Remove the attribute with chattr.", "FileRecords, FileLock, CleanShutdownFileHandler")
    FILE_BLOCKED = FindingCode("file-blocked", "log", "A folder, a socket or a broken link is in the place of .lock, or of the .tmp file with which a broker replaces a checkpoint or quorum-state: the broker cannot write the file.", "Move it away.", "FileLock, CheckpointFile, FileQuorumStateStore")
    FILE_OWNER = FindingCode("file-owner", "remark", "The owner of the log dir may not write a partition folder, a segment or .lock: if the broker runs as this user, the log dir goes offline.", "Give the broker's user permission to write them.", "FileRecords, FileLock")
    FILE_SYSTEM = FindingCode("file-system", "remark", "The file system of the log dir is full or mounted read-only: a broker that uses this path does not start, or takes the log dir offline.", "Free space, or mount the file system read-write.", "LogManager, FileLock")
    LEADER_DELAYED = FindingCode("leader-delayed", "remark", "The metadata log assigns a partition to a directory.id that no log dir of the broker has: the partition can be without a leader for some minutes after a start.", "Elect the leaders with kafka-leader-election.sh after the start.", "DirectoryId, ReplicationControlManager")
    NO_SEGMENT = FindingCode("no-segment", "log", "The folder holds no segment: the log begins empty at its log start offset.", _START, "LogManager, BrokerMetadataPublisher")
    # a start: the losses of a log
    BAD_BATCH = FindingCode("bad-batch", "log", "Recovery truncates the log at the first invalid batch.", _START, "LogLoader, LogSegment")
    SWAPPED = FindingCode("swapped", "log", "A .swap file replaces the segments that it covers. A broker does not check it first.", _START, "LogLoader, LogSegment")
    START_BEYOND_END = FindingCode("start-beyond-end", "log", "The log start offset is above the log end: all segments are deleted.", _START, "LogLoader, LogSegment")
    OFFSETS_GO_BACK = FindingCode("offsets-go-back", "log", "Recovery truncates the log where offsets do not rise.", _START, "LogLoader, LogSegment")
    LATER_SEGMENT = FindingCode("later-segment", "log", "An earlier segment is truncated, so this segment is deleted.", _START, "LogLoader, LogSegment")
    CLEANED_DISCARDS_SWAP = FindingCode("cleaned-discards-swap", "log", "A .swap file is deleted, because a .cleaned file has the same or a lower base offset.", _START, "LogLoader, LogSegment")
    BATCH = FindingCode("batch", "derived", "A batch of a snapshot of the metadata log is damaged.", "", "RecordsSnapshotReader")
    NAME = FindingCode("name", "log", "A node does not start with this snapshot name.", "Move the file away.", "Snapshots")
    # batches and records
    END_OF_LOG = FindingCode("end-of-log", "log", "A truncated batch at the end of a log.", _SALVAGE, "LogSegment.recover")
    ZERO_TAIL = FindingCode("zero-tail", "remark", "Zeros follow the last batch or entry: a preallocated file.", "", "FileRecords")
    OFFSET_TOO_HIGH = FindingCode("offset-too-high", "log", "A batch has an offset that is too far above the base offset of its segment: its base offset is damaged.", "Take the partition from another replica or from a backup.", "LogSegment.canConvertToRelativeOffset")
    GAP = FindingCode("gap", "log", "Offsets are missing, and compaction does not explain the gap.", "Another replica may have the missing records.", "UnifiedLog")
    COMPACTION = FindingCode("compaction", "remark", "The offsets have gaps, as after compaction.", "", "LogCleaner")
    OFFSET_ORDER = FindingCode("offset-order", "log", "A batch begins below the end of the previous batch.", _SALVAGE, "UnifiedLog.append")
    BASE_OFFSET = FindingCode("base-offset", "log", "The offset in a segment's name does not fit its batches.", "", "LogSegment")
    ATTRIBUTES = FindingCode("attributes", "log", "A batch has unknown attribute bits.", _SALVAGE, "DefaultRecordBatch")
    RECORD_COUNT = FindingCode("record-count", "log", "The record count does not fit the batch.", _SALVAGE, "DefaultRecordBatch")
    RECORDS = FindingCode("records", "log", "A record's bytes differ from Kafka's format.", "kdump slice", "DefaultRecord")
    LAST_OFFSET = FindingCode("last-offset", "log", "The last offset of a batch does not fit its records.", "", "DefaultRecordBatch")
    MAX_TIMESTAMP = FindingCode("max-timestamp", "log", "The greatest timestamp of a batch differs from the greatest timestamp of its records.", "", "DefaultRecordBatch")
    DELETE_HORIZON = FindingCode("delete-horizon", "log", "A batch has a delete horizon but no tombstone.", "", "KIP-534")
    TIMESTAMP_TYPE = FindingCode("timestamp-type", "remark", "The timestamp type changes more than once in a partition.", "", "DefaultRecordBatch")
    FUTURE_TIMESTAMP = FindingCode("future-timestamp", "remark", "Timestamps are in the future: retention keeps these segments.", "kdump retention", "KIP-937")
    OPEN_TRANSACTION = FindingCode("open-transaction", "remark", "A transaction has no end marker.", "kdump transactions", "KIP-98")
    LEADER_EPOCH = FindingCode("leader-epoch", "log", "The leader epoch of a batch is lower than before, or differs from leader-epoch-checkpoint.", "", "KIP-101")
    PRODUCER = FindingCode("producer", "log", "The producer id, epoch and sequence of a batch contradict each other or earlier batches.", "", "KIP-98")
    SEQUENCE = FindingCode("sequence", "log", "A sequence number is repeated or missing.", "", "ProducerStateManager")
    PAYLOAD = FindingCode("payload", "log", "A record of Kafka's own topic cannot be read.", "Take the partition from another replica.", "KIP-98")
    COORDINATOR_VERSION = FindingCode("coordinator-version", "log", "The release does not know the version of a record of __consumer_offsets, __share_group_state or __transaction_state, or the status of a transaction: its coordinator cannot load the partition.", "Start a release that knows this record.", "CoordinatorLoaderImpl")
    UNKNOWN_PAYLOAD = FindingCode("unknown-payload", "remark", "A record of Kafka's own topic has a type or version that kdump does not support.", "", "MessageGenerator")
    LIMIT = FindingCode("limit", "remark", "A batch is larger than kdump's own limit: it was not checked.", "--max-batch-bytes", "kdump")
    # damage in bytes
    CRC = FindingCode("crc", "log", "A checksum is wrong.", _SALVAGE, "DefaultRecordBatch.ensureValid")
    MAGIC = FindingCode("magic", "log", "A batch with an unknown magic.", _SALVAGE, "RecordBatch")
    CODEC = FindingCode("codec", "log", "A batch with an unknown codec.", _SALVAGE, "CompressionType")
    COMPRESSION = FindingCode("compression", "log", "A batch that cannot be decompressed.", _SALVAGE, "CompressionType")
    BATCH_SIZE = FindingCode("batch-size", "log", "A batch smaller than its header.", _SALVAGE, "FileRecords")
    RECORD_SIZE = FindingCode("record-size", "log", "A size field is impossible.", _SALVAGE, "CorruptRecordException")
    RECORD_OFFSET = FindingCode("record-offset", "log", "Record offsets do not rise.", _SALVAGE, "DefaultRecordBatch")
    RECORD_KEY = FindingCode("record-key", "log", "A record key cannot be read.", _SALVAGE, "DefaultRecord")
    HEADER_COUNT = FindingCode("header-count", "log", "A negative count of headers.", _SALVAGE, "DefaultRecord")
    HEADER_KEY_SIZE = FindingCode("header-key-size", "log", "A header key of negative size.", _SALVAGE, "DefaultRecord")
    INDEX_POSITION = FindingCode("index-position", "derived", "An index position outside the log.", _REBUILD, "OffsetIndex")
    INNER_MESSAGES = FindingCode("inner-messages", "log", "A compressed message set cannot be read.", _SALVAGE, "AbstractLegacyRecordBatch")
    WRAPPER_OFFSET = FindingCode("wrapper-offset", "log", "A wrapper message has a wrong offset.", _SALVAGE, "AbstractLegacyRecordBatch")
    MESSAGE_SIZE = FindingCode("message-size", "log", "A message size is impossible.", _SALVAGE, "LegacyRecord")
    KEY_SIZE = FindingCode("key-size", "log", "A key or value of negative size.", _SALVAGE, "LegacyRecord")
    VALUE_SIZE = FindingCode("value-size", "log", "A value of negative size.", _SALVAGE, "LegacyRecord")
    VALUE = FindingCode("value", "log", "A wrapper without a value.", _SALVAGE, "LegacyRecord")
    VARINT = FindingCode("varint", "log", "A variable-length number that does not end.", _SALVAGE, "ByteUtils")
    CONTROL_KEY = FindingCode("control-key", "log", "The key of a control record cannot be read.", _SALVAGE, "ControlRecordType")
    CONTROL_RECORD = FindingCode("control-record", "log", "The type of a control record does not occur in this topic.", _SALVAGE, "ControlRecordType")
    CONTROL_VALUE = FindingCode("control-value", "log", "The value of a control record cannot be read.", _SALVAGE, "EndTransactionMarker")
    SHORT = FindingCode("short", "derived", "A file or field ends too early.", "", "ProducerStateManager, TransactionIndex")
    ENCRYPTION = FindingCode("encryption", "log", "An encrypted remote segment cannot be decrypted.", "", "KIP-405")
    CHUNK = FindingCode("chunk", "log", "A chunk of a remote segment is damaged.", "", "KIP-405")
    MANIFEST = FindingCode("manifest", "log", "The manifest of a remote segment is damaged.", "", "KIP-405")
    DECODER = FindingCode("decoder", "remark", "A decoder class of kafka-dump-log.sh refuses a payload.", "", "kdump")
    # files beside the log
    SIZE = FindingCode("size", "derived", "The size of an index is not a whole number of entries.", _REBUILD, "AbstractIndex.sanityCheck")
    ORDER = FindingCode("order", "derived", "The entries are not in rising order.", _REBUILD, "AbstractIndex")
    OFFSET = FindingCode("offset", "derived", "An entry names an offset that no batch has.", _REBUILD, "OffsetIndex")
    POSITION = FindingCode("position", "derived", "An entry names a position at which no batch begins.", _REBUILD, "OffsetIndex")
    TIMESTAMP = FindingCode("timestamp", "derived", "An entry has a timestamp that is not the greatest so far.", _REBUILD, "TimeIndex")
    BEYOND_THE_LOG = FindingCode("beyond-the-log", "derived", "An entry points past the end of the log.", _REBUILD, "OffsetIndex")
    CONVENTION = FindingCode("convention", "remark", "The entries have the first or the last offset of each batch. Both are valid: the broker's release decides.", "", "KIP-33")
    COVERAGE = FindingCode("coverage", "derived", "An unusually long range of the log has no index entry, or the last entry of a time index is too old.", "", "LogSegment.append")
    PREALLOCATION = FindingCode("preallocation", "remark", "Zeros follow the entries of an index, and the sizes of the two indexes rule out preallocation.", "", "AbstractIndex")
    EMPTY = FindingCode("empty", "remark", "An index without entries.", "", "AbstractIndex")
    NO_LOG = FindingCode("no-log", "derived", "An index without a log.", "", "LogLoader")
    MISSING = FindingCode("missing", "derived", "An aborted transaction is missing from .txnindex.", _REBUILD, "TransactionIndex")
    EMPTY_ABORT = FindingCode("empty-abort", "remark", "An aborted transaction without records has no index entry.", "", "TransactionIndex")
    FIRST_OFFSET = FindingCode("first-offset", "derived", "The first offset of an aborted transaction is wrong.", _REBUILD, "TransactionIndex")
    LAST_STABLE_OFFSET = FindingCode("last-stable-offset", "derived", "The last stable offset of an entry is wrong.", _REBUILD, "TransactionIndex")
    PRODUCER_ID = FindingCode("producer-id", "derived", "The producer of an entry differs from the producer of the aborted transaction.", _REBUILD, "TransactionIndex")
    SANITY_CHECK = FindingCode("sanity-check", "derived", "Kafka's own sanity check of an index fails.", _REBUILD, "AbstractIndex.sanityCheck")
    COUNT = FindingCode("count", "derived", "A count does not fit the entries.", "", "CheckpointFile, ProducerStateManager")
    LINE = FindingCode("line", "derived", "A line of a checkpoint is malformed.", "If a broker can start without this file, move the file away.", "CheckpointFile")
    TEXT = FindingCode("text", "derived", "A checkpoint that is not text.", "If a broker can start without this file, move the file away.", "CheckpointFile")
    VERSION = FindingCode("version", "derived", "The version is not supported.", "", "CheckpointFile, PartitionMetadataFile")
    PROPERTY = FindingCode("property", "derived", "A property of meta.properties is missing or wrong.", "Write the file with the right ids.", "MetaPropertiesVersion")
    ESCAPE = FindingCode("escape", "derived", "A malformed escape sequence.", "", "java.util.Properties")
    JSON = FindingCode("json", "derived", "A JSON file cannot be read.", "", "FileQuorumStateStore, CleanShutdownFileHandler")
    SNAPSHOT_HEADER = FindingCode("snapshot-header", "log", "A snapshot of the metadata log does not begin with its header.", "", "RecordsSnapshotReader")
    SNAPSHOT_FOOTER = FindingCode("snapshot-footer", "log", "A snapshot of the metadata log does not end with its footer.", "", "RecordsSnapshotReader")
    SNAPSHOT = FindingCode("snapshot", "log", "A snapshot of the metadata log is damaged, or does not fit the log.", "", "RecordsSnapshotReader")
    LEFTOVER = FindingCode("leftover", "remark", "A file or folder that a broker did not finish or did not remove.", "", "LogLoader")
    NO_FILE = FindingCode("no-file", "log", "A folder, pipe, socket or device has the name of a segment or index.", "Move it away.", "LogLoader")
    UNKNOWN_FILE = FindingCode("unknown-file", "remark", "A broker does not write a file of this name here.", "", "LogLoader")
    # remote storage
    REMOTE_ABSENT = FindingCode("remote-absent", "log", "A segment that __remote_log_metadata lists is not in remote storage.", "", "KIP-405")
    REMOTE_COPY = FindingCode("remote-copy", "derived", "A copy to remote storage is not finished.", "", "KIP-405")
    REMOTE_DELETION = FindingCode("remote-deletion", "derived", "The deletion of a remote segment is not finished.", "", "KIP-405")
    REMOTE_EPOCH = FindingCode("remote-epoch", "log", "The leader epochs of a remote segment do not match the log or the offsets of the segment.", "", "KIP-405")
    REMOTE_HOLE = FindingCode("remote-hole", "log", "Offsets are missing between remote and local segments.", "", "KIP-405")
    REMOTE_SIZE = FindingCode("remote-size", "log", "The size of a remote segment differs from its size in __remote_log_metadata.", "", "KIP-405")
    UNLISTED = FindingCode("unlisted", "derived", "__remote_log_metadata does not list a file in remote storage.", "", "KIP-405")
    # fmt: on


CODES: Final = tuple([each for each in vars(Code).values() if isinstance(each, FindingCode)])


def row(code: str) -> FindingCode:
    return next(each for each in CODES if each == code)
