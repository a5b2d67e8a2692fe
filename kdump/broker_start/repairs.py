"""Makes advice and shell commands for causes that prevent a start or take a log dir offline. It runs no command."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

from kdump.broker_start import broker_dirs
from kdump.broker_start.outcome import StartOutcome
from kdump.checks.repair_commands import aside, compared, in_turn, metadata_command, replaced, swaps_aside, written
from kdump.errors import many
from kdump.findings import labelled, salvage
from kdump.findings.codes import Code
from kdump.findings.verdict import WITHOUT_LOG_DIR
from kdump.formats.partition_metadata import id_of, id_text
from kdump.internal_topics import CLUSTER_METADATA
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import parse_folder
from kdump.primitives.terminal import path_text, shell_path, shell_word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kdump.broker_start.outcome import BrokerStart, LogStart, StartCause

MOVED: Final = frozenset(
    {
        Code.FOREIGN_FOLDER,
        Code.NAME,
        Code.NAME_NO_OFFSET,
        Code.LEADER_EPOCHS_BROKEN,
        Code.CHECKPOINT_BROKEN,
        Code.CLEANER_CHECKPOINT_BROKEN,
        Code.INDEX_UNREADABLE,
        Code.TXN_INDEX_VERSION,
        Code.SNAPSHOT_UNREADABLE,
        Code.FOLDER_IS_FILE,
        Code.FILE_BLOCKED,
        Code.NO_FILE,
    }
)
"""Causes that are repaired by moving the file or folder away: a broker starts without it."""
ADVICE: Final = {
    Code.FOREIGN_FOLDER: "Move the folder out of the log dir.",
    Code.NAME: "Move the file out of the log dir: no broker reads it.",
    Code.NAME_NO_OFFSET: "Move the file out of the log dir: no broker reads it.",
    Code.LEADER_EPOCHS_BROKEN: "Move the file away: no record is lost, and a broker writes a new file.",
    Code.CHECKPOINT_BROKEN: "Move the file away: a broker starts without it.",
    Code.CLEANER_CHECKPOINT_BROKEN: "Move the file away: compaction then begins at the log start.",
    Code.INDEX_UNREADABLE: "Move the file away: a broker rebuilds the index from the log.",
    Code.INDEX_TOO_LARGE: "Set a larger segment.index.bytes of the topic before this broker starts.",
    Code.FOLDER_IS_DANGLING: "The folder is a link, and its target is missing. Mount the disk of the target, and run "
    "kdump check again. Move the link away only if the disk is lost.",
    Code.LOG_DIR_MISSING: "Mount the disk of the log dir, and run kdump check again. Only if the disk is lost: "
    f"{WITHOUT_LOG_DIR}, and run kdump check again.",
    Code.LOG_DIR_TWICE: "Write one path of the folder in log.dirs and metadata.log.dir. Change no file in the folder.",
    Code.FILE_IMMUTABLE: "Remove the attributes that forbid changes. lsattr -d shows them.",
    Code.FILE_BLOCKED: "Move it away: a broker writes its own file there.",
    Code.FOLDER_IS_FILE: "Move the file away: the broker needs a folder of this name.",
    Code.DIRECTORY_ID_TWICE: "Remove the line directory.id from one of the two files: a broker assigns a new id, "
    "and no record is lost.",
    Code.DIRECTORY_ID_RESERVED: "Remove the line directory.id from the file: a broker assigns a new id.",
    Code.VOTER_DIRECTORY_DIFFERS: "Write the directory.id that the VotersRecord of the metadata log has for this node.",
    Code.CLUSTER_ID_DIFFERS: "The log dirs belong to two clusters. Find the cluster id of this broker in its "
    "application logs, after 'Cluster ID =', and remove the log dirs of the other cluster from log.dirs.",
    Code.NODE_ID_DIFFERS: "Remove {log_dir} from log.dirs: it belongs to broker {found}.",
    Code.TWO_FOLDERS: "Keep a copy of both folders. Then move away the folder that lacks records.",
    Code.METADATA_REPLAY_BROKEN: "Copy __cluster_metadata-0 from another controller, if its log lacks this record. If "
    "all controllers have the record, kdump rebuild-cluster writes new log dirs without it.",
    Code.METADATA_TOO_NEW: "Start the release that last ran with these log dirs.",
    Code.CONFIG_REFUSED: "Start the previous release, and set a valid value there with kafka-configs.sh --alter.",
    Code.QUORUM_STATE_BROKEN: "Move the file away: the node then starts, but has forgotten its vote.",
    Code.PARTITION_METADATA_BROKEN: "Write the file with the topic id from the metadata log.",
    Code.SWAPPED: "Move the .swap files of this base offset away before a broker starts.",
    Code.SEGMENT_TOO_LARGE: "kdump salvage writes the batches into segments of at most 1 GiB.",
    Code.SPLIT_REFUSED: "The offsets of the batches are not those of the file name. kdump salvage writes the batches "
    "into segments with correct names.",
    Code.FUTURE_BESIDE_CURRENT: "Move the -future folder away: it has no records after the end of the current log.",
    Code.META_PROPERTIES_MISSING: "Write the file with the ids of this broker and cluster.",
    Code.META_PROPERTIES_UNREADABLE: "Write the file with the ids of this broker and cluster.",
    Code.NODE_ID_MISSING: "Write the file with the ids of this broker and cluster.",
}
FUTURE_IS_AHEAD: Final = (
    "The -future folder has records after the end of the current log. Keep a copy of both folders, and move one away."
)
SPARE: Final = {
    Code.METADATA_SNAPSHOT_BROKEN: (
        "Move the snapshot away: the metadata log has all records, and the node reads them instead.",
        "Copy the snapshot from another controller or from a backup.",
    ),
    Code.BOOTSTRAP_BROKEN: (
        "Move the file away: this node has the metadata log, and starts without this file.",
        "Restore __cluster_metadata-0 and this file from a backup.",
    ),
}
"""Cause -> two pieces of advice: for a file that the metadata log makes unnecessary, and for a file that is needed."""
NO_IDS: Final = frozenset({*broker_dirs.NO_IDS, Code.NODE_ID_MISSING})
"""Causes that are repaired by writing ``meta.properties``."""
FOREIGN: Final = frozenset({Code.CLUSTER_ID_DIFFERS, Code.NODE_ID_DIFFERS})
"""Causes that are repaired by removing a log dir from log.dirs."""
NEW_ID: Final = '"cluster.id=$(head -c 16 /dev/urandom | base64 | tr +/ AA | cut -c 1-22)"'
"""A shell word that expands to the line ``cluster.id=`` with a new id."""
SOLE_NODE: Final = (
    "only for the sole node of a cluster, if its old cluster id is not found (otherwise write the file with the old id)"
)
OF_CLUSTER: Final = "only if this log dir belongs to cluster {cluster}, as the other log dirs do"
TARGET: Final = "the target of the link, whose disk must be mounted"
DISK_IS_LOST: Final = "only if the disk is lost"
BY_SNAPSHOT: Final = "start on a snapshot that has all records below offset {offset}, and not record {offset}"


class Repairs:
    """The advice and commands for one broker.

    ``ids``: topic name -> topic id. ``nodes``: broker id -> directory ids. ``directories`` and ``clusters``:
    normalized path of a log dir -> directory.id and cluster.id. ``clusters`` has the log dirs of all brokers.
    """

    def __init__(
        self,
        start: BrokerStart,
        ids: Mapping[str, bytes],
        nodes: Mapping[int, tuple[str, ...]],
        directories: Mapping[str, str],
        clusters: Mapping[str, str],
    ) -> None:
        self._start, self._ids, self._nodes = start, ids, nodes
        self._directories, self._clusters = directories, clusters

    def advice(self, cause: StartCause) -> str:
        """Return the advice for a cause, or "" if there is none."""
        text = ADVICE.get(cause.code, "")
        if cause.code is Code.METADATA_REPLAY_BROKEN and self._has_only_copy:
            text = (
                "No other controller has the metadata log. Start the node on a snapshot of the records before the "
                f"broken record; {self._later(cause)}. Or restore the metadata log from a backup without this record: "
                "all changes after the backup are then lost."
            )
        if cause.code is Code.NODE_ID_DIFFERS:
            text = text.format(log_dir=path_text(_log_dir_of(cause)), found=cause.found)
        if cause.code in SPARE:
            unneeded, needed = SPARE[cause.code]
            text = unneeded if self._is_unneeded(cause) else needed
        if _swap(cause):
            text = f"{ADVICE[Code.SWAPPED]} If records are then missing, only these files have them."
        if self._is_future_ahead(cause):
            text = FUTURE_IS_AHEAD
        if cause.code in NO_IDS:
            text += f" It needs the lines {', '.join(self._lines(cause))}."
            if self._cluster(cause) is None:
                text += (
                    " No file in these log dirs has the cluster id. Find it in the application logs of this broker, "
                    "after 'Cluster ID =', or in meta.properties of another node of the cluster."
                )
                if self._is_alone and not self._clusters:
                    text += (
                        " The command of this finding writes a new cluster id. No record is lost by it, but run it "
                        "only if the cluster has no other node and you cannot find the old id: nodes of a cluster "
                        "refuse a node with another cluster id."
                    )
        return text

    def commands(self, cause: StartCause) -> Iterator[str]:
        """Yield commands that remove or examine a cause; with log dirs of other brokers, only a check without them."""
        file = cause.file
        if file is None or (self.is_mixed and cause.code not in FOREIGN):
            return
        if self._is_unneeded(cause) or cause.code in MOVED or cause.code is Code.QUORUM_STATE_BROKEN:
            yield aside(file)
        elif cause.code is Code.PARTITION_METADATA_BROKEN:
            folder = posixpath.dirname(file)
            found = parse_folder(posixpath.basename(folder))
            topic_id = self._ids.get(found.topic) if found else None
            if topic_id is not None:
                yield metadata_command(folder, id_text(topic_id), exists=True)
        elif cause.code in {Code.DIRECTORY_ID_TWICE, Code.DIRECTORY_ID_RESERVED}:
            yield f"sed -i.bak '/^directory[.]id=/d' {shell_path(_properties(file))}"
        elif cause.code is Code.VOTER_DIRECTORY_DIFFERS:
            line, path = f"directory.id={cause.expected}", shell_path(_properties(file))
            expression = f"s/^directory[.]id=.*/{line}/"
            yield f"echo {line} >> {path}" if cause.found is None else f"sed -i.bak '{expression}' {path}"
        elif cause.code in NO_IDS:
            yield from self._write_ids(cause)
        elif cause.code is Code.FOLDER_IS_DANGLING:
            yield labelled(TARGET, f"ls -l {shell_path(file)}")
            yield labelled(DISK_IS_LOST, aside(file))
        elif cause.code is Code.FILE_IMMUTABLE:
            yield f"chattr -R -i -a {shell_path(file)}"
        elif cause.code in FOREIGN:
            yield from self._check_without_foreign(cause)
        elif cause.code is Code.METADATA_REPLAY_BROKEN and self._start.fatal[0] is cause:
            yield from self._begin_with_a_snapshot(cause)
        else:
            yield from self._mend_log(cause)

    def _keep_one(self, second: str) -> Iterator[str]:
        """Yield the commands that compare two folders of a partition, and move away the one that ends earlier."""
        folder = posixpath.basename(second)
        ends = {log.path: log.log_end_offset or 0 for log in self._start.logs if log.folder == folder and log.path}
        first = next((path for path in ends if path != second), None)
        found = parse_folder(folder)
        if first is None or found is None:
            return
        dirs = [posixpath.dirname(path) or "." for path in (first, second)]
        yield labelled("this shows which folder lacks records", compared(dirs, found.topic))
        kept, moved = (first, second) if ends[first] >= ends.get(second, 0) else (second, first)
        yield labelled(f"only if {path_text(kept)} lacks no record of the other", aside(moved))

    def _mend_log(self, cause: StartCause) -> Iterator[str]:
        """Yield the commands for a segment, a second folder or a -future folder that prevents the start."""
        if swap := _swap(cause):
            yield swaps_aside(swap)
        elif cause.code in {Code.TWO_FOLDERS, Code.METADATA_LOG_MISPLACED}:
            yield from self._keep_one(cause.file or "")
        elif cause.code in {Code.SPLIT_REFUSED, Code.SEGMENT_TOO_LARGE} and CLUSTER_METADATA not in (cause.file or ""):
            folder = posixpath.dirname(cause.file or "")
            yield from (salvage([shell_path(folder)]), replaced(folder))
        elif not self._is_future_ahead(cause):
            yield from (aside(log.path or "") for log in self._futures(cause))

    def _futures(self, cause: StartCause) -> list[LogStart]:
        """Return the -future folders beside the folder ``cause.file``, if the code is FUTURE_BESIDE_CURRENT."""
        if cause.code is not Code.FUTURE_BESIDE_CURRENT:
            return []
        logs = self._start.logs
        return [
            log for log in logs if log.outcome is StartOutcome.FUTURE and (log.path or "").startswith(f"{cause.file}.")
        ]

    def _is_future_ahead(self, cause: StartCause) -> bool:
        """Return whether a -future folder has records after the end of the current folder."""
        current = next((log.log_end_offset or 0 for log in self._start.logs if log.path == cause.file), 0)
        return any((log.log_end_offset or 0) > current for log in self._futures(cause))

    def _check_without_foreign(self, cause: StartCause) -> Iterator[str]:
        """Yield the command that checks the log dirs without those of other brokers: only for the first such cause."""
        foreign = [each for each in self._start.fatal if each.code in FOREIGN]
        others = {_log_dir_of(each) for each in foreign}
        own = [shell_path(each) for each in self._start.log_dirs if posixpath.normpath(each) not in others]
        if cause is foreign[0] and own and self._start.node_id is not None:
            names = " and ".join(sorted(map(path_text, others)))
            check = f"kdump check {' '.join(own)} --config node.id={self._start.node_id}"
            yield labelled(f"after the removal of {names} from log.dirs", check)

    def _later(self, cause: StartCause) -> str:
        """Return a text on the later records. A start from a snapshot loses them together with the broken record."""
        ends = [log.log_end_offset for log in self._start.logs if log.topic == CLUSTER_METADATA]
        end = max((each for each in ends if each is not None), default=None)
        lists = "kdump metadata --events lists them"
        if end is None or cause.offset is None:
            return f"later records are lost ({lists})"
        count = max(end - cause.offset - 1, 0)
        if not count:
            return "it is the last record of the metadata log, so no other record is lost"
        return f"{many(count, 'later record is', 'later records are')} lost ({lists})"

    def _is_unneeded(self, cause: StartCause) -> bool:
        """Return whether the broken file can be moved away because the node starts from the metadata log alone.

        A node without a metadata log needs ``bootstrap.checkpoint``. A log that begins above offset 0 needs a snapshot.
        """
        logs = [log for log in self._start.logs if log.topic == CLUSTER_METADATA]
        if cause.code not in SPARE or not any(log.log_end_offset for log in logs):
            return False
        whole = (StartOutcome.LOADED, StartOutcome.RECOVERED)
        return cause.code is Code.BOOTSTRAP_BROKEN or any(
            log.log_start_offset == 0 and log.outcome in whole for log in logs
        )

    @property
    def is_mixed(self) -> bool:
        """Whether log dirs of other brokers or clusters are among the log dirs."""
        return any(cause.code in FOREIGN for cause in self._start.fatal)

    @property
    def _node(self) -> int | None:
        return self._start.node_id if self._start.node_id is not None else next(iter(self._nodes), None)

    @property
    def _is_alone(self) -> bool:
        return len(self._nodes) == 1

    @property
    def _has_only_copy(self) -> bool:
        """Whether no other node of the cluster has a copy of the metadata log."""
        return self._is_alone and self._start.is_sole_controller

    def _lines(self, cause: StartCause) -> list[str]:
        node = str(self._node) if self._start.node_id is not None or self._is_alone else "N (of server.properties)"
        cluster = self._cluster(cause) or "ID"
        directory = self._directory(cause)
        return [
            "version=1",
            f"node.id={node}",
            f"cluster.id={cluster}",
            *([f"directory.id={directory}"] if directory else []),
        ]

    def _cluster(self, cause: StartCause) -> str | None:
        """Return a valid cluster id in the broken file, else that of the other log dirs of the broker, else None."""
        own = self._clusters.get(_log_dir_of(cause), "")
        return own if id_of(own) else self._start.cluster_id

    def _others_cluster(self) -> str | None:
        """Return the only cluster id in the log dirs of all brokers; None if there is none, or if there are several."""
        found = set(self._clusters.values())
        return found.pop() if len(found) == 1 else None

    def _directory(self, cause: StartCause) -> str | None:
        """Return the directory id in the broken file if it is registered, or if it is valid and no id is registered.

        Else return the registered id that no other log dir has; None if there are none or several such ids.
        """
        mine = _log_dir_of(cause)
        own = self._directories.get(mine)
        known = {each for path, each in self._directories.items() if path != mine}
        candidates = [each for each in self._nodes.get(self._node or 0, ()) if each not in known]
        is_valid = int.from_bytes(id_of(own or "") or b"", "big") >= broker_dirs.RESERVED
        if own in candidates or (is_valid and not self._nodes):
            return own
        return candidates[0] if len(candidates) == 1 else None

    def _write_ids(self, cause: StartCause) -> Iterator[str]:
        lines, is_known = self._lines(cause), self._cluster(cause) is not None
        if (self._start.node_id is None or not is_known) and not self._is_alone:
            return
        others = self._others_cluster()
        if not is_known and self._clusters and others is None:
            return
        new = NEW_ID if others is None else shell_word(f"cluster.id={others}")
        words = [new if line == "cluster.id=ID" else shell_word(line) for line in lines]
        path, exists = _properties(cause.file or ""), cause.code is not Code.META_PROPERTIES_MISSING
        command = written(f"printf '%s\\n' {' '.join(words)}", path, exists=exists)
        label = SOLE_NODE if others is None else OF_CLUSTER.format(cluster=others)
        yield command if is_known else labelled(label, command)

    def _begin_with_a_snapshot(self, cause: StartCause) -> Iterator[str]:
        """Yield the commands with which the node starts from a snapshot without the broken record.

        If another node has a copy, or the record's offset is 0 or unknown, yield a command that shows the metadata.
        """
        file = cause.file or ""
        folder = file if posixpath.basename(file).startswith(CLUSTER_METADATA) else posixpath.dirname(file)
        log_dir = posixpath.dirname(folder) or "."
        if not self._has_only_copy or not cause.offset:
            yield f"kdump metadata {shell_path(log_dir)}"
            return
        made = f"{log_dir.rstrip('/')}.snapshot" if log_dir != "." else "../snapshot"
        snapshot = f"kdump metadata {shell_path(log_dir)} --offset {cause.offset} --write-snapshot {shell_path(made)}"
        new = f"{shell_path(made)}/*.checkpoint"
        begin = f"mkdir {shell_path(folder)}", f"mv {new} {shell_path(folder)}"
        for command in (snapshot, in_turn([f"ls {new}", aside(folder), *begin])):
            yield labelled(BY_SNAPSHOT.format(offset=cause.offset), command)


def _swap(cause: StartCause) -> str | None:
    """Return the ``.log.swap`` file that prevents the start, renamed before a split failed; None for another file."""
    file, suffix = cause.file or "", f".{file_names.LOG}.{file_names.SWAP}"
    renamed = f"{file}.{file_names.SWAP}"
    return next((each for each in (file, renamed) if each.endswith(suffix) and cause.text.startswith(f"{each},")), None)


def normal(of_dirs: Mapping[str, str]) -> dict[str, str]:
    return {posixpath.normpath(path): each for path, each in of_dirs.items()}


def _log_dir_of(cause: StartCause) -> str:
    """Return the normalized path of the log dir whose ``meta.properties`` is the file of a cause."""
    return posixpath.normpath(posixpath.dirname(_properties(cause.file or "")))


def _properties(file: str) -> str:
    return file if file.endswith(file_names.META_PROPERTIES) else posixpath.join(file, file_names.META_PROPERTIES)
