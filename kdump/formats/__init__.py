"""One module per kind of file or structure that Kafka writes."""

from typing import Final

FORMATS: Final[dict[str, str]] = {
    ".log": "record_layout",
    ".index": "offset_index",
    ".timeindex": "time_index",
    ".txnindex": "txn_index",
    ".snapshot": "producer_snapshot",
    ".checkpoint": "record_layout",
    "leader-epoch-checkpoint": "leader_epoch",
    "partition.metadata": "partition_metadata",
    "recovery-point-offset-checkpoint": "checkpoints",
    "replication-offset-checkpoint": "checkpoints",
    "log-start-offset-checkpoint": "checkpoints",
    "cleaner-offset-checkpoint": "checkpoints",
    "meta.properties": "meta_properties",
    ".kafka_cleanshutdown": "clean_shutdown",
    "quorum-state": "quorum_state",
}
"""What a file's name is, or ends in -> the module here that reads and writes it."""
