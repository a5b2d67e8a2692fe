"""``__share_group_state``: the state of share partitions: records acquired and acknowledged by share groups (KIP-932).

A key begins with the int16 type of the record. A value begins with the int16 version of its layout; a null value is a
deletion. Source: ``org.apache.kafka.coordinator.share.generated``. 4.1 widened ``snapshotEpoch`` without a new version.
"""

from __future__ import annotations

from typing import Final

from kdump.internal_topics import SHARE_GROUP_STATE
from kdump.internal_topics.schema import SchemaText

TOPIC: Final = SHARE_GROUP_STATE

MESSAGES: Final = SchemaText("""
ShareSnapshotKey; type 0 from 4.0; versions 0 from 4.0
    groupId                string
    topicId                uuid
    partition              int32
ShareSnapshotValue; type 0 from 4.0; versions 0 from 4.0; flexible 0+
    snapshotEpoch          uint16  before 4.1
    snapshotEpoch          int32   from 4.1
    stateEpoch             int32
    leaderEpoch            int32
    startOffset            int64
    deliveryCompleteCount  int32   tag 0  = -1  from 4.2
    createTimestamp        int64   from 4.1
    writeTimestamp         int64   from 4.1
    stateBatches           []StateBatch
        firstOffset        int64
        lastOffset         int64
        deliveryState      int8
        deliveryCount      int16

ShareUpdateKey; type 1 from 4.0; versions 0 from 4.0
    groupId                string
    topicId                uuid
    partition              int32
ShareUpdateValue; type 1 from 4.0; versions 0 from 4.0; flexible 0+
    snapshotEpoch          uint16  before 4.1
    snapshotEpoch          int32   from 4.1
    leaderEpoch            int32
    startOffset            int64
    deliveryCompleteCount  int32   tag 0  = -1  from 4.2
    stateBatches           []StateBatch
        firstOffset        int64
        lastOffset         int64
        deliveryState      int8
        deliveryCount      int16
""")
