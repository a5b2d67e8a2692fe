"""Lines of records that the kernel does not print: magic 0 and 1, decoded, control.

Values that all messages of a kind share are literal; the numbers of a message are filled in. If a field cannot be
read there is no line, and the general path prints the part before it.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from kdump.dump_log_segments.lines import KINDS, split
from kdump.errors import DamageError
from kdump.formats.record_layout import BatchHeader
from kdump.primitives.java_text import java_utf8

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kdump.dump_log_segments.lines import FieldValues, Line, LineValues
    from kdump.formats.record import Record
    from kdump.records.magic_0_1 import Message
    from kdump.records.magic_2 import Batch

    Template: TypeAlias = tuple[str, Callable[[tuple[object, ...]], object]]

OF_MESSAGE: Final = {"offset": 0, "timestamp": 1, "key_size": 2, "value_size": 3, "crc": 4}
OF_ENTRY: Final = {**OF_MESSAGE, "last_offset": 0, "base_offset": 0, "max_timestamp": 1, "position": 5, "size": 6}
"""The positions of the numbers of an uncompressed message (an entry of the log itself)."""
OF_RECORD: Final = {
    **{name: 6 + at for at, name in enumerate(BatchHeader._fields) if name != "crc"},  # a record has none
    "count": 6 + BatchHeader._fields.index("records_count"),
    **{
        name: at for at, name in enumerate(("offset", "timestamp", "key_size", "value_size", "sequence", "header_keys"))
    },
    **{
        name: 6 + len(BatchHeader._fields) + at
        for at, name in enumerate(("last_offset", "last_sequence", "position", "size"))
    },
}
"""The positions of the values of a record of magic 2: its own, those of the batch header, computed ones."""


class RecordLines:
    """Makes the text before key and value of a record of magic 2 that the kernel does not print."""

    def __init__(self, printer: LineValues) -> None:
        self.printer = printer
        self.kinds: dict[tuple[int, bool, int | None], Template] = {}
        self.batch: Batch | None = None
        self.of_batch: tuple[int, ...] = ()
        self.made: Template = ("", tuple)

    def meta(self, batch: Batch, record: Record) -> bytes | None:
        """Return the text, or None when a field of the batch cannot be read."""
        if batch is not self.batch:
            try:
                self._turn(batch, record)
            except DamageError:
                return None
        header_keys = ",".join(java_utf8(header.key) for header in record.headers) if record.headers else ""
        numbers = (record.offset, record.timestamp, record.key_size, record.value_size, record.sequence, header_keys)
        text, take = self.made
        return (text % take((*numbers, *self.of_batch))).encode()

    def _turn(self, batch: Batch, record: Record) -> None:
        kind = (batch.attributes, batch.crc_valid, batch.delete_horizon_ms)
        made = self.kinds.get(kind)
        if made is None:
            if len(self.kinds) > KINDS:  # each delete horizon is one
                self.kinds.clear()
            value = self.printer.record_fields(batch, record)
            made = self.kinds[kind] = template(self.printer.record_line, value, OF_RECORD)
        self.made = made
        self.of_batch = (*batch.header, batch.last_offset, batch.last_sequence, batch.position, batch.size)
        self.batch = batch


class LegacyLines:
    """Makes the lines of entries of the log and of inner messages; None for an unreadable one."""

    def __init__(self, printer: LineValues) -> None:
        self.printer = printer
        self.kinds: dict[tuple[bool, int, int, int, bool], Template] = {}

    def head(self, batch: Message) -> bytes | None:
        """Return the line of an entry without its end; None for a wrapper whose line depends on its inner messages."""
        return self._text(batch, batch, head=True)

    def meta(self, batch: Message, message: Message) -> bytes | None:
        """Return the text before key and value."""
        return self._text(batch, message, head=False)

    def _text(self, batch: Message, message: Message, *, head: bool) -> bytes | None:
        is_entry = message is batch
        try:
            if head and batch.codec:
                return None
            kind = (head, -1 if is_entry else batch.position, message.magic, message.attributes, message.crc_valid)
            made = self.kinds.get(kind)
            if made is None:
                if len(self.kinds) > KINDS:  # each wrapper has its own
                    self.kinds.clear()
                lines = self.printer.legacy_batch_line if head else self.printer.legacy_record_line
                value = self.printer.record_fields(batch, message)
                made = self.kinds[kind] = template(lines, value, OF_ENTRY if is_entry else OF_MESSAGE)
            numbers = (
                message.offset,
                message.timestamp,
                message.key_size,
                message.value_size,
                message.crc,
                message.position,
                message.size,
            )
        except DamageError:
            return None
        text, take = made
        return (text % take(numbers)).encode()


def template(lines: list[Line], value: FieldValues, slots: Mapping[str, int]) -> Template:
    """Return ``lines`` as a % template and a function that picks its values; ``value`` returns those without a slot."""
    parts = list(split(lines, slots, value))
    text = "".join("%s" if isinstance(part, int) else part.replace("%", "%%") for part in parts)
    return text, itemgetter(*(part for part in parts if isinstance(part, int)))
