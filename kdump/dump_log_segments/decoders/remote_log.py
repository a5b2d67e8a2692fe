"""The texts of remote log metadata: ``toString`` of its classes, which refuse what makes no sense."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from kdump.dump_log_segments.decoders import java
from kdump.internal_topics.interpreter import PayloadError
from kdump.internal_topics.remote_log_metadata import PARTITION_STATES, SEGMENT_STATES

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.internal_topics.schema import Value, Values

TEXTS: Final = {
    "RemoteLogSegmentMetadataRecord": (
        "RemoteLogSegmentMetadata{{remoteLogSegmentId={remoteLogSegmentId}, startOffset={startOffset}, "
        "endOffset={endOffset}, brokerId={brokerId}, maxTimestampMs={maxTimestampMs}, "
        "eventTimestampMs={eventTimestampMs}, segmentLeaderEpochs={segmentLeaderEpochs}, "
        "segmentSizeInBytes={segmentSizeInBytes}, customMetadata={customMetadata}, "
        "state={remoteLogSegmentState}{txnIndexEmpty}}}"
    ),
    "RemoteLogSegmentMetadataUpdateRecord": (
        "RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={remoteLogSegmentId}, customMetadata={customMetadata}, "
        "state={remoteLogSegmentState}, eventTimestampMs={eventTimestampMs}, brokerId={brokerId}}}"
    ),
    "RemotePartitionDeleteMetadataRecord": (
        "RemotePartitionDeleteMetadata{{topicPartition={topicIdPartition}, state={remotePartitionDeleteState}, "
        "eventTimestampMs={eventTimestampMs}, brokerId={brokerId}}}"
    ),
    "RemoteLogSegmentMetadataSnapshotRecord": (
        "RemoteLogSegmentMetadataSnapshot{{segmentId={segmentId}, startOffset={startOffset}, endOffset={endOffset}, "
        "maxTimestampMs={maxTimestampMs}, segmentLeaderEpochs={segmentLeaderEpochs}, "
        "segmentSizeInBytes={segmentSizeInBytes}, customMetadata={customMetadata}, "
        "state={remoteLogSegmentState}{txnIndexEmpty}}}"
    ),
    "RemoteLogSegmentIdEntry": "RemoteLogSegmentId{{topicIdPartition={topicIdPartition}, id={id}}}",
    "TopicIdPartitionEntry": "{id}:{name}-{partition}",
}
"""Message or struct -> its text."""
CUSTOM: Final = "customMetadata"
CUSTOM_TEXTS: Final = ("Optional.empty", "Optional[CustomMetadata{", " bytes}]")
"""Instead of null, and around the number of bytes."""
START: Final = "startOffset"
END: Final = "endOffset"
TXN_INDEX: Final = "txnIndexEmpty"
"""The field that not every release tells of."""
EPOCHS: Final = "segmentLeaderEpochs"
"""The field that is a map of offsets by leader epoch."""
NAMES: Final = {
    "remoteLogSegmentState": SEGMENT_STATES,
    "remotePartitionDeleteState": PARTITION_STATES,
    TXN_INDEX: (", txnIdxEmpty=false", ", txnIdxEmpty=true"),
}
"""Field -> the texts of its numbers."""


def text(name: str, values: Values, *, txn_index: bool) -> str:
    """Return the text of a message, with ``txnIdxEmpty`` where the release has it.

    Raises PayloadError with the words of the class that refuses the values.
    """
    if name in FIRST_CHECKS:
        FIRST_CHECKS[name](values)
    told = {key: FIELDS[key](value) if key in FIELDS else value for key, value in values.items()}
    return TEXTS[name].format_map(told if txn_index else {**told, TXN_INDEX: ""})


def _check_offsets(values: Values) -> None:
    start, end = cast("tuple[int, int]", (values[START], values[END]))
    if 0 <= start <= end:
        return
    if start < 0:
        said = f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative"
        raise _refused(said, "a negative start offset")
    said = f"Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than startOffset = {start}"
    raise _refused(said, "an end offset before the start offset")


def _refused(said: str | None, reason: str) -> PayloadError:
    return PayloadError(said, reason, 0)


def _segment_id(value: Value) -> str:
    values = cast("Values", value)
    told = {"topicIdPartition": _partition(values["topicIdPartition"]), "id": _uuid(values["id"])}
    return TEXTS["RemoteLogSegmentIdEntry"].format_map(told)


def _partition(value: Value) -> str:
    values = cast("Values", value)
    return TEXTS["TopicIdPartitionEntry"].format_map({**values, "id": _uuid(values["id"])})


def _uuid(value: Value) -> str:
    return java.uuid(cast("bytes", value))


def _epochs(value: Value) -> str:
    epochs = {epoch["leaderEpoch"]: epoch["offset"] for epoch in cast("list[dict[str, int]]", value)}
    if not epochs:
        raise _refused("segmentLeaderEpochs can not be null or empty", "no leader epochs")
    return "{" + ", ".join([f"{epoch}={epochs[epoch]}" for epoch in sorted(epochs)]) + "}"


def _custom(value: Value) -> str:
    null, before, after = CUSTOM_TEXTS
    return null if value is None else f"{before}{len(cast('bytes', value))}{after}"


def _segment_state(value: Value) -> str:
    state = cast("int", value)
    if not 0 <= state < len(SEGMENT_STATES):
        raise _refused("state can not be null", "unknown state of a segment")
    return SEGMENT_STATES[state]


def _partition_state(value: Value) -> str:
    state = cast("int", value)
    if not 0 <= state < len(PARTITION_STATES):
        raise _refused(None, "unknown state of a partition")
    return PARTITION_STATES[state]


FIRST_CHECKS: Final[dict[str, Callable[[Values], object]]] = {
    "RemoteLogSegmentMetadataRecord": _check_offsets,
    "RemoteLogSegmentMetadataSnapshotRecord": lambda values: _segment_state(values["remoteLogSegmentState"]),
}
"""Message -> what its class checks before it looks at the leader epochs."""

FIELDS: Final[dict[str, Callable[[Value], str]]] = {
    "remoteLogSegmentId": _segment_id,
    "topicIdPartition": _partition,
    "segmentId": _uuid,
    EPOCHS: _epochs,
    CUSTOM: _custom,
    "remoteLogSegmentState": _segment_state,
    "remotePartitionDeleteState": _partition_state,
    TXN_INDEX: lambda value: NAMES[TXN_INDEX][bool(value)],
}
"""Field -> its text, where it is not the plain number."""
