"""The output of DumpLogSegments: one run over a list of files, in the words of a dialect.

Standard output and the order of everything on it are the original's to the byte. Where the original dies of an
exception, this raises the DamageError or UnreadableError that says why, with the same text printed up to there.
"""

from __future__ import annotations

import posixpath
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from kdump.errors import DamageError, KdumpError
from kdump.printers import classic_decoders, classic_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.dialects import Dialect

INT_MAX: Final = 0x7FFFFFFF
DEFAULT_MAX_MESSAGE_SIZE: Final = 5 << 20


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the original's command line says."""

    print_data_log: bool = False
    deep_iteration: bool = False
    verify_index_only: bool = False
    index_sanity_check: bool = False
    skip_record_metadata: bool = False
    max_message_size: int = DEFAULT_MAX_MESSAGE_SIZE
    """Bytes."""
    max_bytes: int = INT_MAX
    """Bytes of a segment that are looked at."""
    key_decoder_class: str | None = None
    """The name as given; "" for the default class."""
    value_decoder_class: str | None = None


@dataclass
class Classic:
    """One run: what to print and how, where to, and the reports that stand at its end."""

    dialect: Dialect
    options: Options
    out: BinaryIO
    gaps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Absolute path -> pairs of offsets that do not follow each other, in order of discovery."""

    def print(self, text: str) -> None:
        self.out.write(text.encode() + b"\n")

    def run(self, files: list[str]) -> None:
        """Dump each file in turn, then print the reports."""
        if not self.dialect.decoders_made_per_log:
            classic_decoders.find(self.dialect, self.options, self.print)
        for name in files:
            path = java_path(name)
            self.print(f"Dumping {path}")
            self.file(path)
        self.out.flush()
        self.report()

    def file(self, path: str) -> None:
        name = posixpath.basename(path)
        _, dot, suffix = name.rpartition(".")
        if not dot:
            raise DamageError("file name", f"{path}: a file name without a dot says nothing about what it holds")
        dump = DUMP.get(suffix)
        if dump is None:
            self.out.flush()
            print(f"Ignoring unknown file {path}", file=sys.stderr)
        else:
            dump(self, path)

    def report(self) -> None:
        for path, pairs in self.gaps.items():
            print(self.dialect.gaps_title.format(path=path), file=sys.stderr)
            for last, current in reversed(pairs):
                print(f"  {last} is followed by {current}", file=sys.stderr)


def java_path(name: str) -> str:
    """Return a path as ``java.io.File`` writes it: repeated and final slashes go, dots stay."""
    path = re.sub("/+", "/", name)
    return path[:-1] if len(path) > 1 and path.endswith("/") else path


def absolute(path: str) -> str:
    """Return the absolute path as ``File.getAbsolutePath`` does: nothing is resolved."""
    return path if path.startswith("/") else f"{Path.cwd()}/{path}"


def java_split(text: str) -> list[str]:
    """Split at commas as ``String.split`` does: empty parts at the end go; a text without a comma stays as it is."""
    parts = text.split(",")
    if len(parts) == 1:
        return parts
    while parts and not parts[-1]:
        parts.pop()
    return parts


def offset_in_name(path: str) -> int:
    """Return the number in front of the first dot of a file's name. Raises DamageError when there is none."""
    first = posixpath.basename(path).split(".")[0]
    if not re.fullmatch(r"[+-]?\d+", first, re.ASCII) or not -(1 << 63) <= int(first) < 1 << 63:
        raise DamageError("file name", f"{path}: the name does not begin with an offset", found=first)
    return int(first)


def _log(run: Classic, path: str) -> None:
    decoders = classic_decoders.find(run.dialect, run.options, run.print)
    run.print(run.dialect.starting_offset.format(offset=offset_in_name(path)))
    if run.options.max_bytes < 0:
        raise KdumpError(f"--max-bytes {run.options.max_bytes}: {path} cannot be cut to fewer than 0 bytes")
    classic_log.dump(run, path, decoders)


DUMP: Final[dict[str, Callable[[Classic, str], None]]] = {"log": _log}
