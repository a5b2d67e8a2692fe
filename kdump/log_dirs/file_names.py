"""The names of Kafka's files and folders in a log dir. Each release below is the first that writes the name.

Sources: LogFileUtils, UnifiedLog, LocalLog and LogManager, raft's Snapshots and FileQuorumStateStore.
"""

import posixpath
import re
from functools import lru_cache, partial
from sys import intern
from typing import Final, NamedTuple

from kdump.primitives.encodings import java_integer

LOG: Final = "log"
INDEX: Final = "index"
TIME_INDEX: Final = "timeindex"
TXN_INDEX: Final = "txnindex"
PRODUCER_SNAPSHOT: Final = "snapshot"
KRAFT_SNAPSHOT: Final = "checkpoint"
PREALLOCATED: Final = (INDEX, TIME_INDEX)
"""The suffixes of files that end in zeros while a broker writes them."""
INDEXES: Final = (*PREALLOCATED, TXN_INDEX)
SIBLINGS: Final = (*INDEXES, PRODUCER_SNAPSHOT)
"""The suffixes of the files beside a segment."""

DELETED: Final = "deleted"
CLEANED: Final = "cleaned"
SWAP: Final = "swap"
PART: Final = "part"
TMP: Final = "tmp"
"""DELETED to TMP: suffixes of files that a broker later renames or deletes (since 0.8.1; for KRaft snapshots 2.8)."""

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
QUORUM_STATE: Final = "quorum-state"
REMOTE_LOG_SNAPSHOT: Final = "remote_log_snapshot"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
META_PROPERTIES: Final = "meta.properties"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
BOOTSTRAP_SNAPSHOT: Final = "bootstrap.checkpoint"
LOCK: Final = ".lock"

REMOTE_INDEX_CACHE: Final = "remote-log-index-cache"
"""The folder in which a broker caches indexes of tiered segments (KIP-405, 3.6.0)."""
LOST_AND_FOUND: Final = "lost+found"
"""A folder in the root of an ext2, ext3 or ext4 file system. ``salvage`` writes into a folder of this name."""

DELETE_FOLDER: Final = "delete"
FUTURE_FOLDER: Final = "future"
STRAY_FOLDER: Final = "stray"
"""DELETE_FOLDER (0.10.2), FUTURE_FOLDER (1.1) and STRAY_FOLDER (3.6.1) are suffixes of folders without live replica."""
COPY: Final = ".copy"
COPY_PART: Final = ".copy.part"
ASIDE: Final = ".aside"
REBUILT: Final = ".rebuilt"
"""COPY to REBUILT are suffixes of folders next to a log dir: the commands that kdump check prints make them."""
SALVAGED: Final = "salvaged"
"""The name of the output folder in the commands with ``kdump salvage`` that kdump check prints; or ``salvaged-2``."""
_STATE_ENDS: Final = (f"-{DELETE_FOLDER}", f"-{FUTURE_FOLDER}", f"-{STRAY_FOLDER}")


class FileName(NamedTuple):
    """The name of a file, the first release that writes it, its content, and the module of :mod:`kdump.formats` for it.

    ``*`` in a name is an offset; in the name of a KRaft snapshot it is an offset and an epoch, as ``OFFSET-EPOCH``.
    """

    name: str
    since: str
    holds: str
    format: str | None = None


FILES: Final = (
    FileName(f"*.{LOG}", "0.8.0", "The records, in batches", "record_layout"),
    FileName(f"*.{INDEX}", "0.8.0", "The byte positions of some offsets in the log", "offset_index"),
    FileName(f"*.{TIME_INDEX}", "0.10.1", "The largest timestamp so far, and the offset that has it", "time_index"),
    FileName(f"*.{TXN_INDEX}", "0.11.0", "The aborted transactions whose marker is in the segment", "txn_index"),
    FileName(
        f"*.{PRODUCER_SNAPSHOT}",
        "0.11.0",
        "The producers of a partition, with their epochs and sequences",
        "producer_snapshot",
    ),
    FileName(LEADER_EPOCHS, "0.11.0", "The start offset of each leader epoch", "leader_epoch"),
    FileName(PARTITION_METADATA, "2.8.0", "The topic id of the folder", "partition_metadata"),
    FileName(f"*.{KRAFT_SNAPSHOT}", "2.8.0", "A snapshot of the metadata log, as batches", "record_layout"),
    FileName(BOOTSTRAP_SNAPSHOT, "3.3.0", "The metadata that a node was formatted with", "record_layout"),
    FileName(QUORUM_STATE, "2.8.0", "The vote of a KRaft node, and the leader that it last followed", "quorum_state"),
    FileName(META_PROPERTIES, "0.9.0", "The ids of the broker, the cluster and the log dir", "meta_properties"),
    FileName(CLEAN_SHUTDOWN, "0.8.0", "The marker of a clean stop", "clean_shutdown"),
    FileName(
        RECOVERY_POINTS, "0.8.1", "The recovery point of each partition: the end of its flushed records", "checkpoints"
    ),
    FileName(HIGH_WATERMARKS, "0.8.0", "The high watermark of each partition", "checkpoints"),
    FileName(LOG_STARTS, "0.11.0", "The log start offset of partitions with deleted records", "checkpoints"),
    FileName(CLEANER_OFFSETS, "0.8.1", "The offset up to which each partition is compacted", "checkpoints"),
    FileName(REMOTE_LOG_SNAPSHOT, "3.6.0", "The segments in tiered storage (up to 3.7)"),
    FileName(LOCK, "0.8.0", "Empty: a running broker holds a lock on it"),
)
"""The files of a log dir and of the folders in it, in the order in which the docs list them."""


def _any(*names: str) -> str:
    return "(?:" + "|".join(map(re.escape, names)) + ")"


class NamePattern:
    """A pattern of names, compiled at first use. Its last matches are cached: many files have equal names."""

    def __init__(self, pattern: str) -> None:
        self.fullmatch = lru_cache(1 << 10)(partial(re.fullmatch, pattern, flags=re.ASCII))


PADDED: Final = 20
"""Number of digits of the offset in a segment's name, as brokers write it."""
_MOST: Final = f"{(1 << 63) - 1:0{PADDED}}"
STEM: Final = r"(?P<stem>(?P<offset>\d{1,20})(?:-[\w-]{22})?)"
"""The base offset, and in remote storage also the segment id."""
SEGMENT_NAME: Final = NamePattern(rf"{STEM}\.{LOG}(?P<state>\.{_any(DELETED, CLEANED, SWAP)})?")
_COPY_NAME: Final = NamePattern(rf"(?P<offset>\d{{1,20}})\.{LOG}.+")
LEFTOVER_ENDS: Final = (f".{DELETED}", f".{CLEANED}", f".{SWAP}")
"""The ends of the names of segments that are not part of a live log."""
_READ_ENDS: Final = (f".{LOG}", *LEFTOVER_ENDS)
INDEX_NAME: Final = NamePattern(rf"{STEM}\.(?P<suffix>{'|'.join(INDEXES)})")
KRAFT_SNAPSHOT_NAME: Final = NamePattern(rf"(?P<offset>\d{{20}})-(?P<epoch>\d{{10}})\.{KRAFT_SNAPSHOT}")
SIBLING_NAME: Final = NamePattern(
    rf".*\.{_any(*SIBLINGS)}(?:\.\w+)?|.*-checkpoint|.*\.{KRAFT_SNAPSHOT}\.{_any(PART, DELETED)}|.*\.{TMP}|"
    + _any(PARTITION_METADATA, QUORUM_STATE, META_PROPERTIES, CLEAN_SHUTDOWN)
)
PLAIN_NAME: Final = NamePattern(
    rf"00\d{{18}}\.{_any(*PREALLOCATED, PRODUCER_SNAPSHOT)}|{_any(LEADER_EPOCHS, PARTITION_METADATA)}"
)
"""Matches the files that nearly every partition has beside its segments, with offsets below 10^18."""
LOG_DIR_FILE: Final = NamePattern(
    rf".*-offset-checkpoint|.*\.{KRAFT_SNAPSHOT}|" + _any(META_PROPERTIES, CLEAN_SHUTDOWN)
)
TIERED_FOLDER: Final = r"(?P<topic>.+)-(?P<id>[A-Za-z0-9_-]{22})"


_FOLDER_STATE: Final = NamePattern(
    rf"\S+-\S+\.\S+-(?P<state>{DELETE_FOLDER}|{FUTURE_FOLDER}|{STRAY_FOLDER})".replace(r"\S", r"[^ \t\n\v\f\r]")
)
"""The name of a folder with a state. In Java, unlike Python, ``\\S`` excludes only ASCII white space."""


class FolderName(NamedTuple):
    """Topic and partition in the name of a folder; ``state`` is empty, delete, future or stray."""

    topic: str
    partition: int
    state: str


@lru_cache(1 << 15)  # a check parses the name of a folder five times
def parse_folder(name: str) -> FolderName | None:
    """Return the topic, partition and state in the name of a folder; None if the name has another form.

    Source: ``UnifiedLog.parseTopicPartitionName`` (0.10.2). ``Integer.parseInt`` reads the number, so ``a-+1``,
    ``a-01`` and digits of other scripts are valid. Java decodes file names by its locale; here it is UTF-8.
    """
    found = None
    if name.endswith(_STATE_ENDS):
        found = _FOLDER_STATE.fullmatch(name)
        if found is None:
            return None
    topic, _, number = (name if found is None else name.rpartition(".")[0]).rpartition("-")
    partition = java_integer(number, 32)
    if not topic or partition is None:
        return None
    return FolderName(intern(topic), partition, "" if found is None else found["state"])


@lru_cache(1 << 10)
def offset_of(name: str) -> int | None:
    """Return the offset at the beginning of a file name (LogFileUtils.offsetFromFile), or None if Java throws."""
    stem, dot, _ = name.partition(".")
    return java_integer(stem, 64) if dot else None


def snapshot_id(name: str) -> tuple[int, int] | None:
    """Return end offset and epoch at fixed positions in a KRaft snapshot's name; None if ``Snapshots.parse`` throws."""
    offset, epoch = java_integer(name[:20], 64), java_integer(name[21:31], 32)
    return None if offset is None or epoch is None or len(name) < 31 else (offset, epoch)


def opened_name(name: str) -> str | None:
    """Return the name, with 20 digits, that a broker opens for the ``.log`` file ``name``; None if it has no offset."""
    offset = offset_of(name)
    if offset is None:
        return None
    return f"{'-' * (offset < 0)}{abs(offset):0{PADDED}}{name[name.rindex(f'.{LOG}') :]}"


def ignored_base(name: str) -> int | None:
    """Return the offset in a name such as ``N.log.gz`` or ``N.log.bak``, which a broker ignores; None for other names.

    A broker looks only at the end of a name (``LogFileUtils.isLogFile``, ``LogLoader``).
    """
    found = None if name.endswith(_READ_ENDS) else _COPY_NAME.fullmatch(name)
    return None if found is None else int(found["offset"])


class Name(NamedTuple):
    """Topic and partition in a folder's name; None if the name has none."""

    topic: str | None
    partition: int | None


def folder_name(path: str) -> Name:
    """Return the topic and partition in the path of a folder of a log dir or of remote storage."""
    above, name = posixpath.split(path.rstrip("/"))
    return folder_name_in(posixpath.basename(above), name)


def folder_name_in(above: str, name: str) -> Name:
    """Return the topic and partition of folder ``name`` in the folder ``above``."""
    if found := parse_folder(name):
        return Name(found.topic, found.partition)
    if name.isdecimal() and (tiered := re.fullmatch(TIERED_FOLDER, above)):
        return Name(tiered["topic"], java_integer(name, 32))
    return Name(None, None)


def is_foreign(name: str) -> bool:
    """Return whether a broker stops if a folder of this name is in a log dir (LogManager.loadLogs)."""
    return parse_folder(name) is None and name != REMOTE_INDEX_CACHE


def leftover_state(path: str) -> str | None:
    """Return delete, future or stray for a folder without a live replica, None for any other folder."""
    path = path.rstrip("/")
    found = parse_folder(posixpath.basename(path)) if path.endswith(_STATE_ENDS) else None
    return None if found is None else found.state


def is_padded(stem: str) -> bool:
    """Return whether a stem is an offset of 20 digits, as brokers write it (LogFileUtils.filenamePrefixFromOffset)."""
    return len(stem) == PADDED and stem.isdecimal() and stem.isascii() and stem <= _MOST


def is_sibling(name: str) -> bool:
    """Return whether SIBLING_NAME matches a name, for example of an index, producer snapshot or checkpoint."""
    plain = name.removesuffix(f".{LOG}").isdecimal()  # nearly always the name of a segment
    return not plain and SIBLING_NAME.fullmatch(name) is not None


def is_kraft_snapshot(path: str) -> bool:
    """Return whether a path has the suffix of KRaft snapshots, which ``bootstrap.checkpoint`` also has."""
    return path.endswith(f".{KRAFT_SNAPSHOT}")


def beside_log(path: str, suffix: str) -> str:
    """Return the path of a ``.log`` file with ``suffix`` instead of ``log``. A state such as ``.deleted`` is kept."""
    stem, _, state = path.rpartition(f".{LOG}")
    return f"{stem}.{suffix}{state}"
