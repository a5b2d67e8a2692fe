"""Publishes a prepared folder as the output of an export, and recovers after a killed run.

An export writes into a hidden folder (:meth:`~kdump.spark.export.output.Output.staging`). When all is written and
counted, a journal (:data:`COMMIT`) is added to the folder, and the folder is renamed to the output.

If rows are appended, the output has files of other programs, or the folder cannot be renamed atomically, the journal is
written to the output. It lists the files to remove and to add. Files are moved one by one, the manifest last. Programs
that read the files in the manifest see the complete old or new output; a replaced output has no manifest meanwhile.

The journal stays until the run has reported its result. The next run after a kill completes the commit if the output
has the journal or was moved away, and deletes the killed run's files otherwise.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kdump.errors import KdumpError
from kdump.spark.export.folder import NEW
from kdump.spark.export.output import DAMAGED, MANIFEST
from kdump.spark.failures import try_to

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from kdump.spark.export.folder import Folder
    from kdump.spark.export.output import Output

COMMIT: Final = "_commit.json"
COPIES: Final = 16
OLD: Final = ".old"
"""Suffix of the folder that keeps the old output while it is replaced."""
_FIELDS: Final = {"request", "run", "staging", "replaces", "removes", "moves"}
_NEVER_MOVED: Final = {MANIFEST, COMMIT}
_MARKS: Final = {MANIFEST, COMMIT, "_SUCCESS", f"{DAMAGED}/_SUCCESS"}

Commit: TypeAlias = dict[str, Any]
"""The commit of a run, as JSON: ``request`` (its settings), ``run`` (its manifest entry), ``staging`` (the folder's
name), ``replaces`` (whether the old output is deleted), ``removes`` and ``moves`` (paths; no moves for a rename).
"""


def written(runs: Iterable[dict[str, Any]]) -> list[str]:
    """Return the output files in the manifest entries of runs. Raises KeyError for an entry without files."""
    return [file["file"] for run in runs for file in run["output"]]


def publish(output: Output, staging: Output, commit: Commit, check: Callable[[], None]) -> None:
    """Publish the files and the manifest of the prepared folder ``staging``: by a rename, or file by file.

    ``check`` is called before the output changes, and raises if this run has lost its lock. The output is then
    unchanged. After a later error the output is unchanged, or the next run completes the commit.
    """
    try:
        names = [name for name in staging.files() if name not in _NEVER_MOVED]
        staging.flush([*names, MANIFEST])
        is_whole = _may_be_renamed(output, staging, commit)
        commit = {**commit, "moves": [] if is_whole else names}
        check()
        (staging if is_whole else output).write_text(COMMIT, json.dumps(commit))
        if is_whole:
            _make_place(output, _old(output, commit["staging"]))
    except BaseException:
        try_to(lambda: abandon(output, COMMIT, staging))
        raise
    if is_whole:
        _appear(output, staging, commit)
    else:
        _finish(output, staging, commit)


def abandon(output: Output, journal: str, staging: Folder) -> None:
    """Delete the files of a run after an error, unless the output has the ``journal``: the run is then committed."""
    if not output.exists(journal):
        output.delete(journal + NEW)  # first: the next run completes a journal with this name
        staging.delete()


def _may_be_renamed(output: Output, staging: Output, commit: Commit) -> bool:
    """Return whether an atomic rename can replace the output: no file of the output needs to stay."""
    if not output.renames_whole or staging.path.startswith(f"{output.path}/"):
        return False
    if not output.exists() or output.is_empty():
        return True
    return bool(commit["replaces"]) and not _strangers(output, commit["removes"])


def _strangers(folder: Folder, ours: Iterable[str]) -> list[str]:
    return sorted({*folder.files()} - {*ours} - _MARKS)


def _make_place(output: Output, old: Folder) -> None:
    if output.exists() and output.is_empty():
        output.delete_empty()
    elif output.exists():
        output.become(old)


def _appear(output: Output, staging: Output, commit: Commit) -> None:
    old = _old(output, commit["staging"])
    try:
        staging.become(output)
    except BaseException:
        if not old.exists():  # otherwise the next run completes the commit
            try_to(staging.delete)
        raise
    if old.exists():
        _clear(output, old, commit["removes"])


def _old(output: Output, name: str) -> Folder:
    return output.hidden(name + OLD)


def _clear(output: Output, old: Folder, removes: list[str]) -> None:
    """Delete the old output. Files that other programs added to it during the commit move to the new output."""
    move(output, old, _strangers(old, removes))
    old.delete()


def move(output: Output, staging: Folder, names: Collection[str]) -> None:
    """Move files to the output, unless they were moved before. In a store that copies, move COPIES at a time.

    There the files may stay in ``staging``, which the caller deletes.
    """
    output.make_parents(names)
    with ThreadPoolExecutor(1 if output.renames_whole else COPIES) as pool:
        try:
            list(pool.map(lambda name: output.take(staging, name), names))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _finish(output: Output, staging: Folder, commit: Commit) -> None:
    if staging.exists(MANIFEST):
        if commit["replaces"]:  # so that no reader takes the remaining files for a complete output
            output.delete(MANIFEST)
        for name in commit["removes"]:
            output.delete(name)
            output.prune(name.rpartition("/")[0])
        move(output, staging, commit["moves"])
        output.take_text(staging, MANIFEST, MANIFEST)
    staging.delete()


def recover(output: Output) -> Commit | None:
    """Complete and return the commit of a killed run, if there is one. Delete uncommitted files. Raises KdumpError."""
    for name in output.hidden_names():
        if name.endswith(OLD):
            _put_in_place(output, name.removesuffix(OLD))
    commit = _read(output)
    if commit is not None:
        _finish(output, output.hidden(commit["staging"]), commit)
    delete_hidden(output)
    return commit


def delete_hidden(output: Output) -> None:
    for name in output.hidden_names():
        output.hidden(name).delete()


def _put_in_place(output: Output, name: str) -> None:
    """Complete the replacement that a killed run began for an output, or undo it. Raises KdumpError."""
    old, staging = _old(output, name), output.hidden(name)
    if staging.exists():
        if output.exists():
            raise KdumpError(
                f"{output.path}: an export was killed while it replaced this output, and another program has created "
                f"{output.path} since then. Move it away, and export again. The old output is in {old.path}, the new "
                f"one in {staging.path}"
            )
        staging.become(output)
    elif not output.exists():
        old.become(output)
        return
    commit = _read(output)
    if commit is None:
        raise KdumpError(
            f"{old.path} is the old output of {output.path}, but the file {output.path}/{COMMIT} of the new output "
            f"is missing: move or delete {old.path}"
        )
    _clear(output, old, commit["removes"])


def _read(output: Output) -> Commit | None:
    if not output.settle(COMMIT):
        return None
    return output.read_json(COMMIT, _FIELDS)
