"""The files of one log dir, listed once; it may be missing, or a file."""

from __future__ import annotations

import posixpath
from functools import cached_property
from typing import TYPE_CHECKING

from kdump.log_dirs.files import read_file
from kdump.log_dirs.local import LOCAL

if TYPE_CHECKING:
    from kdump.log_dirs.files import Entry, Files


class LogDirFiles:
    """A log dir at ``path`` of a place. ``name`` is how it was given."""

    def __init__(self, files: Files, path: str) -> None:
        self.files, self.path = files, path
        self.name = files.shown(path) if path else "."

    @cached_property
    def _found(self) -> Entry | None:
        return self.files.look(self.path or ("." if self.files is LOCAL else ""))

    @property
    def exists(self) -> bool:
        """Whether there is anything of the name. Raises UnreadableError."""
        return self._found is not None

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self._found is not None and self._found.is_folder

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """What it holds, by name. Raises UnreadableError."""
        if not self.is_folder:
            return {}
        return {entry.name: entry for entry in self.files.entries(self.path or ".")}

    def entry(self, name: str) -> Entry | None:
        """Return the entry ``name`` of the log dir, or None. Raises UnreadableError."""
        return self.entries.get(name)

    def shown(self, name: str) -> str:
        """Return the path of something in it, as messages have it."""
        return self.files.shown(posixpath.join(self.path, name))

    def read(self, name: str) -> bytes:
        """Return the content of a file in it. Raises UnreadableError."""
        return read_file(self.files, self.entries[name].path)

    def is_dangling(self, entry: Entry) -> bool:
        """Return whether an entry is a broken link."""
        return not entry.is_folder and not entry.size and self.files.look(entry.path) is None
