# ruff: noqa: E501  a table reads best with a row a line
"""The one table of finding codes: what a check can report, how grave it is, and which class of Kafka decides it.

A code is stable: scripts may rely on it. ``python -m tools.docs.finding_codes`` writes the docs page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class FindingCode:
    """A row: the code, its usual level, what it means, what to do, and Kafka's class or KIP.

    The level is that of the gravest finding with this code: the same condition may be a note in a file that a broker
    removes anyway.
    """

    code: str
    level: str
    sentence: str
    hint: str
    source: str


_SALVAGE: Final = "kdump salvage"
_REBUILD: Final = "kdump rebuild-index"
_START: Final = "The finding has the command, where there is one."
_ROWS: Final = (
    # what a start does
    ("partition-missing", "log", "The metadata log assigns a partition to this broker, and no folder holds it.",
     "Find the folder or disk; another replica or a backup has the records.", "BrokerMetadataPublisher"),
    ("records-missing", "log", "Records are missing at the beginning or end of a log, or all, though offsets were written.",
     "Restore the segments; another replica or a backup has the records.", "LogLoader"),
    ("high-watermark", "log", "The log ends below its high watermark: committed records are missing.",
     "Another replica or a backup has the records.", "UnifiedLog"),
    ("becomes-stray", "log", "A start renames the folder to -stray: its topic id is missing or another one.",
     "Write partition.metadata before a start.", "LogManager.isStrayReplica"),
    ("only-copy-is-stray", "log", "A -stray folder holds the only records of an assigned partition.",
     "Give the folder its name back.", "LogManager.isStrayReplica"),
    ("stray-folder", "remark", "A -stray folder: no broker serves or removes it.",
     "Compare it with the live replica before you remove it.", "LogManager.isStrayReplica"),
    ("metadata-log-missing", "log", "The metadata log is missing or empty: a start makes every partition stray.",
     "Restore __cluster_metadata-0 before a start.", "KafkaMetadataLog"),
    ("metadata-replay", "log", "A record of the metadata log cannot be replayed: a controller does not start.",
     "kdump metadata reports the record.", "MetadataLoader"),
    ("metadata-elsewhere", "remark", "No metadata log is among the paths: assignment cannot be judged.",
     "Name all log dirs of the broker.", "KafkaMetadataLog"),
    ("swap", "log", "A .swap file that is empty or damaged takes the place of a log at the next start.",
     "Move the .swap file away.", "LogLoader.removeTempFilesAndCollectSwapFiles"),
    ("log-start-beyond-end", "log", "The log start offset is above the log end: a start deletes all segments.",
     "Correct the line of log-start-offset-checkpoint.", "LogLoader.load"),
    ("log-start-raised", "log", "A log start offset hides records that no broker deleted: leader epochs begin below it.",
     "Correct the line of log-start-offset-checkpoint.", "UnifiedLog.maybeIncrementLogStartOffset"),
    ("index-beyond-log", "log", "After a clean stop the newest index entry points past the log: all its records hide.",
     "Move the indexes of the segment away: a broker rebuilds them.", "LogSegment.readNextOffset"),
    ("clean-marker", "log", "A clean shutdown marker makes a broker skip the recovery of a damaged log.",
     "Move .kafka_cleanshutdown away.", "LogManager.loadLogs"),
    ("recovery", "log", "What recovery truncates when a broker starts.", _SALVAGE, "LogLoader.recoverLog"),
    ("file-name", "derived", "A file name that must begin with an offset does not: a broker does not start.",
     "Move the file away.", "LogFileUtils.offsetFromFile"),
    ("dangling-link", "log", "The folder of a partition is a link to a missing place, or a file.",
     "Mount the disk.", "LogManager.createLogDirectory"),
    ("folder", "derived", "A folder whose name is not TOPIC-PARTITION: a broker does not start.",
     "Move the folder away.", "LogManager.loadLogs"),
    ("foreign-folder", "remark", "A folder that is not a broker's; its files were not checked.", "", "LogManager.loadLogs"),
    ("twice", "derived", "Two log dirs of one broker hold the same partition: it does not start.",
     "Move one of the two away.", "LogManager.loadLogs"),
    ("cluster-id", "derived", "Two log dirs of one broker have different cluster ids: it does not start.",
     "Take the other log dir out of log.dirs.", "MetaPropertiesEnsemble.verify"),
    ("directory-id", "derived", "Two log dirs have the same directory.id: a broker does not start.",
     "Remove the line directory.id from one of them.", "MetaPropertiesEnsemble.verify"),
    ("absent", "derived", "A file is missing.", "", "LogSegment, MetaPropertiesEnsemble"),
    ("start", "log", "Kafka's rules of a start: the text has the exception or message.", "", "LogManager"),
    # causes of a dry start (broker_start/outcome.py)
    # a start: log dirs and their ids
    ("meta-properties-missing", "log", "A log dir of a formatted node has no meta.properties.", _START, "MetaPropertiesEnsemble, LogManager"),
    ("meta-properties-unreadable", "log", "meta.properties cannot be read, or lacks a line.", _START, "MetaPropertiesEnsemble, LogManager"),
    ("node-id-missing", "log", "meta.properties names no node id.", _START, "MetaPropertiesEnsemble, LogManager"),
    ("node-id-differs", "log", "meta.properties names another node than the broker's configuration or its other log dirs.", _START, "MetaPropertiesEnsemble, LogManager"),
    ("cluster-id-differs", "log", "meta.properties names another cluster than the other log dirs.", _START, "MetaPropertiesEnsemble, LogManager"),
    ("directory-id-twice", "log", "Two log dirs have one directory.id.", _START, "MetaPropertiesEnsemble, LogManager"),
    ("directory-id-reserved", "log", "A directory.id is one of those that Kafka keeps for itself.", _START, "MetaPropertiesEnsemble, LogManager"),
    ("log-dir-missing", "log", "A log dir is not there.", _START, "MetaPropertiesEnsemble, LogManager"),
    ("log-dir-no-folder", "log", "The path of a log dir is no folder.", _START, "MetaPropertiesEnsemble, LogManager"),
    ("log-dir-unreadable", "log", "A log dir cannot be listed.", _START, "MetaPropertiesEnsemble, LogManager"),
    ("log-dir-offline", "log", "The log dir of a partition is not served: the partition is not here after the start.", _START, "MetaPropertiesEnsemble, LogManager"),
    # a start: the metadata log
    ("metadata-log-misplaced", "log", "The metadata log lies in another log dir than the one that the node reads it from.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader"),
    ("bootstrap-broken", "log", "bootstrap.checkpoint cannot be read.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader"),
    ("quorum-state-broken", "log", "quorum-state cannot be read.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader"),
    ("metadata-log-broken", "log", "The folder of the metadata log cannot be loaded.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader"),
    ("metadata-log-empty", "log", "The metadata log is missing or holds nothing: every partition becomes stray.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader"),
    ("metadata-log-behind", "log", "The metadata log ends below what its files say of it: later decisions are forgotten.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader"),
    ("metadata-snapshot-broken", "log", "A snapshot of the metadata log cannot be read.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader"),
    ("metadata-replay-broken", "log", "A record of the metadata log cannot be replayed.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader"),
    ("metadata-too-new", "log", "The metadata has a feature or level that this release does not know.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader"),
    ("metadata-id-differs", "log", "partition.metadata of the metadata log has another id than the one of every metadata log.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader"),
    ("snapshot-ahead", "log", "A snapshot ends after the metadata log: the log is dropped.", _START, "KafkaMetadataLog, KafkaRaftServer, MetadataLoader"),
    # a start: files of a log dir
    ("checkpoint-broken", "log", "A checkpoint file of the log dir cannot be read.", _START, "LogManager"),
    ("cleaner-checkpoint-broken", "log", "cleaner-offset-checkpoint cannot be read.", _START, "LogManager"),
    ("folder-is-file", "log", "A file stands in the place of a partition's folder.", _START, "LogManager"),
    ("folder-is-dangling", "log", "A link that leads nowhere stands in the place of a partition's folder.", _START, "LogManager"),
    ("two-folders", "log", "Two log dirs have a folder of one partition.", _START, "LogManager"),
    ("future-beside-current", "log", "One log dir has a partition's folder and its -future folder.", _START, "LogManager"),
    # a start: files of a partition
    ("partition-metadata-broken", "log", "partition.metadata cannot be read.", _START, "LogLoader, UnifiedLog"),
    ("leader-epochs-broken", "log", "leader-epoch-checkpoint cannot be read.", _START, "LogLoader, UnifiedLog"),
    ("name-no-offset", "log", "The name of a log or index file does not begin with an offset.", _START, "LogLoader, UnifiedLog"),
    ("index-unreadable", "log", "An index cannot be opened.", _START, "LogLoader, UnifiedLog"),
    ("txn-index-version", "log", "A transaction index of a version that this release does not know.", _START, "LogLoader, UnifiedLog"),
    ("snapshot-unreadable", "log", "A producer snapshot cannot be opened.", _START, "LogLoader, UnifiedLog"),
    ("log-unreadable", "log", "A segment cannot be read.", _START, "LogLoader, UnifiedLog"),
    ("split-refused", "log", "The files of an interrupted split of a segment do not fit together.", _START, "LogLoader, UnifiedLog"),
    ("offset-refused", "log", "Offsets of a segment do not rise, where it is loaded without recovery.", _START, "LogLoader, UnifiedLog"),
    ("file-unreadable", "log", "kdump cannot read a file that decides; the broker may be able to.", _START, "LogLoader, UnifiedLog"),
    # a start: what becomes of a folder
    ("no-topic-id", "log", "The folder has no topic id: it becomes stray.", _START, "LogManager, BrokerMetadataPublisher"),
    ("topic-unknown", "log", "The metadata log has no topic of this id: the folder becomes stray.", _START, "LogManager, BrokerMetadataPublisher"),
    ("partition-unknown", "log", "The topic has no partition of this number: the folder becomes stray.", _START, "LogManager, BrokerMetadataPublisher"),
    ("not-assigned", "log", "The metadata log does not assign the partition to this broker: the folder becomes stray.", _START, "LogManager, BrokerMetadataPublisher"),
    ("named-stray", "log", "The folder's name marks it as stray: it is not served and not removed.", _START, "LogManager, BrokerMetadataPublisher"),
    ("named-delete", "log", "The folder's name marks it for deletion.", _START, "LogManager, BrokerMetadataPublisher"),
    ("named-future", "log", "A replica on its way from another log dir.", _START, "LogManager, BrokerMetadataPublisher"),
    ("promoted", "log", "A -future folder becomes the current one.", _START, "LogManager, BrokerMetadataPublisher"),
    ("no-folder", "log", "The partition is assigned here, and no folder holds it: it begins empty.", _START, "LogManager, BrokerMetadataPublisher"),
    ("no-segment", "log", "The folder holds no segment: the log begins empty at its log start offset.", _START, "LogManager, BrokerMetadataPublisher"),
    # a start: what a log loses
    ("bad-batch", "log", "Recovery truncates the log at the first batch that is not valid.", _START, "LogLoader, LogSegment"),
    ("swapped", "log", "A .swap file takes the place of the segments that it covers, unread.", _START, "LogLoader, LogSegment"),
    ("start-beyond-end", "log", "The log start offset is above the log end: all segments are deleted.", _START, "LogLoader, LogSegment"),
    ("offsets-go-back", "log", "Recovery truncates the log where offsets do not rise.", _START, "LogLoader, LogSegment"),
    ("later-segment", "log", "An earlier segment is truncated, so this one is deleted.", _START, "LogLoader, LogSegment"),
    ("cleaned-discards-swap", "log", "A .cleaned file of a lower or equal base offset: the .swap file is deleted.", _START, "LogLoader, LogSegment"),
    ("batch", "derived", "A batch of a snapshot of the metadata log is damaged.", "", "RecordsSnapshotReader"),
    ("name", "derived", "A snapshot name that keeps a node from starting.", "Move the file away.", "Snapshots"),
    # batches and records
    ("end-of-log", "log", "A truncated batch at the end of a log.", _SALVAGE, "LogSegment.recover"),
    ("zero-tail", "remark", "Zeros follow the last batch or entry: a preallocated file.", "", "FileRecords"),
    ("gap", "log", "Offsets are missing, and compaction does not explain it.", "Another replica may have them.", "UnifiedLog"),
    ("compaction", "remark", "Gaps in the offsets, as compaction leaves them.", "", "LogCleaner"),
    ("offset-order", "log", "A batch begins below the end of the batch before it.", _SALVAGE, "UnifiedLog.append"),
    ("base-offset", "log", "The name of a segment does not fit its offsets.", "", "LogSegment"),
    ("attributes", "log", "Attribute bits that have no meaning are set.", _SALVAGE, "DefaultRecordBatch"),
    ("record-count", "log", "The record count does not fit the batch.", _SALVAGE, "DefaultRecordBatch"),
    ("records", "log", "Records are not as Kafka writes them.", "kdump slice", "DefaultRecord"),
    ("last-offset", "log", "A last offset does not fit the records.", "", "DefaultRecordBatch"),
    ("max-timestamp", "log", "The greatest timestamp of a batch is not that of its records.", "", "DefaultRecordBatch"),
    ("delete-horizon", "log", "A batch has a delete horizon but no tombstone.", "", "KIP-534"),
    ("timestamp-type", "remark", "The type of timestamps changes back and forth.", "", "DefaultRecordBatch"),
    ("future-timestamp", "remark", "Timestamps in the future: retention keeps such segments.", "kdump retention", "KIP-937"),
    ("open-transaction", "remark", "A transaction without an end.", "kdump transactions", "KIP-98"),
    ("leader-epoch", "log", "The leader epoch goes back, or is not that of the checkpoint.", "", "KIP-101"),
    ("producer", "log", "Producer id, epoch and sequence do not fit together.", "", "KIP-98"),
    ("sequence", "log", "A sequence number is repeated or left out.", "", "ProducerStateManager"),
    ("payload", "log", "A record of Kafka's own topic cannot be read.", "Take the partition from another replica.", "KIP-98"),
    ("unknown-payload", "remark", "A record of Kafka's own topic that kdump's schemas do not have.", "", "MessageGenerator"),
    ("limit", "remark", "A batch above kdump's own limit: it was not checked.", "--max-batch-bytes", "kdump"),
    # damage in bytes
    ("crc", "log", "A checksum is wrong.", _SALVAGE, "DefaultRecordBatch.ensureValid"),
    ("magic", "log", "A batch of unknown magic.", _SALVAGE, "RecordBatch"),
    ("codec", "log", "A batch with an unknown codec.", _SALVAGE, "CompressionType"),
    ("compression", "log", "A batch that cannot be decompressed.", _SALVAGE, "CompressionType"),
    ("batch-size", "log", "A batch smaller than its header.", _SALVAGE, "FileRecords"),
    ("record-size", "log", "A size field that cannot be right.", _SALVAGE, "CorruptRecordException"),
    ("record-offset", "log", "Record offsets do not rise.", _SALVAGE, "DefaultRecordBatch"),
    ("record-key", "log", "A record key cannot be read.", _SALVAGE, "DefaultRecord"),
    ("header-count", "log", "A negative count of headers.", _SALVAGE, "DefaultRecord"),
    ("header-key-size", "log", "A header key of negative size.", _SALVAGE, "DefaultRecord"),
    ("index-position", "derived", "An index position outside the log.", _REBUILD, "OffsetIndex"),
    ("inner-messages", "log", "A compressed message set cannot be read.", _SALVAGE, "AbstractLegacyRecordBatch"),
    ("wrapper-offset", "log", "A wrapper message has a wrong offset.", _SALVAGE, "AbstractLegacyRecordBatch"),
    ("message-size", "log", "A message size that cannot be right.", _SALVAGE, "LegacyRecord"),
    ("key-size", "log", "A key or value of negative size.", _SALVAGE, "LegacyRecord"),
    ("value-size", "log", "A value of negative size.", _SALVAGE, "LegacyRecord"),
    ("value", "log", "A wrapper without a value.", _SALVAGE, "LegacyRecord"),
    ("varint", "log", "A variable-length number that does not end.", _SALVAGE, "ByteUtils"),
    ("control-key", "log", "The key of a control record cannot be read.", _SALVAGE, "ControlRecordType"),
    ("control-record", "log", "A control record of a type that has no place here.", _SALVAGE, "ControlRecordType"),
    ("control-value", "log", "The value of a control record cannot be read.", _SALVAGE, "EndTransactionMarker"),
    ("short", "derived", "A file or field ends too early.", "", "ProducerStateManager, TransactionIndex"),
    ("encryption", "log", "An encrypted remote segment cannot be decrypted.", "", "KIP-405"),
    ("chunk", "log", "A chunk of a remote segment is damaged.", "", "KIP-405"),
    ("manifest", "log", "The manifest of a remote segment is damaged.", "", "KIP-405"),
    ("decoder", "remark", "A decoder class refuses a payload.", "", "kdump"),
    # files beside the log
    ("size", "derived", "The size of an index is not a whole number of entries.", _REBUILD, "AbstractIndex.sanityCheck"),
    ("order", "derived", "Entries do not rise.", _REBUILD, "AbstractIndex"),
    ("offset", "derived", "An entry names an offset that is not there.", _REBUILD, "OffsetIndex"),
    ("position", "derived", "An entry names a position at which no batch begins.", _REBUILD, "OffsetIndex"),
    ("timestamp", "derived", "An entry has a timestamp that is not the greatest so far.", _REBUILD, "TimeIndex"),
    ("beyond-the-log", "derived", "An entry points past the end of the log.", _REBUILD, "OffsetIndex"),
    ("convention", "remark", "Which offset of a batch the entries name.", "", "KIP-33"),
    ("coverage", "remark", "A longer stretch without an entry than usual, as after a restart.", "", "LogSegment.append"),
    ("preallocation", "remark", "Index sizes that a broker does not preallocate together.", "", "AbstractIndex"),
    ("empty", "remark", "An index without entries.", "", "AbstractIndex"),
    ("no-log", "derived", "An index without a log.", "", "LogLoader"),
    ("missing", "derived", "An aborted transaction is missing from .txnindex.", _REBUILD, "TransactionIndex"),
    ("empty-abort", "remark", "An aborted transaction without records.", "", "TransactionIndex"),
    ("first-offset", "derived", "The first offset of an aborted transaction is wrong.", _REBUILD, "TransactionIndex"),
    ("last-stable-offset", "derived", "The last stable offset of an entry is wrong.", _REBUILD, "TransactionIndex"),
    ("producer-id", "derived", "An aborted transaction of another producer.", _REBUILD, "TransactionIndex"),
    ("sanity-check", "derived", "Kafka's own sanity check of an index fails.", _REBUILD, "AbstractIndex.sanityCheck"),
    ("count", "derived", "A count does not fit the entries.", "", "CheckpointFile, ProducerStateManager"),
    ("line", "derived", "A line of a checkpoint is malformed.", "Move the file away where a broker starts without it.", "CheckpointFile"),
    ("text", "derived", "A checkpoint that is not text.", "Move the file away where a broker starts without it.", "CheckpointFile"),
    ("version", "derived", "A version that is not supported.", "", "CheckpointFile, PartitionMetadataFile"),
    ("property", "derived", "A property of meta.properties is missing or wrong.", "Write the file with the right ids.",
     "MetaPropertiesVersion"),
    ("escape", "derived", "A malformed escape sequence.", "", "java.util.Properties"),
    ("json", "derived", "A JSON file cannot be read.", "", "FileQuorumStateStore, CleanShutdownFileHandler"),
    ("snapshot", "derived", "A snapshot of the metadata log does not fit it, or is damaged.", "", "RecordsSnapshotReader"),
    ("leftover", "remark", "A file or folder that a broker had not finished or removed.", "", "LogLoader"),
    ("unknown-file", "remark", "A file that no broker writes here.", "", "LogLoader"),
    # remote storage
    ("remote-absent", "log", "A listed segment is not in remote storage.", "", "KIP-405"),
    ("remote-deletion", "remark", "A remote segment whose deletion is not finished.", "", "KIP-405"),
    ("remote-epoch", "derived", "Leader epochs of a remote segment differ from the list.", "", "KIP-405"),
    ("remote-hole", "log", "Offsets are missing between remote and local segments.", "", "KIP-405"),
    ("remote-size", "derived", "The size of a remote segment differs from the list.", "", "KIP-405"),
    ("unlisted", "remark", "A file in remote storage that the list does not have.", "", "KIP-405"),
)  # fmt: skip
CODES: Final[Mapping[str, FindingCode]] = {row[0]: FindingCode(*row) for row in _ROWS}
"""Code -> row, in the order of the docs page."""


def code(kind: str) -> str:
    """Return the stable code of a kind, the word that ``check`` has in JSON lines."""
    return kind.replace(" ", "-")
