"""``<offset>-<segment id>.rsm-manifest``: the description of a segment that Aiven's remote storage manager copied.

It describes two objects. ``.log`` is the segment in chunks of equal size; the last may be smaller. Chunks may be
compressed, and then encrypted. ``.indexes`` holds the files beside the segment, uncompressed; encrypted if chunks are.
Source: Aiven's tiered-storage-for-apache-kafka, classes SegmentManifestV1, ChunkIndex and ChunkSizesBinaryCodec. JSON::

    version            "1"
    chunkIndex         type: fixed or variable, originalChunkSize, originalFileSize, and
                       fixed: transformedChunkSize, finalTransformedChunkSize
                       variable: transformedChunks, base64 of a zstd frame of big-endian numbers: int32 count; if it
                       is not 1, int32 base, int8 width, and count - 1 sizes minus the base; int32 last size
    segmentIndexes     position and size of offset, timestamp, producerSnapshot, leaderEpoch, transaction (may be null)
    compression        whether each chunk is a zstd frame
    encryption         if encrypted: dataKey, KEY NAME:base64 of the AES key encrypted by RSA; aad in base64
    remoteLogSegmentMetadata  Kafka's metadata of the segment, which the manager does not read
"""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.errors import DamageError, quoted
from kdump.primitives import compression
from kdump.primitives.encodings import java_integer

if TYPE_CHECKING:
    from kdump.primitives.wire import Bytes

VERSION: Final = "1"
INDEX_PARTS: Final = ("offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction")
MOST_CHUNKS: Final = 1 << 22
"""Maximum number of chunks that kdump accepts: 2 GiB in chunks of 512 bytes."""
LARGEST: Final = 5 * MOST_CHUNKS
"""Maximum size in bytes of the decompressed list of chunk sizes."""


class Part(NamedTuple):
    """Position and size of a file in ``.indexes``, in bytes."""

    position: int
    size: int


class Encryption(NamedTuple):
    """The name of the RSA key pair, the encrypted AES key, and the additional authenticated data of each chunk."""

    key_name: str
    data_key: bytes
    aad: bytes


class Manifest(NamedTuple):
    """A parsed manifest. Sizes are bytes; ``chunks`` are the sizes of the stored chunks, in order."""

    chunk_size: int
    file_size: int
    chunks: tuple[int, ...]
    indexes: dict[str, Part]
    is_compressed: bool
    encryption: Encryption | None
    end_offset: int | None
    last_epoch: int | None
    """The segment's last offset (``end_offset``) and highest leader epoch; None if the manifest has no number."""

    @property
    def is_plain(self) -> bool:
        """Whether ``.log`` is the unchanged segment."""
        return not self.is_compressed and self.encryption is None

    def original_size(self, chunk: int) -> int:
        """Return the size in bytes of a chunk before compression and encryption."""
        return min(self.chunk_size, self.file_size - chunk * self.chunk_size)


def read(data: Bytes) -> Manifest:
    """Parse a manifest. Raises DamageError."""
    try:
        content = json.loads(bytes(data))
    except (ValueError, RecursionError) as fault:
        raise _wrong(f"the manifest is not JSON: {fault}") from None
    if not isinstance(content, dict):
        raise _wrong("the manifest is not a JSON object", found=type(content).__name__)
    if content.get("version") != VERSION:
        raise _wrong("the manifest has an unknown version", expected=VERSION, found=content.get("version"))
    index = _object(content, "chunkIndex")
    chunk_size, file_size = _number(index, "originalChunkSize", 1), _number(index, "originalFileSize", 0)
    places = _object(content, "segmentIndexes")
    is_compressed = content.get("compression")
    if not isinstance(is_compressed, bool):
        raise _wrong("the manifest has no valid compression", expected="true or false", found=is_compressed)
    known = content.get("remoteLogSegmentMetadata")
    known = known if isinstance(known, dict) else {}
    end, epochs = known.get("endOffset"), known.get("segmentLeaderEpochs")
    named = [java_integer(name, 32) for name in epochs] if isinstance(epochs, dict) else []
    numbers = [number for number in named if number is not None]
    return Manifest(
        chunk_size,
        file_size,
        _chunks(index, -(-file_size // chunk_size)),
        {name: _part(places, name) for name in INDEX_PARTS if name != "transaction" or places.get(name) is not None},
        is_compressed,
        None if content.get("encryption") is None else _encryption(_object(content, "encryption")),
        end if type(end) is int else None,
        max(numbers, default=None),
    )


def _wrong(reason: str, *, expected: object = None, found: object = None) -> DamageError:
    return DamageError("manifest", reason, expected=expected, found=None if found is None else quoted(found))


def _object(content: dict[str, Any], name: str) -> dict[str, Any]:
    value = content.get(name)
    if not isinstance(value, dict):
        raise _wrong(f"the manifest has no valid {name}", expected="an object", found=value)
    return value


def _number(content: dict[str, Any], name: str, lowest: int) -> int:
    value = content.get(name)
    if type(value) is not int or not lowest <= value < 1 << 31:
        raise _wrong(f"the manifest has no valid {name}", expected=f"a number of at least {lowest}", found=value)
    return value


def _bytes(content: dict[str, Any], name: str, text: object) -> bytes:
    try:
        return b64decode(text if isinstance(text, str) else "?", validate=True)
    except ValueError:
        raise _wrong(f"the manifest has no base64 text in {name}", found=content.get(name)) from None


def _part(places: dict[str, Any], name: str) -> Part:
    place = _object(places, name)
    return Part(_number(place, "position", 0), _number(place, "size", 0))


def _encryption(content: dict[str, Any]) -> Encryption:
    name, colon, wrapped = str(content.get("dataKey")).partition(":")
    if not colon or not name:
        raise _wrong("the manifest has no valid dataKey", expected="KEY NAME:BASE64")
    return Encryption(name, _bytes({}, "dataKey", wrapped), _bytes(content, "aad", content.get("aad")))


def _chunks(index: dict[str, Any], count: int) -> tuple[int, ...]:
    if count > MOST_CHUNKS:
        raise _wrong("the manifest describes too many chunks", expected=f"at most {MOST_CHUNKS}", found=count)
    kind = index.get("type")
    if kind == "fixed":
        size, last = _number(index, "transformedChunkSize", 0), _number(index, "finalTransformedChunkSize", 0)
        return (*[size] * (count - 1), last) if count else ()
    if kind != "variable":
        raise _wrong("the chunk index is of an unknown type", expected="fixed or variable", found=kind)
    packed = _bytes(index, "transformedChunks", index.get("transformedChunks"))
    try:
        sizes = _unpacked(compression.decompress(compression.ZSTD, packed, limit=LARGEST))
    except DamageError as damage:
        raise _wrong(f"transformedChunks is broken: {damage.reason}") from None
    if len(sizes) != max(count, 1):
        raise _wrong("the number of chunk sizes in the manifest is wrong", expected=count, found=len(sizes))
    return sizes if count else ()


def _unpacked(data: bytes) -> tuple[int, ...]:
    count = int.from_bytes(data[:4], "big")
    if len(data) == 8 and count == 1:
        return (int.from_bytes(data[4:], "big"),)
    base, width = int.from_bytes(data[4:8], "big"), data[8] if len(data) > 8 else 0
    if not 1 <= width <= 4 or count < 2 or len(data) != 9 + (count - 1) * width + 4:
        raise _wrong("the list of chunk sizes does not have the length that the count and width in it require")
    ends = range(9, 9 + (count - 1) * width, width)
    return (
        *(base + int.from_bytes(data[at : at + width], "big") for at in ends),
        int.from_bytes(data[-4:], "big"),
    )
