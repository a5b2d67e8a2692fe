"""The leader epochs that the lost cluster went on with: which copy's batches count at an offset.

After an election under a higher epoch the new leader's log counts, and followers truncate theirs to it (KIP-101,
KIP-279). So of all copies the one with the newest leader epoch shows the history; a batch of another copy belongs to it
where it has the epoch of that history at its offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.formats.leader_epoch import EpochEntry
from kdump.log_salvage.epoch_history import EpochHistory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.rebuild.copy_scan import ScannedCopy


def history(scanned: ScannedCopy, noted: Sequence[EpochEntry]) -> EpochHistory:
    """Return a copy's history: its checkpoint as far as its batches do not contradict it, and its batches."""
    spans = [span for span in scanned.spans if span.epoch >= 0]
    believed = [
        entry
        for entry in noted
        if not any(span.last_offset >= entry.start_offset and span.epoch < entry.epoch for span in spans)
    ]
    known = {entry.epoch for entry in believed}
    made: list[EpochEntry] = []
    for span in spans:
        if not made or span.epoch > made[-1].epoch:
            made.append(EpochEntry(span.epoch, span.base_offset))
    return EpochHistory([*believed, *(entry for entry in made if entry.epoch not in known)])
