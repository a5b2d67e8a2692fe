"""Writes decoded keys and values: the column ``decoded`` as JSON, cells of tables, lines of the classic text.

In the column ``decoded`` compiled code writes most Avro and Protobuf payloads that begin with a schema id, after the
first of each schema. Plain Python writes everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from kdump import kernel
from kdump.primitives.encodings import Encoding, to_text
from kdump.primitives.terminal import harmless_line
from kdump.printers.json_text import plain, quote, scalar
from kdump.rows import values
from kdump.rows.columns import DECODED, SHOWN
from kdump.schemas import FIRST_BYTES
from kdump.schemas.decoder import CHANGELOG, has_own_layouts
from kdump.schemas.framing import PREFIX_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.formats.record import Header, Record
    from kdump.kernel.schemas import AvroText, ProtobufText
    from kdump.rows.selection import SelectedBatch
    from kdump.schemas.avro import AvroReader
    from kdump.schemas.decoder import Decoded, PayloadDecoder
    from kdump.schemas.framing import Side
    from kdump.schemas.protobuf import ProtobufReader

_NULL: Final = b"null"


class DecodedText:
    def __init__(self, decoder: PayloadDecoder, topic: str) -> None:
        self._decoder, self._topic = decoder, topic
        self._only_frames = not has_own_layouts(topic)
        """Whether payloads are decoded only if they have a frame (a first byte and a schema id) or headers."""
        self._general_sides = ("key",) if topic.endswith(CHANGELOG) else ()
        """The sides ("key", "value") that only plain Python writes: keys of changelog topics may have a window."""
        self._heads: dict[tuple[Side, bytes], tuple[bytes, AvroText | ProtobufText] | None] = {}
        """(side, frame) -> the text before the data, and the compiled writer of the data; None for plain Python."""

    def is_of(self, decoder: PayloadDecoder, topic: str) -> bool:
        return decoder is self._decoder and topic == self._topic

    def text(self, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> bytes:
        """Return a JSON object of key and value (data, or why decoding failed); empty without schemas and layouts."""
        of_key, of_value = self._side("key", key, headers), self._side("value", value, headers)
        if of_key is of_value is _NULL:
            return b""
        return b'{"key":%b,"value":%b}' % (of_key, of_value)

    def _side(self, side: Side, payload: bytes | None, headers: Sequence[Header]) -> bytes:
        if payload is None or (self._only_frames and not headers and payload[:1] not in FIRST_BYTES):
            return _NULL
        if payload[:1] == b"\0" and not headers and side not in self._general_sides:
            prefix = (side, payload[:PREFIX_SIZE])
            if prefix in self._heads:
                head = self._heads[prefix]
                if head is not None:
                    text = head[1].text(payload, PREFIX_SIZE)
                    if text is not None:
                        return head[0] + text + b"}"
            elif kernel.COMPILED:
                return self._first(side, payload, prefix)
        return self._general(side, payload, headers)

    def _general(self, side: Side, payload: bytes, headers: Sequence[Header]) -> bytes:
        return _text(self._decoder.side(self._topic, side, payload, headers))

    def _first(self, side: Side, payload: bytes, prefix: tuple[Side, bytes]) -> bytes:
        """Return a payload as text from plain Python. Cache the text before "data" for later ones of its schema."""
        decoded = self._decoder.side(self._topic, side, payload)
        if decoded is None or "problem" in decoded or "unknownFields" in decoded:
            return _text(decoded)
        writer = self._writer(decoded, payload)
        head = scalar(DECODED, {name: each for name, each in decoded.items() if name != "data"})
        self._heads[prefix] = None if writer is None else (f'{head[:-1]},"data":'.encode(), writer)
        return _text(decoded)

    def _writer(self, decoded: Decoded, payload: bytes) -> AvroText | ProtobufText | None:
        if decoded["format"] == "avro":
            from kdump.schemas.kernel_tables import avro_text

            avro = cast("AvroReader", self._decoder.reader(decoded["subject"], decoded["version"]))
            return avro_text(avro.schema, quote)
        if decoded["format"] == "protobuf":
            from kdump.schemas.kernel_tables import protobuf_text
            from kdump.schemas.protobuf import read_indexes

            protobuf = cast("ProtobufReader", self._decoder.reader(decoded["subject"], decoded["version"]))
            indexes, end = read_indexes(payload, PREFIX_SIZE)
            message = protobuf.first_message(indexes)
            if message is not None and message.full_name == decoded["name"]:
                return protobuf_text(message, payload[PREFIX_SIZE:end], quote)
        return None


def _text(decoded: Decoded | None) -> bytes:
    return _NULL if decoded is None else scalar(DECODED, decoded).encode()


SIDE_OF: Final = {column.source: column.name for column in SHOWN}


def cell(source: str, item: SelectedBatch, record: Record | None, encoding: Encoding) -> str | None:
    """Return the cell of a key or value: the reason if decoding failed, then decoded data or text, then a window."""
    side = SIDE_OF[source]
    payload: bytes | None = getattr(record, side)
    if payload is None:
        return None
    part = values.decoded_side(item, record, side)
    if part is None:
        return to_text(payload, encoding).text
    reason = _reason(part)
    text = plain(DECODED, part["data"]) if "data" in part else to_text(payload, encoding).text
    return f"{f'({reason}) ' if reason else ''}{text}{_window(part)}"


def lines(item: SelectedBatch, record: Record, sides: tuple[str, ...]) -> Iterator[bytes]:
    """Yield a line for each of ``sides`` with a schema or known layout: decoded data, or why decoding failed."""
    for side in sides:
        part = values.decoded_side(item, record, side)
        if part is not None:
            reason = _reason(part)
            texts = [scalar(DECODED, part["data"])] if "data" in part else []
            texts += [f"({reason})"] if reason and texts else [reason] * bool(reason)
            origin = _origin(part) + _window(part)
            yield f"  decoded {side}{f' ({origin.strip()})' if origin else ''}: {' '.join(texts)}\n".encode()


def _reason(part: dict[str, Any]) -> str:
    """Return the reason why a key or value cannot be decoded completely; empty if it can."""
    problem, why = part.get("problem"), part.get("why") or part.get("reason") or ""
    return harmless_line(f"{problem}: {why}" if problem else why)


def _origin(part: dict[str, Any]) -> str:
    """Return the format, schema and type of a decoded key or value as text."""
    words = []
    if part.get("format"):
        words.append("avro file" if part["framing"] == "file" else part["format"])
    if part.get("schemaId") is not None:
        words.append(f"schema id {part['schemaId']}")
    elif "guid" in part:
        words.append(f"schema {part['guid']}")
    if "subject" in part:
        state = "" if part["schemaState"] == "current" else f" {part['schemaState']}"
        words.append(f"{part['subject']} version {part['version']}{state}")
    if part.get("name"):
        version = f" version {part['version']}" if "subject" not in part and "version" in part else ""
        words.append(f"{part['name']}{version}")
    return harmless_line(", ".join(words))


def _window(part: dict[str, Any]) -> str:
    """Return the window of a Kafka Streams key, after a space; empty if the key has no window."""
    window = part.get("window")
    if window is None:
        return ""
    if window["type"] == "join":
        return f" @ {window['time']} {window['side']}"
    return f" @ {window['start']}" + (f"/{window['end']}" if window["type"] == "session" else "")
