"""The output for control records and records of Kafka's own topics by release, as data.

:mod:`kdump.internal_topics.schema` has the messages, versions and fields that a release can read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump.dump_log_segments.dialects import newest, parse_release
from kdump.primitives import java_hash_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Partition: TypeAlias = tuple[str, int]
    PartitionsOrder: TypeAlias = Callable[[Iterable[Iterable[Partition]], Callable[[Partition], int]], list[Partition]]

LAST_PATCH: Final = 1 << 16
"""The number after those of a release: 4.2 means its last patch."""


class OffsetsWords(NamedTuple):
    """The output of ``--offsets-decoder`` in releases that do not print JSON."""

    needs_value: bool = True
    """Whether neither key nor value of a record with a null value is printed; otherwise its value is <DELETE>."""
    unknown_key: str = ""
    """The key's text for an unknown type; if empty, such a record ends the run."""
    offset_key: str = "offset::{group}:{topic}:{partition}"
    offset: str = "{offset}"
    offset_metadata: str = "{offset}:{metadata}"
    """The text of a committed offset with metadata; ``offset`` is the text of an offset without metadata."""
    group_key: str = "metadata::{group}"
    group_key_as_json: bool = False
    """Whether the group in a key is a JSON string."""
    group: str = "{protocol_type}:{protocol}:{generation}:{assignment}"
    group_as_json: bool = False
    """Whether the texts of a group are JSON strings. A missing protocol is always null."""
    escapes: bool = True
    """Whether JSON strings are escaped."""
    prints_bytes: bool = True
    """Whether bytes are printed. Otherwise they end the run, because the format string of the release is wrong."""
    protocol_type_of_empty: bool = True
    """Whether the protocol type of a group without members is printed."""
    null_user_data: bool = False
    """Whether a member's user data may be null; otherwise null ends the run."""
    members_once: bool = False
    """Whether a group with the same member twice ends the run; the last member is not checked."""
    instances_once: bool = False
    """Whether a repeated instance id of static members ends the run."""
    reads_subscriptions: bool = False
    """Whether subscriptions of a consumer group's members are read. Malformed ones end the run, truncated ones not."""
    members_order: Callable[[Iterable[str], Callable[[str], int]], list[str]] = java_hash_order.scala_2_12
    """Returns the members of a group in the order of the release's hash map."""


class TransactionWords(NamedTuple):
    """The output of ``--transaction-log-decoder`` in releases that do not print JSON."""

    key: str = "transactionalId={id}"
    value: str = (
        "producerId:{producer_id},producerEpoch:{producer_epoch},state={state},partitions={partitions},"
        "txnLastUpdateTimestamp={last_update},txnTimeoutMs={timeout}"
    )
    partitions: tuple[str, str, str] = ("Set(", ", ", ")")
    """The texts before, between and after the partitions."""
    deletes: bool = False
    """Whether <DELETE> is printed for a null value; otherwise a null value ends the run."""
    unknown_key: str = ""
    states: int = 8
    """The number of known states of a transaction, from 0 on; another state ends the run."""
    client_versions: int | None = None
    """The highest known transaction version of a client, from 0 on; others end the run. None: not checked."""
    partitions_order: PartitionsOrder = java_hash_order.scala_2_12_sets
    """Returns the partitions of all topics in the order of the release's hash set."""


class CoordinatorWords(NamedTuple):
    """The output of a decoder switch that prints all types of records as JSON."""

    checks_version: bool = True
    """Whether a version that the release does not know is reported; otherwise it is read as the nearest known one."""
    value_version: str = "version"
    """The name that the JSON of a value has for the version."""
    names_states: bool = False
    """Whether the status of a transaction is printed as a name; otherwise as a number."""


class FrameWords(NamedTuple):
    """The output of the decoder switches for framed messages: the metadata log and remote log metadata."""

    frame: int = 1
    """The only version of a message's frame that these releases read."""
    names_part: bool = True
    """Whether an error names the part that cannot be read (else it has Java's text), and extra bytes are an error."""
    null_value: str = "Error while reading frame version"
    """The error of a null value."""


class PayloadDialect(NamedTuple):
    """The output of consecutive releases, from ``since`` on. ``why`` is the change in the first one."""

    since: tuple[int, ...]
    why: str
    definitions: tuple[int, ...] = ()
    """The release whose schemas the decoder switches use."""
    limited: bool = False
    """Whether Kafka's generated classes limit the numbers of tagged fields and of elements."""

    offsets: OffsetsWords | CoordinatorWords = OffsetsWords()
    transactions: TransactionWords | CoordinatorWords = TransactionWords()
    share: CoordinatorWords = CoordinatorWords()
    metadata: FrameWords = FrameWords()
    remote_log: FrameWords = FrameWords()
    remote_log_txn_index: bool = False
    """Whether ``txnIdxEmpty`` of remote log metadata is printed."""

    control_names: Mapping[int, str] = {}
    """Type -> name, for control records other than markers that are not printed as JSON; other types are UNKNOWN."""
    control_json: Mapping[int, tuple[str, str]] = {}
    """Type -> the text before the JSON, and the message, for control records that are printed as JSON."""


GROUP_JSON: Final = (
    '{{"protocolType":{protocol_type},"protocol":{protocol},"generationId":{generation},"assignment":{assignment}}}'
)

V0_8: Final = PayloadDialect(since=(0, 8, 0), why="no decoders of Kafka's own topics")

V0_9_0_1: Final = V0_8._replace(
    since=(0, 9, 0, 1),
    why="bytes of group members cannot be printed",
    offsets=OffsetsWords(prints_bytes=False),
)

OFFSETS_0_10_1: Final = OffsetsWords(protocol_type_of_empty=False)

V0_10_1: Final = V0_9_0_1._replace(
    since=(0, 10, 1),
    why="bytes of group members are printed; groups without members have no protocol type",
    offsets=OFFSETS_0_10_1,
)

V0_11: Final = V0_10_1._replace(
    since=(0, 11, 0, 0),
    why="transactions as text",
    transactions=TransactionWords(states=7),
)

V0_11_0_2: Final = V0_11._replace(
    since=(0, 11, 0, 2), why="transaction state PrepareEpochFence", transactions=TransactionWords()
)

OFFSETS_1_0: Final = OFFSETS_0_10_1._replace(
    group_key='{{"metadata":{group}}}',
    group_key_as_json=True,
    group=GROUP_JSON,
    group_as_json=True,
    escapes=False,
)

V1_0: Final = V0_11_0_2._replace(since=(1, 0, 0), why="groups as JSON, without escapes", offsets=OFFSETS_1_0)

OFFSETS_1_0_1: Final = OFFSETS_1_0._replace(escapes=True, protocol_type_of_empty=True)

V1_0_1: Final = V1_0._replace(
    since=(1, 0, 1),
    why="JSON strings are escaped; groups without members keep their protocol type",
    offsets=OFFSETS_1_0_1,
)

OFFSETS_2_1: Final = OFFSETS_1_0_1._replace(members_once=True)

V2_1: Final = V1_0_1._replace(since=(2, 1, 0), why="a repeated member of a group ends the run", offsets=OFFSETS_2_1)

OFFSETS_2_4_1: Final = OFFSETS_2_1._replace(
    needs_value=False,
    offset_key="offset_commit::group={group},partition={topic}-{partition}",
    offset="offset={offset}",
    offset_metadata="offset={offset},metadata={metadata}",
    group_key="group_metadata::group={group}",
    group_key_as_json=False,
    null_user_data=True,
)
TRANSACTIONS_2_4_1: Final = TransactionWords(key="transaction_metadata::transactionalId={id}", deletes=True)

V2_4_1: Final = V2_1._replace(
    since=(2, 4, 1),
    why="offsets and transactions: names of the record types, tombstones (KAFKA-9293)",
    offsets=OFFSETS_2_4_1,
    transactions=TRANSACTIONS_2_4_1,
)

TRANSACTIONS_2_5: Final = TRANSACTIONS_2_4_1._replace(partitions=("[", ",", "]"))

V2_5: Final = V2_4_1._replace(
    since=(2, 5, 0), why="partitions of a transaction in brackets", transactions=TRANSACTIONS_2_5
)

OFFSETS_2_6: Final = OFFSETS_2_4_1._replace(members_order=java_hash_order.scala_2_13)
TRANSACTIONS_2_6: Final = TRANSACTIONS_2_5._replace(partitions_order=java_hash_order.scala_2_13_sets)

V2_6: Final = V2_5._replace(
    since=(2, 6, 0),
    why="the order of group members and of partitions",
    offsets=OFFSETS_2_6,
    transactions=TRANSACTIONS_2_6,
)

V2_7: Final = V2_6._replace(
    since=(2, 7, 0),
    why="names of the control records of KRaft (KIP-595)",
    control_names={2: "QUORUM_REASSIGNMENT", 3: "LEADER_CHANGE"},
)

OFFSETS_2_8: Final = OFFSETS_2_6._replace(reads_subscriptions=True)

V2_8: Final = V2_7._replace(
    since=(2, 8, 0),
    why="records of the KRaft preview; a group member's broken subscription ends the run",
    offsets=OFFSETS_2_8,
    metadata=FrameWords(
        frame=0, names_part=False, null_value='Cannot invoke "java.nio.ByteBuffer.get()" because "buffer" is null'
    ),
)

OFFSETS_3_0: Final = OFFSETS_2_8._replace(instances_once=True)

V3_0: Final = V2_8._replace(
    since=(3, 0, 0),
    offsets=OFFSETS_3_0,
    why="records of KRaft in frames of version 1; the types SNAPSHOT_HEADER and SNAPSHOT_FOOTER",
    metadata=FrameWords(),
    control_names={2: "LEADER_CHANGE", 3: "SNAPSHOT_HEADER", 4: "SNAPSHOT_FOOTER"},
)

SNAPSHOT_JSON: Final = {
    3: (" SnapshotHeader ", "SnapshotHeaderRecord"),
    4: (" SnapshotFooter ", "SnapshotFooterRecord"),
}

V3_3: Final = V3_0._replace(
    since=(3, 3, 0),
    why="the ends of a snapshot as JSON",
    control_names={2: "LEADER_CHANGE"},
    control_json=SNAPSHOT_JSON,
)

UNKNOWN_VERSION: Final = "unknown::version={version}"

TRANSACTIONS_3_4_1: Final = TRANSACTIONS_2_6._replace(unknown_key=UNKNOWN_VERSION)

V3_4_1: Final = V3_3._replace(
    since=(3, 4, 1),
    why="offsets and transactions: unknown record types do not end the run (KIP-915)",
    offsets=OFFSETS_3_0._replace(unknown_key=UNKNOWN_VERSION),
    transactions=TRANSACTIONS_3_4_1,
)

KRAFT_JSON: Final = {
    **SNAPSHOT_JSON,
    5: (" KRaftVersion ", "KRaftVersionRecord"),
    6: (" KRaftVoters ", "VotersRecord"),
}

V3_8: Final = V3_4_1._replace(
    since=(3, 8, 0),
    why="offsets and groups of all protocols as JSON (KAFKA-16470); voters (KIP-853)",
    offsets=CoordinatorWords(checks_version=False),
    control_json=KRAFT_JSON,
)

RECORD_VALUE_NULL: Final = (
    'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of "{record}.value()" is null'
)

V3_9: Final = V3_8._replace(
    since=(3, 9, 0),
    why="remote log metadata as text",
    remote_log=FrameWords(null_value=RECORD_VALUE_NULL.format(record="org.apache.kafka.common.record.Record")),
)

V4_0: Final = V3_9._replace(
    since=(4, 0, 0),
    why="share groups as JSON; versions that are too high are reported",
    offsets=CoordinatorWords(),
    transactions=TRANSACTIONS_3_4_1._replace(client_versions=2),
    share=CoordinatorWords(value_version="type"),
    remote_log_txn_index=True,
)

V4_1: Final = V4_0._replace(
    since=(4, 1, 0),
    why="transactions and the change of a leader as JSON",
    transactions=CoordinatorWords(),
    share=CoordinatorWords(),
    control_names={},
    control_json={**KRAFT_JSON, 2: (" LeaderChange: ", "LeaderChangeMessage")},  # Kafka prints this colon (sic)
)

V4_2_2: Final = V4_1._replace(
    since=(4, 2, 2),
    why="limits for tagged fields and elements in records of Kafka's own topics (4.3 has no limits)",
    limited=True,
)

V4_3: Final = V4_1._replace(
    since=(4, 3, 0),
    why="the name of a class in the text for a null value",
    remote_log=FrameWords(null_value=RECORD_VALUE_NULL.format(record="org.apache.kafka.common.record.internal.Record")),
)

V4_4: Final = V4_3._replace(
    since=(4, 4, 0),
    why="names of transaction states; limits for tagged fields and elements as in 4.2.2",
    transactions=CoordinatorWords(names_states=True),
    limited=True,
)

DIALECTS: Final = (
    V0_8,
    V0_9_0_1,
    V0_10_1,
    V0_11,
    V0_11_0_2,
    V1_0,
    V1_0_1,
    V2_1,
    V2_4_1,
    V2_5,
    V2_6,
    V2_7,
    V2_8,
    V3_0,
    V3_3,
    V3_4_1,
    V3_8,
    V3_9,
    V4_0,
    V4_1,
    V4_2_2,
    V4_3,
    V4_4,
)


def find(text: str) -> PayloadDialect:
    """Return the dialect (output format) of release ``text``. Raises UsageError like :func:`.dialects.newest`."""
    return newest(DIALECTS, text)._replace(definitions=(*parse_release(text), LAST_PATCH))


NEWEST: Final = DIALECTS[-1]._replace(definitions=(LAST_PATCH,))
