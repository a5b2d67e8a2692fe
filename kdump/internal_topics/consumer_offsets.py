"""``__consumer_offsets``: offsets and groups of the classic, consumer, share and streams protocols.

A key begins with the int16 type of the record. A value begins with the int16 version of its layout; a null value is a
deletion. Before 4.1 Kafka called the type the version of the key: types 0 and 1 were versions of OffsetCommit. Since
4.1 type 0 is LegacyOffsetCommit. Source: Kafka's generated classes such as ``OffsetCommitValue``, before 2.8
``kafka.coordinator.group.GroupMetadataManager``; KIP-62, 211, 320, 345, 848, 932, 1071.
"""

from __future__ import annotations

from typing import Final

from kdump.internal_topics import CONSUMER_OFFSETS
from kdump.internal_topics.schema import SchemaText

TOPIC: Final = CONSUMER_OFFSETS

MESSAGES: Final = SchemaText("""
LegacyOffsetCommitKey; type 0 from 4.1; versions 0 from 4.1
    group                    string
    topic                    string
    partition                int32
LegacyOffsetCommitValue; type 0 from 4.1; versions 0 from 4.1
    offset                   int64
    metadata                 string
    commitTimestamp          int64

OffsetCommitKey; type 1, 0 before 4.1; versions 0
    group                    string
    topic                    string
    partition                int32
OffsetCommitValue; type 1, 0 before 4.1; versions 0-1 before 2.1, 0-3 before 3.4.1, 0-4; flexible 4+
    offset                   int64
    leaderEpoch              int32   3+  = -1
    metadata                 string
    commitTimestamp          int64
    expireTimestamp          int64   1   = -1
    topicId                  uuid    4+  tag 0  from 4.1

GroupMetadataKey; type 2; versions 0
    group                    string
GroupMetadataValue; type 2; versions 0 before 0.10.1, 0-1 before 2.1, 0-2 before 2.3, 0-3 before 3.4.1, 0-4; flexible 4+
    protocolType             string
    generation               int32
    protocol                 string  null
    leader                   string  null
    currentStateTimestamp    int64   2+  = -1
    members                  []MemberMetadata
        memberId             string
        groupInstanceId      string  3+  null 3+  = null
        clientId             string
        clientHost           string
        rebalanceTimeout     int32   1+  = 0   before 3.8
        rebalanceTimeout     int32   1+  = -1  from 3.8
        sessionTimeout       int32
        subscription         bytes
        assignment           bytes

ConsumerGroupMetadataKey; type 3 from 3.7; versions 0 from 3.7
    groupId                  string
ConsumerGroupMetadataValue; type 3 from 3.7; versions 0 from 3.7; flexible 0+
    epoch                    int32
    metadataHash             int64   tag 0  from 4.1

ConsumerGroupPartitionMetadataKey; type 4 from 3.7; versions 0 from 3.7
    groupId                  string
ConsumerGroupPartitionMetadataValue; type 4 from 3.7; versions 0 from 3.7; flexible 0+
    epoch                    int32   before 3.8
    topics                   []TopicMetadata
        topicId              uuid
        topicName            string
        numPartitions        int32
        partitionMetadata    []PartitionMetadata
            partition        int32
            racks            []string

ConsumerGroupMemberMetadataKey; type 5 from 3.7; versions 0 from 3.7
    groupId                  string
    memberId                 string
ConsumerGroupMemberMetadataValue; type 5 from 3.7; versions 0 from 3.7; flexible 0+
    instanceId               string  null
    rackId                   string  null
    clientId                 string
    clientHost               string
    subscribedTopicNames     []string
    subscribedTopicRegex     string  null
    rebalanceTimeoutMs       int32   = -1
    serverAssignor           string  null
    assignors                []Assignor  before 3.8
        name                 string
        minimumVersion       int16
        maximumVersion       int16
        reason               int8
        version              int16
        metadata             bytes
    classicMemberMetadata    ClassicMemberMetadata  null  tag 0  from 3.8
        sessionTimeoutMs     int32
        supportedProtocols   []ClassicProtocol
            name             string
            metadata         bytes

ConsumerGroupTargetAssignmentMetadataKey; type 6 from 3.7; versions 0 from 3.7
    groupId                  string
ConsumerGroupTargetAssignmentMetadataValue; type 6 from 3.7; versions 0 from 3.7; flexible 0+
    assignmentEpoch          int32
    assignmentTimestamp      int64   tag 0  from 4.3

ConsumerGroupTargetAssignmentMemberKey; type 7 from 3.7; versions 0 from 3.7
    groupId                  string
    memberId                 string
ConsumerGroupTargetAssignmentMemberValue; type 7 from 3.7; versions 0 from 3.7; flexible 0+
    error                    int8    before 3.8
    topicPartitions          []TopicPartition
        topicId              uuid
        partitions           []int32
    metadataVersion          int16   before 3.8
    metadataBytes            bytes   before 3.8

ConsumerGroupCurrentMemberAssignmentKey; type 8 from 3.7; versions 0 from 3.7
    groupId                  string
    memberId                 string
ConsumerGroupCurrentMemberAssignmentValue; type 8 from 3.7; versions 0 from 3.7; flexible 0+
    memberEpoch                  int32
    previousMemberEpoch          int32
    targetMemberEpoch            int32   before 3.8
    state                        int8    from 3.8
    assignedPartitions           []TopicPartitions
        topicId                  uuid
        partitions               []int32
        assignmentEpochs         []int32  null  tag 0  from 4.3
    partitionsPendingRevocation  []TopicPartitions
    partitionsPendingAssignment  []TopicPartitions  before 3.8
    error                        int8    before 3.8
    metadataVersion              int16   before 3.8
    metadataBytes                bytes   before 3.8

ShareGroupPartitionMetadataKey; type 9 from 4.0 before 4.1; versions 0 from 3.9 before 4.1
    groupId                  string
ShareGroupPartitionMetadataValue; type 9 from 4.0 before 4.1; versions 0 from 3.9 before 4.1; flexible 0+
    initializedTopics        []TopicPartitionsInfo  before 4.0
        topicId              uuid
        topicName            string
        partitions           []int32
    deletingTopics           []TopicInfo  before 4.0
        topicId              uuid
        topicName            string
    topics                   []TopicMetadata  from 4.0
        topicId              uuid
        topicName            string
        numPartitions        int32
        partitionMetadata    []PartitionMetadata
            partition        int32
            racks            []string

ShareGroupMemberMetadataKey; type 10 from 4.0; versions 0 from 3.9
    groupId                  string
    memberId                 string
ShareGroupMemberMetadataValue; type 10 from 4.0; versions 0 from 3.9; flexible 0+
    rackId                   string  null
    clientId                 string
    clientHost               string
    subscribedTopicNames     []string

ShareGroupMetadataKey; type 11 from 4.0; versions 0 from 3.9
    groupId                  string
ShareGroupMetadataValue; type 11 from 4.0; versions 0 from 3.9; flexible 0+
    epoch                    int32
    metadataHash             int64   from 4.1

ShareGroupTargetAssignmentMetadataKey; type 12 from 4.0; versions 0 from 4.0
    groupId                  string
ShareGroupTargetAssignmentMetadataValue; type 12 from 4.0; versions 0 from 4.0; flexible 0+
    assignmentEpoch          int32
    assignmentTimestamp      int64   tag 0  from 4.3

ShareGroupTargetAssignmentMemberKey; type 13 from 4.0; versions 0 from 4.0
    groupId                  string
    memberId                 string
ShareGroupTargetAssignmentMemberValue; type 13 from 4.0; versions 0 from 4.0; flexible 0+
    topicPartitions          []TopicPartition
        topicId              uuid
        partitions           []int32

ShareGroupCurrentMemberAssignmentKey; type 14 from 4.0; versions 0 from 4.0
    groupId                  string
    memberId                 string
ShareGroupCurrentMemberAssignmentValue; type 14 from 4.0; versions 0 from 4.0; flexible 0+
    memberEpoch              int32
    previousMemberEpoch      int32
    state                    int8
    assignedPartitions       []TopicPartitions
        topicId              uuid
        partitions           []int32

ShareGroupStatePartitionMetadataKey; type 15 from 4.0; versions 0 from 4.0
    groupId                  string
ShareGroupStatePartitionMetadataValue; type 15 from 4.0; versions 0 from 4.0; flexible 0+
    initializingTopics       []TopicPartitionsInfo  from 4.1
        topicId              uuid
        topicName            string
        partitions           []int32
    initializedTopics        []TopicPartitionsInfo
    deletingTopics           []TopicInfo
        topicId              uuid
        topicName            string

ConsumerGroupRegularExpressionKey; type 16 from 4.0; versions 0 from 4.0
    groupId                  string
    regularExpression        string
ConsumerGroupRegularExpressionValue; type 16 from 4.0; versions 0 from 4.0; flexible 0+
    topics                   []string
    version                  int64
    timestamp                int64

StreamsGroupMetadataKey; type 17 from 4.1; versions 0 from 4.1
    groupId                  string
StreamsGroupMetadataValue; type 17 from 4.1; versions 0 from 4.1; flexible 0+
    epoch                    int32
    metadataHash             int64
    validatedTopologyEpoch   int32   tag 0  = -1  from 4.2
    lastAssignmentConfigs    []LastAssignmentConfig  null  tag 1  from 4.2
        key                  string
        value                string
    storedDescriptionTopologyEpoch  int32  tag 2  = -1  from 4.4
    failedDescriptionTopologyEpoch  int32  tag 3  = -1  from 4.4

StreamsGroupMemberMetadataKey; type 19 from 4.1; versions 0 from 4.1
    groupId                  string
    memberId                 string
StreamsGroupMemberMetadataValue; type 19 from 4.1; versions 0 from 4.1; flexible 0+
    instanceId               string  null
    rackId                   string  null
    clientId                 string
    clientHost               string
    rebalanceTimeoutMs       int32   = -1
    topologyEpoch            int32
    processId                string
    userEndpoint             Endpoint  null  = null
        host                 string
        port                 uint16
    clientTags               []KeyValue
        key                  string
        value                string

StreamsGroupTargetAssignmentMetadataKey; type 20 from 4.1; versions 0 from 4.1
    groupId                  string
StreamsGroupTargetAssignmentMetadataValue; type 20 from 4.1; versions 0 from 4.1; flexible 0+
    assignmentEpoch          int32
    assignmentTimestamp      int64   tag 0  from 4.3

StreamsGroupTargetAssignmentMemberKey; type 21 from 4.1; versions 0 from 4.1
    groupId                  string
    memberId                 string
StreamsGroupTargetAssignmentMemberValue; type 21 from 4.1; versions 0 from 4.1; flexible 0+
    activeTasks              []TaskIds
        subtopologyId        string
        partitions           []int32
    standbyTasks             []TaskIds
    warmupTasks              []TaskIds

StreamsGroupCurrentMemberAssignmentKey; type 22 from 4.1; versions 0 from 4.1
    groupId                  string
    memberId                 string
StreamsGroupCurrentMemberAssignmentValue; type 22 from 4.1; versions 0 from 4.1; flexible 0+
    memberEpoch                    int32
    previousMemberEpoch            int32
    state                          int8
    activeTasks                    []TaskIds
        subtopologyId              string
        partitions                 []int32
        assignmentEpochs           []int32  null  tag 0  from 4.2
    standbyTasks                   []TaskIds
    warmupTasks                    []TaskIds
    activeTasksPendingRevocation   []TaskIds
    standbyTasksPendingRevocation  []TaskIds
    warmupTasksPendingRevocation   []TaskIds

StreamsGroupTopologyKey; type 23 from 4.1; versions 0 from 4.1
    groupId                  string
StreamsGroupTopologyValue; type 23 from 4.1; versions 0 from 4.1; flexible 0+
    epoch                        int32
    subtopologies                []Subtopology
        subtopologyId            string
        sourceTopics             []string
        sourceTopicRegex         []string
        stateChangelogTopics     []TopicInfo
            name                 string
            partitions           int32
            replicationFactor    int16
            topicConfigs         []TopicConfig
                key              string
                value            string
        repartitionSinkTopics    []string
        repartitionSourceTopics  []TopicInfo
        copartitionGroups        []CopartitionGroup
            sourceTopics             []int16
            sourceTopicRegex         []int16
            repartitionSourceTopics  []int16
""")

MEMBER_MESSAGES: Final = SchemaText("""
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
"""The layouts of ``subscription`` and ``assignment`` of members with protocolType "consumer" (``ConsumerProtocol``)."""
