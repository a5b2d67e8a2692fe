"""Permissions (modes) of outputs. A copy of log bytes is open to no more users than its source, if modes are known."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.log_dirs.local import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition

_GROUP, _OTHERS, _BITS = 0o070, 0o007, 3
_ACL: Final = "system.posix_acl_access"


class Access(NamedTuple):
    """The widest modes of an output's files and folders. The umask can only remove permissions.

    The group bits are for ``group`` (a gid; None: any group). If the user cannot give the output this group, the
    group of the output gets only the permissions of others.
    """

    file: int = 0o666
    folder: int = 0o777
    group: int | None = None

    def settle(self, descriptor: int, *, is_folder: bool) -> None:
        """Set the group and permissions of an open file or folder. The owner can read it, if the umask allows it."""
        mode = ((self.folder | 0o700) if is_folder else (self.file | 0o400)) & ~_umask()
        if self.group is not None and os.fstat(descriptor).st_gid != self.group:
            try:
                os.fchown(descriptor, -1, self.group)
            except OSError:
                mode = _group_as_others(mode)
        with suppress(OSError):  # a file system without modes (FAT): the mount decides
            os.fchmod(descriptor, mode)

    def without(self, other: Access) -> Access:
        """Return the permissions that both allow. If they name different groups, no group gets more than others."""
        if self.group == other.group:
            return Access(self.file & other.file, self.folder & other.folder, self.group)
        if self.group is None or other.group is None:
            group = other.group if self.group is None else self.group
            return Access(self.file & other.file, self.folder & other.folder, group)
        one, two = (Access(*map(_group_as_others, each[:2])) for each in (self, other))
        return Access(one.file & two.file, one.folder & two.folder)


ANY: Final = Access()
"""No limit except the umask."""


def of_sources(partitions: Iterable[Partition]) -> Access:
    """Return the file permissions that all segments allow, and the folder permissions that all local folders allow.

    If the groups differ, no group gets more than others. Members of an archive have the permissions of the archive
    file. Objects in a store, and files whose permissions cannot be read, limit nothing.
    """
    access = ANY
    for part in partitions:
        access = access.without(of_files((segment.files, segment.path) for segment in part.segments))
        if part.files is LOCAL:
            access = access.without(_of(part.files, part.folder))
    return access


def of_files(found: Iterable[tuple[Files, str]]) -> Access:
    access = ANY
    for files, path in found:
        access = access.without(_of(files, path))
    return access


def _of(files: Files, path: str) -> Access:
    """Return the permissions of a file or folder, or ANY if they are unknown."""
    place = path if files is LOCAL else getattr(files, "local", "")
    try:
        status = os.stat(place)  # noqa: PTH116  pathlib is slower, and there may be many segments
    except OSError:  # a file of another machine, or a deleted file, which cannot be copied
        return ANY
    mode = stat.S_IMODE(status.st_mode)
    if _has_acl(place):  # with an ACL the group bits are the mask of all its entries
        mode = _group_as_others(mode)
    if stat.S_ISDIR(status.st_mode):
        return Access(folder=mode & 0o777, group=status.st_gid)
    return Access(file=mode & 0o666, group=status.st_gid)


def _has_acl(path: str) -> bool:
    if not hasattr(os, "getxattr"):
        return False
    try:
        return bool(os.getxattr(path, _ACL))
    except OSError:
        return False


def _group_as_others(mode: int) -> int:
    return mode & (~_GROUP | (mode & _OTHERS) << _BITS)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
