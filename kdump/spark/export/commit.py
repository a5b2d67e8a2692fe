"""How what was prepared beside an output becomes the output, and what the next run does where one was killed.

An export writes into a hidden folder beside its output (:meth:`~kdump.spark.export.output.Output.staging`). When all is
written and counted, an output that is not there yet, or that is written again as a whole, appears by renaming that
folder, manifest and all. Where files of others stand in it, where rows are appended, and where a file system has no
such rename, a journal in the output names each file that goes and each that comes; they are moved one by one, the
manifest last. It names the files of the output: the caller that reads those sees the old output or the new one, at any
moment.

The journal (:data:`COMMIT`) stays until the run has told what it did. So the next run knows what a killed one has
committed: it does what is left of that, and deletes what had not come so far.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kdump.errors import KdumpError
from kdump.spark.export.output import DAMAGED, MANIFEST
from kdump.spark.failures import try_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kdump.spark.export.folder import Folder
    from kdump.spark.export.output import Output

COMMIT: Final = "_commit.json"
OLD: Final = ".old"
"""Behind the name of the folder in which an output waits while another one takes its place."""
_FIELDS: Final = {"request", "run", "staging", "replaces", "removes", "moves"}
_NEVER_MOVED: Final = {MANIFEST, COMMIT}
_MARKS: Final = {MANIFEST, COMMIT, "_SUCCESS", f"{DAMAGED}/_SUCCESS"}

Commit: TypeAlias = dict[str, Any]
"""What a run has committed: its ``request`` and its account (``run``), the name of its ``staging`` folder, whether it
``replaces`` what was there, and the files that it ``removes`` and ``moves``."""


def written(runs: Iterable[dict[str, Any]]) -> list[str]:
    """Return the files that the accounts of runs name as theirs.

    Raises KeyError for a run of a kdump that did not name them.
    """
    return [file["file"] for run in runs for file in run["output"]]


def publish(output: Output, staging: Output, commit: Commit, check: Callable[[], None]) -> None:
    """Let a prepared folder, with its manifest, become the output or a part of it.

    ``check`` is called before anything is seen, and raises where the output must not be touched any more. An error
    before that leaves the output as it was; after it, the next run does the rest.
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
        try_to(lambda: None if output.exists(COMMIT) else staging.delete())
        raise
    if is_whole:
        _appear(output, staging, commit)
    else:
        _finish(output, staging, commit)


def _may_be_renamed(output: Output, staging: Output, commit: Commit) -> bool:
    """Return whether the whole folder can take the output's place: nothing that must stay stands there."""
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
        if not old.exists():  # else the next run goes on: nothing of the old output is there any more
            try_to(staging.delete)
        raise
    if old.exists():
        _clear(output, old, commit["removes"])


def _old(output: Output, name: str) -> Folder:
    return output.hidden(name + OLD)


def _clear(output: Output, old: Folder, removes: list[str]) -> None:
    """Delete an old output. What has come into it at the last moment goes into the new one."""
    for name in _strangers(old, removes):
        output.take(old, name)
    old.delete()


def move(output: Output, staging: Folder, names: Iterable[str]) -> None:
    """Move files into their places, as far as they are not there."""
    for name in names:
        output.take(staging, name)


def _finish(output: Output, staging: Folder, commit: Commit) -> None:
    """Do what a commit says, as far as it is not done. Its last act is to take the manifest over."""
    if staging.exists(MANIFEST):
        if commit["replaces"]:  # without a manifest no process takes for whole what is left
            output.delete(MANIFEST)
        for name in commit["removes"]:
            output.delete(name)
            output.prune(name.rpartition("/")[0])
        move(output, staging, commit["moves"])
        output.take_text(staging, MANIFEST)
    staging.delete()


def recover(output: Output) -> Commit | None:
    """Finish what a run that was killed had committed, delete what another one had not; return that commit.

    None if there was none, and where its run had ended. Raises KdumpError where what it needs is gone.
    """
    for name in output.hidden_names():
        if name.endswith(OLD):
            _put_in_place(output, name.removesuffix(OLD))
    commit = _read(output)
    if commit is not None:
        _finish(output, output.hidden(commit["staging"]), commit)
    clear(output)
    return commit


def clear(output: Output) -> None:
    """Delete what runs that were killed have prepared and not committed."""
    for name in output.hidden_names():
        output.hidden(name).delete()


def _put_in_place(output: Output, name: str) -> None:
    """Go on where a run was killed between the two renames that put a new output in the place of an old one."""
    old, staging = _old(output, name), output.hidden(name)
    if staging.exists():
        if output.exists():
            raise KdumpError(
                f"{output.path}: an export that was killed was to put {staging.path} in its place and had moved it to "
                f"{old.path}; since then somebody else has made {output.path}: move or delete one of them"
            )
        staging.become(output)
    elif not output.exists():
        old.become(output)
        return
    commit = _read(output)
    if commit is None:
        raise KdumpError(f"{old.path} holds an output that was replaced, and nothing says by what: move or delete it")
    _clear(output, old, commit["removes"])


def _read(output: Output) -> Commit | None:
    name = output.text_name(COMMIT)
    if name is None:
        return None
    try:
        commit: Commit = json.loads(output.read_text(name))
        if not commit.keys() >= _FIELDS:
            raise KeyError("a field is missing")
    except (ValueError, KeyError, AttributeError) as reason:
        if name != COMMIT:  # it was being written: nothing had been committed
            output.delete(name)
            return None
        raise KdumpError(f"{output.path}/{name} is not one of kdump's: {reason}") from reason
    return commit
