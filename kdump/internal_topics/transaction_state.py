"""``__transaction_state``: producers and transactions by transactional id (KIP-98, KIP-890).

A key begins with the int16 type of the record, always 0. A value begins with the int16 version of its layout; a null
value is a deletion. Source: ``TransactionLogKey``, ``TransactionLogValue``; kafka.coordinator.transaction before 2.8.
"""

from __future__ import annotations

from typing import Final

from kdump.internal_topics import TRANSACTION_STATE
from kdump.internal_topics.schema import SchemaText

TOPIC: Final = TRANSACTION_STATE

MESSAGES: Final = SchemaText("""
TransactionLogKey; type 0 from 0.11; versions 0 from 0.11
    transactionalId                   string
TransactionLogValue; type 0 from 0.11; versions 0 from 0.11 before 3.4.1, 0-1 from 3.4.1; flexible 1+
    producerId                        int64
    previousProducerId                int64  1+  tag 0  = -1  from 4.0
    nextProducerId                    int64  1+  tag 1  = -1  from 4.0
    producerEpoch                     int16
    nextProducerEpoch                 int16  1+  tag 3  = -1  from 4.1
    transactionTimeoutMs              int32
    transactionStatus                 int8
    transactionPartitions             []PartitionsSchema  null
        topic                         string
        partitionIds                  []int32
    transactionLastUpdateTimestampMs  int64
    transactionStartTimestampMs       int64
    clientTransactionVersion          int16  1+  tag 2  from 4.0
""")

STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""The names of ``transactionStatus`` (``kafka.coordinator.transaction.TransactionState``)."""
