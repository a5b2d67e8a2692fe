"""Copy bytes of local files into outputs by ``copy_file_range``.

This call clones data on Btrfs and XFS, and copies data inside the operating system elsewhere. If it fails, this process
reads and writes the bytes, so that an error of the disk names the file.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, BinaryIO, Final

from kdump.errors import UnreadableError
from kdump.output import files

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.log_dirs.local import LocalFile

AT_ONCE: Final = 32 << 20
"""Bytes of one system call. Progress is reported between calls."""
BLOCK: Final = 1 << 20
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def copy_range(
    source: LocalFile, position: int, size: int, target: BinaryIO, done: Callable[[int], None] = lambda _: None
) -> None:
    """Append ``size`` bytes of ``source`` to ``target``. ``done`` is called with the number of bytes of each step.

    Raises UnreadableError if the source ends early or cannot be read, OSError if the target cannot be written.
    """
    target.flush()
    end = position + size
    while position < end:
        copied = _by_system(source, position, min(AT_ONCE, end - position), target)
        if not copied:
            copied = _by_hand(source, position, min(BLOCK, end - position), target)
        position += copied
        done(copied)
        files.begin_flush(target)


def _by_system(source: LocalFile, position: int, size: int, target: BinaryIO) -> int:
    """Return the number of bytes that the system has copied; 0 if it cannot copy."""
    descriptor = source.descriptor
    if descriptor is None or not hasattr(os, "copy_file_range"):
        return 0
    try:
        return os.copy_file_range(descriptor, target.fileno(), size, offset_src=position)
    except OSError as reason:
        if reason.errno in _FULL:
            raise
        return 0


def _by_hand(source: LocalFile, position: int, size: int, target: BinaryIO) -> int:
    data = source.read(position, size)
    if not data:
        raise UnreadableError(source.name, f"it ends at byte {position}, but was longer when kdump read it first")
    target.write(data)
    target.flush()
    return len(data)
