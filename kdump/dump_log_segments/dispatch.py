"""Dumps a list of files to the output of a run (:func:`dump_files`), each with the printer for its suffix."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

from kdump.dump_log_segments import decoder_classes, log_printer
from kdump.dump_log_segments.java_files import java_path, offset_in_name, snapshot_id
from kdump.errors import KdumpError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from kdump.dump_log_segments.run import DumpRun


def _log(run: DumpRun, path: str) -> None:
    _segment(run, path, lambda: run.dialect.starting_offset.format(offset=offset_in_name(path)))


def _checkpoint(run: DumpRun, path: str) -> None:
    def title() -> str:
        if posixpath.basename(path) == run.state.bootstrap_name:
            return run.state.bootstrap_title
        offset, epoch = snapshot_id(path)
        return run.state.checkpoint_title.format(offset=offset, epoch=epoch)

    _segment(run, path, title)


def _segment(run: DumpRun, path: str, title: Callable[[], str]) -> None:
    decoders = decoder_classes.find(run.dialect, run.options, run.print)
    run.print(title())
    if run.options.max_bytes < 0:
        raise KdumpError(f"--max-bytes {run.options.max_bytes} is below 0: nothing of {path} can be read")
    if run.dialect.message:
        from kdump.dump_log_segments import before_0_11

        before_0_11.dump(run, path, decoders)
    else:
        log_printer.dump(run, path, decoders)


def _indexes() -> ModuleType:
    from kdump.dump_log_segments import index_printer

    return index_printer


DUMP: Final[dict[str, Callable[[DumpRun, str], None]]] = {
    "log": _log,
    "index": lambda run, path: _indexes().dump_offset_index(run, path),
    "timeindex": lambda run, path: _indexes().dump_time_index(run, path),
    "txnindex": lambda run, path: _indexes().dump_txn_index(run, path),
    "snapshot": lambda run, path: _indexes().dump_snapshot(run, path),
    "checkpoint": _checkpoint,
}


def dump_files(run: DumpRun, files: list[str]) -> None:
    """Dump files in order, then print the reports of the run. The first error ends the run without reports."""
    if not run.dialect.decoders_made_per_log:
        decoder_classes.find(run.dialect, run.options, run.print)
    for name in files:
        dump_file(run, java_path(name))
    run.out.flush()
    run.report()


def dump_file(run: DumpRun, path: str) -> None:
    """Dump one file with the printer for its suffix. A release that lacks the suffix skips or reports the file.

    Raises UnreadableError also for a name without a dot, in releases in which such a name ends the run.
    """
    _, dot, suffix = posixpath.basename(path).rpartition(".")
    known = suffix in run.state.suffixes if dot else False
    if known or run.state.announces_unknown:
        run.print(f"Dumping {path}")
    if known:
        DUMP[suffix](run, path)
    elif not dot and run.state.needs_suffix:
        raise UnreadableError(path, "a file name without a dot does not show the type of the file")
    elif run.state.announces_unknown:
        run.complain(f"Ignoring unknown file {path}")
