"""The whole content of a file that Java maps into memory, or reads at once."""

from __future__ import annotations

from kdump.errors import UnreadableError
from kdump.log_dirs.files import read_whole
from kdump.log_dirs.local import LocalFile
from kdump.primitives.wire import INT32_MAX


def content(path: str) -> bytes:
    """Return the bytes of a file. It is never created, as the original does with a missing index.

    Raises UnreadableError, also for a file that Java could not map or hold.
    """
    with LocalFile(path) as file:
        if file.size > INT32_MAX:
            raise UnreadableError(path, f"has {file.size} bytes, and no broker writes such a file of 2 GiB or more")
        return read_whole(file)
