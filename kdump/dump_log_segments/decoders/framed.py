"""The decoder switches for framed messages: the metadata log (as JSON) and remote log metadata (as ``toString``).

Keys are not read. For an unreadable or null value an error is printed instead, and the run continues.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final, cast

from kdump.dump_log_segments.decoders import java
from kdump.dump_log_segments.decoders.texts import SkippingParser, Texts
from kdump.internal_topics.interpreter import PREVIEW_FRAME, PayloadError, Reader, frame_number, read_fields
from kdump.internal_topics.remote_log_metadata import PARTITION_STATES, SEGMENT_STATES
from kdump.internal_topics.schema import by_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kdump.dump_log_segments.dialects.payload import FrameWords, PayloadDialect
    from kdump.internal_topics.schema import MessageSchema, Struct, Value, Values

WORD = re.compile(r"(?<!^)(?=[A-Z])")


class FramedParser(SkippingParser):
    """A :data:`Parser` that prints framed records of the types ``messages`` in a dialect."""

    reads_key = False
    place: ClassVar[str]
    """The text of an error between "Error at" and the offset."""

    def __init__(self, messages: Mapping[str, MessageSchema], words: FrameWords, dialect: PayloadDialect) -> None:
        self.words, self.dialect, self.release = words, dialect, dialect.definitions
        self.types = by_type(messages, "Record", self.release)

    def __call__(self, offset: int, _key: bytes | None, value: bytes | None) -> Texts:
        try:
            return Texts(None, self.text(*self._read(value)))
        except PayloadError as error:
            return self.skipped(offset, error.java_message)

    def skipped(self, offset: int, java_message: str | None) -> Texts:
        return Texts(
            None, f"Error at {self.place}{offset}, skipping. {'null' if java_message is None else java_message}"
        )

    def text(self, struct: Struct, _version: int, values: Values) -> str:
        """Return the text of a message. Raises PayloadError for invalid values."""
        raise NotImplementedError

    def _read(self, value: bytes | None) -> tuple[Struct, int, Values]:
        words = self.words
        if value is None:
            raise PayloadError(words.null_value, "the value is null", 0)
        reader = Reader(value, limited=self.dialect.limited)
        number = _number(reader, words)
        version = number("frame version")
        if version != words.frame:
            raise PayloadError(_frame_said(version, words), f"frame version {version}", 0)
        kind, message_version = number("type"), number("version")
        message = self.types.get(kind)
        if message is None:
            java_message = f"Unknown metadata id {kind}"
            if words.names_part:
                java_message = f"org.apache.kafka.common.errors.UnsupportedVersionException: {java_message}"
            raise PayloadError(java_message, f"unknown type {kind}", reader.position)
        struct = message.struct(message_version, self.release)
        try:
            values = read_fields(struct, reader)
        except PayloadError as error:
            if words.names_part:
                error.java_message = f"Failed to deserialize record with type {kind}"
            raise
        if words.names_part and reader.remaining:
            java_message = f"Found {reader.remaining} byte(s) of garbage after {kind}"
            raise PayloadError(java_message, "bytes left over", reader.position)
        return struct, message_version, values


class MetadataParser(FramedParser):
    place = ""

    def text(self, struct: Struct, _version: int, values: Values) -> str:
        return f"{metadata_head(struct, _version)}{java.json(struct, values)}}}"


class RemoteLogParser(FramedParser):
    place = "offset "

    def text(self, struct: Struct, _version: int, values: Values) -> str:
        return remote_log_text(struct.name, values, txn_index=self.dialect.remote_log_txn_index)


def metadata_head(struct: Struct, version: int) -> str:
    """Return the text before the fields of a message. A closing brace must follow them."""
    return f'{{"type":"{WORD.sub("_", struct.name).upper()}","version":{version},"data":'


def _number(reader: Reader, words: FrameWords) -> Callable[[str], int]:
    if words.names_part:
        return lambda name: frame_number(reader, name)
    return lambda _: (reader.varint() + 0x8000 & 0xFFFF) - 0x8000


def _frame_said(version: int, words: FrameWords) -> str:
    if version == PREVIEW_FRAME:
        return (
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release "
            "of KRaft in 2.8 to newer versions are not supported."
        )
    return (
        f"Could not deserialize metadata record due to unknown frame version {version}"
        f"(only frame version {words.frame} is supported)"
    )


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
CUSTOM: Final = "customMetadata"
CUSTOM_TEXTS: Final = ("Optional.empty", "Optional[CustomMetadata{", " bytes}]")
"""The text for null, and the texts before and after the number of bytes."""
START: Final = "startOffset"
END: Final = "endOffset"
TXN_INDEX: Final = "txnIndexEmpty"
EPOCHS: Final = "segmentLeaderEpochs"
NAMES: Final = {
    "remoteLogSegmentState": SEGMENT_STATES,
    "remotePartitionDeleteState": PARTITION_STATES,
    TXN_INDEX: (", txnIdxEmpty=false", ", txnIdxEmpty=true"),
}
"""Field -> the text of each number."""


def remote_log_text(name: str, values: Values, *, txn_index: bool) -> str:
    """Return the text of a message. Raises PayloadError with the message of Kafka's class for invalid values."""
    if name in FIRST_CHECKS:
        FIRST_CHECKS[name](values)
    texts = {key: FIELDS[key](value) if key in FIELDS else value for key, value in values.items()}
    return TEXTS[name].format_map(texts if txn_index else {**texts, TXN_INDEX: ""})


def _check_offsets(values: Values) -> None:
    start, end = cast("tuple[int, int]", (values[START], values[END]))
    if 0 <= start <= end:
        return
    if start < 0:
        java_message = f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative"
        raise _refused(java_message, "a negative start offset")
    java_message = (
        f"Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than startOffset = {start}"
    )
    raise _refused(java_message, "an end offset before the start offset")


def _refused(java_message: str | None, reason: str) -> PayloadError:
    return PayloadError(java_message, reason, 0)


def _segment_id(value: Value) -> str:
    values = cast("Values", value)
    texts = {"topicIdPartition": _partition(values["topicIdPartition"]), "id": _uuid(values["id"])}
    return TEXTS["RemoteLogSegmentIdEntry"].format_map(texts)


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
"""Message -> the check that its class makes before it checks the leader epochs."""

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
"""Field -> the function that returns its text. Other fields are plain numbers."""
