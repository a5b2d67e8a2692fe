"""The output for indexes, producer snapshots and checkpoints by release, as data."""

from __future__ import annotations

from typing import Final, NamedTuple

from kdump.dump_log_segments.dialects import newest

MOST_ELEMENTS: Final = 1_000_000
"""The largest array that Kafka's generated classes read in 4.2.2 and from 4.4 on (MessageUtil.MAX_ARRAY_LENGTH)."""


class StateDialect(NamedTuple):
    """The output and the checks of consecutive releases, from ``since`` on. ``why`` is the change in the first one.

    ``snapshot`` is in the notation of :mod:`kdump.dump_log_segments.lines`; other texts are for ``str.format``.
    ``{path}`` is the path on the command line, ``{file}`` the path or name in reports.
    """

    since: tuple[int, ...]
    why: str

    suffixes: frozenset[str] = frozenset({"log", "index"})
    announces_unknown: bool = False
    """Whether a file with an unknown suffix is reported; otherwise it is skipped without a message."""
    needs_suffix: bool = False
    """Whether a file name without a dot ends the run."""

    log_up_to_first_dot: bool = False
    """Whether the log's path is the absolute path up to its first dot, even if the dot is in a folder's name (sic)."""
    empty_index: str = ""
    """The line for an .index without entries; "" if the release prints none."""
    names_first_offset: bool = True
    """Whether an .index entry must have the offset of the first record at its position; else the batch's last one."""
    stops_before_checks: bool = False
    """Whether a dump stops before the zeros after the last index entry; otherwise it checks them as an entry first."""
    slice_holds_batch: bool = False
    """Whether the batch of an entry must end within --max-message-size bytes; otherwise it must begin there."""
    sanity_above_base: bool = True
    """Whether the last offset of an .index must be above the base offset, not only equal."""
    mismatches_title: str = "Mismatches in :{file}"
    mismatches_by_offset: bool = False
    """Whether only the last mismatch of each offset is reported, highest offset first; otherwise all, last first."""
    missing_title: str = "The following indexed offsets are not found in the log."
    """The title of the list of .timeindex offsets that are in no batch."""
    warm_section: bool = False
    """Whether an index lookup searches the last 8 KiB first (KAFKA-6432). This matters if entries are not in order."""
    refuses_beyond_log: bool = False
    """Whether a .timeindex lookup past the end of the log ends the run; otherwise it finds no batch."""

    checkpoint_title: str = "Snapshot end offset: {offset}, epoch: {epoch}"
    bootstrap_name: str = "bootstrap.checkpoint"
    bootstrap_title: str = "KRaft bootstrap snapshot"

    time_index_reads_on: bool = False
    """Whether the log is read to its end for each .timeindex entry, so that any damage after it ends the run."""

    txn_version_as_stored: bool = False
    """Whether both bytes of an aborted transaction's version are checked; otherwise the upper one, which is printed."""

    snapshot: tuple[str, ...] = ()
    """The two parts of a producer's line; since 1.0 the second one describes the producer's last batch."""
    snapshot_needs_batch: bool = False
    """Whether the second part of a producer's line is printed only if its last batch is known."""
    snapshot_version_first: bool = False
    """Whether the version is checked before the other fields are parsed."""
    snapshot_faults_end_run: bool = False
    """Whether an unknown version and an invalid structure end the run; otherwise they are reported."""
    snapshot_crc: str = "Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}"
    snapshot_version: str = "Snapshot contained an unknown file version {version}"
    snapshot_cut: str = "Snapshot failed schema validation: Error reading field {field}"
    """The error of a truncated file; ``{field}`` is the field in which it ends."""
    snapshot_count: str = (
        "Snapshot failed schema validation: Error reading field 'producer_entries': "
        "Array size {count} cannot be negative"
    )
    snapshot_too_many: str = (
        "Snapshot failed schema validation: Error reading field 'producer_entries': Error reading array of size "
        "{count}, only {left} bytes available"
    )
    snapshot_too_long: str = ""
    """The error for more than :data:`MOST_ELEMENTS` producers; empty if the release has no limit."""


V0_8_0: Final = StateDialect(
    since=(0, 8, 0),
    why="offset indexes",
    log_up_to_first_dot=True,
)

V0_8_2: Final = V0_8_0._replace(
    since=(0, 8, 2), why="the log of an index is searched in the folder of the index", log_up_to_first_dot=False
)

V0_10_0: Final = V0_8_2._replace(
    since=(0, 10, 0), why="the run ends at an index entry of a message above --max-message-size", slice_holds_batch=True
)

V0_10_1: Final = V0_10_0._replace(
    since=(0, 10, 1), why="time indexes (KIP-33)", suffixes=V0_10_0.suffixes | {"timeindex"}
)

V0_11_0_0: Final = V0_10_1._replace(
    since=(0, 11, 0, 0),
    why="producer snapshots and aborted transactions (KIP-98); unknown files are reported",
    suffixes=V0_10_1.suffixes | {"txnindex", "snapshot"},
    announces_unknown=True,
    needs_suffix=True,
    snapshot=(
        "producerId: {producer_id} producerEpoch: {epoch} lastSequence: {last_sequence} lastOffset: {last_offset} "
        "offsetDelta: {offset_delta} lastTimestamp: {timestamp} coordinatorEpoch: {coordinator_epoch} "
        "currentTxnFirstOffset: {open_transaction:option}",
        "",
    ),
    snapshot_faults_end_run=True,
    snapshot_crc=(
        "Snapshot file '{path}' is corrupted (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}"
    ),
)

V0_11_0_1: Final = V0_11_0_0._replace(
    since=(0, 11, 0, 1),
    why="a broken producer snapshot is reported and skipped",
    snapshot_faults_end_run=False,
    snapshot_crc=V0_8_0.snapshot_crc,
)

V1_0_0: Final = V0_11_0_1._replace(
    since=(1, 0, 0),
    why="producer snapshots contain batches",
    snapshot=(
        "producerId: {producer_id} producerEpoch: {epoch} coordinatorEpoch: {coordinator_epoch} "
        "currentTxnFirstOffset: {open_transaction:option} cachedMetadata: ",
        "Queue(BatchMetadata(firstSeq={unwrapped_first_sequence}, lastSeq={last_sequence}, firstOffset={first_offset}, "
        "lastOffset={last_offset}, timestamp={timestamp}))",
    ),
)

V1_0_2: Final = V1_0_0._replace(
    since=(1, 0, 2),
    why="the last batch of a producer in words",
    snapshot=(
        "producerId: {producer_id} producerEpoch: {epoch} coordinatorEpoch: {coordinator_epoch} "
        "currentTxnFirstOffset: {open_transaction:option} ",
        "firstSequence: {unwrapped_first_sequence} lastSequence: {last_sequence} lastOffset: {last_offset} "
        "offsetDelta: {offset_delta} timestamp: {timestamp}",
    ),
)

V2_0: Final = V1_0_2._replace(since=(2, 0, 0), why="an index may hold its base offset", sanity_above_base=False)

V2_1: Final = V2_0._replace(
    since=(2, 1, 0),
    why="an index position past the end of the log ends the run; a warm section (KAFKA-6432)",
    refuses_beyond_log=True,
    warm_section=True,
)

V2_1_1: Final = V2_1._replace(
    since=(2, 1, 1),
    why="a producer's first sequence number wraps to 0",
    snapshot=(V2_1.snapshot[0], V2_1.snapshot[1].replace("{unwrapped_first_sequence}", "{first_sequence}")),
)

V2_3: Final = V2_1_1._replace(
    since=(2, 3, 0),
    why="index entries are compared with the last offset of a batch (KAFKA-7487)",
    names_first_offset=False,
    stops_before_checks=True,
)

V2_4_1: Final = V2_3._replace(since=(2, 4, 1), why="producers without a batch (KAFKA-9293)", snapshot_needs_batch=True)

V2_8: Final = V2_4_1._replace(since=(2, 8, 0), why="an empty index is reported", empty_index="{path} is empty.")

V3_1: Final = V2_8._replace(
    since=(3, 1, 0),
    why="lastTimestamp of a producer",
    snapshot=(V2_8.snapshot[0] + "lastTimestamp: {timestamp} ", V2_8.snapshot[1]),
)

V3_3: Final = V3_1._replace(
    since=(3, 3, 0),
    why=".checkpoint files",
    suffixes=V3_1.suffixes | {"checkpoint"},
)

V3_5: Final = V3_3._replace(
    since=(3, 5, 0),
    why="ProducerStateManager rewritten in Java",
    snapshot=(V3_3.snapshot[0].replace(":option}", ":optional}"), V3_3.snapshot[1]),
)

V4_0: Final = V3_5._replace(
    since=(4, 0, 0),
    why="producer snapshots are read by generated classes",
    snapshot_version_first=True,
    snapshot_version="Snapshot failed schema validation: Snapshot contained an unknown file version {version}",
    snapshot_cut="Snapshot failed schema validation: null",
    snapshot_count=("Snapshot failed schema validation: non-nullable field producerEntries was serialized as null"),
    snapshot_too_many=(
        "Snapshot failed schema validation: Tried to allocate a collection of size {count}, but there are only {left} "
        "bytes remaining."
    ),
)

V4_2_2: Final = V4_0._replace(
    since=(4, 2, 2),
    why="a limit for the producers of a snapshot (4.3 has no limit)",
    snapshot_too_long=(
        "Snapshot failed schema validation: Tried to read a collection of size {count}, which exceeds the maximum "
        "allowed size of 1000000."
    ),
)

V4_3: Final = V4_0._replace(
    since=(4, 3, 0),
    why="rewritten in Java (KAFKA-14579)",
    needs_suffix=False,
    mismatches_by_offset=True,
    time_index_reads_on=True,
    missing_title="The following indexed offsets are not found in :{file}",
    snapshot=(V4_0.snapshot[0].removesuffix(" "), " " + V4_0.snapshot[1]),
)

V4_4: Final = V4_3._replace(
    since=(4, 4, 0),
    why="aborted transactions are read by generated classes, which refuse unknown versions",
    txn_version_as_stored=True,
    snapshot_too_long=V4_2_2.snapshot_too_long,
)

DIALECTS: Final = (
    V0_8_0, V0_8_2, V0_10_0, V0_10_1, V0_11_0_0, V0_11_0_1, V1_0_0, V1_0_2, V2_0, V2_1, V2_1_1,
    V2_3, V2_4_1, V2_8, V3_1, V3_3, V3_5, V4_0, V4_2_2, V4_3, V4_4,
)  # fmt: skip

NEWEST: Final = DIALECTS[-1]


def find(text: str) -> StateDialect:
    """Return the dialect (output format) of release ``text``. Raises UsageError like :func:`newest`."""
    return newest(DIALECTS, text)
