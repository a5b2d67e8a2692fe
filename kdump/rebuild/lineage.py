"""The leader epochs of the lost cluster, which decide whose batch counts at an offset.

After an election with a higher epoch followers truncate their logs to that of the new leader (KIP-101, KIP-279). So the
copy with the newest leader epoch has the history. A batch of another copy belongs to the history if it has the
history's epoch at its offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.formats.leader_epoch import EpochEntry
from kdump.log_salvage.epoch_history import EpochHistory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.rebuild.copy_scan import ScannedCopy


def history(scanned: ScannedCopy, noted: Sequence[EpochEntry]) -> EpochHistory:
    """Return the history of a copy: its batches, and the entries of its checkpoint that they do not contradict."""
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
