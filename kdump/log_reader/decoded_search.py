"""What --key and --grep look at of a record beside its bytes: its decoded key and value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Collection

    from kdump.formats.record import Record
    from kdump.schemas.decoder import PayloadDecoder
    from kdump.schemas.framing import Side

_SIDES: Final[tuple[Literal["key", "value"], ...]] = ("key", "value")


class DecodedSearch:
    """The decoded payloads of records of one topic, as the JSON text of their ``data``, in one line without blanks.

    A key or value that carries no schema, or that cannot be decoded, has none.
    """

    def __init__(self, decoder: PayloadDecoder, topic: str) -> None:
        self._decoder, self._topic = decoder, topic

    def keys(self, record: Record) -> frozenset[bytes]:
        """Return what --key may be for the record: the JSON text of its key, and for a text the text itself."""
        side = self._side("key", record)
        if side is None:
            return frozenset()
        found = {self._text(side)}
        if isinstance(side, str):
            found.add(side.encode("utf-8", "surrogatepass"))
        return frozenset(found)

    def texts(self, record: Record, parts: Collection[str] = ("key", "value")) -> tuple[bytes, ...]:
        """Return the JSON texts of its key and its value, as far as there are some, and ``parts`` has them."""
        sides = [self._side(side, record) for side in _SIDES if side in parts]
        return tuple(self._text(side) for side in sides if side is not None)

    def _side(self, side: Side, record: Record) -> object:
        payload = record.key if side == "key" else record.value
        found = self._decoder.side(self._topic, side, payload, record.headers)
        return None if found is None else found.get("data")

    @staticmethod
    def _text(data: object) -> bytes:
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
