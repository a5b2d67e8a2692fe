"""The output for segments by release, as data: lines of batches and records, options, reports of gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from kdump.dump_log_segments.dialects import newest
from kdump.primitives.java_hash_order import java_files, scala_2_9_files, scala_2_12_files, scala_2_13_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

UPPER_CODECS: Final = ("NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD")
LOWER_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
SCALA_CODECS: Final = ("NoCompressionCodec", "GZIPCompressionCodec", "SnappyCompressionCodec", "LZ4CompressionCodec")

DECODERS: Final = ("StringDecoder", "DefaultDecoder", "LongDecoder", "IntegerDecoder")
KAFKA_SERIALIZER: Final = tuple(f"kafka.serializer.{name}" for name in DECODERS)
TOOLS_API: Final = tuple(f"org.apache.kafka.tools.api.{name}" for name in DECODERS)


class Dialect(NamedTuple):
    """The output of consecutive releases, from ``since`` on. ``why`` is the change in the first one.

    Lines are in the notation of :mod:`kdump.dump_log_segments.lines`. A tuple has the parts of a line. If a field is
    unreadable, the parts before it are still printed. "Ends the run" means that the release stops with an exception,
    and dumps no further file.
    """

    since: tuple[int, ...]
    why: str

    options: frozenset[str]
    decoders_imply_print: bool = False
    """Whether a decoder switch or class implies --print-data-log."""
    print_is_deep: bool = False
    """Whether --print-data-log implies --deep-iteration."""

    starting_offset: str = "Starting offset: {offset}"
    message: str = ""
    """Before 0.11, the line of a message, which may be a wrapper or be inside one. Later empty."""
    message_key_size: str = " keysize: {key_size}"
    """The text after ``message`` if the message has a key."""
    batch: tuple[str, ...] = ()
    """The line of a magic 2 batch, in parts."""
    legacy_batch: tuple[str, ...] = ()
    """The line of an entry of magic 0 or 1: a message, or a wrapper."""
    record: tuple[str, ...] = ()
    """The line of a record of magic 2."""
    legacy_record: tuple[str, ...] = ()
    """The line of a message of magic 0 or 1, or of an inner message of a wrapper."""
    codecs: tuple[str, ...] = UPPER_CODECS

    newest_magic: int = 2
    """The newest magic of the release. Releases before 0.11 read entries of an unknown magic as if they had it."""
    codec_mask: int = 0x07
    limits_message_size: bool = False
    """Whether an entry above --max-message-size ends the run."""
    smallest_size_ends_file: bool = False
    """Whether a size field below the smallest size of a message ends the file without an error, as zeros do."""
    empty_wrapper_ends_run: bool = True

    reads_lz4_in_chunks: bool = False
    """Whether an empty LZ4 block may end a stream (:func:`kdump.records.record_batch.end_of_lz4_chunks`)."""
    sizes_overflow: bool = False
    """Whether ends of batches are computed in 32 bits. A truncated batch with an end above 2 GiB then ends the run."""
    unpacks_at_once: bool = True
    """Whether all inner messages are parsed before the first is printed; otherwise they are parsed one by one."""
    nested_wrappers: Literal["unpacked", "printed", "refused"] = "refused"
    """How a compressed message inside a wrapper is handled: "printed" leaves it compressed, "refused" ends the run."""
    inner_types_of_wrapper: bool = False
    """Whether wrappers of magic 0 too give inner messages their timestamp type, unless these have a negative magic."""
    base_below_0_is_none: bool = False
    """Whether inner offsets are absolute if the wrapper's offset is below the offset of the last inner message."""
    inner_magic_must_match: bool = False
    """Whether a message inside a wrapper of another magic ends the run."""

    batches_beside_records: bool = False
    """Whether batches have lines of their own even if records are printed."""
    key_needs_value: bool = True
    """Whether the key is omitted if the value is null."""
    null_payload: str | None = ""
    """The text for a null value; None if a null value ends the run."""
    key_before_value: bool = False
    """Whether the key is printed before the value is read."""
    bare_payload: str = " "
    """With --skip-record-metadata: the text before "payload:" if there is no key."""

    decoder_classes: tuple[str, ...] = KAFKA_SERIALIZER
    """The names that --key-decoder-class and --value-decoder-class accept; the first is the default."""
    deprecated_decoder: str = ""
    """The warning about a class that is not in the package of the default class."""
    decoders_made_per_log: bool = False
    """Whether a wrong class name ends the run at the first log file; otherwise before any output."""

    gaps_title: str = "Non-consecutive offsets in {file}"
    gaps_before_first: bool = False
    """Whether a gap is reported if the first offset is not 0."""
    gaps_by_offset: bool = False
    """True: gaps are in offset order, and only the last gap after each offset. False: all gaps, in reverse order."""
    file_order: Callable[[Iterable[str]], list[str]] = scala_2_9_files
    """Returns the files of a report in the order of the release's hash map."""
    reports_by_name: bool = False
    """Whether reports contain file names; otherwise absolute paths."""
    trailing_bytes: str = "Found {count} invalid bytes at the end of {name}"


V0_8_0: Final = Dialect(
    since=(0, 8, 0),
    why="one line per message of magic 0; codecs none, gzip and snappy",
    options=frozenset({"files", "print-data-log", "deep-iteration", "verify-index-only", "max-message-size"}),
    message=(
        "offset: {offset} position: {position} isvalid: {is_valid:bool} payloadsize: {value_size} magic: {magic} "
        "compresscodec: {codec} crc: {crc}"
    ),
    codecs=SCALA_CODECS[:3],
    newest_magic=0,
    codec_mask=0x03,
    smallest_size_ends_file=True,
    empty_wrapper_ends_run=False,
    unpacks_at_once=False,
    nested_wrappers="unpacked",
    key_needs_value=False,
    null_payload=None,
    key_before_value=True,
    decoder_classes=(),
    gaps_title="Non-secutive offsets in :{file}",  # (sic)
    reports_by_name=True,
)

V0_8_1: Final = V0_8_0._replace(
    since=(0, 8, 1),
    why="null values; reports name the path of a file",
    null_payload=" payload: null",
    reports_by_name=False,
)

V0_8_2: Final = V0_8_1._replace(
    since=(0, 8, 2),
    why="LZ4; decoder classes; --max-message-size is a limit for segments",
    options=V0_8_1.options | {"key-decoder-class", "value-decoder-class"},
    codecs=SCALA_CODECS,
    codec_mask=0x07,
    limits_message_size=True,
    decoder_classes=KAFKA_SERIALIZER[:2],
    file_order=scala_2_12_files,
)

V0_9: Final = V0_8_2._replace(
    since=(0, 9, 0, 0),
    why="a compressed message inside a wrapper is printed without decompressing it",
    nested_wrappers="printed",
)

V0_9_0_1: Final = V0_9._replace(
    since=(0, 9, 0, 1),
    why="the decoder of __consumer_offsets; a record with a null value prints neither key nor value",
    options=V0_9.options | {"offsets-decoder"},
    key_needs_value=True,
    null_payload="",
    key_before_value=False,
)

V0_10_0: Final = V0_9_0_1._replace(
    since=(0, 10, 0),
    why="magic 1 (KIP-31, KIP-32), its timestamps not yet printed; the sanity check of indexes",
    options=V0_9_0_1.options | {"index-sanity-check"},
    newest_magic=1,
    unpacks_at_once=True,
    inner_magic_must_match=True,
)

V0_10_1: Final = V0_10_0._replace(
    since=(0, 10, 1),
    why="timestamps (KIP-33); a decoder switch turns --print-data-log on",
    inner_magic_must_match=False,
    decoders_imply_print=True,
    message=V0_10_0.message.replace(" isvalid:", " {timestamp_type}: {timestamp} isvalid:"),
)

V0_10_2: Final = V0_10_1._replace(
    since=(0, 10, 2),
    why="codecs by the names of CompressionType; an impossible record size is damage",
    codecs=UPPER_CODECS[:4],
    smallest_size_ends_file=False,
    empty_wrapper_ends_run=True,
    nested_wrappers="refused",
    inner_types_of_wrapper=True,
    base_below_0_is_none=True,
)

V0_11: Final = V0_10_2._replace(
    since=(0, 11, 0, 0),
    why="magic 2 (KIP-98): one line per batch or per record; the decoder of __transaction_state",
    options=V0_10_2.options | {"transaction-log-decoder"},
    message="",
    batch=(
        "baseOffset: {base_offset} lastOffset: {last_offset} baseSequence: {base_sequence} "
        "lastSequence: {last_sequence} producerId: {producer_id} producerEpoch: {producer_epoch} "
        "partitionLeaderEpoch: {partition_leader_epoch} isTransactional: {is_transactional:bool}",
        " position: {position} {timestamp_type}: {max_timestamp} isvalid: {is_valid:bool} size: {size} "
        "magic: {magic} compresscodec: {codec} crc: {crc}",
    ),
    legacy_batch=(
        "offset: {last_offset}",
        " position: {position} {timestamp_type}: {max_timestamp} isvalid: {is_valid:bool} size: {size} "
        "magic: {magic} compresscodec: {codec} crc: {crc}",
    ),
    record=(
        "offset: {offset} position: {position} {timestamp_type}: {timestamp} isvalid: {is_valid:bool} "
        "keysize: {key_size} valuesize: {value_size} magic: {magic} compresscodec: {codec}",
        " producerId: {producer_id} sequence: {sequence} isTransactional: {is_transactional:bool} "
        "headerKeys: [{header_keys}]",
    ),
    legacy_record=(
        "offset: {offset} position: {position} {timestamp_type}: {timestamp} isvalid: {is_valid:bool} "
        "keysize: {key_size} valuesize: {value_size} magic: {magic} compresscodec: {codec}",
        " crc: {crc}",
    ),
    newest_magic=2,
    limits_message_size=False,
    sizes_overflow=True,
    decoder_classes=KAFKA_SERIALIZER,
    gaps_title="Non-consecutive offsets in :{file}",
)

V0_11_0_2: Final = V0_11._replace(
    since=(0, 11, 0, 2),
    why="the producer's epoch of a record (KAFKA-6119)",
    record=(V0_11.record[0], V0_11.record[1].replace(" sequence:", " producerEpoch: {producer_epoch} sequence:")),
)

V1_1: Final = V0_11_0_2._replace(
    since=(1, 1, 0),
    why="--print-data-log turns --deep-iteration on",
    print_is_deep=True,
)

V1_1_1: Final = V1_1._replace(
    since=(1, 1, 1),
    why="a batch that ends beyond 2 GiB is a truncated batch",
    sizes_overflow=False,
)

V2_0: Final = V1_1_1._replace(
    since=(2, 0, 0),
    why="the count of a batch's records",
    batch=(V1_1_1.batch[0].replace(" baseSequence:", " count: {count} baseSequence:"), V1_1_1.batch[1]),
)

V2_0_1: Final = V2_0._replace(
    since=(2, 0, 1),
    why="isControl of a batch",
    batch=(V2_0.batch[0] + " isControl: {is_control:bool}", V2_0.batch[1]),
)

V2_1: Final = V2_0_1._replace(since=(2, 1, 0), why="zstd (KIP-110)", codecs=UPPER_CODECS)

_BATCH: Final = (
    " position: {position} {timestamp_type}: {max_timestamp} size: {size} magic: {magic} compresscodec: {codec} "
    "crc: {crc} isvalid: {is_valid:bool}"
)

V2_2: Final = V2_1._replace(
    since=(2, 2, 0),
    why="batch lines are printed before record lines too (KAFKA-7687)",
    batch=(V2_1.batch[0], _BATCH),
    legacy_batch=(V2_1.legacy_batch[0], _BATCH),
    record=(
        "| offset: {offset} {timestamp_type}: {timestamp} keysize: {key_size} valuesize: {value_size}",
        " sequence: {sequence} headerKeys: [{header_keys}]",
    ),
    legacy_record=(
        "| offset: {offset} {timestamp_type}: {timestamp} keysize: {key_size} valuesize: {value_size}",
        " crc: {crc} isvalid: {is_valid:bool}",
    ),
    batches_beside_records=True,
)

V2_3: Final = V2_2._replace(
    since=(2, 3, 0),
    why="a wrong decoder class ends the run at the first log; gaps are reported without a colon",
    decoders_made_per_log=True,
    gaps_title="Non-consecutive offsets in {file}",
)

V2_4: Final = V2_3._replace(
    since=(2, 4, 0), why="a record with a null value prints its key (KAFKA-8745)", key_needs_value=False
)

V2_6: Final = V2_4._replace(
    since=(2, 6, 0), why="built with Scala 2.13: the order of files in reports", file_order=scala_2_13_files
)

_LONG_RECORD: Final = (
    "| offset: {offset} isValid: {is_valid:bool} crc: {crc} keySize: {key_size} valueSize: {value_size} "
    "{timestamp_type}: {timestamp} baseOffset: {base_offset} lastOffset: {last_offset} "
    "baseSequence: {base_sequence:int} lastSequence: {last_sequence:int} producerEpoch: {producer_epoch:int} "
    "partitionLeaderEpoch: {partition_leader_epoch:int} batchSize: {size} magic: {magic} compressType: {codec} "
    "position: {position}"
)

V2_8: Final = V2_6._replace(
    since=(2, 8, 0),
    why="batch fields in each record line (KAFKA-6181); the metadata log (KIP-500); --skip-record-metadata",
    options=V2_6.options | {"cluster-metadata-decoder", "skip-record-metadata"},
    record=(_LONG_RECORD, V2_6.record[1]),
    legacy_record=(_LONG_RECORD, V2_6.legacy_record[1]),  # crc and isvalid are printed twice (sic)
)

V3_0: Final = V2_8._replace(
    since=(3, 0, 0),
    why="record lines without batch fields again; codecs in lower case; snapshots of KRaft (KIP-630)",
    record=(
        "| offset: {offset} {timestamp_type}: {timestamp} keySize: {key_size} valueSize: {value_size}",
        V2_8.record[1],
    ),
    legacy_record=(
        "| offset: {offset} {timestamp_type}: {timestamp} keySize: {key_size} valueSize: {value_size}",
        " isValid: {is_valid:bool} crc: {crc}}}",  # Kafka prints this closing brace (sic)
    ),
    codecs=LOWER_CODECS,
)

V3_2: Final = V3_0._replace(
    since=(3, 2, 0),
    why="the delete horizon of a batch (KIP-534)",
    batch=(V3_0.batch[0] + " deleteHorizonMs: {delete_horizon_ms:optional}", V3_0.batch[1]),
)

V3_3: Final = V3_2._replace(
    since=(3, 3, 0),
    why="snapshots of the metadata log (KAFKA-13845); --max-bytes (KAFKA-13687)",
    options=V3_2.options | {"max-bytes"},
    starting_offset="Log starting offset: {offset}",
)

V3_6: Final = V3_3._replace(
    since=(3, 6, 0),
    why="LZ4 is read through a ChunkedBytesStream (KAFKA-14633)",
    reads_lz4_in_chunks=True,
)

V3_8: Final = V3_6._replace(
    since=(3, 8, 0),
    why="decoder classes of org.apache.kafka.tools.api (KIP-1059)",
    decoder_classes=TOOLS_API + KAFKA_SERIALIZER,
    deprecated_decoder="{name} is deprecated. Please use org.apache.kafka.tools.api.{simple} instead",
)

V3_9: Final = V3_8._replace(
    since=(3, 9, 0),
    why="the decoder of __remote_log_metadata (KIP-1057)",
    options=V3_8.options | {"remote-log-metadata-decoder"},
)

V4_0: Final = V3_9._replace(
    since=(4, 0, 0),
    why="the decoder of __share_group_state (KIP-932); no kafka.serializer any more",
    options=V3_9.options | {"share-group-state-decoder"},
    decoder_classes=TOOLS_API,
    deprecated_decoder="",
)

V4_3: Final = V4_0._replace(
    since=(4, 3, 0),
    why="rewritten in Java (KAFKA-14579)",
    legacy_record=(V4_0.legacy_record[0], " isValid: {is_valid:bool} crc: {crc}"),
    bare_payload="| ",
    gaps_before_first=True,
    gaps_by_offset=True,
    file_order=java_files,
)


DIALECTS: Final = (
    V0_8_0, V0_8_1, V0_8_2, V0_9, V0_9_0_1, V0_10_0, V0_10_1, V0_10_2, V0_11, V0_11_0_2, V1_1, V1_1_1, V2_0, V2_0_1,
    V2_1, V2_2, V2_3, V2_4, V2_6, V2_8, V3_0, V3_2, V3_3, V3_6, V3_8, V3_9, V4_0, V4_3,
)  # fmt: skip


def find(text: str) -> Dialect:
    """Return the dialect (output format) of release ``text``. Raises UsageError like :func:`newest`."""
    return newest(DIALECTS, text)


NEWEST: Final = DIALECTS[-1]
