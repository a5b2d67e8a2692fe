"""What the files beside a log have of its end: how far it reached at least."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import UnreadableError
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import INDEX_NAME

if TYPE_CHECKING:
    from kdump.log_dirs.partition import Partition


def evidence_of(part: Partition) -> dict[str, int]:
    """Return the offset that each kind of file has the log reach to, by the file in words.

    Snapshots are taken at offsets that the log has reached (ProducerStateManager.takeSnapshot); an index file is named
    for the base offset of a segment; an epoch begins at an offset that was the log end (LeaderEpochFileCache.assign).
    """
    told: dict[str, int] = {}
    snapshots = [
        int(stem)
        for entry in part.others
        if entry.name.endswith(f".{file_names.PRODUCER_SNAPSHOT}")
        and (stem := entry.name.partition(".")[0]).isdecimal()
    ]
    if any(snapshots):
        told["producer snapshot"] = max(snapshots)
    bases = [int(found["offset"]) for entry in part.others if (found := INDEX_NAME.fullmatch(entry.name))]
    if any(bases):
        told["index file"] = max(bases)
    try:
        epochs = part.leader_epochs(lambda _: None)
    except UnreadableError:  # the check of the file reports both
        return told
    if epochs and epochs[-1].start_offset > 0:
        told["leader epochs"] = epochs[-1].start_offset
    return told
