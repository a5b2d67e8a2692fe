"""``__cluster_metadata``: the metadata log of KRaft, and its ``.checkpoint`` snapshots (KIP-500, KIP-630).

Metadata records have no key. A value begins with a frame (:func:`kdump.internal_topics.interpreter.frame_number`).
Source: ``org.apache.kafka.common.metadata``. In 2.8 (frame version 0) the layouts were different: only two of the
records had compact lengths. Later releases gave the type number 14 to another record.
"""

from __future__ import annotations

from typing import Final

from kdump.internal_topics import CLUSTER_METADATA
from kdump.internal_topics.schema import SchemaText

TOPIC: Final = CLUSTER_METADATA

MESSAGES: Final = SchemaText("""
RegisterBrokerRecord; type 0;
    versions 0 before 3.3, 0-1 before 3.4, 0-2 before 3.7, 0-3 before 4.3, 0-4; flexible 0+ from 3.0
    brokerId                 int32
    isMigratingZkBroker      bool    2+
    incarnationId            uuid
    brokerEpoch              int64
    endPoints                []BrokerEndpoint
        name                 string
        host                 string
        port                 uint16
        securityProtocol     int16
    features                 []BrokerFeature
        name                 string
        minSupportedVersion  int16
        maxSupportedVersion  int16
    rack                     string  null
    fenced                   bool    = true  from 3.0
    inControlledShutdown     bool    1+
    logDirs                  []uuid  3+  tag 0
    cordonedLogDirs          []uuid  4+  null 4+  tag 1  = null

UnregisterBrokerRecord; type 1; versions 0; flexible 0+ from 3.0
    brokerId                 int32
    brokerEpoch              int64

TopicRecord; type 2; versions 0; flexible 0+ from 3.0
    name                     string
    topicId                  uuid

PartitionRecord; type 3; versions 0 before 3.7, 0-2; flexible 0+ from 3.0
    partitionId              int32   = -1
    topicId                  uuid
    replicas                 []int32
    isr                      []int32
    removingReplicas         []int32  null  before 3.0
    removingReplicas         []int32  from 3.0
    addingReplicas           []int32  null  before 3.0
    addingReplicas           []int32  from 3.0
    leader                   int32   = -1
    leaderRecoveryState      int8    tag 0  from 3.2
    leaderEpoch              int32   = -1
    partitionEpoch           int32   = -1
    directories              []uuid  1+
    eligibleLeaderReplicas   []int32  2+  null 2+  tag 1  = null
    lastKnownELR             []int32  2+  null 2+  tag 2  = null  before 3.8
    lastKnownElr             []int32  2+  null 2+  tag 2  = null  from 3.8

ConfigRecord; type 4; versions 0; flexible 0+ from 3.0
    resourceType             int8
    resourceName             string
    name                     string
    value                    string  before 3.0
    value                    string  null  from 3.0

PartitionChangeRecord; type 5; versions 0 before 3.7, 0-2; flexible 0+
    partitionId              int32   = -1
    topicId                  uuid
    isr                      []int32  null  tag 0  = null
    leader                   int32    tag 1  = -2
    replicas                 []int32  null  tag 2  = null  from 3.0
    removingReplicas         []int32  null  tag 3  = null  from 3.0
    addingReplicas           []int32  null  tag 4  = null  from 3.0
    leaderRecoveryState      int8     tag 5  = -1  from 3.2
    directories              []uuid   1+  null 1+  tag 8  = null
    eligibleLeaderReplicas   []int32  2+  null 2+  tag 6  = null
    lastKnownELR             []int32  2+  null 2+  tag 7  = null  before 3.8
    lastKnownElr             []int32  2+  null 2+  tag 7  = null  from 3.8

AccessControlRecord; type 6 before 3.5; versions 0 before 3.5; flexible 0+
    resourceType             int8
    resourceName             string  null
    patternType              int8
    principal                string
    host                     string
    operation                int8
    permissionType           int8

FenceBrokerRecord; type 7; versions 0; flexible 0+ from 3.0
    id                       int32
    epoch                    int64

UnfenceBrokerRecord; type 8; versions 0; flexible 0+ from 3.0
    id                       int32
    epoch                    int64

RemoveTopicRecord; type 9; versions 0; flexible 0+ from 3.0
    topicId                  uuid

DelegationTokenRecord; type 10; versions 0; flexible 0+ from 3.0
    owner                    string
    requester                string  from 3.6
    renewers                 []string
    issueTimestamp           int64
    maxTimestamp             int64
    expirationTimestamp      int64
    tokenId                  string

UserScramCredentialRecord; type 11; versions 0; flexible 0+ from 3.0
    name                     string
    credentialInfos          []CredentialInfo  before 3.5
        mechanism            int8
        salt                 bytes
        saltedPassword       bytes
        iterations           int32
    mechanism                int8    from 3.5
    salt                     bytes   from 3.5
    storedKey                bytes   from 3.5
    serverKey                bytes   from 3.5
    iterations               int32   from 3.5

FeatureLevelRecord; type 12; versions 0; flexible 0+ from 3.0
    name                     string
    minFeatureLevel          int16   before 3.3
    maxFeatureLevel          int16   before 3.3
    featureLevel             int16   from 3.3

QuotaRecord; type 14 before 3.0; versions 0 before 3.0
    entity                   []EntityData
        entityType           string
        entityName           string  null
    key                      string
    value                    float64
    remove                   bool

ClientQuotaRecord; type 14 from 3.0; versions 0 from 3.0; flexible 0+
    entity                   []EntityData
        entityType           string
        entityName           string  null
    key                      string
    value                    float64
    remove                   bool

ProducerIdsRecord; type 15 from 3.0; versions 0 from 3.0; flexible 0+
    brokerId                 int32
    brokerEpoch              int64   = -1
    producerIdsEnd           int64   before 3.2
    nextProducerId           int64   from 3.2

RemoveFeatureLevelRecord; type 16 from 3.0 before 3.3; versions 0 from 3.0 before 3.3; flexible 0+
    name                     string

BrokerRegistrationChangeRecord; type 17 from 3.0;
    versions 0 from 3.0 before 3.3, 0-1 from 3.3 before 3.7, 0-2 from 3.7 before 4.3, 0-3 from 4.3; flexible 0+
    brokerId                 int32
    brokerEpoch              int64
    fenced                   int8    tag 0
    inControlledShutdown     int8    1+  tag 1
    logDirs                  []uuid  2+  tag 2
    cordonedLogDirs          []uuid  3+  null 3+  tag 3  = null

AccessControlEntryRecord; type 18 from 3.2; versions 0 from 3.2; flexible 0+
    id                       uuid
    resourceType             int8
    resourceName             string
    patternType              int8
    principal                string
    host                     string
    operation                int8
    permissionType           int8

RemoveAccessControlEntryRecord; type 19 from 3.2; versions 0 from 3.2; flexible 0+
    id                       uuid

NoOpRecord; type 20 from 3.3; versions 0 from 3.3; flexible 0+

ZkMigrationStateRecord; type 21 from 3.4; versions 0 from 3.4; flexible 0+
    zkMigrationState         int8

RemoveUserScramCredentialRecord; type 22 from 3.5; versions 0 from 3.5; flexible 0+
    name                     string
    mechanism                int8

BeginTransactionRecord; type 23 from 3.6; versions 0 from 3.6; flexible 0+
    name                     string  null  tag 0  = null

EndTransactionRecord; type 24 from 3.6; versions 0 from 3.6; flexible 0+

AbortTransactionRecord; type 25 from 3.6; versions 0 from 3.6; flexible 0+
    reason                   string  null  tag 0  = null

RemoveDelegationTokenRecord; type 26 from 3.6; versions 0 from 3.6; flexible 0+
    tokenId                  string

RegisterControllerRecord; type 27 from 3.7; versions 0 from 3.7; flexible 0+
    controllerId             int32
    incarnationId            uuid
    zkMigrationReady         bool
    endPoints                []ControllerEndpoint
        name                 string
        host                 string
        port                 uint16
        securityProtocol     int16
    features                 []ControllerFeature
        name                 string
        minSupportedVersion  int16
        maxSupportedVersion  int16

ClearElrRecord; type 28 from 4.0; versions 0 from 4.0; flexible 0+
    topicName                string

UnregisterControllerRecord; type 29 from 4.4; versions 0 from 4.4; flexible 0+
    controllerId             int32
""")

CONTROL_MESSAGES: Final = SchemaText("""
LeaderChangeMessage; type 2 from 3.0, 3 from 2.7 before 3.0; versions 0 from 2.7 before 3.9, 0-1 from 3.9; flexible 0+
    version                  int16   from 3.0
    leaderId                 int32
    voters                   []Voter
        voterId              int32
        voterDirectoryId     uuid    1+
    grantingVoters           []Voter

SnapshotHeaderRecord; type 3 from 3.0; versions 0 from 3.0; flexible 0+
    version                  int16
    lastContainedLogTimestamp  int64

SnapshotFooterRecord; type 4 from 3.0; versions 0 from 3.0; flexible 0+
    version                  int16

KRaftVersionRecord; type 5 from 3.8; versions 0 from 3.8; flexible 0+
    version                  int16
    kRaftVersion             int16

VotersRecord; type 6 from 3.8; versions 0 from 3.8; flexible 0+
    version                  int16
    voters                   []Voter
        voterId              int32
        voterDirectoryId     uuid
        endpoints            []Endpoint
            name             string
            host             string
            port             uint16
        kRaftVersionFeature  KRaftVersionFeature
            minSupportedVersion  int16
            maxSupportedVersion  int16
""")
"""The control records of KRaft: leader change, snapshot header and footer, version, voters (KIP-595, 630, 853).

The key of a control record has the type (:mod:`kdump.records.control`). The value is the message. From 3.0 on its
first field is the version. Source: ``org.apache.kafka.common.message``.
"""
