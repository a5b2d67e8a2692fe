"""The text files of a log dir as a broker reads them: what counts is which exception it meets.

An IOException takes the log dir offline (LogDirFailureChannel); a NumberFormatException of an entry does not: it is
caught, or ends the thread that reads. Source: Kafka's classes CheckpointFile, OffsetCheckpointFile,
LeaderEpochCheckpointFile and PartitionMetadataFile.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kdump.errors import DamageError
from kdump.formats import checkpoint_text

if TYPE_CHECKING:
    from kdump.primitives.wire import Bytes

OFFSETS: Final = (0, 32, 64)
"""The parts of a line of an offset checkpoint: bits of a number, 0 for text."""
EPOCHS: Final = (32, 64)
UUID_TEXT: Final = 24
UUID_BYTES: Final = 16


class BadFileError(Exception):
    """The broker meets an IOException: it takes the log dir offline."""


class BadNumberError(Exception):
    """The broker meets another exception: what becomes of it depends on who reads."""


def entries(data: Bytes, shape: tuple[int, ...]) -> list[tuple[int | str, ...]]:
    """Return the entries of a checkpoint, whose lines have the parts of ``shape``; none for a file that is empty.

    Raises BadFileError and BadNumberError.
    """
    try:
        lines = [line.text for line in checkpoint_text.lines(data)]
    except DamageError as damage:
        raise BadFileError(str(damage)) from None
    if not lines:
        return []
    if (version := _header(lines[0])) != checkpoint_text.VERSION:
        raise BadFileError(f"Unrecognised version: {version}")
    if len(lines) == 1:
        return []
    announced = _header(lines[1])
    found = [_entry(line, shape) for line in lines[2:]]
    if len(found) != announced:
        raise BadFileError(f"Expected [{announced}] entries in checkpoint file, but found only [{len(found)}]")
    return found


def _header(line: str) -> int:
    try:
        return _number(line, 32)
    except BadNumberError:
        raise BadFileError(f"Malformed line in checkpoint file: {line[:80]!r}") from None


def _entry(line: str, shape: tuple[int, ...]) -> tuple[int | str, ...]:
    parts = re.split(r"\s+", line.rstrip())
    if len(parts) != len(shape):
        raise BadFileError(f"Malformed line in checkpoint file: {line[:80]!r}")
    return tuple(_number(part, bits) if bits else part for part, bits in zip(parts, shape, strict=True))


def _number(text: str, bits: int) -> int:
    if not checkpoint_text.INTEGER.fullmatch(text) or not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
        raise BadNumberError(f'NumberFormatException: For input string: "{text[:80]}"')
    return int(text)


def topic_id(data: Bytes) -> bytes:
    """Return the topic id of a ``partition.metadata``. Raises BadFileError and BadNumberError."""
    try:
        lines = [line.text for line in checkpoint_text.lines(data)]
    except DamageError as damage:
        raise BadFileError(str(damage)) from None
    version = _value(lines, 0)
    try:
        if _number(version, 32) < 0:
            raise BadFileError("Unrecognized version of partition metadata file")
    except BadNumberError:
        raise BadFileError("Malformed line in partition metadata file") from None
    found = _uuid(_value(lines, 1))
    if found == bytes(UUID_BYTES):
        raise BadFileError("Invalid topic ID in partition metadata file")
    return found


def _value(lines: list[str], number: int) -> str:
    if number >= len(lines):
        raise BadNumberError('NullPointerException: "this.text" is null')
    parts = re.split(r":\s+", lines[number])
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    if len(parts) != 2:
        raise BadFileError(f"Malformed line in partition metadata file: {lines[number][:80]!r}")
    return parts[1]


def _uuid(text: str) -> bytes:
    """Read a Uuid as ``Uuid.fromString`` does."""
    from base64 import b64decode

    try:
        found = (
            b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True) if len(text) <= UUID_TEXT else b""
        )
    except ValueError:
        raise BadNumberError("IllegalArgumentException: Last unit does not have enough valid bits") from None
    if len(found) != UUID_BYTES:
        raise BadNumberError(f"IllegalArgumentException: Input string `{text[:40]}` decoded as {len(found)} bytes")
    return found
