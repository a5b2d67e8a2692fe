"""Lines of magic 0 and 1, their fields asked for once per message: the fast branch of :mod:`classic_log` for them.

What is the same in all messages of a kind is literal; the numbers of a message are filled in. Where a field cannot be
read there is no line: the general path then prints what stands in front of it.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from kdump.errors import DamageError
from kdump.lines import WRITE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kdump.formats.message import Message
    from kdump.lines import Line
    from kdump.printers.classic_log import Field, LogPrinter

    Kind: TypeAlias = tuple[int, int, bool]
    Template: TypeAlias = tuple[str, Callable[[tuple[int, ...]], object]]

OF_MESSAGE: Final = {"offset": 0, "timestamp": 1, "key_size": 2, "value_size": 3, "crc": 4}
OF_ENTRY: Final = {"crc": 4, "last_offset": 0, "base_offset": 0, "max_timestamp": 1, "position": 5, "size": 6}
"""Where the numbers of a message stand that is an entry of the log itself."""
OF_BOTH: Final = {**OF_ENTRY, **OF_MESSAGE}
NUMERIC: Final = {"", "long", "int"}


class LegacyLines:
    """Makes the lines of messages: of entries of the log, and of what wrappers hold."""

    def __init__(self, printer: LogPrinter) -> None:
        self.printer = printer
        self.heads: dict[Kind, Template] = {}
        self.records: dict[Kind, Template] = {}
        self.wrapper: Message | None = None
        self.wrapped: dict[Kind, Template] = {}
        self.base_offset_is_named = "base_offset" in {
            part.name for line in printer.legacy_batch_line for part in line.parts if not isinstance(part, str)
        }

    def head(self, batch: Message) -> bytes | None:
        """Return the line of an entry without its end, or None when a field cannot be read."""
        if self.base_offset_is_named and batch.codec:
            return None
        try:
            kind = (batch.magic, batch.attributes, batch.crc_valid)
            made = self.heads.get(kind)
            if made is None:
                printer = self.printer
                made = template(printer.legacy_batch_line, printer.fields(batch), OF_ENTRY)
                self.heads[kind] = made
            numbers = (batch.offset, batch.timestamp, 0, 0, batch.crc, batch.position, batch.size)
        except DamageError:
            return None
        text, take = made
        return (text % take(numbers)).encode()

    def record(self, batch: Message, message: Message) -> bytes | None:
        """Return what stands in front of key and value, or None when a field cannot be read."""
        known, slots = self.records, OF_BOTH
        if message is not batch:
            if batch is not self.wrapper:
                self.wrapper, self.wrapped = batch, {}
            known, slots = self.wrapped, OF_MESSAGE
        try:
            kind = (message.magic, message.attributes, message.crc_valid)
            made = known.get(kind)
            if made is None:
                printer = self.printer
                made = template(printer.legacy_record_line, printer.record_fields(batch, message), slots)
                known[kind] = made
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


def template(lines: list[Line], value: Field, slots: Mapping[str, int]) -> Template:
    """Return ``lines`` as a % template and what takes its numbers; ``value`` gives what has no slot."""
    text = []
    wanted = []
    for part in (part for line in lines for part in line.parts):
        if isinstance(part, str):
            text.append(part.replace("%", "%%"))
        elif part.name in slots and part.type in NUMERIC:
            text.append("%d")
            wanted.append(slots[part.name])
        else:
            text.append(WRITE[part.type](value(part.name)).replace("%", "%%"))
    return "".join(text), itemgetter(*wanted)
