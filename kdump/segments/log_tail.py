"""The one policy for a truncated batch at the end of a segment, with its sentence.

=========================  ================  ========================  ======================================
``.kafka_cleanshutdown``   newest segment    a broker holds the lock   the truncated batch is
=========================  ================  ========================  ======================================
any                        no                any                       damage: a later segment goes on
there                      yes               any                       damage: a clean stop leaves whole batches
absent                     yes               no                        damage: the stop, or a copy, truncated it
absent                     yes               yes                       no damage: the broker is writing it
=========================  ================  ========================  ======================================

A broker locks the file ``.lock`` of each of its log dirs as long as it runs (Kafka's classes LogManager and FileLock).
The lock can be seen on the broker's own machine alone: in a copy, an archive or an object store the batch is damage.
"""

from __future__ import annotations

import errno
import os
import posixpath
from typing import TYPE_CHECKING, NamedTuple

from kdump.errors import UnreadableError
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import SEGMENT_NAME
from kdump.log_dirs.local import LOCAL

if TYPE_CHECKING:
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Segment
    from kdump.segments.regions import Trailing


class Tail(NamedTuple):
    """A truncated batch: whether it is damage, and the sentence of every command."""

    is_damage: bool
    text: str


def tail(segment: Segment | None, region: Trailing) -> Tail:
    """Return what a truncated batch at the end of a segment is; without a segment it is damage."""
    if segment is not None and is_being_written(segment):
        return Tail(False, f"{region}: a broker is writing it")
    return Tail(True, f"{region}: truncated, or copied while it was written")


def is_being_written(segment: Segment) -> bool:
    """Tell whether a running broker may append to a segment: it is the newest, and the log dir is locked."""
    return is_written_at(segment.files, segment.path)


def is_written_at(files: Files, path: str) -> bool:
    """Tell whether a running broker may append to the segment at a path: see :func:`is_being_written`."""
    if files is not LOCAL:
        return False
    folder, name = posixpath.split(posixpath.abspath(path))
    log_dir = posixpath.dirname(folder)
    try:
        if LOCAL.look(posixpath.join(log_dir, file_names.CLEAN_SHUTDOWN)) is not None or not is_locked(log_dir):
            return False
        names = [SEGMENT_NAME.fullmatch(entry.name) for entry in LOCAL.entries(folder)]
    except UnreadableError:
        return False
    own = SEGMENT_NAME.fullmatch(name)
    logs = [int(each["offset"]) for each in names if each is not None and each["state"] is None]
    return own is not None and own["state"] is None and int(own["offset"]) >= max(logs, default=0)


def is_locked(log_dir: str) -> bool:
    """Tell whether a process on this machine holds the lock of a log dir. No lock is taken for it."""
    if not hasattr(os, "lockf"):
        return False
    try:
        handle = os.open(posixpath.join(log_dir, file_names.LOCK), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.lockf(handle, os.F_TEST, 0)
    except OSError as error:
        return error.errno in {errno.EACCES, errno.EAGAIN}
    finally:
        os.close(handle)
    return False
