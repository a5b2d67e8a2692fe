"""Makes shell commands that repair, copy or compare log dirs. kdump only prints them."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from kdump.errors import UnreadableError
from kdump.findings import labelled, salvage_output
from kdump.log_dirs import file_names
from kdump.log_dirs.finder import is_made_from
from kdump.log_dirs.local import LOCAL
from kdump.primitives.terminal import path_text, shell_path, shell_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

_FOLDER: Final = r".+-[0-9]{1,10}(?:\.[0-9a-f]{32}-(?:delete|future|stray))?"


def aside(path: str) -> str:
    """Return the shell command that moves ``path``, which is in a log dir, to a folder :func:`beside` the log dir.

    A file of a partition goes to ``files/TOPIC-PARTITION`` there. A later command can then move the whole folder.
    """
    folder, name = posixpath.split(posixpath.normpath(path))
    is_inside = re.fullmatch(_FOLDER, posixpath.basename(folder)) is not None
    log_dir, inside = posixpath.split(folder) if is_inside and re.fullmatch(_FOLDER, name) is None else (folder, "")
    inside = posixpath.join("files", inside) if inside else ""
    target = posixpath.join(beside(log_dir, file_names.ASIDE, posixpath.join(inside, name)), inside, "")
    return f"mkdir -p {shell_path(target)} && mv {shell_path(path)} {shell_path(target)}"


def replaced(folder: str) -> str:
    """Return the shell command that puts a salvaged copy, if there is one, in the place of a partition folder."""
    copy = shell_path(posixpath.join(salvage_output(), "logs", posixpath.basename(posixpath.normpath(folder))))
    return in_turn([f"[ -d {copy} ]", aside(folder), f"cp -a {copy} {shell_path(folder)}"])


def compared(log_dirs: Iterable[str], topic: str) -> str:
    """Return the shell command that compares the copies of a topic in two log dirs."""
    return f"kdump diff {' '.join(map(shell_path, log_dirs))} --topic {shell_pattern(topic)}"


def beside(log_dir: str, suffix: str, new: str = "") -> str:
    """Return the path next to a log dir with ``suffix`` after its name, and a number before it if the path is taken.

    It is also taken if it has ``new``, the path of a file or folder that a command moves there.
    """
    is_named = posixpath.basename(posixpath.normpath(log_dir)) not in {"", ".", ".."}
    stem = posixpath.normpath(log_dir) if is_named else posixpath.abspath(log_dir)
    path = f"{stem}{suffix}"
    number = 1
    while _is_taken(path, log_dir, suffix) or (new and _exists(posixpath.join(path, new))):
        number += 1
        path = f"{stem}.{number}{suffix}"
    return path


def _is_taken(path: str, log_dir: str, suffix: str) -> bool:
    """Return whether a path exists that the commands for a log dir must not change or take for its copy."""
    if not _exists(path):
        return False
    if suffix == file_names.REBUILT:  # kdump rebuild-cluster writes no second time to it
        return True
    try:
        is_unused = suffix == file_names.COPY and not LOCAL.entries(path)
    except UnreadableError:
        return True
    return is_unused or not is_made_from(path, log_dir, LOCAL)


def _exists(path: str) -> bool:
    try:
        return LOCAL.look(path) is not None
    except UnreadableError:  # the command fails, too
        return False


def copied(log_dir: str, size: int | None, label: str = "") -> str:
    """Return the shell command that copies a log dir to a folder :func:`beside` it, unless that exists.

    ``size``: the number of bytes of its logs; None if it is unknown. ``label``: the condition of the copy, if any.
    """
    path = beside(log_dir, file_names.COPY)
    target, part = shell_path(path), shell_path(path + file_names.COPY_PART.removeprefix(file_names.COPY))
    of_size = "" if size is None else f" ({(size >> 20) + 1:,} MiB of log)"
    kept = f"; {path_text(path)} exists and is kept: if a broker has started since that copy, move it away first"
    label = label or f"first copy {path_text(log_dir)}{of_size}"
    whole = in_turn([f"cp -a {shell_path(posixpath.join(log_dir, '.'))} {part}", f"mv {part} {target}"])
    return labelled(f"{label}{kept if _exists(path) else ''}", f"[ -e {target} ] || {{ {whole}; }}")


def in_turn(commands: Iterable[str]) -> str:
    return " && ".join(commands)


def swaps_aside(path: str) -> str:
    """Return the shell command that moves a ``.log.swap`` file and the index ``.swap`` files of its base offset.

    Other files are moved alone. If only the ``.log.swap`` were moved, a start would use the index ``.swap`` files.
    """
    stem = path.removesuffix(f".{file_names.LOG}.{file_names.SWAP}")
    return aside(path) if stem == path else aside(path).replace(shell_path(path), f"{shell_path(stem)}.*.swap")


def metadata_command(folder: str, topic_id: str, *, exists: bool) -> str:
    """Return the shell command that writes ``partition.metadata`` into a folder; ``topic_id`` is in base64."""
    path = posixpath.join(folder, file_names.PARTITION_METADATA)
    return written(f"printf 'version: 0\\ntopic_id: %s' {topic_id}", path, exists=exists)


def written(command: str, path: str, *, exists: bool) -> str:
    """Return the shell command that writes the output of ``command`` to a file. If it ``exists``, it is moved first."""
    write = f"{command} > {shell_path(path)}"
    return in_turn([aside(path), write]) if exists else write
