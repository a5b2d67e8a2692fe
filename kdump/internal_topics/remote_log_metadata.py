"""``__remote_log_metadata``: the segments in remote storage, and deletions of partitions there (KIP-405).

Records have no key. A value begins with a frame (:func:`kdump.internal_topics.interpreter.frame_number`). Source:
``org.apache.kafka.server.log.remote.metadata.storage.generated``.
"""

from __future__ import annotations

from typing import Final

from kdump.internal_topics import REMOTE_LOG_METADATA
from kdump.internal_topics.schema import SchemaText

TOPIC: Final = REMOTE_LOG_METADATA

MESSAGES: Final = SchemaText("""
RemoteLogSegmentMetadataRecord; type 0 from 3.0; versions 0 from 3.0; flexible 0+
    remoteLogSegmentId     RemoteLogSegmentIdEntry
        topicIdPartition   TopicIdPartitionEntry
            name           string
            id             uuid
            partition      int32
        id                 uuid
    startOffset            int64
    endOffset              int64
    brokerId               int32
    maxTimestampMs         int64
    eventTimestampMs       int64
    segmentLeaderEpochs    []SegmentLeaderEpochEntry
        leaderEpoch        int32
        offset             int64
    segmentSizeInBytes     int32
    customMetadata         bytes   null  = null  from 3.6
    remoteLogSegmentState  int8
    txnIndexEmpty          bool    tag 0  from 4.0

RemoteLogSegmentMetadataUpdateRecord; type 1 from 3.0; versions 0 from 3.0; flexible 0+
    remoteLogSegmentId     RemoteLogSegmentIdEntry
    brokerId               int32
    eventTimestampMs       int64
    customMetadata         bytes   null  = null  from 3.6
    remoteLogSegmentState  int8

RemotePartitionDeleteMetadataRecord; type 2 from 3.0; versions 0 from 3.0; flexible 0+
    topicIdPartition            TopicIdPartitionEntry
    brokerId                    int32
    eventTimestampMs            int64
    remotePartitionDeleteState  int8

RemoteLogSegmentMetadataSnapshotRecord; type 3 from 3.1; versions 0 from 3.1; flexible 0+
    segmentId              uuid
    startOffset            int64
    endOffset              int64
    brokerId               int32
    maxTimestampMs         int64
    eventTimestampMs       int64
    segmentLeaderEpochs    []SegmentLeaderEpochEntry
    segmentSizeInBytes     int32
    customMetadata         bytes   null  = null  from 3.6
    remoteLogSegmentState  int8
    txnIndexEmpty          bool    tag 0  from 4.0
""")

SEGMENT_STATES: Final = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
"""The names of ``remoteLogSegmentState`` (``RemoteLogSegmentState``)."""

PARTITION_STATES: Final = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")
"""The names of ``remotePartitionDeleteState`` (``RemotePartitionDeleteState``)."""
