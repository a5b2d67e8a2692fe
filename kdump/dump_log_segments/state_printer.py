"""Aborted transactions and producer snapshots as DumpLogSegments prints them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from kdump.dump_log_segments.dialects.state import MOST_ELEMENTS
from kdump.dump_log_segments.java_files import content, offset_in_name
from kdump.dump_log_segments.lines import line
from kdump.errors import DamageError, UnreadableError
from kdump.formats import producer_snapshot, txn_index

if TYPE_CHECKING:
    from kdump.dump_log_segments.run import DumpRun
    from kdump.formats.producer_snapshot import SnapshotParts

ABORTED_TXN: Final = (
    "version: {version} producerId: {producer_id} firstOffset: {first_offset} lastOffset: {last_offset} "
    "lastStableOffset: {last_stable_offset}"
)


def dump_txn_index(run: DumpRun, path: str) -> None:
    """Print a ``.txnindex``. A missing one counts as empty."""
    offset_in_name(path)
    try:
        data = content(path)
    except UnreadableError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return
        raise
    aborted = list(txn_index.entries(data))  # the original too reads all of them before it prints the first
    for number, entry in enumerate(aborted):
        version = entry.version if run.state.txn_version_as_stored else entry.shown_version
        if version > txn_index.CURRENT_VERSION or (run.state.txn_version_as_stored and version < 0):
            raise DamageError(
                "version",
                f"{path}: an aborted transaction has an unknown version",
                position=number * txn_index.ABORTED_TXN.size,
                expected=txn_index.CURRENT_VERSION,
                found=version,
            )
    for entry in aborted:
        run.print(ABORTED_TXN.format(**{**entry._asdict(), "version": entry.shown_version}))


def dump_snapshot(run: DumpRun, path: str) -> None:
    """Print the producers of a ``.snapshot``; a broken one is reported, and in one release ends the run."""
    parts = producer_snapshot.inspect(content(path))
    state = run.state
    fault = _structure_fault(run, parts)
    if fault is not None:
        if state.snapshot_faults_end_run:
            raise DamageError("snapshot", f"{path}: {fault}")
        run.complain(fault)
        return
    if parts.crc != parts.computed_crc:
        run.complain(state.snapshot_crc.format(path=path, stored=parts.crc, computed=parts.computed_crc))
        return
    always, of_batch = (line(text) for text in state.snapshot)
    for entry in parts.entries:
        value = partial(getattr, entry)
        with_batch = entry.has_batch or not state.snapshot_needs_batch
        run.print(always.render(value) + (of_batch.render(value) if with_batch else ""))


def _structure_fault(run: DumpRun, parts: SnapshotParts) -> str | None:
    """Return the release's error on a snapshot's version and structure, or None if they are valid."""
    state = run.state
    version = None
    if parts.version is not None and parts.version != producer_snapshot.VERSION:
        version = state.snapshot_version.format(version=parts.version)
    cut = None
    if parts.announced is not None and parts.announced < 0:
        cut = state.snapshot_count.format(count=parts.announced)
    elif parts.announced is not None and parts.announced > parts.room:
        cut = state.snapshot_too_many.format(count=parts.announced, left=parts.room)
    elif parts.announced is not None and parts.announced > MOST_ELEMENTS and state.snapshot_too_long:
        cut = state.snapshot_too_long.format(count=parts.announced)
    elif parts.cut_in is not None:
        field = f"'{parts.cut_in}': java.nio.BufferUnderflowException"
        if parts.announced is not None:
            field = f"'producer_entries': Error reading field {field}"
        cut = state.snapshot_cut.format(field=field)
    return (version or cut) if state.snapshot_version_first else (cut or version)
