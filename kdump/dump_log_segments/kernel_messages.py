"""Prints messages of magic 0 and 1 through the kernel: consecutive entries of the log, and inner messages.

The general path prints the rest: messages that are not well-formed, and decoder switches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.dump_log_segments.kernel_lines import CHUNK, encoded, shown
from kdump.dump_log_segments.lines import KINDS, split
from kdump.errors import DamageError
from kdump.formats.record_layout import LOG_APPEND_TIME
from kdump.kernel.lines import MESSAGE_SLOTS, Messages, Shape
from kdump.kernel.records import FAR
from kdump.primitives.compression import NONE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kdump.dump_log_segments.lines import FieldValues, Line, LineValues
    from kdump.kernel.lines import Part
    from kdump.records.magic_0_1 import Message
    from kdump.segments.batch_runs import Entries

OF_MESSAGE: Final = {name: MESSAGE_SLOTS[name] for name in ("offset", "timestamp", "key_size", "value_size", "crc")}
OF_ENTRY: Final = {
    **OF_MESSAGE,
    "base_offset": MESSAGE_SLOTS["offset"],
    "last_offset": MESSAGE_SLOTS["offset"],
    "max_timestamp": MESSAGE_SLOTS["timestamp"],
    "position": MESSAGE_SLOTS["position"],
    "size": MESSAGE_SLOTS["size"],
}
"""The positions of the numbers of an uncompressed message (an entry of the log itself)."""
OF_WRAPPER: Final = OF_ENTRY.keys() - OF_MESSAGE.keys()


class KernelEntries:
    """Prints messages as far as the kernel supports them."""

    def __init__(self, printer: LineValues) -> None:
        self.printer = printer
        self.kernel = Messages(*printer.decoders.of_classes)
        self.entries: dict[tuple[int, int], Shape] = {}
        self.inner: dict[tuple[int, int, int], Shape] = {}
        names = {part.name for line in printer.legacy_record_line for part in line.parts if not isinstance(part, str)}
        self.lasting = printer.run.options.skip_record_metadata or not names & OF_WRAPPER
        """Whether lines of inner messages are independent of the wrapper."""

    def end(self) -> None:
        """Print no more: let go of the memory of lines."""
        del self.kernel

    def print_messages(self, messages: Entries, *, head: bool, deep: bool) -> Iterator[Message]:
        """Print consecutive messages, their lines with ``head`` and their records when ``deep``.

        A message that the kernel cannot print is yielded; the caller prints it before it continues.
        """
        kernel = self.kernel
        by_hand = deep and self.printer.run.parser is not None
        kernel.turn_to(messages.block, messages.at, messages.stop, place=messages.start)
        while (at := kernel.position()) < messages.stop:
            entry = messages.entry(at)
            key = (entry.magic, entry.attributes)
            done = kernel.done
            if not by_hand:
                shape = self.entries.get(key) or self.of_entry(key, entry, head=head, deep=deep)
                self.print(shape, entry, CHUNK, deep=deep)
            if kernel.done == done:
                yield entry
                kernel.skip(entry.size)

    def wrapper(self, batch: Message) -> int | None:
        """Print messages inside a wrapper, from the first on; return how many are printed, None when all are."""
        run = self.printer.run
        if batch.codec == NONE or batch.magic not in (0, 1) or run.parser is not None:
            return 0
        kernel = self.kernel
        in_chunks = run.dialect.reads_lz4_in_chunks
        try:
            data = batch.unpacked(batch.codec, run.options.max_batch_bytes, in_chunks=in_chunks)
        except DamageError:  # the general path meets it too
            return 0
        try:
            kernel.turn_to(data, 0, len(data))
            last = kernel.last_offset_stored()
            base = 0 if last is None else batch.inner_base(last)
            if last is None or not -FAR < base < FAR:
                return 0
            timestamp = -1
            if batch.timestamp_type == LOG_APPEND_TIME:
                timestamp = batch.timestamp
                if timestamp < 0:
                    return 0
            kernel.turn_to(data, 0, len(data), base=base, timestamp=timestamp)
            done = -1
            while kernel.done > done and kernel.position() < len(data):
                done = kernel.done
                message = batch.inner(data, kernel.position(), base)
                if message.magic != batch.magic or message.codec != NONE:
                    break
                self.print(self.of_inner(batch, message), message, CHUNK, deep=True)
        except DamageError:  # the same, in its place
            pass
        return int(kernel.done) if kernel.position() < len(data) else None

    def print(self, shape: Shape, first: Message, limit: int, *, deep: bool) -> None:
        """Print the next messages of the same kind as ``first``."""
        self.printer.lead(self.kernel)
        lines = self.kernel.lines_like(shape, first.magic, first.attributes & 0xFF, limit, deep=deep)
        self.printer.follow(self.kernel, lines)

    def of_entry(self, key: tuple[int, int], entry: Message, *, head: bool, deep: bool) -> Shape:
        """Return the lines of an entry of the log; values that all entries of its kind share are literal."""
        printer = self.printer
        own = [*parts(printer.legacy_batch_line, OF_ENTRY, printer.fields(entry)), b"\n"] if head else []
        value = printer.record_fields(entry, entry)
        shape = self.entries[key] = Shape([[*own, *record] for record in self.records(value, OF_ENTRY, deep=deep)])
        return shape

    def of_inner(self, batch: Message, message: Message) -> Shape:
        """Return the line of a message inside a wrapper. Raises DamageError when a field of that cannot be read."""
        key = (batch.magic, batch.attributes, message.attributes)
        shape = self.inner.get(key) if self.lasting else None
        if shape is None:
            value = self.printer.record_fields(batch, message)
            shape = Shape(self.records(value, OF_MESSAGE, deep=True))
            if self.lasting and len(self.inner) < KINDS:
                self.inner[key] = shape
        return shape

    def records(self, value: FieldValues, slots: Mapping[str, int], *, deep: bool) -> list[list[Part]]:
        """Return the line of a record for each way in which key and value can be null."""
        if not deep:
            return [[]] * 4
        printer = self.printer
        bare = printer.run.options.skip_record_metadata
        meta = [] if bare else parts(printer.legacy_record_line, slots, value)
        return [[*meta, *shown(content, printer.decoders), b"\n"] for content in printer.contents]


def parts(lines: list[Line], slots: Mapping[str, int], value: FieldValues) -> list[Part]:
    """Return the literals and slots of ``lines``, as :func:`kdump.dump_log_segments.lines.split` does. The
    checksum is right.
    """
    return encoded(split(lines, slots, lambda name: name == "is_valid" or value(name)))
