"""What each Kafka release's DumpLogSegments prints, as data.

A dialect is the one before it with differences. Nothing outside this module knows a release: whoever prints asks for
the named field.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from kdump.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

UPPER_CODECS: Final = ("NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD")
SCALA_CODECS: Final = (
    "NoCompressionCodec",
    "GZIPCompressionCodec",
    "SnappyCompressionCodec",
    "LZ4CompressionCodec",
    "ZStdCompressionCodec",
)


KAFKA_SERIALIZER: Final = tuple(f"kafka.serializer.{name}Decoder" for name in ("String", "Default", "Long", "Integer"))
TOOLS_API: Final = tuple(
    f"org.apache.kafka.tools.api.{name}Decoder" for name in ("String", "Default", "Long", "Integer")
)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The output of a group of releases.

    Lines are in the notation of :mod:`kdump.lines`. Where a line is a tuple, the original prints its parts one after
    the other: when a field of a later part cannot be read, the earlier ones stand.
    """

    since: tuple[int, ...]
    """The first release with this output."""
    why: str
    """What changed, and where that was decided."""

    starting_offset: str = "Starting offset: {offset}"
    batch: tuple[str, ...] = ()
    """A magic 2 batch."""
    legacy_batch: tuple[str, ...] = ()
    """An entry of magic 0 or 1: a message, or a wrapper."""
    record: tuple[str, ...] = ()
    """A record of magic 2."""
    legacy_record: tuple[str, ...] = ()
    """A message of magic 0 or 1, inner messages of wrappers included."""
    codecs: tuple[str, ...] = UPPER_CODECS

    batches_beside_records: bool = False
    """Whether batch lines are printed with records too, or replaced by them."""
    print_is_deep: bool = False
    """Whether --print-data-log iterates deep on its own."""
    key_needs_value: bool = True
    """Whether a record with a null value prints its key."""
    bare_payload: str = " "
    """What stands in front of "payload:" under --skip-record-metadata when there is no key."""
    skips_control_records: bool = False
    """Whether --skip-record-metadata prints nothing for a control record, not even an empty line."""

    decoder_classes: tuple[str, ...] = KAFKA_SERIALIZER
    """The names that --key-decoder-class and --value-decoder-class know; the first is the default."""
    deprecated_decoder: str = ""
    """What is printed for a class that is not in the package of the default one."""
    decoders_made_per_log: bool = False
    """Whether a wrong class name is met at the first log, or before any output."""

    gaps_title: str = "Non-consecutive offsets in {path}"
    gaps_before_first: bool = False
    """Whether the first record counts as following offset -1."""
    trailing_bytes: str = "Found {count} invalid bytes at the end of {name}"


V0_8_2: Final = Dialect(
    since=(0, 8, 2),
    why="key and value decoder classes; one line per message, no timestamps",
    legacy_batch=(
        "offset: {offset} position: {position} isvalid: {is_valid:bool} payloadsize: {value_size} magic: {magic} "
        "compresscodec: {codec} crc: {crc}",
    ),
    codecs=SCALA_CODECS,
    decoder_classes=KAFKA_SERIALIZER[:2],
    gaps_title="Non-secutive offsets in :{path}",  # (sic)
)

V1_0: Final = replace(
    V0_8_2,
    since=(1, 0, 0),
    why="magic 2 (KIP-98), one line per batch or per record",
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
        " producerId: {producer_id} producerEpoch: {producer_epoch} sequence: {sequence} "
        "isTransactional: {is_transactional:bool} headerKeys: [{header_keys}]",
    ),
    legacy_record=(
        "offset: {offset} position: {position} {timestamp_type}: {timestamp} isvalid: {is_valid:bool} "
        "keysize: {key_size} valuesize: {value_size} magic: {magic} compresscodec: {codec}",
        " crc: {crc}",
    ),
    codecs=UPPER_CODECS,
    decoder_classes=KAFKA_SERIALIZER,
    gaps_title="Non-consecutive offsets in :{path}",
)

V4_2: Final = replace(
    V1_0,
    since=(4, 2, 0),
    why="everything up to 4.2",
    starting_offset="Log starting offset: {offset}",
    batch=(
        "baseOffset: {base_offset} lastOffset: {last_offset} count: {count} baseSequence: {base_sequence} "
        "lastSequence: {last_sequence} producerId: {producer_id} producerEpoch: {producer_epoch} "
        "partitionLeaderEpoch: {partition_leader_epoch} isTransactional: {is_transactional:bool} "
        "isControl: {is_control:bool} deleteHorizonMs: {delete_horizon_ms:optional}",
        " position: {position} {timestamp_type}: {max_timestamp} size: {size} magic: {magic} compresscodec: {codec} "
        "crc: {crc} isvalid: {is_valid:bool}",
    ),
    legacy_batch=(
        "offset: {last_offset}",
        " position: {position} {timestamp_type}: {max_timestamp} size: {size} magic: {magic} compresscodec: {codec} "
        "crc: {crc} isvalid: {is_valid:bool}",
    ),
    record=(
        "| offset: {offset} {timestamp_type}: {timestamp} keySize: {key_size} valueSize: {value_size}",
        " sequence: {sequence} headerKeys: [{header_keys}]",
    ),
    legacy_record=(
        "| offset: {offset} {timestamp_type}: {timestamp} keySize: {key_size} valueSize: {value_size}",
        " isValid: {is_valid:bool} crc: {crc}}}",  # the closing brace is the original's (sic)
    ),
    codecs=("none", "gzip", "snappy", "lz4", "zstd"),
    batches_beside_records=True,
    print_is_deep=True,
    key_needs_value=False,
    decoder_classes=TOOLS_API,
    decoders_made_per_log=True,
    gaps_title="Non-consecutive offsets in {path}",
)

V4_3: Final = replace(
    V4_2,
    since=(4, 3, 0),
    why="rewritten in Java (KAFKA-14579)",
    legacy_record=(
        "| offset: {offset} {timestamp_type}: {timestamp} keySize: {key_size} valueSize: {value_size}",
        " isValid: {is_valid:bool} crc: {crc}",
    ),
    bare_payload="| ",
    gaps_before_first=True,
)


class Dated(Protocol):
    """Something that a release brought."""

    @property
    def since(self) -> tuple[int, ...]:
        """The first release that has it."""


D = TypeVar("D", bound=Dated)

DIALECTS: Final = (V0_8_2, V1_0, V4_2, V4_3)


def parse_release(text: str) -> tuple[int, ...]:
    """Return "3.6.1" as (3, 6, 1). Raises UsageError when it is no release number."""
    parts = text.split(".")
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"{text!r} is no Kafka release: a release looks like 4.3, 3.9.2 or 0.8.2.1")
    return tuple(int(part) for part in parts)


def newest(dialects: Sequence[D], text: str) -> D:
    """Return the last of ``dialects`` that release ``text`` has: a short one such as "4.2" stands for its last patch.

    Raises UsageError when it is no release number or older than the oldest dialect.
    """
    release = parse_release(text)
    held = [dialect for dialect in dialects if dialect.since[: len(release)] <= release]
    if not held:
        oldest = ".".join(map(str, dialects[0].since))
        raise UsageError(f"Kafka {text} is older than the oldest known output, that of {oldest}")
    return held[-1]


def find(text: str) -> Dialect:
    """Return the dialect that holds release ``text``. Raises UsageError as :func:`newest` does."""
    return newest(DIALECTS, text)


NEWEST: Final = DIALECTS[-1]
