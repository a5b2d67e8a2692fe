"""The control records of KRaft: leader change, snapshot header and footer, voters (KIP-595, 630, 853).

The key of a control record has the type (:mod:`kdump.records.control`). The value is the message; its first field is
its version. Source: ``org.apache.kafka.common.message``.
"""

from __future__ import annotations

from typing import Final

from kdump.internal_topics.schema import SchemaText

MESSAGES: Final = SchemaText("""
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
