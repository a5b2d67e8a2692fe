"""The column ``decoded`` as JSON text: Avro and Protobuf in compiled code, other formats by plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from kdump import kernel
from kdump.printers.json_text import quote, scalar
from kdump.rows.columns import DECODED
from kdump.schemas import FIRST_BYTES
from kdump.schemas.decoder import CHANGELOG, has_own_layouts
from kdump.schemas.framing import PREFIX_SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.formats.record import Header
    from kdump.kernel.schemas import AvroText, ProtobufText
    from kdump.schemas.avro import AvroReader
    from kdump.schemas.decoder import Decoded, PayloadDecoder
    from kdump.schemas.framing import Side
    from kdump.schemas.protobuf import ProtobufReader

_NULL: Final = b"null"


class DecodedText:
    """Writes the column ``decoded`` of the records of one topic."""

    def __init__(self, decoder: PayloadDecoder, topic: str) -> None:
        self._decoder, self._topic = decoder, topic
        self._only_frames = not has_own_layouts(topic)
        """Whether only payloads with a frame are decoded."""
        self._general_sides = ("key",) if topic.endswith(CHANGELOG) else ()
        """The sides (key, value) whose payloads may have more bytes after the value of their schema."""
        self._heads: dict[tuple[Side, bytes], tuple[bytes, AvroText | ProtobufText] | None] = {}
        """(side, prefix) -> the text before the data, and the compiled writer of the data (None: plain Python)."""

    def is_of(self, decoder: PayloadDecoder, topic: str) -> bool:
        return decoder is self._decoder and topic == self._topic

    def text(self, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> bytes:
        """Return a JSON object with the decoded key and value; empty if neither is decoded."""
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
        """Return the text of a schema's first payload, made by plain Python. Cache its part before "data"."""
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
