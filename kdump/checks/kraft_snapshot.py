"""Checks the snapshots of the metadata log (``.checkpoint``): the content (:func:`check`), and gaps before the log.

The name has the end offset and the epoch. Offsets in the file begin at 0. The first batch is a control batch that
begins with SNAPSHOT_HEADER. The last batch ends with SNAPSHOT_FOOTER. A node renames a snapshot to its final name when
it is complete, so a truncated snapshot is damaged. Source: KIP-630; Snapshots, RecordsSnapshotReader (3.0).
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.checks.log import GapLimits, LogCheck
from kdump.errors import DamageError, many
from kdump.findings import Finding, Level, remark
from kdump.findings.codes import Code
from kdump.internal_topics import CLUSTER_METADATA
from kdump.log_dirs.file_names import BOOTSTRAP_SNAPSHOT, KRAFT_SNAPSHOT_NAME, snapshot_id
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.records import control
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments import resync
from kdump.segments.regions import Padding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.log_dirs.files import Files
    from kdump.segments.regions import Region

ADVICE: Final = (
    "Stop the node. Replace the file with the snapshot of another controller, or move it away. "
    "Without it the node begins with an older snapshot, and needs the log from the end of that snapshot on."
)


class Snapshot(NamedTuple):
    """A snapshot. Its name has the end offset and the epoch: None for other names, and for an unchecked copy."""

    name: str
    end_offset: int | None
    epoch: int | None
    batches: int
    size: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether its name has an end offset, and its findings are only remarks. A record may need a newer release."""
        return self.end_offset is not None and all(finding.is_remark for finding in self.findings)


def check(
    files: Files, path: str, *, records: bool = True, limit: int = DEFAULT_LIMIT, copies: bool = False
) -> Snapshot:
    """Check a snapshot, and with ``records`` its records. ``limit``: largest batch in bytes. Raises UnreadableError.

    A file whose name has more text than a snapshot's is a copy, which no node reads: checked only with ``copies``.
    """
    shown, name = files.shown(path), posixpath.basename(path)
    named = KRAFT_SNAPSHOT_NAME.fullmatch(name)
    findings: list[Finding] = []
    end_offset, epoch = snapshot_id(name) or (None, None)
    if named is None and name != BOOTSTRAP_SNAPSHOT:
        if epoch is not None and not copies:
            text = "kdump did not check this file: a node does not read a snapshot of this name, which may be a copy"
            return Snapshot(shown, None, None, 0, 0, (remark(shown, Code.NAME, text),))
        if epoch is None:
            text = "the name of the snapshot has no end offset and epoch"
            findings.append(_wrong(shown, Code.NAME, text, None, _NAMES))
    log = LogCheck(records=records, topic=CLUSTER_METADATA, gaps=GapLimits(cleaned=False))
    first: RecordBatch | None = None
    last: Region | None = None
    others = 0
    with files.open(path) as source:
        source.limit = limit
        size = source.size
        log.begin(shown, 0, active=True)
        for region in resync.read(source, on_error="resync", first_offset=0):
            if isinstance(region, RecordBatch):
                log.add(region)
                first = first or region
                others += epoch is not None and region.partition_leader_epoch != epoch
            elif not isinstance(region, Batches):
                resync.raise_above_limit(source, region)
                log.end(region)
            last = region
        findings += [*log.findings, *log.finish()]
        findings = [finding if finding.is_remark else finding._replace(advice=ADVICE) for finding in findings]
        findings += _frame(shown, size, first, last)
    if others:
        text = f"the leader epoch of {many(others, 'batch', 'batches')} differs from the epoch in the snapshot's name"
        findings.append(_wrong(shown, Code.LEADER_EPOCH, text, None, f"{epoch} in each batch"))
    return Snapshot(shown, end_offset, epoch, log.batches, size, tuple(findings))


_NAMES: Final = "a name such as 00000000000000000077-0000000001.checkpoint"


def _frame(file: str, size: int, first: RecordBatch | None, last: Region | None) -> Iterator[Finding]:
    if first is None or first.position or _type(first) != control.SNAPSHOT_HEADER:
        text = "the snapshot does not begin with a snapshot header" if size else "the snapshot is empty"
        yield _wrong(file, Code.SNAPSHOT_HEADER, text, 0, "a control record SNAPSHOT_HEADER")
    if isinstance(last, Padding):
        text = f"{last} follow the last batch, but a node writes nothing after it"
        yield _wrong(file, Code.SNAPSHOT_FOOTER, text, last.position, "the end of the file")
    elif size and (not isinstance(last, RecordBatch) or _type(last, last=True) != control.SNAPSHOT_FOOTER):
        text = "the snapshot does not end with a snapshot footer: its last bytes are missing or unreadable"
        position = last.position if last is not None else 0
        yield _wrong(file, Code.SNAPSHOT_FOOTER, text, position, "a control record SNAPSHOT_FOOTER")


def _type(batch: RecordBatch, *, last: bool = False) -> int | None:
    """Return the type of the first (or ``last``) record of a control batch; None if unreadable or for other batches."""
    if not batch.is_control:
        return None
    wanted = None
    try:
        for record in batch.records():  # not as a list: a batch may have millions of records
            if last or wanted is None:
                wanted = record
        return None if wanted is None else control.read_key(wanted.key).type
    except DamageError:
        return None


def _wrong(file: str, kind: str, text: str, position: int | None, expected: str) -> Finding:
    return Finding(
        level=Level.LOG,
        file=file,
        kind=kind,
        text=text,
        position=position,
        expected=expected,
        advice=ADVICE,
    )


def against_log(folder: str, snapshots: Iterable[Snapshot], log_start: int, log_end: int | None) -> Iterator[Finding]:
    """Yield the findings on a gap before the log, or a snapshot past its end. ``log_end``: None without a log."""
    found = list(snapshots)
    newest = max((each.end_offset for each in found if each.end_offset is not None), default=None)
    sound = max((each.end_offset for each in found if each.sound and each.end_offset is not None), default=None)
    if log_start > 0 and (sound is None or sound < log_start):
        yield Finding(
            level=Level.LOG,
            file=folder,
            kind=Code.SNAPSHOT,
            text=f"the metadata log begins at offset {log_start}, but no valid snapshot reaches this offset: the node "
            "lacks the metadata before it",
            offset=log_start,
            expected=f"a snapshot that ends at offset {log_start} or above",
            found="none" if sound is None else sound,
            advice="Do not delete anything here: copy the newest snapshot of another controller into this folder.",
        )
    if newest is not None and log_end is not None and newest > log_end:
        text = (
            f"the newest snapshot ends at offset {newest}, and the log at {log_end}: "
            "a node deletes the log when it starts, and continues from the snapshot"
        )
        yield remark(folder, Code.SNAPSHOT, text, offset=newest)
