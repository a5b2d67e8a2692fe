"""Prints a segment as releases before 0.11 do: one line per message of magic 0 or 1.

Like these releases, it reads a batch of magic 2 as a message, then prints wrong values or stops with an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.dump_log_segments.java_files import absolute
from kdump.dump_log_segments.lines import line
from kdump.errors import DamageError
from kdump.formats import record_layout
from kdump.formats.record_layout import TIMESTAMP_TYPES
from kdump.log_dirs.local import LocalFile
from kdump.primitives import compression
from kdump.primitives.wire import to_int64
from kdump.records import log_entry
from kdump.records.magic_0_1 import Message, frames
from kdump.segments.regions import Trailing
from kdump.segments.walk import Window, as_region, in_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.dump_log_segments.decoder_classes import Decoders
    from kdump.dump_log_segments.dialects.segments import Dialect
    from kdump.dump_log_segments.run import DumpRun
    from kdump.log_dirs.files import Source
    from kdump.records.magic_0_1 import Frame


def dump(run: DumpRun, path: str, decoders: Decoders) -> None:
    """Print one segment. Where kafka-dump-log.sh stops, raise an error after the same output."""
    options = run.options
    with LocalFile(path) as source:
        printer = MessagePrinter(run, path, decoders)
        for region in walk(source, run.dialect, options.max_message_size, limit=options.max_batch_bytes):
            if isinstance(region, Message):
                printer.entry(region)
            else:
                run.trailing(source, region.size)
        run.close(source)


def walk(
    source: Source,
    dialect: Dialect,
    max_size: int,
    start: int = 0,
    end: int | None = None,
    *,
    limit: int = compression.DEFAULT_LIMIT,
) -> Iterator[Message | Trailing]:
    """Yield the messages from ``start`` to ``end`` (bytes) as the release finds them, then any trailing bytes.

    Raises DamageError, also for a message above ``limit`` bytes; some releases refuse one above ``max_size`` too.
    """
    end = source.size if end is None else end
    window = Window(source, end)
    position, left = start, end - start
    while left > record_layout.LOG_OVERHEAD.size:
        head = window.view(position, record_layout.LOG_OVERHEAD.size)
        if len(head) < record_layout.LOG_OVERHEAD.size:  # the file has shrunk since its size was taken
            break
        overhead = record_layout.LOG_OVERHEAD.read(head)
        if overhead.size < record_layout.SMALLEST_ENTRY and dialect.smallest_size_ends_file:
            break
        try:
            log_entry.check_size(overhead.size)
            if dialect.limits_message_size and overhead.size > max_size:
                raise DamageError(
                    "record size",
                    "a message is larger than --max-message-size",
                    position=record_layout.LOG_OVERHEAD.offsets["size"],
                    expected=f"{max_size} or less",
                    found=overhead.size,
                )
            size = record_layout.LOG_OVERHEAD.size + overhead.size
            if size > left:
                break
            log_entry.check_limit(overhead.size, limit)
            data = window.view(position, size)[record_layout.LOG_OVERHEAD.size :]
            if len(data) < overhead.size:
                break
            yield Message(data, overhead.offset, position, newest=dialect.newest_magic)
        except DamageError as damage:
            raise as_region(damage, position, left).error(source.name) from damage
        position += size
        left -= size
    if left > 0:
        yield Trailing(position, left)


class MessagePrinter:
    """Prints the messages of one segment, and adds the gaps before uncompressed messages to ``run.gaps``."""

    def __init__(self, run: DumpRun, path: str, decoders: Decoders) -> None:
        self.run = run
        self.path = path
        self.decoders = decoders
        self.last_offset = -1
        self.line = line(run.dialect.message)
        self.key_size = line(run.dialect.message_key_size)

    def entry(self, entry: Message) -> None:
        """Print a message, or the messages inside a wrapper: with --deep-iteration, or if printing data implies it."""
        options, dialect = self.run.options, self.run.dialect
        deep = options.deep_iteration or (options.print_data_log and dialect.print_is_deep)
        try:
            for message in unwrapped(entry, dialect, options.max_batch_bytes) if deep else (entry,):
                self.message(message)
        except DamageError as damage:
            raise in_batch(damage, entry).error(self.path) from damage

    def message(self, message: Message) -> None:
        plain = codec_of(message, self.run.dialect) == compression.NONE
        if plain and self.last_offset != -1 and message.offset != to_int64(self.last_offset + 1):
            self.run.gaps.setdefault(absolute(self.path), []).append((self.last_offset, message.offset))
        self.last_offset = message.offset

        def value(name: str) -> object:
            if name == "codec":
                return self.run.dialect.codecs[codec_of(message, self.run.dialect)]
            if name == "timestamp_type":
                return TIMESTAMP_TYPES[message.timestamp_type]
            return message.crc_valid if name == "is_valid" else getattr(message, name)

        write = self.run.out.write
        write(self.line.render(value).encode())
        if message.key_size >= 0:
            write(self.key_size.render(value).encode())
        if self.run.options.print_data_log:
            for text in self.content(message):
                write(text)
        write(b"\n")

    def content(self, message: Message) -> Iterator[bytes]:
        dialect = self.run.dialect
        if self.run.parser is not None:
            from kdump.dump_log_segments.decoders.texts import parsed

            yield from parsed(self.run.parser, message).parts(" ", " ")
            return
        if dialect.key_needs_value and message.value_size < 0:
            return
        key, value = message.key, None
        if not dialect.key_before_value:
            value = message.value
        if key is not None:
            yield b" key: " + self.decoders.key(key)
        if dialect.key_before_value:
            value = message.value
        if value is not None:
            yield b" payload: " + self.decoders.value(value)
        elif dialect.null_payload is not None:
            yield dialect.null_payload.encode()
        else:
            raise DamageError("value", "this release cannot print a null value", found="null")


def unwrapped(entry: Message, dialect: Dialect, limit: int) -> Iterator[Message]:
    """Yield the messages inside a wrapper, or the message itself. Raises DamageError."""
    if codec_of(entry, dialect) == compression.NONE:
        yield entry
        return
    data = entry.unpacked(codec_of(entry, dialect), limit)
    inner = _alike(frames(data), data, entry) if dialect.inner_magic_must_match else frames(data)
    base, wrapper = 0, entry if dialect.inner_types_of_wrapper else None
    if dialect.unpacks_at_once:
        found = list(inner)
        if not found and entry.magic > 0 and dialect.empty_wrapper_ends_run:
            raise DamageError(
                "inner messages", "a compressed message set has no messages", position=record_layout.LOG_OVERHEAD.size
            )
        if found and entry.magic > 0:  # inner offsets are relative (KIP-31), and the wrapper has a timestamp
            base, wrapper = entry.offset - found[-1].offset, entry
            base = 0 if base < 0 and dialect.base_below_0_is_none else base
        inner = iter(found)
    for offset, start, end in inner:
        message = Message(data[start:end], to_int64(base + offset), entry.position, wrapper, dialect.newest_magic)
        if message.magic < 0 and dialect.inner_types_of_wrapper:
            message = Message(data[start:end], message.offset, entry.position, None, dialect.newest_magic)
        yield from _inner(message, dialect, limit)


def _alike(found: Iterable[Frame], data: memoryview, wrapper: Message) -> Iterator[Frame]:
    """Yield the frames inside a wrapper. Raises DamageError at a message with another magic than the wrapper's."""
    for frame in found:
        magic = Message(data[frame.start : frame.end], frame.offset, wrapper.position).magic
        if magic != wrapper.magic:
            raise DamageError(
                "magic",
                "a message inside a wrapper has another magic than the wrapper",
                position=record_layout.MAGIC_POSITION,
                expected=wrapper.magic,
                found=magic,
            )
        yield frame


def _inner(message: Message, dialect: Dialect, limit: int) -> Iterator[Message]:
    """Yield an inner message, or the messages inside it if the release reads nested wrappers. Raises DamageError."""
    if dialect.nested_wrappers == "unpacked":
        yield from unwrapped(message, dialect, limit)
        return
    if dialect.nested_wrappers == "refused" and codec_of(message, dialect) != compression.NONE:
        raise DamageError(
            "codec", "a message inside a wrapper is compressed again", position=record_layout.LOG_OVERHEAD.size
        )
    yield message


def codec_of(message: Message, dialect: Dialect) -> int:
    """Return the id of a message's codec. Raises DamageError for a codec that the release lacks."""
    codec = message.attributes & dialect.codec_mask
    if codec >= len(dialect.codecs):
        raise DamageError("codec", f"this release has no compression codec {codec}", found=codec)
    return codec
