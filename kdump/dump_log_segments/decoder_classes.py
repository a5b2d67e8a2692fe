"""The decoder classes of DumpLogSegments, which turn keys and values into text. :func:`find` finds them by name.

Their package is ``kafka.serializer`` up to 3.9, and ``org.apache.kafka.tools.api`` from 3.8 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump.errors import DamageError, KdumpError
from kdump.primitives.crc import crc32
from kdump.primitives.encodings import java_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.dump_log_segments import Options
    from kdump.dump_log_segments.dialects.segments import Dialect

    Decoder: TypeAlias = Callable[[bytes], bytes]


def _number(size: int) -> Decoder:
    def decode(data: bytes) -> bytes:
        if len(data) < size:
            raise DamageError(
                "decoder", f"a key or value is too short for a number of {size} bytes", expected=size, found=len(data)
            )
        return str(int.from_bytes(data[:size], "big", signed=True)).encode()

    return decode


def _identity(data: bytes) -> bytes:
    """Return ``[B@`` and the CRC-32 of the data. In place of the CRC, Java prints a hash that differs in each run."""
    return f"[B@{crc32(data):x}".encode()


DECODERS: Final[dict[str, Decoder]] = {
    "DefaultDecoder": _identity,
    "StringDecoder": java_text,
    "LongDecoder": _number(8),
    "IntegerDecoder": _number(4),
}


class Decoders(NamedTuple):
    key: Decoder
    value: Decoder
    spelling: str = ""
    """The format in which compiled code prints keys and values: hex, base64, hash; "": Java's UTF-8 or the decoders."""
    prefix: bytes = b""
    """The text before each key and value."""
    secret: bytes = b""
    """The secret of the hash (HMAC-SHA256)."""

    @property
    def of_classes(self) -> tuple[Decoder | None, Decoder | None]:
        """The decoders of keys and values; None for Java's UTF-8 decoder: compiled code has its own."""
        return (
            None if self.key is java_text else self.key,
            None if self.value is java_text else self.value,
        )


def find(dialect: Dialect, options: Options, warn: Callable[[str], None]) -> Decoders:
    """Return the decoders of the classes in the options. ``warn`` prints the release's warning about an old package.

    With a decoder switch the classes are ignored. Raises KdumpError for a class that the release lacks.
    """
    if options.decoder_switch:
        return Decoders(java_text, java_text)
    value = _find(dialect, options.value_decoder_class, warn)
    key = _find(dialect, options.key_decoder_class, warn)
    return Decoders(key, value)


def _find(dialect: Dialect, name: str | None, warn: Callable[[str], None]) -> Decoder:
    if not name:
        return java_text
    package, _, simple = name.rpartition(".")
    if name not in dialect.decoder_classes:
        known = ", ".join(dialect.decoder_classes)
        raise KdumpError(f"there is no decoder class {name}: this release has {known}")
    if dialect.deprecated_decoder and package != dialect.decoder_classes[0].rpartition(".")[0]:
        warn(dialect.deprecated_decoder.format(name=name, simple=simple))
    return DECODERS[simple]
