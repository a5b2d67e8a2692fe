"""Parses paths and file names as DumpLogSegments does, and reads index files and snapshots."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, TypeVar

from kdump.errors import UnreadableError
from kdump.log_dirs.files import read_whole
from kdump.log_dirs.local import LocalFile
from kdump.primitives.encodings import java_integer
from kdump.primitives.wire import INT32_MAX

if TYPE_CHECKING:
    from kdump.dump_log_segments.dialects.segments import Dialect

    Found = TypeVar("Found")


def java_path(name: str) -> str:
    """Return a path as ``java.io.File`` does: without repeated and final slashes; ``.`` and ``..`` stay."""
    while "//" in name:
        name = name.replace("//", "/")
    return name[:-1] if len(name) > 1 and name.endswith("/") else name


def absolute(path: str) -> str:
    """Return a path as ``File.getAbsolutePath`` does. Links and ``..`` are not resolved."""
    return posixpath.join(os.getcwd(), path)  # noqa: PTH109  pathlib is slow to import


def by_file(dialect: Dialect, report: dict[str, list[Found]]) -> list[tuple[str, list[Found]]]:
    """Return (path or name of the file, entries) pairs of a report, in the order of the release's hash map."""
    merged: dict[str, list[Found]] = {}
    for path, found in report.items():
        file = posixpath.basename(path) if dialect.reports_by_name else absolute(path)
        merged.setdefault(file, []).extend(found)
    puts = [file for file, found in merged.items() for _ in found]
    return [(file, merged[file]) for file in dialect.file_order(puts)]


def java_split(text: str) -> list[str]:
    """Split at commas like ``String.split``: empty parts at the end are dropped, unless the text has no comma."""
    parts = text.split(",")
    if len(parts) == 1:
        return parts
    while parts and not parts[-1]:
        parts.pop()
    return parts


def offset_in_name(path: str) -> int:
    """Return the number before the first dot of a file name. Raises UnreadableError if there is none."""
    return number(path, path.rpartition("/")[2].partition(".")[0], 64)


def sibling(path: str, suffix: str) -> str:
    """Return ``path`` with ``suffix`` instead of everything after the first dot of the file name."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f"{name.split('.')[0]}.{suffix}")


def snapshot_id(path: str) -> tuple[int, int]:
    """Return the end offset and epoch in the file name of a metadata snapshot. Raises UnreadableError."""
    name = posixpath.basename(path)
    return number(path, name[:20] if len(name) >= 20 else "", 64), number(path, name[21:31], 32)


def number(path: str, text: str, bits: int) -> int:
    """Return the number in ``text``, a part of the file name of ``path``. Raises UnreadableError."""
    found = java_integer(text, bits)
    if found is None:
        raise UnreadableError(
            path,
            f"the file name has {text!r} where an offset or an epoch is expected",
            "name it as the broker did, such as 00000000000000000000.log; kdump dump reads a segment of any name",
        )
    return found


def content(path: str) -> bytes:
    """Return the bytes of a file. Raises UnreadableError, also for a missing index, and for 2 GiB or more."""
    with LocalFile(path) as file:
        if file.size > INT32_MAX:
            raise UnreadableError(
                path, f"has {file.size} bytes: indexes and snapshots of a broker have less than 2 GiB"
            )
        return read_whole(file)
