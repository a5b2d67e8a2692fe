"""The output of DumpLogSegments: one run over a list of files, in the words of a dialect.

Standard output and the order of everything on it are the original's to the byte. Where the original dies of an
exception, this raises the DamageError or UnreadableError that says why, with the same text printed up to there.
"""

from __future__ import annotations

import posixpath
import sys
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from kdump import codecs
from kdump.dialects import state as dialects_state
from kdump.errors import KdumpError, UnreadableError
from kdump.printers import classic_decoders, classic_log
from kdump.printers.classic_names import by_file, java_path, offset_in_name, snapshot_id
from kdump.printers.classic_reports import Reports
from kdump.text import harmless
from kdump.wire import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from kdump.dialects import Dialect
    from kdump.dialects.payload import PayloadDialect
    from kdump.dialects.state import StateDialect
    from kdump.kernel.payloads import Program
    from kdump.printers.payloads.texts import Parser
    from kdump.segment import LocalFile

DEFAULT_MAX_MESSAGE_SIZE: Final = 5 << 20


class Options(NamedTuple):
    """What the original's command line says."""

    print_data_log: bool = False
    deep_iteration: bool = False
    verify_index_only: bool = False
    index_sanity_check: bool = False
    skip_record_metadata: bool = False
    max_message_size: int = DEFAULT_MAX_MESSAGE_SIZE
    """Bytes."""
    max_bytes: int = INT32_MAX
    """Bytes of a segment that are looked at."""
    max_batch_bytes: int = codecs.DEFAULT_LIMIT
    """Bytes that a batch may have, and may unpack to. Not the original's."""
    key_decoder_class: str | None = None
    """The name as given; "" for the default class."""
    value_decoder_class: str | None = None
    decoder_switch: str | None = None
    """The decoder of one of Kafka's own topics, named without its dashes; it goes before the classes."""


class Classic:
    """One run: what to print and how, where to, and the reports that stand at its end.

    ``state`` holds the words and rules for the files beside a log, ``gaps`` by absolute path the pairs of offsets that
    do not follow each other, in order of discovery.
    """

    def __init__(
        self,
        dialect: Dialect,
        options: Options,
        out: BinaryIO,
        *,
        state: StateDialect = dialects_state.NEWEST,
        release: str | None = None,
    ) -> None:
        """``release`` is the one whose words records of Kafka's own topics are told in, None the newest."""
        self.dialect, self.options, self.out, self.state = dialect, options, out, state
        self.release = release
        self.gaps: dict[str, list[tuple[int, int]]] = {}
        self.reports = Reports()
        self.parser = _parser(self.payloads, options.decoder_switch) if options.decoder_switch else None

    @cached_property
    def payloads(self) -> PayloadDialect:
        """The words and rules for records of Kafka's own topics, and control records: most logs hold neither."""
        from kdump.dialects import payload

        return payload.NEWEST if self.release is None else payload.find(self.release)

    @property
    def fronts(self) -> tuple[str, str]:
        """What stands in front of a decoded record, and of one that has a payload alone."""
        return ("| ", self.dialect.bare_payload) if self.options.skip_record_metadata else (" ", " ")

    @cached_property
    def program(self) -> Program:
        """What the compiled kernel knows of the records that the decoder switch decodes."""
        from kdump.printers.payloads.programs import PROGRAMS, Before

        front, alone = self.fronts
        before = Before(f"{front}key: ", " payload: ", f"{alone}payload: ")
        return PROGRAMS[self.options.decoder_switch or ""](self.payloads, before)

    def print(self, text: str) -> None:
        """Print a line in UTF-8; what is none in a file's name stays as it is."""
        self.out.write(text.encode(errors="surrogateescape") + b"\n")

    def run(self, files: list[str]) -> None:
        """Dump each file in turn, then print the reports."""
        if not self.dialect.decoders_made_per_log:
            classic_decoders.find(self.dialect, self.options, self.print)
        for name in files:
            self.file(java_path(name))
        self.out.flush()
        self.report()

    def file(self, path: str) -> None:
        """Dump one file as its suffix says; tell of one that is unknown, where the release does."""
        _, dot, suffix = posixpath.basename(path).rpartition(".")
        known = suffix in self.state.suffixes if dot else False
        if known or self.state.announces_unknown:
            self.print(f"Dumping {path}")
        if known:
            DUMP[suffix](self, path)
        elif not dot and self.state.needs_suffix:
            raise UnreadableError(path, "a file name without a dot says nothing about what the file holds")
        elif self.state.announces_unknown:
            self.complain(f"Ignoring unknown file {path}")

    def trailing(self, source: LocalFile, size: int) -> None:
        """Tell of bytes behind the last whole batch; of a file that became shorter, those that are still there."""
        if size > source.lost:
            name = posixpath.basename(source.name)
            self.print(self.dialect.trailing_bytes.format(count=size - source.lost, name=name))

    def close(self, source: LocalFile) -> None:
        """Say so where a file became shorter while it was read."""
        if source.lost:
            self.complain(
                f"kdump: {source.name} became {source.lost} bytes shorter while it was read; what was there is printed"
            )

    def complain(self, text: str) -> None:
        """Print a line to standard error, behind what was printed so far."""
        self.out.flush()
        _tell(text)

    def report(self) -> None:
        """Print what did not fit, file by file in the order of the release."""
        for text in self.reports.lines(self.state, self.dialect):
            _tell(text)
        for file, pairs in by_file(self.dialect, self.gaps):
            _tell(self.dialect.gaps_title.format(file=file))
            for last, current in sorted(dict(pairs).items()) if self.dialect.gaps_by_offset else reversed(pairs):
                _tell(f"  {last} is followed by {current}")


def _parser(payloads: PayloadDialect, switch: str) -> Parser:
    """Return what a decoder switch, named without its dashes, prints of a record."""
    from kdump.printers.payloads.switches import PARSERS  # parses the schemas of all topics

    return PARSERS[switch](payloads)


def _tell(text: str) -> None:
    """Print a line to standard error; to a terminal without what a file's name could steer it with."""
    print(harmless(text) if sys.stderr.isatty() else text, file=sys.stderr)


def _log(run: Classic, path: str) -> None:
    _segment(run, path, lambda: run.dialect.starting_offset.format(offset=offset_in_name(path)))


def _checkpoint(run: Classic, path: str) -> None:
    _segment(run, path, lambda: _checkpoint_title(run.state, path))


def _checkpoint_title(state: StateDialect, path: str) -> str:
    if posixpath.basename(path) == state.bootstrap_name:
        return state.bootstrap_title
    offset, epoch = snapshot_id(path)
    return state.checkpoint_title.format(offset=offset, epoch=epoch)


def _segment(run: Classic, path: str, title: Callable[[], str]) -> None:
    decoders = classic_decoders.find(run.dialect, run.options, run.print)
    run.print(title())
    if run.options.max_bytes < 0:
        raise KdumpError(f"--max-bytes {run.options.max_bytes}: {path} cannot be cut to fewer than 0 bytes")
    if run.dialect.message:
        from kdump.printers import classic_messages

        classic_messages.dump(run, path, decoders)
    else:
        classic_log.dump(run, path, decoders)


def _beside() -> ModuleType:
    """Return what dumps the files beside a log: most runs have none."""
    from kdump.printers import classic_state

    return classic_state


DUMP: Final[dict[str, Callable[[Classic, str], None]]] = {
    "log": _log,
    "index": lambda run, path: _beside().dump_offset_index(run, path),
    "timeindex": lambda run, path: _beside().dump_time_index(run, path),
    "txnindex": lambda run, path: _beside().dump_txn_index(run, path),
    "snapshot": lambda run, path: _beside().dump_snapshot(run, path),
    "checkpoint": _checkpoint,
}
"""Suffix -> what dumps such a file."""
