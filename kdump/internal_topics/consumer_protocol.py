"""The bytes in ``subscription`` and ``assignment`` of a group member with protocolType "consumer".

An int16 version, then the fields. Source: ``org.apache.kafka.clients.consumer.internals.ConsumerProtocol``.
"""

from __future__ import annotations

from typing import Final

from kdump.internal_topics.schema import SchemaText

MESSAGES: Final = SchemaText("""
ConsumerProtocolSubscription; versions 0-1 before 3.4, 0-3
    topics                   []string
    userData                 bytes   null  = null
    ownedPartitions          []TopicPartition  1+
        topic                string
        partitions           []int32
    generationId             int32   2+  = -1
    rackId                   string  3+  null 3+  = null
ConsumerProtocolAssignment; versions 0-1 before 3.4, 0-3
    assignedPartitions       []TopicPartition
        topic                string
        partitions           []int32
    userData                 bytes   null  = null
""")
