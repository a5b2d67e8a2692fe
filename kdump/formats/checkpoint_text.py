r"""The common format of checkpoint files: a version line, a line with the number of entries, one line per entry.

Source: Kafka's class CheckpointFile. Lines end in ``\n``, ``\r`` or ``\r\n``; the last line may have no end. For most
damage a broker throws an IOException, and takes the log dir offline. For the damage of :class:`NumberDamageError` it
throws other exceptions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeVar

from kdump.errors import DamageError, quoted
from kdump.primitives.encodings import JAVA_SPACES, java_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.primitives.wire import Bytes

E = TypeVar("E")

VERSION = 0


class TextLine(NamedTuple):
    """One line without its line end, and its position in bytes."""

    text: str
    position: int


class NumberDamageError(DamageError):
    """Damage such as a malformed number in an entry. Depending on the file, a broker stops, or treats it as empty."""


def lines(data: Bytes) -> Iterator[TextLine]:
    """Yield the lines of a UTF-8 text. Raises DamageError for malformed UTF-8."""
    whole = bytes(data)
    position = 0
    for line in whole.splitlines(keepends=True):  # str.splitlines() has more line ends than Kafka
        try:
            yield TextLine(line.rstrip(b"\r\n").decode(), position)
        except UnicodeDecodeError as fault:
            raise DamageError("text", "a line is not UTF-8", position=position + fault.start) from None
        position += len(line)


def malformed(line: TextLine, expected: str, kind: type[DamageError] = DamageError) -> NoReturn:
    reason = "a line is malformed" if line.text.strip("\0") or not line.text else "all bytes of a line are zero"
    raise kind("line", reason, position=line.position, expected=expected, found=quoted(line.text))


def parts(line: TextLine, count: int, expected: str) -> list[str]:
    """Split a line at white space. Raises DamageError, with the text ``expected``, unless it has ``count`` parts."""
    text = line.text
    # As with Java's split(), a line that begins with white space has an empty first part.
    is_plain = text.isprintable() and text[:1] != " "  # nearly always: a space is the only printable white space
    found = text.split() if is_plain else re.split(f"[{JAVA_SPACES}]+", text.rstrip(JAVA_SPACES))
    if len(found) != count:
        malformed(line, expected)
    return found


def integer(text: str, line: TextLine, expected: str, bits: int = 32) -> int:
    """Return ``text``, a part of ``line``, as a number. Raises NumberDamageError, with ``expected``, if Java throws."""
    value = java_integer(text, bits)
    if value is None:
        malformed(line, expected, NumberDamageError)
    return value


def header(line: TextLine, expected: str) -> int:
    """Return the number in a line of the header. Raises DamageError, with ``expected``, if the line is not a number."""
    try:
        return integer(line.text, line, expected)
    except NumberDamageError:
        malformed(line, expected)


def read(data: Bytes, parse: Callable[[TextLine], E]) -> tuple[E, ...]:
    """Parse each entry with ``parse``, and return the results. Like a broker, read no entries from less than two lines.

    Raises DamageError for an unknown version, a malformed line or a wrong number of entries, and NumberDamageError for
    a malformed number in an entry or a negative number of entries.
    """
    rest = iter(list(lines(data)))  # all lines are decoded before the first is parsed, as in Java
    first = next(rest, None)
    if first is None:
        return ()
    if header(first, "the version 0") != VERSION:
        raise DamageError("version", "a checkpoint has an unknown version", expected=VERSION, found=first.text)
    second = next(rest, None)
    if second is None:
        return ()
    announced = header(second, "the number of entries")
    if announced < 0:
        malformed(second, "the number of entries", NumberDamageError)
    entries = tuple(parse(line) for line in rest)
    if len(entries) != announced:
        raise DamageError(
            "count",
            "the number of entries differs from the number in the second line",
            position=second.position,
            expected=announced,
            found=len(entries),
        )
    return entries


def encode(entries: Iterable[str]) -> bytes:
    texts = list(entries)
    return "".join(f"{line}\n" for line in [str(VERSION), str(len(texts)), *texts]).encode()
